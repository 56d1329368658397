/* html.c - escaped text and table cells of a page. */
#include "sim/cli/page/page.h"

#include <inttypes.h>
#include <string.h>

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

void html_list(FILE *out, const char *const *items, size_t count)
{
    fputs("<ul>\n", out);
    for (size_t i = 0; i < count; i++)
        html_between(out, "<li>", items[i], "</li>\n");
    fputs("</ul>", out);
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
