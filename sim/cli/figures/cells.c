/* cells.c - formats the fields of the data files that gnuplot reads. */
#include "sim/cli/figures/cells.h"

#include <inttypes.h>
#include <string.h>

#include "traces/printable.h"

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

void put_short(FILE *out, const char *text, size_t letters)
{
    char form[PRINTABLE_LINE], cut[BRIEF_BYTES];
    const char *brief;

    printable_text(form, sizeof(form), text);
    brief = brief_cut(form, letters, cut);
    for (const char *c = brief; *c; c++)
        put_letter(out, is_blank(brief, c) ? ' ' : *c);
}

void put_cell(FILE *out, const char *text)
{
    put_short(out, text, BRIEF_LETTERS);
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
    if (!s->one_trace) {
        put_cell(out, selection_trace(s, r));
        fputs(": ", out);
    }
    put_setting(out, s, r);
}

void put_setting(FILE *out, const struct selection *s,
                 const struct frag_loaded_run *r)
{
    put_cell(out, selection_policy(s, r));
    if (r->id.trace.device)
        fprintf(out, ", device %" PRIu32, r->id.trace.device);
    if (r->id.bound.bytes != FRAG_UNLIMITED)
        fprintf(out, " on %s", FRAG_SHOW_BOUND(r->id.bound));
}

void put_trace(FILE *out, const struct selection *s)
{
    if (s->one_trace)
        put_short(out, s->runs[0]->id.trace.name, 40);
    else
        fputs("several traces", out);
}

void put_ooms(FILE *out, uint64_t ooms)
{
    if (ooms)
        fprintf(out, ", %" PRIu64 " OOM%s", ooms, ooms > 1 ? "s" : "");
}
