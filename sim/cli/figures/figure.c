/* figure.c - draws any figure: writes its data files, then runs gnuplot on its
 * script. list.h lists the figures. */
#include "sim/cli/figures/figure.h"

#include "sim/cli/gnuplot/gnuplot.h"

/* The source of a figure: runs or a trace; the other pointer is NULL. */
struct source {
    const struct selection *runs;
    const struct trace_view *trace;
    void *found; /* by the figure's `find` */
};

/* Suffix of data file i of the figure; NULL after the last. */
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
