/* verdict_make.c - asks for the answers on which a verdict rests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/verdict/verdict.h"
#include "sim/arena/arena.h"
#include "sim/experiments/capacity/spans.h"
#include "sim/experiments/recording.h"

static void begin(const struct verdict *v, unsigned stage, const char *name)
{
    v->question.began(v->question.user, stage, name);
}

/* ---- explain ---- */

static bool has_history(const struct frag_device_trace *d)
{
    return d->count > d->initial;
}

static bool has_failure(const struct frag_device_trace *d)
{
    const struct frag_recorded *r = &d->recorded;

    for (uint64_t i = 0; i < r->action_count; i++)
        if (r->actions[i].action == FRAG_OOM_REPORTED)
            return true;
    return false;
}

static enum frag_err explain(struct verdict *v, struct frag_bound bound,
                             bool is_whole, const struct explain **out,
                             struct frag_error *e)
{
    const struct verdict_question *q = &v->question;
    const bool is_rest = is_whole && q->rest;
    const struct explain_options options = {
        .trace = is_rest ? v->whole : q->trace,
        .device = is_rest ? v->device : q->device,
        .bound = bound,
        .total = q->total,
        .progress = q->progress,
        .user = q->user,
    };
    struct explain *x = &v->explained[v->failure != NULL];

    FRAG_TRY(explain_make(&options, x, e));
    *out = x;
    return FRAG_OK;
}

static bool is_bound_of(const struct explain *x, struct frag_bound bound)
{
    return x->bound.kind == bound.kind && x->limit_least <= bound.bytes &&
           bound.bytes <= x->limit_most;
}

static enum frag_err explain_both(struct verdict *v, struct frag_error *e)
{
    const struct verdict_question *q = &v->question;
    const struct frag_bound none = {.bytes = 0};

    begin(v, 1, "the failure");
    if (has_failure(q->device) || !has_history(q->device))
        FRAG_TRY(explain(v, none, false, &v->failure, e));
    if (!has_history(q->device))
        return FRAG_OK;
    begin(v, 2, "the capacity");
    if (v->failure && !q->rest && is_bound_of(v->failure, q->bound)) {
        v->here = v->failure;
        return FRAG_OK;
    }
    return explain(v, q->bound, true, &v->here, e);
}

/* ---- tune ---- */

static enum frag_err climb(struct verdict *v, struct frag_error *e)
{
    struct tune_ladder *l = &v->ladder;
    struct bound_facts facts;

    FRAG_TRY(recording_facts(v->whole, v->device, &facts, e));
    if (facts.recorded.least)
        facts.recorded.bytes = facts.recorded.least;
    v->tuned.recorded = facts.recorded;
    *l = (struct tune_ladder){
        .settings = v->question.settings,
        .cases = &v->tuned,
        .case_count = 1,
        .worth = TUNE_WORTH,
        .version = tune_release(&v->tuned, 1),
        .on = v->question.on,
    };
    FRAG_TRY(requested_peak_find(v->device, &v->live, e));
    if (v->live.bytes > v->question.bound.bytes && !tune_is_open(&v->tuned))
        return FRAG_OK;
    FRAG_TRY(tune_climb(l, e));
    return tune_notes(l, 0, tune_shown(l), &v->notes, e);
}

/* ---- the needs ---- */

enum { EVENTS = 6000000 }; /* of the replays that seek a need */

static enum frag_err find_need(struct verdict *v, const char *policy,
                               struct verdict_need *out, struct frag_error *e)
{
    struct stop asked = v->question.on.stop; /* the user is not const */
    struct frag_capacity_span unlimited, need = {.from = 0};
    struct frag_capacity_spec spec;
    struct policy_choice choice;
    struct frag_params *params;
    enum frag_err err;

