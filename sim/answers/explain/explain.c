/* explain.c - finds the failed request, the limit at which it failed, and the
 * state of the allocator then. */
#include <stdlib.h>
#include <string.h>

#include "sim/answers/explain/explain_parts.h"
#include "sim/answers/moment.h"
#include "sim/arena/arena.h"
#include "sim/experiments/recording.h"
#include "sim/experiments/start.h"
#include "sim/validate/validate_limit.h"
#include "traces/torch_sizes.h"

struct explain_work {
    const struct explain_options *o;
    struct explain *x;
    struct attempt base;
    struct outcome outcome; /* of the base */
    struct state state;
    frag_size recorded;      /* reserved at the failure, as recorded */
    frag_size recorded_peak; /* largest reserved until then, as recorded */
    uint64_t recorded_ooms;  /* until then */
    struct frag_error *e;
};

static void set_request(struct explain_work *w, uint64_t event,
                        frag_size rounded)
{
    const struct frag_device_trace *d = w->o->device;
    struct explain *x = w->x;

    x->failed = true;
    x->event = event;
    x->request = d->bytes[event];
    x->rounded =
        rounded
            ? rounded
            : torch_round_size(x->request + torch_padding_of(x->used), NULL);
    x->segment =
        torch_segment_size(x->rounded, torch_large_segment_of(x->used));
    x->stream = d->stream[event];
    x->pool = d->pool[event];
    x->stack = d->stack ? d->stack[event] : 0;
    frag_pool_name(x->trace, d, x->pool, x->pool_name);
    if (x->stack)
        site_text(x->trace, x->stack, x->site);
}

/* ---- the recorded failure ---- */

static const struct frag_recorded_action *
oom_at(const struct frag_device_trace *d, uint64_t event)
{
    const struct frag_recorded *r = &d->recorded;

    for (uint64_t i = r->action_count; i-- > 0;)
        if (r->actions[i].action == FRAG_OOM_REPORTED &&
            (event == UINT64_MAX || r->actions[i].event == event))
            return &r->actions[i];
    return NULL;
}

bool explain_has_failure(const struct frag_device_trace *d)
{
    return oom_at(d, UINT64_MAX) != NULL;
}

/* Sums up what was reserved until the action. */
static void sum_recorded(struct explain_work *w,
                         const struct frag_recorded_action *last)
{
    const struct frag_recorded *r = &w->o->device->recorded;

    for (uint64_t i = 0; i < r->start.segment_count; i++)
        w->recorded += r->start.segments[i].size;
    w->recorded_peak = w->recorded;
    for (const struct frag_recorded_action *a = r->actions; a <= last; a++) {
        if (a->action == FRAG_OOM_REPORTED) {
            w->recorded_ooms++;
            continue;
        }
        if (a->action == FRAG_SEGMENT_ALLOC || a->action == FRAG_SEGMENT_MAP)
            w->recorded += a->size;
        else
            w->recorded -= a->size;
        if (w->recorded > w->recorded_peak)
            w->recorded_peak = w->recorded;
    }
}

/* ---- the limit ---- */

static void set_bound(struct explain_work *w, enum explain_limit source,
                      struct frag_bound bound)
{
    struct explain *x = w->x;

    x->limit_source = source;
    if (source != EXPLAIN_LIMIT_INFERRED)
        x->limit_least = x->limit_most = bound.bytes;
    x->bound = w->base.bound = bound;
}

/* The bound that was in force: the limit of the process that the trace states,
 * if it refused the request, else what the device had. If neither explains the
 * failure, the process had a limit that is not known. If no limit explains all
 * failures, at least this one shows its own. */
static void find_bound(struct explain_work *w,
                       const struct frag_recorded_action *oom)
{
    const struct recording r = recording_of(w->o->trace, w->o->device);
    struct explain *x = w->x;

    if (r.found.source == FRAG_LIMIT_GIVEN) {
        set_bound(w, EXPLAIN_LIMIT_GIVEN, r.bound);
        return;
    }
    if (frag_device_room(oom->device_free) < x->segment) {
        set_bound(w, EXPLAIN_LIMIT_DEVICE,
                  frag_capacity_bound(w->recorded +
                                      frag_device_room(oom->device_free)));
        if (x->total > x->bound.bytes)
            x->outside = x->total - x->bound.bytes;
        return;
    }
    x->limit_least = r.found.least;
    x->limit_most = r.found.most;
    if (x->limit_least > x->limit_most) {
        x->limit_least = w->recorded;
        x->limit_most = w->recorded + x->segment - 1;
    }
    set_bound(
        w, EXPLAIN_LIMIT_INFERRED,
        frag_bound_at(x->limit_least + (x->limit_most - x->limit_least) / 2,
                      FRAG_BOUND_LIMIT));
}

/* ---- the state ---- */

