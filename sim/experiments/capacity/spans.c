/* spans.c - runs a policy at one capacity, and walks from span to span. */
#include "sim/experiments/capacity/spans.h"

#include "sim/experiments/start.h"
#include "traces/grow.h"

struct frag_capacity_spec frag_capacity_of_cell(
    const struct cell_settings *s, const struct frag_device_trace *trace,
    const struct frag_params *params, enum frag_bound_kind kind)
{
    return (struct frag_capacity_spec){
        .trace = trace,
        .prepared = params,
        .costs = &s->costs,
        .rule = cell_rule(s, trace),
        .kind = kind,
        .total = s->total,
        .quantum = s->quantum,
        .check = cell_is_checked(s, params->policy),
    };
}

/* Whether the policy read a value that changes with the bound. */
static bool depends_on_bound(const struct frag_capacity_spec *spec,
                             unsigned asked)
{
    if (spec->kind == FRAG_BOUND_LIMIT)
        return asked & FRAG_ASKED_LIMIT;
    return asked & FRAG_ASKED_CAPACITY ||
           (asked & FRAG_ASKED_TOTAL && spec->total == 0);
}

static void find_span(const struct frag_capacity_spec *spec,
                      const struct frag_backend *arena, frag_size bytes,
                      struct frag_capacity_span *out)
{
    if (spec->kind == FRAG_BOUND_LIMIT) {
        out->used = arena->limit_used;
        out->to = arena->limit_refused ? arena->limit_refused : FRAG_UNLIMITED;
    } else {
        frag_arena_same_for(arena, &out->used, &out->to);
    }
    out->from = out->used;
    out->exact = !depends_on_bound(spec, arena->asked);
    if (out->exact)
        return;
    out->from = out->to = bytes;
    if (out->to != FRAG_UNLIMITED)
        out->to = (out->to / FRAG_CAPACITY_STEP + 1) * FRAG_CAPACITY_STEP;
}

static enum frag_err replay(const struct frag_capacity_spec *spec,
                            struct frag_backend *arena, bool adopt_start,
                            struct frag_summary *out, struct frag_error *e)
{
    struct frag_run run;

    FRAG_TRY(frag_replay(&(const struct frag_replay){.trace = spec->trace,
                                                     .policy = spec->policy,
                                                     .params = spec->params,
                                                     .prepared = spec->prepared,
                                                     .mem = arena,
                                                     .quantum = spec->quantum,
                                                     .check = spec->check,
                                                     .stop_at_oom = true,
                                                     .adopt_start = adopt_start,
                                                     .repeat = 1,
                                                     .progress = spec->progress,
                                                     .user = spec->user,
                                                     .memo = spec->memo},
                         &run, e));
    *out = run.summary;
    frag_run_free(&run);
    return FRAG_OK;
}

/* On UNSUPPORTED, the span is that of the bounds under which the run gets as
 * far. */
static enum frag_err run_at(const struct frag_capacity_spec *spec,
                            frag_size bytes, bool adopt_start,
                            struct frag_capacity_span *out,
                            struct frag_error *e)
{
    const struct frag_bound bound = frag_bound_at(bytes, spec->kind);
    /* A limit of 0 bytes is none; one of 1 byte admits as little. */
    const frag_size limit = spec->kind == FRAG_BOUND_LIMIT ? bytes + !bytes : 0;
    struct frag_backend *arena =
        frag_arena_open(&(const struct frag_arena_options){
            .capacity = frag_bound_of(bound, FRAG_BOUND_CAPACITY),
            .limit = limit,
            .total = spec->total,
            .rule = spec->rule,
            .costs = spec->costs,
        });
    struct frag_capacity_span span = {0};
    enum frag_err err;

