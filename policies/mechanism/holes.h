/* holes.h - free blocks in the order of addresses: first fit in O(log n).
 *
 * A treap by address whose nodes know the largest size below them, so that the
 * search for the lowest hole that is large enough never enters a subtree that
 * has none. The nodes live inside the caller's blocks: nothing here allocates
 * and nothing can fail. Priorities are a hash of the address, so the shape
 * depends on the contents alone. A tree is the pointer to its root.
 */
#ifndef FRAG_HOLES_H
#define FRAG_HOLES_H

#include "policies/mechanism/free_set.h"

/* A free block, fit for a tree of holes or for a free set, one at a time. */
struct hole {
    struct free_node node; /* links, size and addr */
    frag_size largest;     /* size in the subtree; the tree's own */
};

void holes_insert(struct hole **tree, struct hole *hole);
void holes_remove(struct hole **tree, struct hole *hole);

/* The lowest hole at or above `from` of at least size; NULL if there is none.
 */
struct hole *holes_lowest(struct hole *tree, frag_size size, frag_addr from);

#endif