/* The state if the failure cannot be reproduced: as recorded until the request,
 * without a limit, and then with the free memory returned, as PyTorch does
 * before it reports a failure. */
static enum frag_err run_without_limit(struct explain_work *w)
{
    const struct explain_edit edit = {.before = w->x->event,
                                      .op = FRAG_EMPTY_CACHE};
    struct attempt a = w->base;
    struct outcome out;

    a.bound = FRAG_NO_BOUND;
    a.without_last = true;
    a.edits = &edit;
    a.edit_count = 1;
    return attempt_run(&a, &out, &w->state, w->e);
}

static frag_size reserved_in(const struct state *s)
{
    frag_size sum = 0;

    for (uint64_t i = 0; i < s->count; i++)
        sum += s->blocks[i].size;
    return sum;
}

/* Replays up to the failed request, and compares with the recording. */
static enum frag_err run_base(struct explain_work *w)
{
    FRAG_TRY(attempt_run(&w->base, &w->outcome, &w->state, w->e));
    w->x->reproduced = !w->outcome.served &&
                       w->outcome.ooms == w->recorded_ooms &&
                       reserved_in(&w->state) == w->recorded;
    return FRAG_OK;
}

/* Replays at another of the possible limits, unless the last one repeated the
 * recording. */
static enum frag_err try_limit(struct explain_work *w, frag_size limit)
{
    if (w->x->reproduced)
        return FRAG_OK;
    state_close(&w->state);
    set_bound(w, EXPLAIN_LIMIT_INFERRED,
              frag_bound_at(limit, FRAG_BOUND_LIMIT));
    return run_base(w);
}

/* At a limit below what was reserved before, the device lost memory to others
 * in the meantime: no replay at one limit repeats that.
 * Not every possible limit repeats the retries before the failure, and with
 * expandable segments the policy asks for more than it takes. */
static enum frag_err reproduce(struct explain_work *w)
{
    if (w->x->bound.bytes >= w->recorded_peak)
        FRAG_TRY(run_base(w));
    if (w->x->limit_source == EXPLAIN_LIMIT_INFERRED) {
        FRAG_TRY(try_limit(w, w->x->limit_least));
        FRAG_TRY(try_limit(w, w->x->limit_most));
    }
    if (w->x->reproduced)
        return FRAG_OK;
    state_close(&w->state);
    FRAG_TRY(run_without_limit(w));
    w->base.starts_there = false; /* the limit may be less than the start */
    return FRAG_OK;
}

/* ---- the three kinds of failure ---- */

static enum frag_err explain_recorded(struct explain_work *w,
                                      const struct frag_recorded_action *oom)
{
    struct explain *x = w->x;

    set_request(w, oom->event, oom->size);
    x->device_free = oom->device_free;
    sum_recorded(w, oom);
    x->ooms = w->recorded_ooms;
    find_bound(w, oom);
    w->base.event = oom->event;
    return reproduce(w);
}

/* The state after the last event. Without a bound no limit is known. */
static enum frag_err explain_end(struct explain_work *w)
{
    w->x->event = w->o->device->count - 1;
    w->base.event = w->x->event;
    return attempt_run(&w->base, &w->outcome, &w->state, w->e);
}

/* Replays all events from the recorded layout if that fits the bound, else from
 * its blocks. */
static enum frag_err run_to_end(struct explain_work *w)
{
    const struct frag_device_trace *d = w->o->device;
    enum frag_err err;

    w->base.event = d->count - 1;
    w->base.stops = true;
    w->base.starts_there = start_is_adoptable(d, &frag_policy_torch,
                                              w->base.settings, w->o->bound);
    err = attempt_run(&w->base, &w->outcome, NULL, w->e);
    if (err != FRAG_UNSUPPORTED || !w->base.starts_there)
        return err;
    w->base.starts_there = false;
    return attempt_run(&w->base, &w->outcome, NULL, w->e);
}

/* The first request that fails in a replay at the bound. */
static enum frag_err explain_bound(struct explain_work *w)
{
    set_bound(w,
              w->o->bound.kind == FRAG_BOUND_LIMIT ? EXPLAIN_LIMIT_PROCESS
                                                   : EXPLAIN_LIMIT_CAPACITY,
              w->o->bound);
    w->base.anchored = false;
    FRAG_TRY(run_to_end(w));
    w->base.stops = false;
    if (!w->outcome.ooms)
        return explain_end(w);
    w->base.event = w->outcome.first_oom;
    FRAG_TRY(attempt_run(&w->base, &w->outcome, &w->state, w->e));
    set_request(w, w->base.event, w->outcome.rounded);
    w->x->ooms = 1;
    w->x->reproduced = true;
    return FRAG_OK;
}

/* A snapshot without history shows what is held at one moment. */
static enum frag_err explain_snapshot(struct explain_work *w)
{
    const struct frag_device_trace *d = w->o->device;
    const struct frag_layout *layout =
        d->recorded.has_end ? &d->recorded.end : &d->recorded.start;

