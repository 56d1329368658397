/* hold_out.c - climbs the ladder without a part of the traces, and runs what is
 * chosen on that part. */
#include "sim/experiments/tune/hold_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Runs the setting that `l` chose on `part`. */
static enum frag_err run_part(const struct tune_ladder *l,
                              const struct tune_case *part, const char *name,
                              struct tune_held_outs *out, struct frag_error *e)
{
    const struct tune_rung *chosen = l->chosen ? l->chosen : &l->rungs[0];
    struct tune_held_out *h = &out->parts[out->count++];

    h->name = strdup(name);
    h->text = chosen->recorded ? NULL : strdup(chosen->text);
    if (!h->name || (!h->text && !chosen->recorded))
        return frag_no_memory(e, "%s", name);
    FRAG_TRY(tune_run_base(l, part, &h->base, e));
    return tune_run(l, part, h->text, part->bound, &h->found, e);
}

/* Climbs on `cases`, and runs what is chosen on `part`. */
static enum frag_err hold_out(const struct tune_ladder *of,
                              const struct tune_case *cases, size_t count,
                              const struct tune_case *part, const char *name,
                              struct tune_held_outs *out, struct frag_error *e)
{
    struct tune_ladder l = {
        .settings = of->settings,
        .cases = cases,
        .case_count = count,
        .goal = of->goal,
        .without = of->without,
        .version = of->version,
        .on = of->on,
        .progress = of->progress,
    };
    enum frag_err err = tune_climb(&l, e);

    if (err == FRAG_OK)
        err = run_part(&l, part, name, out, e);
    tune_ladder_close(&l);
    return err;
}

/* ---- halves ---- */

/* The event at which the second half begins; the first event of the trace if
 * there is none. */
static enum frag_err find_cut(const struct tune_case *of, uint64_t *cut,
                              struct frag_error *e)
{
    const struct frag_device_trace *d = of->device;
    struct frag_steps steps;

    FRAG_TRY(frag_steps_find(of->trace, d, d->count, NULL, &steps, e));
    *cut = d->initial + (d->count - d->initial) / 2;
    if (steps.count > 1)
        *cut = steps.items[steps.count / 2].from;
    frag_steps_close(&steps);
    return FRAG_OK;
}

/* Makes the part of a case that the text of an edit keeps. The caller closes
 * *trace. */
static enum frag_err slice(const struct tune_case *of, const char *text,
                           struct frag_trace **trace, struct tune_case *out,
                           struct frag_error *e)
{
    struct frag_device_trace device = *of->device;
    struct frag_trace whole = *of->trace;
    struct frag_edits *edits;
    enum frag_err err;

    whole.devices = &device;
    whole.device_count = 1;
    FRAG_TRY(frag_edits_read(&text, 1, &edits, e));
    err = frag_edits_apply(edits, &whole, NULL, trace, e);
    frag_edits_free(edits);
    FRAG_TRY(err);
    *out = *of;
    out->device = &(*trace)->devices[0];
    return FRAG_OK;
}

/* Holds out the second half of the only trace. */
static enum frag_err hold_out_half(const struct tune_ladder *of,
                                   struct tune_held_outs *out,
                                   struct frag_error *e)
{
    const struct tune_case *whole = &of->cases[0];
    struct frag_trace *traces[2] = {NULL, NULL};
    struct tune_case halves[2];
    char text[2][64];
    uint64_t cut;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(find_cut(whole, &cut, e));
    if (whole->device->added || cut <= whole->device->initial)
        return FRAG_OK;
    snprintf(text[0], sizeof(text[0]), "slice:events=0..%" PRIu64, cut - 1);
    snprintf(text[1], sizeof(text[1]), "slice:events=%" PRIu64 "..", cut);
    for (size_t i = 0; err == FRAG_OK && i < 2; i++)
        err = slice(whole, text[i], &traces[i], &halves[i], e);
    if (err == FRAG_OK)
        err =
            hold_out(of, &halves[0], 1, &halves[1], "the second half", out, e);
    for (size_t i = 0; i < 2; i++)
        frag_trace_close(traces[i]);
    return err;
}

/* Holds out each of several traces in turn. */
static enum frag_err hold_out_each(const struct tune_ladder *of,
                                   struct tune_held_outs *out,
                                   struct frag_error *e)
{
    struct tune_case *others = calloc(of->case_count, sizeof(*others));
    enum frag_err err =
        others ? FRAG_OK : frag_no_memory(e, "%zu traces", of->case_count);

    for (size_t i = 0; err == FRAG_OK && i < of->case_count; i++) {
        for (size_t k = 0, n = 0; k < of->case_count; k++)
            if (k != i)
                others[n++] = of->cases[k];
        err = hold_out(of, others, of->case_count - 1, &of->cases[i],
                       of->cases[i].name, out, e);
    }
    free(others);
    return err;
}

enum frag_err tune_hold_out(const struct tune_ladder *of,
                            struct tune_held_outs *out, struct frag_error *e)
{
    *out = (struct tune_held_outs){
        .parts = calloc(of->case_count, sizeof(*out->parts))};
    if (!out->parts)
        return frag_no_memory(e, "%zu traces", of->case_count);
    return of->case_count == 1 ? hold_out_half(of, out, e)
                               : hold_out_each(of, out, e);
}

void tune_held_outs_close(struct tune_held_outs *h)
{
    for (size_t i = 0; i < h->count; i++) {
        free(h->parts[i].name);
        free(h->parts[i].text);
    }
    free(h->parts);
    *h = (struct tune_held_outs){0};
}
