/* cells.c - formats the fields of the data files that gnuplot reads; counts
 * characters, not bytes, of UTF-8. */
#include "sim/cli/figures/cells.h"

#include <inttypes.h>
#include <string.h>

#include "traces/printable.h"

/* Whether a byte begins a UTF-8 character: bytes 10xxxxxx continue one. */
static bool is_first(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

static size_t letters_in(const char *text)
{
    char form[PRINTABLE_ROOM];
    size_t n = 0;

    while (*text) {
        text += printable_character(text, form);
        for (const char *at = form; *at; at++)
            n += is_first(*at);
    }
    return n;
}

/* Whether a figure cannot show the character: a double quote begins or ends a
 * field for gnuplot, and gnuplot does not escape "]]>", which XML forbids. */
static bool is_blank(const char *text, const char *at)
{
    return *at == '"' || (at - text >= 2 && !strncmp(at - 2, "]]>", 3));
}

/* gnuplot reads a backslash in a field as the beginning of an escape. */
static void put_letter(FILE *out, char c)
{
    fputs(c == '\\' ? "\\" : "", out);
    fputc(c, out);
}

/* Keeps two thirds from the beginning and one third from the end: names differ
 * at their ends at least as often as at their beginnings. */
void put_short(FILE *out, const char *text, size_t letters)
{
    size_t all = letters_in(text), n = 0;
    size_t head = all > letters ? letters - letters / 3 : all;
    size_t tail = all > letters ? all - letters / 3 : all;
    char form[PRINTABLE_ROOM];
    size_t length;

    for (const char *at = text; *at; at += length) {
        length = printable_character(at, form);
        if (is_blank(text, at))
            strcpy(form, " ");
        for (const char *c = form; *c; c++) {
            n += is_first(*c);
            if (n <= head || n > tail)
                put_letter(out, *c);
            else if (n == head + 1 && is_first(*c))
                fputs("\u2026", out);
        }
    }
}

void put_cell(FILE *out, const char *text)
{
    put_short(out, text, 84);
}

void put_size(FILE *out, frag_size size)
{
    if (size >= FRAG_GIB)
        fprintf(out, "%.2f GiB", (double)size / (double)FRAG_GIB);
    else
        fprintf(out, "%.2f MiB", (double)size / (double)FRAG_MIB);
}

void put_label(FILE *out, const struct selection *s,
               const struct frag_loaded_run *r)
{
    char size[FRAG_SIZE_TEXT];

    if (!s->one_trace) {
        put_short(out, r->trace, 24);
        fputs(": ", out);
    }
    put_short(out, r->policy, s->one_trace ? 56 : 36);
    if (r->device)
        fprintf(out, ", device %" PRIu64, r->device);
    if (r->capacity != FRAG_UNLIMITED)
        fprintf(out, " on %s", frag_size_format(r->capacity, size));
}

void put_trace(FILE *out, const struct selection *s)
{
    if (s->one_trace)
        put_short(out, s->runs[0]->trace, 40);
    else
        fputs("several traces", out);
}

void put_ooms(FILE *out, uint64_t ooms)
{
    if (ooms)
        fprintf(out, ", %" PRIu64 " OOM%s", ooms, ooms > 1 ? "s" : "");
}
