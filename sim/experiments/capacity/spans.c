/* spans.c - runs a policy at one capacity, and walks from span to span. */
#include "sim/experiments/capacity/spans.h"

#include <stdlib.h>

#include "sim/experiments/start.h"
#include "traces/grow.h"

/* Whether the policy read a value that changes with the capacity. */
static bool depends_on_capacity(const struct frag_capacity_spec *spec,
                                unsigned asked)
{
    return asked & FRAG_ASKED_CAPACITY ||
           (asked & FRAG_ASKED_TOTAL && spec->total == 0);
}

static void find_span(const struct frag_capacity_spec *spec,
                      const struct frag_backend *arena,
                      struct frag_capacity_span *out)
{
    frag_arena_same_for(arena, &out->used, &out->to);
    out->from = out->used;
    out->exact = !depends_on_capacity(spec, arena->asked);
    if (out->exact)
        return;
    out->from = out->to = arena->capacity;
    if (out->to != FRAG_UNLIMITED)
        out->to = (out->to / FRAG_CAPACITY_STEP + 1) * FRAG_CAPACITY_STEP;
}

static enum frag_err replay(const struct frag_capacity_spec *spec,
                            struct frag_backend *arena, bool adopt_start,
                            struct frag_summary *out, struct frag_error *e)
{
    struct frag_run run;

    FRAG_TRY(
        frag_replay(&(const struct frag_replay){.trace = spec->trace,
                                                .policy = spec->policy,
                                                .params = spec->params,
                                                .prepared = spec->prepared,
                                                .mem = arena,
                                                .check = spec->check,
                                                .stop_at_oom = true,
                                                .adopt_start = adopt_start,
                                                .repeat = 1,
                                                .progress = spec->progress,
                                                .user = spec->user,
                                                .preparing = spec->preparing,
                                                .memo = spec->memo},
                    &run, e));
    *out = run.summary;
    frag_run_free(&run);
    return FRAG_OK;
}

static enum frag_err run_at(const struct frag_capacity_spec *spec,
                            frag_size capacity, bool adopt_start,
                            struct frag_capacity_span *out,
                            struct frag_error *e)
{
    struct frag_backend *arena =
        frag_arena_open(&(const struct frag_arena_options){
            .capacity = capacity,
            .total = spec->total,
            .rule = spec->rule,
            .costs = spec->costs,
        });
    struct frag_capacity_span span = {0};
    enum frag_err err;

    if (!arena)
        return frag_no_memory(e, "the arena");
    err = replay(spec, arena, adopt_start, &span.run, e);
    if (err == FRAG_OK) {
        find_span(spec, arena, &span);
        *out = span;
    }
    frag_arena_close(arena);
    return err;
}

static const struct frag_policy *
policy_of(const struct frag_capacity_spec *spec)
{
    return spec->prepared ? spec->prepared->policy : spec->policy;
}

/* A run that would adopt the recorded layout on a larger device is another run
 * there. */
static void end_below_start(const struct frag_capacity_spec *spec,
                            frag_size capacity, struct frag_capacity_span *span)
{
    const frag_size held = start_held(spec->trace);

    if (capacity < held && held < span->to &&
        start_is_adoptable(spec->trace, policy_of(spec), held))
        span->to = held;
}

enum frag_err frag_capacity_at(const struct frag_capacity_spec *spec,
                               frag_size capacity,
                               struct frag_capacity_span *out,
                               struct frag_error *e)
{
    bool adopts = start_is_adoptable(spec->trace, policy_of(spec), capacity);
    enum frag_err err = run_at(spec, capacity, adopts, out, e);

    if (adopts && err == FRAG_UNSUPPORTED)
        err = run_at(spec, capacity, false, out, e);
    if (err == FRAG_OK)
        end_below_start(spec, capacity, out);
    return err;
}

static struct frag_capacity_span *next_item(struct frag_capacity_spans *spans)
{
    if (!GROW(spans->items, spans->room, spans->count + 1))
        return NULL;
    return &spans->items[spans->count];
}

enum frag_err frag_capacity_walk(const struct frag_capacity_spec *spec,
                                 frag_size from, frag_size to, bool first,
                                 struct frag_capacity_spans *spans,
                                 struct frag_error *e)
{
    while (from < to) {
        struct frag_capacity_span *span = next_item(spans);

        if (!span)
            return frag_no_memory(e, "the capacities");
        FRAG_TRY(frag_capacity_at(spec, from, span, e));
        spans->count++;
        if (first && frag_capacity_survives(span))
            break;
        from = span->to;
    }
    return FRAG_OK;
}
