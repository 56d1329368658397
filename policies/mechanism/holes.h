/* holes.h - free blocks in the order of addresses: first fit in O(log n).
 *
 * A treap by address whose nodes know the largest size below them (treap.h), so
 * that the search for the lowest hole that is large enough never enters a
 * subtree that has none. The nodes live inside the caller's blocks: nothing
 * here allocates and nothing can fail. No answer depends on the shape of the
 * tree.
 *
 * A tree is the pointer to its root.
 */
#ifndef FRAG_POLICIES_MECHANISM_HOLES_H
#define FRAG_POLICIES_MECHANISM_HOLES_H

#include "policies/mechanism/free_set.h"

/* A free block, fit for a tree of holes, a free set or bins, one at a time. */
struct hole {
    union {
        struct free_node node; /* links, size and addr */
        struct {               /* the same in a tree */
            struct hole *low, *high;
            frag_size size;
            frag_addr at;
        };
    };
    union {
        struct {              /* the tree's own */
            frag_size widest; /* size in the subtree: the root's in all */
            uint64_t rank;
        };
        struct hole
            *equal[2]; /* before and after it among equals: best fit's */
        uint32_t list; /* the bins' own */
    };
};

void holes_insert(struct hole **tree, struct hole *hole);
void holes_remove(struct hole **tree, struct hole *hole);

/* Moves and resizes a hole of a tree, not past another one. */
void holes_resize(struct hole **tree, struct hole *hole, frag_addr addr,
                  frag_size size);

/* The lowest hole at or above `from` of at least size; NULL if there is none.
 */
struct hole *holes_lowest(struct hole *tree, frag_size size, frag_addr from);

/* The holes are in order, none overlaps another, and each node knows
 * the largest size below it: NULL, or what is broken. Adds the holes to
 * `met`, as records that lie in `home`. */
const char *holes_check(const struct hole *tree, const void *home,
                        struct met *met);

#endif
