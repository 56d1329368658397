/* drawing.c - checks the options of a drawing, and hands them to gnuplot. */
#include "sim/cli/gnuplot/drawing.h"

#include <string.h>

#include "traces/printable.h"

static bool can_draw(const char *out)
{
    static const char *const suffixes[] = {".svg", ".png", ".pdf"};
    const char *dot = out ? strrchr(out, '.') : NULL;

    for (size_t i = 0; dot && i < sizeof(suffixes) / sizeof(*suffixes); i++)
        if (!strcmp(dot, suffixes[i]))
            return true;
    return false;
}

int drawing_check(const struct call *call, const struct drawing *d, bool force)
{
    return can_draw(d->out) ? cli_may_replace(call, d->out, force)
                            : cli_misuse(call, "expected -o FILE.svg, FILE.png "
                                               "or FILE.pdf");
}

void drawing_quote(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

/* gnuplot does not escape "]]>", which XML forbids in a text. */
static void put_title(FILE *out, const char *title)
{
    char form[PRINTABLE_LINE];

    printable_text(form, sizeof(form), title);
    for (char *c = strstr(form, "]]>"); c; c = strstr(c, "]]>"))
        c[2] = ' ';
    fputs("; user_title=", out);
    drawing_quote(out, form);
}

void drawing_put(FILE *out, const struct drawing *d)
{
    static const char *const themes[] = {"light", "dark", "print"};

    if (d->title)
        put_title(out, d->title);
    fprintf(out, "; theme='%s'", themes[d->theme]);
}
