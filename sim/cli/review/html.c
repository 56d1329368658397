/* html.c - the frame of a page, its table cells, and figures with renamed ids.
 */
#include "sim/cli/review/html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/texts/cli_texts.h"
#include "traces/printable.h"

/* Writes the characters from text up to end. */
static void put_text(FILE *out, const char *text, const char *end)
{
    static const char special[] = "&<>\"'";
    static const char *const written[] = {"&amp;", "&lt;", "&gt;", "&quot;",
                                          "&#39;"};

    char form[PRINTABLE_ROOM];

    while (text < end) {
        const char *found = strchr(special, *text);

        text += printable_character(text, form);
        fputs(found ? written[found - special] : form, out);
    }
}

void html_text(FILE *out, const char *text)
{
    put_text(out, text, text + strlen(text));
}

void html_between(FILE *out, const char *before, const char *text,
                  const char *after)
{
    fputs(before, out);
    html_text(out, text);
    fputs(after, out);
}

void html_lines(FILE *out, const char *text)
{
    for (;;) {
        const char *end = text + strcspn(text, "\n");

        put_text(out, text, end);
        fputc('\n', out);
        if (!*end)
            return;
        text = end + 1;
    }
}

void html_open(FILE *out, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n<title>",
          out);
    html_text(out, title);
    fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n",
            text_page_css);
}

void html_close(FILE *out)
{
    fprintf(out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n",
            text_page_js);
}

/* -- cells --------------------------------------------------------------- */

void html_size(FILE *out, frag_size size)
{
    double x = (double)size;
    const char *unit = "MiB";

    x /= size < FRAG_GIB ? (double)FRAG_MIB : (double)FRAG_GIB;
    if (size >= FRAG_GIB)
        unit = "GiB";
    fprintf(out, "<td data-v=\"%" PRIu64 "\">%.2f %s</td>", size, x, unit);
}

const char *html_duration(double seconds, char text[32])
{
    double x = seconds < 0 ? -seconds : seconds;

    if (x == 0)
        snprintf(text, 32, "0 s");
    else if (x < 0.9995e-3)
        snprintf(text, 32, "%.3g \u00b5s", 1e6 * seconds);
    else if (x < 0.9995)
        snprintf(text, 32, "%.3g ms", 1e3 * seconds);
    else
        snprintf(text, 32, x < 99.95 ? "%.3g s" : "%.0f s", seconds);
    return text;
}

void html_seconds(FILE *out, double seconds)
{
    char text[32];

    fprintf(out, "<td data-v=\"%.17g\">%s</td>", seconds,
            html_duration(seconds, text));
}

void html_count(FILE *out, uint64_t n)
{
    fprintf(out, "<td data-v=\"%" PRIu64 "\">%" PRIu64 "</td>", n, n);
}

void html_ratio(FILE *out, double x)
{
    fprintf(out,
            x < 10 ? "<td data-v=\"%.17g\">%.3f</td>"
                   : "<td data-v=\"%.17g\">%.1f</td>",
            x, x);
}

void html_code(FILE *out, const char *text)
{
    html_between(out, "<td class=\"l w\"><code>", text, "</code></td>");
}

void html_none(FILE *out)
{
    fputs("<td data-v=\"\">\u2013</td>", out);
}

/* -- figures ------------------------------------------------------------- */

/* The prefixes of ids that gnuplot uses in every figure (points, groups,
 * filters), with the character before them. */
static const char *const marks[] = {"'gp",      "'#gp",     "\"gnuplot_",
                                    "'textbox", "#textbox", "'greybox",
                                    "#greybox"};

/* The mark with which `text` begins; NULL if there is none. */
static const char *mark_at(const char *text)
{
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (!strncmp(text, marks[i], strlen(marks[i])))
            return marks[i];
    return NULL;
}

/* Writes the figure: its number is inserted into each id, and its own title,
 * the first one, is replaced. */
static void put_svg(FILE *out, const char *text, unsigned number,
                    const char *title)
{
    static const char open_tag[] = "<title>", close_tag[] = "</title>";
    const char *own = strstr(text, open_tag), *mark;

    while (*text) {
        if (text == own && strstr(own, close_tag)) {
            fputs(open_tag, out);
            html_text(out, title);
            text = strstr(own, close_tag);
        } else if ((mark = mark_at(text))) {
            size_t open = strspn(mark, "'\"#");

            fprintf(out, "%.*sf%u%s", (int)open, mark, number, mark + open);
            text += strlen(mark);
        } else {
            fputc(*text++, out);
        }
    }
}

/* The contents of a file as a string, to be freed; NULL if it cannot be read.
 */
static char *read_text(const char *path)
{
    FILE *in = fopen(path, "r"), *to;
    char *text = NULL, bytes[4096];
    size_t size, n;

    if (!in)
        return NULL;
    to = open_memstream(&text, &size);
    while (to && (n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        fwrite(bytes, 1, n, to);
    if (to)
        fclose(to);
    fclose(in);
    return text;
}

enum frag_err html_svg(FILE *out, const char *path, unsigned number,
                       const char *title, struct frag_error *e)
{
    char *text = read_text(path);
    const char *svg = text ? strstr(text, "<svg") : NULL;

    if (svg)
        put_svg(out, svg, number, title);
    free(text);
    return svg ? FRAG_OK
               : frag_fail(e, FRAG_IO, "%s: the figure cannot be read", path);
}
