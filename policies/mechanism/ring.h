/* ring.h - lists that are closed by their head: no end is a special case.
 *
 * A link is the first member of what is linked.
 */
#ifndef FRAG_POLICIES_MECHANISM_RING_H
#define FRAG_POLICIES_MECHANISM_RING_H

#include "traces/base.h"

struct ring {
    struct ring *prev, *next;
};

static inline void ring_init(struct ring *head)
{
    head->prev = head->next = head;
}

static inline bool ring_is_empty(const struct ring *head)
{
    return head->next == head;
}

/* Makes a link the first of a ring. */
static inline void ring_push(struct ring *head, struct ring *link)
{
    link->prev = head;
    link->next = head->next;
    head->next->prev = link;
    head->next = link;
}

/* The link itself is left as it was. */
static inline void ring_drop(struct ring *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
}

#endif
