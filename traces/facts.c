/* facts.c - counts a trace's operations and actions and finds its peaks, in one
 * pass over its columns. */
#include "traces/facts.h"

#include <stdlib.h>

static frag_size held_at_start(const struct frag_layout *start)
{
    frag_size held = 0;

    for (uint64_t i = 0; i < start->segment_count; i++)
        held += start->segments[i].size;
    return held;
}

frag_size facts_peak_reserved(const struct frag_device_trace *d)
{
    frag_size held = held_at_start(&d->recorded.start), peak = held;

    for (uint64_t i = 0; i < d->recorded.action_count; i++) {
        const struct frag_recorded_action *a = &d->recorded.actions[i];

        if (a->action == FRAG_SEGMENT_ALLOC || a->action == FRAG_SEGMENT_MAP)
            held += a->size;
        else if (a->action != FRAG_OOM_REPORTED)
            held -= a->size < held ? a->size : held;
        if (held > peak)
            peak = held;
    }
    return d->recorded.has_actions ? peak : FRAG_UNLIMITED;
}

int64_t facts_last_oom(const struct frag_device_trace *d)
{
    int64_t event = -1;

    for (uint64_t i = 0; i < d->recorded.action_count; i++)
        if (d->recorded.actions[i].action == FRAG_OOM_REPORTED)
            event = (int64_t)d->recorded.actions[i].event;
    return event;
}

static void walk_actions(const struct frag_device_trace *d, struct facts *f)
{
    f->peak_reserved = facts_peak_reserved(d);
    for (uint64_t i = 0; i < d->recorded.action_count; i++)
        f->actions[d->recorded.actions[i].action]++;
}

bool facts_has_failed(const struct frag_device_trace *d, uint64_t i)
{
    return d->recorded.addr && !d->recorded.addr[i] && d->op[i] == FRAG_ALLOC &&
           i < d->count - d->added;
}

static void walk_events(const struct frag_device_trace *d, uint64_t *sizes,
                        struct facts *f)
{
    frag_size live = 0;
    uint64_t blocks = 0;

    for (uint64_t i = 0; i < d->count; i++) {
        const bool failed = facts_has_failed(d, i);

        f->failed += failed;
        f->ops[d->op[i]] += i >= d->initial;
        if (d->op[i] == FRAG_ALLOC) {
            sizes[d->id[i]] = d->bytes[i];
            live += d->bytes[i];
            blocks++;
        } else if (frag_op_frees(d->op[i]) && sizes[d->id[i]]) {
            live -= sizes[d->id[i]];
            sizes[d->id[i]] = 0; /* the FREE after a FREE_REQUESTED */
            blocks--;
        }
        if (live > f->peak_requested)
            f->peak_requested = live;
        if (!failed && live > f->peak_served)
            f->peak_served = live;
        if (blocks > f->peak_live)
            f->peak_live = blocks;
        if ((i + 1) % FRAG_PASSED_EVENTS == 0)
            frag_trace_passed(d, i, i + 1);
    }
    f->end_requested = live;
    f->end_live = blocks;
}

enum frag_err facts_gather(const struct frag_device_trace *d, struct facts *out)
{
    uint64_t *sizes = calloc((size_t)d->slots + 1, sizeof(*sizes));

    if (!sizes)
        return FRAG_NOMEM;
    *out = (struct facts){0};
    walk_events(d, sizes, out);
    walk_actions(d, out);
    if (d->time && d->count > d->initial)
        out->duration = d->time[d->count - 1] - d->time[d->initial];
    free(sizes);
    return FRAG_OK;
}

/* A live block of a slot; size 0: there is none. */
struct pooled {
    frag_size size;
    frag_pool pool;
};

static void pool_event(const struct frag_device_trace *d, uint64_t i,
                       struct pooled *block, struct facts_pool *out)
{
    struct facts_pool *f;

    if (frag_op_frees(d->op[i])) {
        out[block->pool].end_requested -= block->size;
        block->size = 0;
    }
    if (d->op[i] != FRAG_ALLOC || facts_has_failed(d, i))
        return;
    *block = (struct pooled){d->bytes[i], d->pool[i]};
    f = &out[block->pool];
    f->end_requested += block->size;
    if (f->end_requested > f->peak_requested)
        f->peak_requested = f->end_requested;
}

enum frag_err facts_pools(const struct frag_device_trace *d,
                          struct facts_pool *out)
{
    const struct frag_layout *end = &d->recorded.end;
    struct pooled *blocks = calloc((size_t)d->slots + 1, sizeof(*blocks));

    if (!blocks)
        return FRAG_NOMEM;
    for (uint32_t k = 0; k < d->pool_count; k++)
        out[k] = (struct facts_pool){0};
    for (uint64_t i = 0; i < d->count; i++)
        pool_event(d, i, &blocks[d->id[i]], out);
    for (uint64_t k = 0; k < end->segment_count; k++)
        out[end->segments[k].pool].end_reserved += end->segments[k].size;
    free(blocks);
    return FRAG_OK;
}
