/* observe.c - PyTorch's counters, and the blocks as PyTorch's snapshot shows
 * them. torch.h has the interface; no replay uses it. */
#include "policies/torch/torch_state.h"

void frag_torch_observe(struct frag_heap *heap,
                        struct frag_torch_observer *observer)
{
    struct torch *t = heap->state;

    t->observer = observer;
}

/* A block that is oversize when it is freed need not have been so before, if
 * max_split_size_mb has changed: the current value is then below 0. */
static void up(struct frag_torch_count *c, uint64_t by)
{
    c->current += by;
    c->allocated += by;
    if ((int64_t)c->current > (int64_t)c->peak)
        c->peak = c->current;
}

static void down(struct frag_torch_count *c, uint64_t by)
{
    c->current -= by;
    c->freed += by;
}

void torch_count_up(struct torch *t, enum frag_torch_stat stat, bool is_small,
                    uint64_t by)
{
    struct frag_torch_count *counts = t->observer->counters.stat[stat];

    up(&counts[FRAG_TORCH_ALL], by);
    up(&counts[is_small ? FRAG_TORCH_SMALL : FRAG_TORCH_LARGE], by);
}

void torch_count_down(struct torch *t, enum frag_torch_stat stat, bool is_small,
                      uint64_t by)
{
    struct frag_torch_count *counts = t->observer->counters.stat[stat];

    down(&counts[FRAG_TORCH_ALL], by);
    down(&counts[is_small ? FRAG_TORCH_SMALL : FRAG_TORCH_LARGE], by);
}

void torch_count_reserved(struct torch *t, frag_pool pool, bool is_small,
                          frag_size size, bool is_up)
{
    struct frag_torch_pool_count *own = t->observer->reserved;
    void (*const count)(struct frag_torch_count * c, uint64_t by) =
        is_up ? up : down;

    (is_up ? torch_count_up : torch_count_down)(t, FRAG_TORCH_RESERVED_BYTES,
                                                is_small, size);
    if (own) {
        count(&own[pool].of[FRAG_TORCH_ALL], size);
        count(&own[pool].of[is_small ? FRAG_TORCH_SMALL : FRAG_TORCH_LARGE],
              size);
    }
}

void torch_count_handed_out(struct torch *t, const struct torch_space *space,
                            const struct torch_block *b)
{
    const bool is_small = space->is_small;
    const frag_size size = b->node.size;

    torch_count_up(t, FRAG_TORCH_ALLOCATION, is_small, 1);
    torch_count_up(t, FRAG_TORCH_ALLOCATED_BYTES, is_small, size);
    torch_count_up(t, FRAG_TORCH_ACTIVE, is_small, 1);
    torch_count_up(t, FRAG_TORCH_ACTIVE_BYTES, is_small, size);
    torch_count_up(t, FRAG_TORCH_REQUESTED_BYTES, is_small, b->requested);
    if (size >= t->conf.max_split)
        up(&t->observer->counters.oversize_allocations, 1);
}

void torch_count_free_requested(struct torch *t,
                                const struct torch_space *space,
                                const struct torch_block *b)
{
    torch_count_down(t, FRAG_TORCH_ALLOCATION, space->is_small, 1);
    torch_count_down(t, FRAG_TORCH_ALLOCATED_BYTES, space->is_small,
                     b->node.size);
    if (b->node.size >= t->conf.max_split)
        down(&t->observer->counters.oversize_allocations, 1);
}

/* Map and unmap change the reserved bytes, but neither the count of segments
 * nor the count of oversize segments. */
void torch_count_segment(struct torch *t, const struct torch_space *space,
                         enum frag_torch_action action, frag_addr addr,
                         frag_size size)
{
    struct frag_torch_observer *o = t->observer;
    struct frag_torch_counters *c = &o->counters;
    const bool is_segment =
        action == FRAG_TORCH_SEGMENT_ALLOC || action == FRAG_TORCH_SEGMENT_FREE;
    const bool oversize = is_segment && size >= t->conf.max_split;

    if (action == FRAG_TORCH_SEGMENT_ALLOC ||
        action == FRAG_TORCH_SEGMENT_MAP) {
        c->num_device_alloc++;
        torch_count_reserved(t, space->pool, space->is_small, size, true);
        if (is_segment)
            torch_count_up(t, FRAG_TORCH_SEGMENT, space->is_small, 1);
        if (oversize)
            up(&c->oversize_segments, 1);
    } else {
        c->num_device_free++;
        torch_count_reserved(t, space->pool, space->is_small, size, false);
        if (is_segment)
            torch_count_down(t, FRAG_TORCH_SEGMENT, space->is_small, 1);
        if (oversize)
            down(&c->oversize_segments, 1);
    }
    if (o->action)
        o->action(o->user, action, addr, size, space->stream);
}

/* Reports the blocks of one segment, from its first block `b` on. */
static void show_chain(const struct torch *t, const struct torch_block *b,
                       void (*block)(void *, const struct frag_torch_block *),
                       void *user)
{
    const struct torch_space *space = t->spaces[b->space];
    frag_addr segment = b->node.addr;

    for (; !torch_is_edge(b); b = b->next) {
        if (b->use == TORCH_HOLE) {
            segment = b->node.addr + b->node.size;
            continue;
        }
        block(user, &(struct frag_torch_block){
                        .segment = segment,
                        .addr = b->node.addr,
                        .size = b->node.size,
                        .requested = b->requested,
                        .stream = space->stream,
                        .pool = space->pool,
                        .is_small = space->is_small,
                        .is_expandable = b->expandable,
                        .allocated = b->use == TORCH_USED,
                        .pending = b->use == TORCH_PENDING,
                    });
    }
}

void frag_torch_snapshot(const struct frag_heap *heap,
                         void (*block)(void *user,
                                       const struct frag_torch_block *b),
                         void *user)
{
    const struct torch *t = heap->state;
    struct torch_walk walk = {t->slabs, 0};
    const struct torch_block *b;

    while ((b = torch_walk_next(&walk)))
        if (torch_is_edge(b->prev))
            show_chain(t, b, block, user);
}
