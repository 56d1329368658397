/* ring.h - doubly linked lists that are closed by their head.
 *
 * The head is a link of the ring too, so neither end is a special case. The
 * link must be the first member of the struct that is linked.
 */
#ifndef FRAG_POLICIES_MECHANISM_RING_H
#define FRAG_POLICIES_MECHANISM_RING_H

#include "traces/base.h"

struct ring {
    struct ring *prev, *next;
};

/* Makes the ring empty. */
static inline void ring_init(struct ring *head)
{
    head->prev = head->next = head;
}

static inline bool ring_is_empty(const struct ring *head)
{
    return head->next == head;
}

/* Inserts a link at the front of the ring. */
static inline void ring_push(struct ring *head, struct ring *link)
{
    link->prev = head;
    link->next = head->next;
    head->next->prev = link;
    head->next = link;
}

/* Removes a link from its ring. The members of the link itself are
 * untouched. */
static inline void ring_drop(struct ring *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
}

#endif
