/* figure.c - draws any figure: writes its data files, then runs gnuplot on its
 * script. figure_list.h lists the figures. */
#include "sim/cli/figures/figure.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "traces/text.h"

/* The caption of a figure of runs. */
static void put_note(FILE *out, const void *user)
{
    const struct figure_note *n = ((const struct figure_source *)user)->note;

    fputs("limited\tshown\trule\n", out);
    if (*n->shown)
        fprintf(out, "1\t%c%s.\tShown: %s.\n", toupper(n->shown[0]),
                n->shown + 1, n->rule);
    else
        fputs("0\t\t\n", out);
}

static enum frag_err draw(const struct figure *f, const struct figure_source *s,
                          const struct drawing *d, struct frag_error *e)
{
    struct gnuplot_file files[sizeof(f->files) / sizeof(*f->files) + 1];
    size_t n = 0;

    memcpy(files, f->files, sizeof(f->files));
    while (files[n].suffix)
        n++;
    files[n++] = (struct gnuplot_file){".note.tsv", put_note};
    files[n].suffix = NULL;
    return gnuplot_draw(f->name, files, s, d, e);
}

static enum frag_err find(const struct figure *f, struct figure_source *s,
                          struct frag_error *e)
{
    s->found = calloc(1, f->size + 1);
    if (!s->found)
        return FRAG_NOMEM;
    return f->find ? f->find(s, e) : FRAG_OK;
}

static void release(const struct figure *f, struct figure_source *s)
{
    if (f->release && s->found)
        f->release(s->found);
    free(s->found);
}

/* -- limits -------------------------------------------------------------- */

/* Sets limit i of the selection. If there are more, the note gets "12 of 180
 * runs" and the rule. */
static void set_limit(const struct figure_limit *l, size_t *most, size_t limit,
                      size_t all, struct figure_note *note)
{
    *most = limit ? limit : l->usual;
    if (all <= *most)
        return;
    text_add(note->shown, sizeof(note->shown), " and ", "%s%zu of %zu %s",
             *note->shown ? "" : "showing ", *most, all, l->what);
    text_add(note->rule, sizeof(note->rule), "; ", "%s", l->rule);
}

/* Copies the runs that are shown, and names them. */
static enum frag_err choose(const struct figure *f, const struct selection *s,
                            size_t limit, struct selection *out,
                            struct figure_note *note)
{
    const struct figure_limit *l = &f->limits[0];
    const bool is_of_runs = l->what && !l->count;

    if (is_of_runs)
        set_limit(l, &out->most[0], limit, s->count, note);
    for (size_t i = 0; i < s->count && (!is_of_runs || i < out->most[0]); i++)
        FRAG_TRY(selection_add(out, s->runs[i]));
    return selection_name(out, f->policy_letters ? f->policy_letters
                               : out->one_trace  ? 56
                                                 : 36);
}

/* Sets the limits of what was found. */
static void limit_found(const struct figure *f, const void *found, size_t limit,
                        struct selection *s, struct figure_note *note)
{
    for (size_t i = 0; i < 2 && f->limits[i].what; i++)
        if (f->limits[i].count)
            set_limit(&f->limits[i], &s->most[i], i ? 0 : limit,
                      f->limits[i].count(found), note);
    if (*note->shown)
        strcat(note->shown, "; choose with --policy, --trace, --capacity or "
                            "--rows N");
}

/* INVALID if the figure cannot be drawn so from these runs. */
static enum frag_err check(const struct figure *f, const struct selection *s,
                           const struct figure_wish *wish, struct frag_error *e)
{
    const char *lacks = f->lacks ? f->lacks(s) : NULL;

    if (wish->measure && !f->has_measure)
        return frag_fail(e, FRAG_INVALID,
                         "--measure: %s shows its own measures; compare shows "
                         "the one that you name",
                         f->name);
    if (lacks)
        return frag_fail(e, FRAG_INVALID, "%s: %s", f->name, lacks);
    if (wish->limit > f->limits[0].most)
        return frag_fail(e, FRAG_INVALID,
                         "--rows: %s has room for at most %zu %s; found %zu",
                         f->name, f->limits[0].most, f->limits[0].what,
                         wish->limit);
    return FRAG_OK;
}

enum frag_err figure_draw(const struct figure *f, const struct selection *s,
                          const struct figure_wish *wish,
                          const struct drawing *d, struct figure_note *note,
                          struct frag_error *e)
{
    struct selection shown = {0};
    struct figure_source source = {
        .runs = &shown, .note = note, .measure = wish->measure};
    enum frag_err err;

    *note = (struct figure_note){"", ""};
    FRAG_TRY(check(f, s, wish, e));
    err = choose(f, s, wish->limit, &shown, note);
    FRAG_THEN(err, find(f, &source, e));
    if (err == FRAG_OK) {
        limit_found(f, source.found, wish->limit, &shown, note);
        err = draw(f, &source, d, e);
    }
    release(f, &source);
    selection_free(&shown);
    return err;
}
