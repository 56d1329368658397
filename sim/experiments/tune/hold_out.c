/* hold_out.c - repeats a search without a part of the traces, and runs what it
 * chooses on that part. */
#include "sim/experiments/tune/hold_out.h"

#include <stdlib.h>
#include <string.h>

#include "sim/experiments/tune/split.h"

/* Runs the setting that the finished search s chooses on `part`. */
static enum frag_err run_part(const struct tune_search *s,
                              const struct tune_rule *rule,
                              const struct tune_case *part, const char *name,
                              struct tune_held_outs *out, struct frag_error *e)
{
    const struct tune_trial *chosen = tune_choose(s, rule);
    struct tune_held_out *h = &out->parts[out->count++];

    h->name = strdup(name);
    h->text = strdup(chosen ? chosen->text : s->trials[0]->text);
    if (!h->name || !h->text)
        return frag_no_memory(e, "%s", name);
    FRAG_TRY(tune_run(s->space.version, s->settings, &s->on.stop, part,
                      FRAG_UNLIMITED, "", &h->base, e));
    return tune_run(s->space.version, s->settings, &s->on.stop, part,
                    s->goal.capacity, h->text, &h->found, e);
}

/* Runs the search `of` on `cases`, and what it chooses on `part`. */
static enum frag_err hold_out(const struct tune_search *of,
                              const struct tune_rule *rule,
                              const struct tune_case *cases, size_t count,
                              const struct tune_case *part, const char *name,
                              struct tune_held_outs *out, struct frag_error *e)
{
    struct tune_search s = {
        .settings = of->settings,
        .cases = cases,
        .case_count = count,
        .goal = of->goal,
        .space = of->space,
        .seed = of->seed,
        .evaluations = of->evaluations,
        .on = of->on,
        .progress = of->progress,
    };
    enum frag_err err;

    s.space.reference = 0;
    err = tune_search_run(&s, e);
    if (err == FRAG_OK)
        err = run_part(&s, rule, part, name, out, e);
    tune_search_close(&s);
    return err;
}

/* Holds out the second half of the only trace. */
static enum frag_err hold_out_half(const struct tune_search *of,
                                   const struct tune_rule *rule,
                                   struct tune_held_outs *out,
                                   struct frag_error *e)
{
    struct tune_halves halves;
    struct tune_case first = of->cases[0], rest = of->cases[0];
    enum frag_err err;

    err = tune_split(of->cases[0].device, &halves, e);
    if (err == FRAG_UNSUPPORTED)
        return FRAG_OK; /* the trace is too short to hold out a part */
    FRAG_TRY(err);
    first.device = &halves.first;
    rest.device = &halves.rest;
    rest.memo = NULL;
    err = hold_out(of, rule, &first, 1, &rest, "the second half", out, e);
    tune_halves_close(&halves);
    return err;
}

/* Holds out each of several traces in turn. */
static enum frag_err hold_out_each(const struct tune_search *of,
                                   const struct tune_rule *rule,
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
        err = hold_out(of, rule, others, of->case_count - 1, &of->cases[i],
                       of->cases[i].name, out, e);
    }
    free(others);
    return err;
}

enum frag_err tune_hold_out(const struct tune_search *of,
                            const struct tune_rule *rule,
                            struct tune_held_outs *out, struct frag_error *e)
{
    *out = (struct tune_held_outs){
        .parts = calloc(of->case_count, sizeof(*out->parts))};
    if (!out->parts)
        return frag_no_memory(e, "%zu traces", of->case_count);
    return of->case_count == 1 ? hold_out_half(of, rule, out, e)
                               : hold_out_each(of, rule, out, e);
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
