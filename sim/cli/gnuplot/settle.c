/* settle.c - rewrites the titles of an SVG file, and overwrites the dates of a
 * PDF in place; its length does not change. */
#include "sim/cli/gnuplot/settle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/cli/cli.h"

/* -- SVG ----------------------------------------------------------------- */

static const char open_tag[] = "<title>", close_tag[] = "</title>";

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc(*text, out);
        }
}

/* Writes the title element at `at`; returns its end. */
static const char *put_title(FILE *out, const char *at, const char *title)
{
    static const char whole[] = "Gnuplot</", part[] = "gnuplot_plot_";
    const char *name = at + strlen(open_tag), *end = strstr(name, close_tag);

    end = end ? end + strlen(close_tag) : name + strlen(name);
    if (!strncmp(name, whole, strlen(whole))) {
        fputs(open_tag, out);
        put_escaped(out, title);
        fputs(close_tag, out);
    } else if (strncmp(name, part, strlen(part)) != 0) {
        fwrite(at, 1, (size_t)(end - at), out);
    }
    return end;
}

static bool put_all(const char *path, const char *text, const char *title)
{
    FILE *out = fopen(path, "w");
    const char *at;
    bool done;

    if (!out)
        return false;
    for (; (at = strstr(text, open_tag)); text = put_title(out, at, title))
        fwrite(text, 1, (size_t)(at - text), out);
    fputs(text, out);
    done = !ferror(out);
    return fclose(out) == 0 && done;
}

/* The contents of an SVG file, to be freed. NULL with *err OK if it is another
 * file, and else if it cannot be read. */
static char *read_svg(const char *path, enum frag_err *err)
{
    static const char start[] = "<?xml";
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    bool is_read = file && getdelim(&text, &room, '\0', file) > 0;

    if (file)
        fclose(file);
    *err = is_read ? FRAG_OK : FRAG_IO;
    if (is_read && !strncmp(text, start, strlen(start)))
        return text;
    free(text);
    return NULL;
}

static enum frag_err set_titles(const char *path, const char *title,
                                struct frag_error *e)
{
    enum frag_err err;
    char *text = read_svg(path, &err);

    if (text && !put_all(path, text, title))
        err = FRAG_IO;
    if (err == FRAG_IO)
        frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    free(text);
    return err;
}

/* -- PDF ----------------------------------------------------------------- */

enum { DIGITS = 14 }; /* of "D:19700101000000" */

static void date_text(char text[DIGITS + 1])
{
    time_t at = cli_is_reproducible() ? (time_t)cli_now() : 0;
    struct tm when;

    if (!gmtime_r(&at, &when) ||
        strftime(text, DIGITS + 1, "%Y%m%d%H%M%S", &when) != DIGITS)
        snprintf(text, DIGITS + 1, "19700101000000");
}

static void settle_dates(const char *path)
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

enum frag_err settle_picture(const char *path, const char *title,
                             struct frag_error *e)
{
    FRAG_TRY(set_titles(path, title, e));
    settle_dates(path);
    return FRAG_OK;
}