    if (!arena)
        return frag_no_memory(e, "the arena");
    err = replay(spec, arena, adopt_start, &span.run, e);
    if (err == FRAG_OK || err == FRAG_UNSUPPORTED) {
        find_span(spec, arena, bytes, &span);
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

static const char *params_of(const struct frag_capacity_spec *spec)
{
    return spec->prepared ? spec->prepared->text : spec->params;
}

/* A run that would adopt the recorded layout under a larger bound is another
 * run there. */
static void end_below_start(const struct frag_capacity_spec *spec,
                            frag_size bytes, struct frag_capacity_span *span)
{
    const frag_size held = start_held(spec->trace, spec->kind);
    const struct frag_bound enough = frag_bound_at(held, spec->kind);

    if (bytes < held && held < span->to &&
        start_is_adoptable(spec->trace, policy_of(spec), params_of(spec),
                           enough))
        span->to = held;
}

/* The run from the live blocks at a bound where the adopted layout led to a
 * state that no run has; under another bound it may not. */
static enum frag_err run_from_blocks(const struct frag_capacity_spec *spec,
                                     frag_size bytes,
                                     struct frag_capacity_span *out,
                                     struct frag_error *e)
{
    const struct frag_capacity_span adopted = *out;

    FRAG_TRY(run_at(spec, bytes, false, out, e));
    if (adopted.to == FRAG_UNLIMITED)
        return FRAG_OK; /* the layout was rejected, under every bound */
    out->exact = out->exact && adopted.exact;
    out->from = out->from > adopted.from ? out->from : adopted.from;
    out->to = out->to < adopted.to ? out->to : adopted.to;
    return FRAG_OK;
}

enum frag_err frag_capacity_at(const struct frag_capacity_spec *spec,
                               frag_size bytes, struct frag_capacity_span *out,
                               struct frag_error *e)
{
    const struct frag_bound bound = frag_bound_at(bytes, spec->kind);
    bool adopts = start_is_adoptable(spec->trace, policy_of(spec),
                                     params_of(spec), bound);
    enum frag_err err = run_at(spec, bytes, adopts, out, e);

    if (adopts && err == FRAG_UNSUPPORTED)
        err = run_from_blocks(spec, bytes, out, e);
    if (err == FRAG_OK)
        end_below_start(spec, bytes, out);
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

/* The bound at which the walk down begins: that of `above`, or, if the outcome
 * must be found one bound at a time, the first survivor from there on. */
static enum frag_err find_top(const struct frag_capacity_spec *spec,
                              struct frag_capacity_span *above,
                              struct frag_error *e)
{
    frag_size at, end;

    if (above->exact)
        return FRAG_OK;
    at = frag_round_up(above->used, FRAG_CAPACITY_STEP);
    end = at > FRAG_H200_TOTAL ? at : FRAG_H200_TOTAL;
    for (; at <= end; at += FRAG_CAPACITY_STEP) {
        FRAG_TRY(frag_capacity_at(spec, at, above, e));
        if (frag_capacity_survives(above))
            break;
    }
    return FRAG_OK;
}

/* How far below a survivor the next bound is tried. Far above the memory that
 * the job asks for, the steps are longer, until a bound fails: a policy that
 * takes all the memory there is would be run at every 2 MiB of a device. */
static frag_size step_below(const struct frag_capacity_span *s, bool is_near)
{
    if (s->exact)
        return 1;
    if (is_near || s->from <= s->run.peak_allocated / 2 * 3)
        return FRAG_CAPACITY_STEP;
    return frag_round_up(s->from / 64, FRAG_CAPACITY_STEP);
}

enum frag_err frag_capacity_need(const struct frag_capacity_spec *spec,
                                 const struct frag_capacity_span *unlimited,
                                 struct frag_capacity_span *out,
                                 struct frag_error *e)
{
    struct frag_capacity_span need = *unlimited, below;
    bool is_near = false; /* a long step met a failure */
    uint64_t runs = 0;

    if (frag_capacity_survives(&need))
        FRAG_TRY(find_top(spec, &need, e));
    while (frag_capacity_survives(&need) && need.from > 1) {
        const frag_size down = step_below(&need, is_near);

        need.cut = spec->runs && runs++ == spec->runs;
        if (need.cut)
            break;
        FRAG_TRY(frag_capacity_at(spec, need.from > down ? need.from - down : 1,
                                  &below, e));
        if (frag_capacity_survives(&below))
            need = below;
        else if (down <= FRAG_CAPACITY_STEP)
            break;
        else
            is_near = true;
    }
    *out = need;
    return FRAG_OK;
}
