/* holes.h - free blocks in the order of addresses: first fit in O(log n).
 *
 * A treap by address whose nodes know the largest size below them, so that the
 * search for the lowest hole that is large enough never enters a subtree that
 * has none. A hole that grows or shrinks stays where it is, and the news climbs
 * only as far as it is news. The nodes live inside the caller's blocks: nothing
 * here allocates and nothing can fail. Priorities are a hash of where a node
 * lies in the host's memory; no answer depends on the shape.
 *
 * A tree is the pointer to its root.
 */
#ifndef FRAG_POLICIES_MECHANISM_HOLES_H
#define FRAG_POLICIES_MECHANISM_HOLES_H

#include "policies/mechanism/free_set.h"

/* A free block, fit for a tree of holes, a free set or bins, one at a time. */
struct hole {
    struct free_node node; /* links, size and addr */
    union {
        struct { /* the tree's own */
            struct hole *parent;
            frag_size largest; /* size in the subtree: the root's in all */
        };
        struct hole
            *equal[2]; /* before and after it among equals: best fit's */
        uint32_t list; /* the bins' own */
    };
};

void holes_insert(struct hole **tree, struct hole *hole);
void holes_remove(struct hole **tree, struct hole *hole);

/* Moves and resizes a hole of a tree, not past another one. */
void holes_resize(struct hole *hole, frag_addr addr, frag_size size);

/* The lowest hole at or above `from` of at least size; NULL if there is none.
 */
struct hole *holes_lowest(struct hole *tree, frag_size size, frag_addr from);

#endif