    out->bytes = FRAG_UNLIMITED;
    FRAG_TRY(policy_choice_read(policy, &choice, e));
    err = policy_choice_params_of(&choice, v->whole, v->device, &params, e);
    policy_choice_free(&choice);
    FRAG_TRY(err);
    spec = frag_capacity_of_cell(&v->need_settings, v->device, params,
                                 v->question.bound.kind);
    spec.progress = stop_tick;
    spec.user = &asked;
    spec.runs = 1 + EVENTS / (v->device->count + 1);
    err = frag_capacity_at(&spec, FRAG_UNLIMITED, &unlimited, e);
    if (err == FRAG_OK && unlimited.exact && frag_capacity_survives(&unlimited))
        err = frag_capacity_need(&spec, &unlimited, &need, e);
    free(params);
    if (need.from)
        out->bytes = need.from;
    out->is_most = need.cut;
    return err;
}

/* PyTorch reserves addresses for expandable segments by the total of the
 * device: with a total of its own the need is found to the byte. */
static enum frag_err find_needs(struct verdict *v, struct frag_error *e)
{
    static const char expandable[] = "expandable_segments:True";
    const char *settings = v->whole->settings ? v->whole->settings : "";
    const bool is_expandable = strstr(settings, expandable);
    const double spread = v->tuned.completion.spread;

    v->need_settings = *v->question.settings;
    v->need_settings.total = FRAG_H200_TOTAL;
    v->need_settings.stop_at_oom = true;
    snprintf(v->needs[1].setting, TUNE_TEXT, "%s",
             is_expandable ? "" : expandable);
    FRAG_TRY(find_need(v, v->whole->settings ? "torch@recorded" : "torch",
                       &v->needs[0], e));
    FRAG_TRY(
        find_need(v, is_expandable ? "torch" : "torch:expandable_segments:True",
                  &v->needs[1], e));
    for (size_t i = 0; i < VERDICT_NEEDS; i++)
        if (v->needs[i].bytes != FRAG_UNLIMITED && spread > 0)
            v->needs[i].enough =
                (frag_size)ceil((double)v->needs[i].bytes * spread);
    return FRAG_OK;
}

/* ---- all ---- */

static enum frag_err find_whole(struct verdict *v, struct frag_error *e)
{
    const struct verdict_question *q = &v->question;

    if (!q->rest)
        FRAG_TRY(frag_device_complete(q->trace, q->device, &v->own,
                                      &v->tuned.completion, e));
    v->whole = q->rest ? q->rest : v->own;
    v->device = frag_trace_device(v->whole, q->device->device);
    v->tuned.name = "the job";
    v->tuned.device = v->device;
    v->tuned.trace = v->whole;
    v->tuned.bound = q->bound;
    return FRAG_OK;
}

/* The answers are independent of each other. */
static enum frag_err run_job(void *user, size_t i, struct frag_error *e)
{
    static enum frag_err (*const jobs[])(
        struct verdict * v, struct frag_error * e) = {explain_both, find_needs,
                                                      climb};

    return jobs[i](user, e);
}

static enum frag_err ask(struct verdict *v, struct frag_error *e)
{
    const size_t jobs = has_history(v->question.device) ? 3 : 1;

    for (size_t i = 0; i < VERDICT_NEEDS; i++)
        v->needs[i].bytes = FRAG_UNLIMITED;
    FRAG_TRY(find_whole(v, e));
    FRAG_TRY(parallel_run(&v->question.on, jobs, run_job, v, e));
    snprintf(v->needs[0].setting, TUNE_TEXT, "%s",
             v->ladder.count               ? v->ladder.rungs[0].text
             : v->question.trace->settings ? v->question.trace->settings
                                           : "");
    return FRAG_OK;
}

enum frag_err verdict_make(const struct verdict_question *question,
                           struct verdict *v, struct frag_error *e)
{
    enum frag_err err;

    *v = (struct verdict){.question = *question};
    err = ask(v, e);
    if (err == FRAG_OK)
        verdict_decide(v);
    else
        verdict_close(v);
    return err;
}

void verdict_close(struct verdict *v)
{
    tune_ladder_close(&v->ladder);
    for (size_t i = 0; i < 2; i++)
        explain_close(&v->explained[i]);
    frag_trace_close(v->own);
    v->own = NULL;
}