    if (!layout->segment_count)
        return frag_fail(w->e, FRAG_CORRUPT,
                         "%s: %s has neither events nor "
                         "segments: nothing can be explained; record the job "
                         "with torch.cuda.memory._record_memory_history()",
                         w->o->trace->path, FRAG_DEVICE_NAME(d->device));
    w->x->replayed = false;
    w->x->event = d->count ? d->count - 1 : 0;
    FRAG_TRY(state_from_layout(&w->state, layout, w->e));
    state_name(&w->state, NULL, 0);
    return FRAG_OK;
}

static enum frag_err at_failure(struct explain_work *w,
                                const struct frag_recorded_action **oom)
{
    const struct frag_device_trace *d = w->o->device;
    uint64_t event = UINT64_MAX;

    if (w->o->at && strcmp(w->o->at, "oom") != 0)
        FRAG_TRY(moment_read(w->o->trace, d, w->o->at, &event, w->e));
    *oom = oom_at(d, event);
    if (w->o->at && !*oom)
        return frag_fail(w->e, FRAG_INVALID,
                         "--at: expected an event at which the recording "
                         "reports an OOM, found \"%.40s\"; without --at the "
                         "last one is explained",
                         w->o->at);
    return FRAG_OK;
}

static enum frag_err find_state(struct explain_work *w)
{
    const struct frag_recorded_action *oom;

    if (w->o->device->count <= w->o->device->initial)
        return explain_snapshot(w);
    if (w->o->bound.bytes)
        return explain_bound(w);
    FRAG_TRY(at_failure(w, &oom));
    return oom ? explain_recorded(w, oom) : explain_end(w);
}

/* ---- the answer ---- */

static enum frag_err find_cause(struct explain_work *w)
{
    struct explain *x = w->x;

    FRAG_TRY(cause_sum(x, &w->state, w->e));
    if (x->replayed)
        FRAG_TRY(cause_growth(x, w->e));
    if (!x->failed)
        return FRAG_OK;
    FRAG_TRY(frag_device_complete(x->trace, x->device, &x->future,
                                  &x->completion, w->e));
    return changes_try(x, &w->base, w->o->ladder,
                       w->outcome.ooms ? w->outcome.ooms : 1, &w->state, w->e);
}

/* Compares the recorded release with the one that the replays follow. */
static enum frag_err note_release(const struct explain_options *options,
                                  struct explain *x, struct frag_error *e)
{
    struct policy_choice policy;
    enum frag_err err;

    FRAG_TRY(policy_choice_read("torch@recorded", &policy, e));
    err = release_note(&policy, options->trace, options->device, x->release, e);
    policy_choice_free(&policy);
    return err;
}

static enum frag_err check_settings(const struct explain *x,
                                    struct frag_error *e)
{
    struct frag_params *params;

    if (!x->used)
        return frag_no_memory(e, "the settings");
    FRAG_TRY(frag_params_read(&frag_policy_torch, x->used, &params, e));
    free(params);
    return FRAG_OK;
}

static bool has_anchors(const struct frag_device_trace *d)
{
    return d->recorded.addr && d->recorded.has_actions;
}

enum frag_err explain_make(const struct explain_options *options,
                           struct explain *out, struct frag_error *e)
{
    const char *settings = options->trace->settings;
    struct explain x = {
        .trace = options->trace,
        .device = options->device,
        .replayed = true,
        .device_free = FRAG_UNLIMITED,
        .bound = FRAG_NO_BOUND,
        .limit_least = FRAG_UNLIMITED,
        .limit_most = FRAG_UNLIMITED,
        .total = options->total,
        .settings = settings ? settings : "",
        .used = release_settings(options->trace, settings ? settings : ""),
    };
    struct explain_work w = {
        .o = options,
        .x = &x,
        .base = {.device = options->device,
                 .settings = x.used,
                 .bound = FRAG_NO_BOUND,
                 .total = options->total ? options->total : FRAG_H200_TOTAL,
                 .starts_there = true,
                 .anchored = has_anchors(options->device),
                 .progress = options->progress,
                 .user = options->user},
        .e = e,
    };
    enum frag_err err = check_settings(&x, e);

    FRAG_THEN(err, note_release(options, &x, e));
    FRAG_THEN(err, find_state(&w));
    FRAG_THEN(err, find_cause(&w));
    x.blocks = w.state.blocks;
    x.block_count = w.state.count;
    if (err == FRAG_OK)
        *out = x;
    else
        explain_close(&x);
    return err;
}

void explain_close(struct explain *x)
{
    frag_trace_close(x->future);
    free(x->used);
    free(x->spaces);
    free(x->pins);
    free(x->blocks);
    free(x->changes);
    *x = (struct explain){0};
}
