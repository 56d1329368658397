/* nodes.h - an allocator of host records of one size.
 *
 * Records come from slabs and return to a free list: nodes_take is a pop,
 * nodes_put is a push, so a steady state never calls malloc. A policy calls
 * nodes_reserve at the start of an operation, for all records that the
 * operation may take; after that nothing can fail.
 *
 * Set `size` once, to at least sizeof(void *) and a multiple of it; all other
 * members start zeroed.
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
    struct node *free;  /* the free list, last in, first out */
    struct node *slabs; /* all memory from malloc */
    size_t slab;        /* bytes of the next slab; 0: the first one */
};

/* The slow path of nodes_reserve: allocates slabs. */
enum frag_err nodes_grow(struct nodes *nodes, size_t count) FRAG_MUST_CHECK;

/* Makes sure that `count` records can be taken without failure. NOMEM; then
 * no record was taken or lost. */
FRAG_MUST_CHECK static inline enum frag_err nodes_reserve(struct nodes *nodes,
                                                          size_t count)
{
    return nodes->count >= count ? FRAG_OK : nodes_grow(nodes, count);
}

/* Takes a reserved record; its contents are arbitrary. */
static inline void *nodes_take(struct nodes *nodes)
{
    struct node *node = nodes->free;

    assert(node);
    nodes->free = node->next;
    nodes->count--;
    return node;
}

/* Returns a record to the free list. */
static inline void nodes_put(struct nodes *nodes, void *record)
{
    struct node *node = record;

    assert(node);
    node->next = nodes->free;
    nodes->free = node;
    nodes->count++;
}

/* Checks that the free list has `count` records. Returns NULL or a text that
 * names the fault. */
const char *nodes_check(const struct nodes *nodes);

/* Frees all slabs, also those with records in use. The struct is empty then and
 * can be used again. */
void nodes_release(struct nodes *nodes);

#endif
