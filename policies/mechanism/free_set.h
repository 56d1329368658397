/* free_set.h - free blocks ordered by (size, address): best fit in one step.
 *
 * A set of nodes that live inside the caller's blocks, so nothing here
 * allocates and nothing can fail. Sizes fall into bins of an eighth of an
 * octave; a bitmap finds the next bin in use; inside a bin a treap keeps the
 * order, its priorities a hash of the address, so the shape depends on the
 * contents alone. Bins mostly hold a handful of blocks: the common operation
 * touches one or two nodes. A bin of n blocks costs O(log n).
 *
 * A zeroed struct free_set is empty. A node's size and addr may not change
 * while it is in a set.
 */
#ifndef FRAG_POLICIES_MECHANISM_FREE_SET_H
#define FRAG_POLICIES_MECHANISM_FREE_SET_H

#include "policies/mechanism/check.h"
#include "traces/base.h"

struct free_node {
    struct free_node *left, *right;
    frag_size size;
    frag_addr addr;
};

enum { FREE_WORDS = 7, FREE_BINS = FREE_WORDS * 64 };

struct free_set {
    uint64_t used[FREE_WORDS]; /* bit b: bin b is not empty */
    struct free_node *bins[FREE_BINS];
};

void free_set_insert(struct free_set *set, struct free_node *node);
void free_set_remove(struct free_set *set, struct free_node *node);

/* The smallest node of at least size, of equals the one with the lowest
 * address; NULL if there is none. */
struct free_node *free_set_fit(const struct free_set *set, frag_size size);

/* The smallest and the largest node; the next larger and the next smaller one
 * (equals by address). NULL at the ends. The node given need not be in the set.
 */
struct free_node *free_set_first(const struct free_set *set);
struct free_node *free_set_last(const struct free_set *set);
struct free_node *free_set_after(const struct free_set *set,
                                 const struct free_node *node);
struct free_node *free_set_before(const struct free_set *set,
                                  const struct free_node *node);

/* Each node is in the bin of its size, in order, and the bitmap is right: NULL,
 * or what is broken. Adds the nodes to `met`, as records that lie in `home`. */
const char *free_set_check(const struct free_set *set, const void *home,
                           struct met *met);

#endif
