/* selection.c - loads result files, selects runs by their numbers, and makes
 * their short names. */
#include "sim/cli/figures/selection.h"

#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"
#include "traces/text.h"

/* The name of an edited trace contains the edits, so that figures show them and
 * tell it from the trace itself. */
static enum frag_err name_edited(struct frag_loaded *file)
{
    for (uint64_t i = 0; i < file->count; i++) {
        struct frag_loaded_run *r = &file->runs[i];
        char *name;

        if (!*r->edit)
            continue;
        name = text_make("%s [%s]", r->trace, r->edit);
        if (!name)
            return FRAG_NOMEM;
        free(r->trace);
        r->trace = name;
    }
    return FRAG_OK;
}

/* The quantum of the lower bounds of all runs; 0 if they differ, or if a file
 * is older than the column. */
static frag_size common_quantum(const struct result_files *f)
{
    frag_size quantum = 0;

    for (size_t i = 0; i < f->count; i++)
        for (uint64_t k = 0; k < f->files[i].count; k++) {
            const frag_size its = f->files[i].runs[k].run.summary.quantum;

            if (!its || (quantum && its != quantum))
                return 0;
            quantum = its;
        }
    return quantum;
}

/* Bounds of different quanta are no common measure. Peak requested, the bound
 * of the quantum 1, holds for all policies. */
static void level_bounds(struct result_files *f)
{
    if (common_quantum(f))
        return;
    for (size_t i = 0; i < f->count; i++)
        for (uint64_t k = 0; k < f->files[i].count; k++) {
            struct frag_summary *s = &f->files[i].runs[k].run.summary;

            s->lower_bound = s->demand = s->peak_requested;
            s->quantum = 1;
        }
}

enum frag_err result_files_load(const char *const *paths, size_t count,
                                struct result_files *out, struct frag_error *e)
{
    struct result_files f = {calloc(count, sizeof(*f.files)), 0};
    enum frag_err err = f.files ? FRAG_OK : FRAG_NOMEM;

    while (err == FRAG_OK && f.count < count) {
        err = frag_results_load(paths[f.count], &f.files[f.count], e);
        f.count += err == FRAG_OK;
        FRAG_THEN(err, name_edited(&f.files[f.count - 1]));
    }
    if (err != FRAG_OK) {
        result_files_free(&f);
        return err;
    }
    level_bounds(&f);
    *out = f;
    return FRAG_OK;
}

void result_files_free(struct result_files *f)
{
    for (size_t i = 0; i < f->count; i++)
        frag_results_unload(&f->files[i]);
    free(f->files);
    *f = (struct result_files){0};
}

bool is_same_trace(const struct frag_loaded_run *a,
                   const struct frag_loaded_run *b)
{
    return !strcmp(a->trace, b->trace) &&
           !strcmp(a->trace_sha256, b->trace_sha256);
}

enum frag_err selection_add(struct selection *s,
                            const struct frag_loaded_run *r)
{
    if (!GROW(s->runs, s->room, s->count + 1))
        return FRAG_NOMEM;
    s->runs[s->count++] = r;
    s->one_trace =
        s->count == 1 || (s->one_trace && is_same_trace(r, s->runs[0]));
    return FRAG_OK;
}

enum frag_err selection_choose(const struct result_files *f,
                               struct selection *out, struct frag_error *e)
{
    struct selection s = {0};
    enum frag_err err = FRAG_OK;

    for (size_t i = 0; i < f->count; i++)
        for (uint64_t k = 0; err == FRAG_OK && k < f->files[i].count; k++)
            err = selection_add(&s, &f->files[i].runs[k]);
    if (err == FRAG_OK && !s.count)
        err = frag_fail(e, FRAG_INVALID, "the result files hold no runs");
    if (err == FRAG_OK)
        *out = s;
    else
        selection_free(&s);
    return err;
}

enum { TRACE_LETTERS = 28 };

enum frag_err selection_name(struct selection *s, size_t letters)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_loaded_run *r = s->runs[i];

        FRAG_TRY(briefs_add(&s->traces, r->trace, r->trace_sha256));
        FRAG_TRY(briefs_add(&s->policies, r->policy, ""));
    }
    briefs_make(&s->traces, TRACE_LETTERS);
    briefs_make(&s->policies, letters);
    return FRAG_OK;
}

const char *selection_trace(const struct selection *s,
                            const struct frag_loaded_run *r)
{
    return briefs_text(&s->traces, r->trace, r->trace_sha256);
}

const char *selection_policy(const struct selection *s,
                             const struct frag_loaded_run *r)
{
    return briefs_text(&s->policies, r->policy, "");
}

void selection_free(struct selection *s)
{
    briefs_free(&s->traces);
    briefs_free(&s->policies);
    free(s->runs);
    *s = (struct selection){0};
}
