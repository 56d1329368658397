/* holes.h - free blocks in the order of addresses: first fit in O(log n).
 *
 * A treap by address. Each node stores the largest size in its subtree
 * (treap.h), so the search for the lowest hole that is large enough never
 * enters a subtree without one. The nodes are members of the caller's blocks:
 * no function here allocates or fails. No result depends on the shape of the
 * tree.
 *
 * A tree is the pointer to its root; NULL is an empty tree.
 */
#ifndef FRAG_POLICIES_MECHANISM_HOLES_H
#define FRAG_POLICIES_MECHANISM_HOLES_H

#include "policies/mechanism/free_set.h"

/* A free block. It can be in a tree of holes, in a free set or in bins, but in
 * only one of them at a time. */
struct hole {
    union {
        struct free_node node; /* links, size and addr */
        struct {               /* the same members under the tree's names */
            struct hole *low, *high;
            frag_size size;
            frag_addr at;
        };
    };
    union {
        struct {              /* used by a tree */
            frag_size widest; /* largest size in the subtree */
            uint64_t rank;    /* priority in the treap */
        };
        uint32_t list; /* used by bins: the list that holds it */
    };
};

void holes_insert(struct hole **tree, struct hole *hole);
void holes_remove(struct hole **tree, struct hole *hole);

/* Changes the address and size of a hole in the tree. The hole keeps its place
 * in the order of addresses. */
void holes_resize(struct hole **tree, struct hole *hole, frag_addr addr,
                  frag_size size);

/* The lowest hole of at least `size` bytes (> 0) whose address is at least
 * `from`; NULL if there is none. */
struct hole *holes_lowest(struct hole *tree, frag_size size, frag_addr from);

/* Checks that the holes are in order and do not overlap, and that each node
 * stores the largest size of its subtree. Returns NULL or a text that names the
 * fault. Adds the holes to `met` with the given home. */
const char *holes_check(const struct hole *tree, const void *home,
                        struct met *met);

#endif
