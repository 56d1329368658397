/* account.c - counts the device memory in use and the time that all calls have
 * taken. It does not handle addresses. */
#include "sim/arena/arena_parts.h"

void arena_tick(struct arena *a, enum frag_driver_call call, frag_size size)
{
    a->clock +=
        frag_cost_ns(a->opts.costs, frag_call_of_size(call, size), size);
}

bool arena_refuses(struct arena *a, frag_size size)
{
    /* The owner of the arena may lower the capacity below what is in use. */
    if (a->used <= a->base.capacity && size <= a->base.capacity - a->used)
        return false;
    if (size < a->refused_min - a->used)
        a->refused_min = a->used + size;
    return true;
}

void arena_add_used(struct arena *a, frag_size size)
{
    a->used += size;
    if (a->used > a->base.peak)
        a->base.peak = a->used;
}

enum frag_err arena_charge(struct arena *a, frag_size size)
{
    if (arena_refuses(a, size))
        return FRAG_OOM;
    arena_add_used(a, size);
    return FRAG_OK;
}
