/* listener.c - counts the steps of a plan, and tells the listener of its future
 * how many are used. */
#include "policies/plan/plan_parts.h"

bool plan_tell(struct plan_listener *l, uint64_t steps)
{
    const struct frag_future *f = l->future;

    l->used += steps;
    if (f->progress && !l->stopped)
        l->stopped = f->progress(f->user, l->used,
                                 l->used > l->most ? l->used : l->most);
    return !l->stopped;
}
