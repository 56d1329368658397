/* free_set.h - free blocks ordered by (size, address), for best fit.
 *
 * The nodes are members of the caller's blocks, so no function here allocates
 * or fails. Sizes are divided into bins of an eighth of an octave. A bitmap
 * finds the next bin that is not empty. Inside a bin a treap keeps the order;
 * its priorities are a hash of the address, so its shape depends only on its
 * contents. Most bins hold a handful of blocks, so the common operation touches
 * one or two nodes. An operation on a bin of n blocks costs O(log n).
 *
 * A set of few blocks is a single treap, so that thousands of streams with a
 * set each take little memory. The table of bins is made when the set has more
 * than FREE_FEW blocks, and kept until free_set_fini. If the host has no memory
 * for the table, the set stays a single treap; the answers are the same.
 *
 * A zeroed struct free_set is empty. A node's size and addr must not change
 * while the node is in a set.
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

enum { FREE_WORDS = 7, FREE_BINS = FREE_WORDS * 64, FREE_FEW = 16 };

struct free_bins {
    uint64_t used[FREE_WORDS]; /* bit b: bin b is not empty */
    struct free_node *bins[FREE_BINS];
};

struct free_set {
    struct free_bins *table; /* NULL: `only` has all nodes */
    struct free_node *only;
    uint32_t few; /* insertions so far, until the table is made */
};

/* Frees the table of bins; the set is empty afterwards. */
void free_set_fini(struct free_set *set);

void free_set_insert(struct free_set *set, struct free_node *node);
void free_set_remove(struct free_set *set, struct free_node *node);

/* The smallest node of at least `size` bytes; among nodes of equal size the one
 * with the lowest address. NULL if there is none. */
struct free_node *free_set_fit(const struct free_set *set, frag_size size);

/* The first and the last node in the order of (size, address), and the next and
 * the previous one. NULL at the ends. `node` need not be in the set. */
struct free_node *free_set_first(const struct free_set *set);
struct free_node *free_set_last(const struct free_set *set);
struct free_node *free_set_after(const struct free_set *set,
                                 const struct free_node *node);
struct free_node *free_set_before(const struct free_set *set,
                                  const struct free_node *node);

/* Checks that each node is in the bin of its size, that the nodes are in order,
 * and that the bitmap is right. Returns NULL or a text that names the fault.
 * Adds the nodes to `met` with the given home. */
const char *free_set_check(const struct free_set *set, const void *home,
                           struct met *met);

#endif
