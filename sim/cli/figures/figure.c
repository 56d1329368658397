#include "sim/cli/figures/figure.h"

#include <inttypes.h>
#include <string.h>

#include "sim/cli/figures/gnuplot.h"

#define FIGURE(name, text) &figure_##name,
const struct figure *const figures[] = {
#include "sim/cli/figures/list.h"
    NULL};
#undef FIGURE

const struct figure *figure_find(const char *name)
{
    for (size_t i = 0; figures[i]; i++)
        if (!strcmp(figures[i]->name, name))
            return figures[i];
    return NULL;
}

/* -- cells --------------------------------------------------------------- */

/* Letters of UTF-8, whose bytes 10xxxxxx go on with the one before. */
static bool is_first(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

static size_t letters_in(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += is_first(*text);
    return n;
}

/* Names differ at their ends at least as often as at their beginnings. */
void put_short(FILE *out, const char *text, size_t letters)
{
    size_t all = letters_in(text), n = 0;
    size_t head = all > letters ? letters - letters / 3 : all;
    size_t tail = all > letters ? all - letters / 3 : all;

    for (; *text; text++) {
        n += is_first(*text);
        if (n <= head || n > tail)
            fputc((unsigned char)*text < 0x20 || *text == '"' ? ' ' : *text,
                  out);
        else if (n == head + 1 && is_first(*text))
            fputs("\u2026", out);
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

/* -- drawing ------------------------------------------------------------- */

/* What a figure is drawn from; one of the two. */
struct source {
    const struct selection *runs;
    const struct trace_view *trace;
    void *found; /* in the trace */
};

/* File i of the figure; NULL: there are no more. */
static const char *suffix(const struct figure *f, const struct source *s,
                          size_t i)
{
    if (s->trace)
        return i < 3 ? f->trace_files[i].suffix : NULL;
    return i < 3 ? f->files[i].suffix : NULL;
}

static enum frag_err write_files(const struct figure *f,
                                 const struct gnuplot *g,
                                 const struct source *s, struct frag_error *e)
{
    for (size_t i = 0; suffix(f, s, i); i++) {
        FILE *data = gnuplot_data(g, suffix(f, s, i), e);
        enum frag_err err;

        if (!data)
            return FRAG_IO;
        err = s->trace ? f->trace_files[i].write(data, s->trace, s->found, e)
                       : f->files[i].write(data, s->runs);
        FRAG_TRY(gnuplot_written(data, e));
        FRAG_TRY(err);
    }
    return FRAG_OK;
}

static enum frag_err draw(const struct figure *f, const struct source *s,
                          const char *out, const char *keep,
                          struct frag_error *e)
{
    struct gnuplot g;
    enum frag_err err;

    FRAG_TRY(gnuplot_open(&g, f->name, keep, e));
    err = write_files(f, &g, s, e);
    if (err == FRAG_OK)
        err = gnuplot_draw(&g, out, e);
    gnuplot_close(&g);
    return err;
}

enum frag_err figure_draw(const struct figure *f, const struct selection *s,
                          const char *out, const char *keep,
                          struct frag_error *e)
{
    const char *lacks = f->lacks ? f->lacks(s) : NULL;

    if (lacks)
        return frag_fail(e, FRAG_INVALID, "%s: %s", f->name, lacks);
    return draw(f, &(const struct source){.runs = s}, out, keep, e);
}

bool figure_is_of_trace(const struct figure *f)
{
    return f->trace_files[0].suffix != NULL;
}

enum frag_err figure_draw_trace(const struct figure *f,
                                const struct trace_view *v, const char *out,
                                const char *keep, struct frag_error *e)
{
    struct source s = {.trace = v};
    enum frag_err err;

    if (f->find)
        FRAG_TRY(f->find(v, &s.found, e));
    err = draw(f, &s, out, keep, e);
    if (f->release)
        f->release(s.found);
    return err;
}
