/* nodes.h - records of one size, from slabs, through a free list.
 *
 * Taking and giving are a push and a pop, so that the steady state never calls
 * malloc. What an operation will take it reserves first, while it can still
 * fail; from there on nothing can.
 *
 * Set `size` once, at least sizeof(void *) and a multiple of it; all else
 * starts zeroed.
 */
#ifndef FRAG_POLICIES_MECHANISM_NODES_H
#define FRAG_POLICIES_MECHANISM_NODES_H

#include "policies/mechanism/check.h"
#include "traces/base.h"

#include <assert.h>

struct node {
    struct node *next;
};

struct nodes {
    size_t size;        /* bytes of a record */
    size_t count;       /* records on the free list */
    struct node *free;  /* last given, first taken */
    struct node *slabs; /* what malloc gave */
};

/* nodes_reserve where slabs are lacking. */
enum frag_err nodes_grow(struct nodes *nodes, size_t count) FRAG_MUST_CHECK;

/* Makes sure that `count` records can be taken. NOMEM, then nothing changed. */
FRAG_MUST_CHECK static inline enum frag_err nodes_reserve(struct nodes *nodes,
                                                          size_t count)
{
    return nodes->count >= count ? FRAG_OK : nodes_grow(nodes, count);
}

/* A record that was reserved; its contents are arbitrary. */
static inline void *nodes_take(struct nodes *nodes)
{
    struct node *node = nodes->free;

    assert(node);
    nodes->free = node->next;
    nodes->count--;
    return node;
}

static inline void nodes_give(struct nodes *nodes, void *record)
{
    struct node *node = record;

    assert(node);
    node->next = nodes->free;
    nodes->free = node;
    nodes->count++;
}

/* Whether the free list has `count` records: NULL, or what is broken. */
const char *nodes_check(const struct nodes *nodes);

/* Every record ever taken is gone; empty, ready for use. */
void nodes_release(struct nodes *nodes);

#endif
