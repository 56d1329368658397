/* pdf.c - overwrites the dates of a PDF in place; the length does not change.
 */
#include "sim/cli/gnuplot/pdf.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sim/cli/cli.h"

enum { DIGITS = 14 }; /* of "D:19700101000000" */

static void date_text(char text[DIGITS + 1])
{
    time_t at = cli_is_reproducible() ? (time_t)cli_now() : 0;
    struct tm when;

    if (!gmtime_r(&at, &when) ||
        strftime(text, DIGITS + 1, "%Y%m%d%H%M%S", &when) != DIGITS)
        snprintf(text, DIGITS + 1, "19700101000000");
}

void pdf_settle_dates(const char *path)
{
    static const char key[] = "Date (D:"; /* CreationDate, ModDate */
    FILE *file = fopen(path, "r+b");
    char magic[4] = "", date[DIGITS + 1];
    size_t matched = 0;
    int c;

    if (!file)
        return;
    date_text(date);
    c = fread(magic, 1, 4, file) == 4 && !memcmp(magic, "%PDF", 4) ? 0 : EOF;
    while (c != EOF && (c = getc(file)) != EOF) {
        matched = c == key[matched] ? matched + 1 : c == key[0];
        if (key[matched])
            continue;
        /* C requires a seek between reading and writing a stream. */
        fseek(file, 0, SEEK_CUR);
        fwrite(date, 1, DIGITS, file);
        fseek(file, 0, SEEK_CUR);
        matched = 0;
    }
    fclose(file);
}
