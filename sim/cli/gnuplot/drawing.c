/* drawing.c - checks the options of a drawing, and hands them to gnuplot. */
#include "sim/cli/gnuplot/drawing.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "traces/printable.h"

enum { LEAST_SIDE = 100, MOST_SIDE = 20000 }; /* pixels of --size */
enum { LEAST_LETTER = 4, MOST_LETTER = 72 };  /* points of --font */
enum { NAME = 64 };                           /* bytes of a font's name */

/* What the options say, in numbers; 0: not given. */
struct look {
    unsigned wide, high;
    double letter;
    char font[NAME];
};

static bool is_within(double x, double least, double most)
{
    return x >= least && x <= most;
}

static bool read_size(const char *text, struct look *out)
{
    int end = 0;

    return isdigit((unsigned char)*text) &&
           sscanf(text, "%6ux%6u%n", &out->wide, &out->high, &end) == 2 &&
           end && !text[end] && is_within(out->wide, LEAST_SIDE, MOST_SIDE) &&
           is_within(out->high, LEAST_SIDE, MOST_SIDE);
}

/* The name may hold only characters that mean nothing to gnuplot or to SVG. */
static bool read_font(const char *text, struct look *out)
{
    const size_t name = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "abcdefghijklmnopqrstuvwxyz0123456789 -_");
    char *end = NULL;

    if (name >= NAME || !*text || (text[name] && text[name] != ','))
        return false;
    memcpy(out->font, text, name);
    out->font[name] = '\0';
    if (!text[name])
        return true;
    out->letter = strtod(text + name + 1, &end);
    return !*end && is_within(out->letter, LEAST_LETTER, MOST_LETTER);
}

static bool can_draw(const char *out)
{
    static const char *const suffixes[] = {".svg", ".png", ".pdf"};
    const char *dot = out ? strrchr(out, '.') : NULL;

    for (size_t i = 0; dot && i < sizeof(suffixes) / sizeof(*suffixes); i++)
        if (!strcmp(dot, suffixes[i]))
            return true;
    return false;
}

int drawing_check_look(const struct call *call, const struct drawing *d)
{
    struct look look;

    if (d->size && !read_size(d->size, &look))
        return cli_misuse(call,
                          "--size: expected WIDTHxHEIGHT in pixels, each from "
                          "%d to %d, such as 1600x900, found \"%s\"",
                          LEAST_SIDE, MOST_SIDE, d->size);
    if (d->font && !read_font(d->font, &look))
        return cli_misuse(call,
                          "--font: expected NAME,SIZE with a size from %d to "
                          "%d points, such as Arial,16, found \"%s\"",
                          LEAST_LETTER, MOST_LETTER, d->font);
    return EXIT_DONE;
}

int drawing_check(const struct call *call, const struct drawing *d, bool force)
{
    int code;

    if (!can_draw(d->out))
        return cli_misuse(call, "expected -o FILE.svg, FILE.png or FILE.pdf");
    code = drawing_check_look(call, d);
    return code == EXIT_DONE ? cli_may_replace(call, d->out, force) : code;
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
    struct look look = {.wide = 0};

    if (d->title)
        put_title(out, d->title);
    if (d->size && read_size(d->size, &look))
        fprintf(out, "; user_wide=%u; user_high=%u", look.wide, look.high);
    if (d->font && read_font(d->font, &look))
        fprintf(out, "; user_font='%s'; user_size=%g", look.font, look.letter);
    fprintf(out, "; theme='%s'", themes[d->theme]);
}
