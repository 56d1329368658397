/* figure.c - draws any figure: writes its data files, then runs gnuplot on its
 * script. figure_list.h lists the figures. */
#include "sim/cli/figures/figure.h"

#include <ctype.h>
#include <string.h>

#include "sim/cli/gnuplot/gnuplot.h"
#include "traces/text.h"

/* The source of a figure: runs or a trace; the other pointer is NULL. */
struct source {
    const struct selection *runs;
    const struct figure_note *note; /* of runs */
    const struct trace_view *trace;
    void *found; /* by the figure's `find` */
};

/* Suffix of data file i of the figure; NULL after the last. */
static const char *suffix(const struct figure *f, const struct source *s,
                          size_t i)
{
    return s->trace ? f->trace_files[i].suffix : f->files[i].suffix;
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

/* The caption of a figure of runs. */
static enum frag_err write_note(const struct gnuplot *g,
                                const struct figure_note *n,
                                struct frag_error *e)
{
    FILE *data = gnuplot_data(g, ".note.tsv", e);

    if (!data)
        return FRAG_IO;
    fputs("limited\tshown\trule\n", data);
    if (*n->shown)
        fprintf(data, "1\t%c%s.\tShown: %s.\n", toupper(n->shown[0]),
                n->shown + 1, n->rule);
    else
        fputs("0\t\t\n", data);
    return gnuplot_written(data, e);
}

static enum frag_err draw(const struct figure *f, const struct source *s,
                          const char *out, const char *keep,
                          struct frag_error *e)
{
    struct gnuplot g;
    enum frag_err err;

    FRAG_TRY(gnuplot_open(&g, f->name, keep, e));
    err = write_files(f, &g, s, e);
    if (err == FRAG_OK && s->note)
        err = write_note(&g, s->note, e);
    if (err == FRAG_OK)
        err = gnuplot_draw(&g, out, e);
    gnuplot_close(&g);
    return err;
}

/* -- limits -------------------------------------------------------------- */

/* Adds "12 of 180 runs" and the rule to the note. */
static void tell(struct figure_note *note, const struct figure_limit *l,
                 size_t most, size_t all)
{
    text_add(note->shown, sizeof(note->shown), " and ", "%s%zu of %zu %s",
             *note->shown ? "" : "showing ", most, all, l->what);
    text_add(note->rule, sizeof(note->rule), "; ", "%s", l->rule);
}

/* Sets the limits of s, which are those of the figure, and the note. */
static enum frag_err judge_limits(const struct figure *f, struct selection *s,
                                  size_t limit, struct figure_note *note)
{
    for (size_t i = 0; i < 2 && f->limits[i].what; i++) {
        const struct figure_limit *l = &f->limits[i];
        size_t all;

        FRAG_TRY(l->count(s, &all));
        s->most[i] = limit && !i ? limit : l->usual;
        if (all > s->most[i])
            tell(note, l, s->most[i], all);
    }
    if (*note->shown)
        strcat(note->shown, "; choose with --policy, --trace, --capacity or "
                            "--limit N");
    return FRAG_OK;
}

/* Copies the runs that are shown, and names them. */
static enum frag_err choose(const struct figure *f, const struct selection *s,
                            struct selection *out)
{
    size_t most = f->limits[0].is_of_runs ? s->most[0] : s->count;

    for (size_t i = 0; i < s->count && i < most; i++)
        FRAG_TRY(selection_add(out, s->runs[i]));
    memcpy(out->most, s->most, sizeof(out->most));
    return selection_name(out, f->policy_letters ? f->policy_letters
                               : out->one_trace  ? 56
                                                 : 36);
}

enum frag_err figure_draw(const struct figure *f, const struct selection *s,
                          const char *out, const char *keep, size_t limit,
                          struct figure_note *note, struct frag_error *e)
{
    const char *lacks = f->lacks ? f->lacks(s) : NULL;
    struct selection all = *s, shown = {0};
    enum frag_err err;

    *note = (struct figure_note){"", ""};
    if (lacks)
        return frag_fail(e, FRAG_INVALID, "%s: %s", f->name, lacks);
    if (limit > f->limits[0].most)
        return frag_fail(e, FRAG_INVALID,
                         "--limit: %s has room for at most %zu %s; found %zu",
                         f->name, f->limits[0].most, f->limits[0].what, limit);
    err = judge_limits(f, &all, limit, note);
    if (err == FRAG_OK)
        err = choose(f, &all, &shown);
    if (err == FRAG_OK)
        err = draw(f, &(const struct source){.runs = &shown, .note = note}, out,
                   keep, e);
    selection_free(&shown);
    return err;
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
