/* free_set.h - free blocks ordered by (size, rank, address), for best fit.
 *
 * The nodes are members of the caller's blocks, so no function here allocates
 * or fails. Sizes are divided into bins of an eighth of an octave. A bitmap
 * finds the next bin that is not empty. A bin is its least node, whose `left`
 * is NULL and whose `right` is a treap of the other nodes. The treap's
 * priorities are a hash of the address, so its shape depends only on its
 * contents. Most bins hold no block or one, and the inline functions handle
 * these cases; the functions in free_set.c handle all cases. An operation on a
 * bin of n blocks costs O(log n).
 *
 * A set begins as a single bin. The table of bins is made at insertion number
 * FREE_MANY and kept until free_set_fini, so that thousands of streams with a
 * set each take little memory unless they are busy. If the host has no memory
 * for the table, the set stays a single bin; the answers are the same.
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

enum { FREE_WORDS = 7, FREE_BINS = FREE_WORDS * 64, FREE_MANY = 64 };

struct free_bins {
    uint64_t used[FREE_WORDS]; /* bit b: bin b is not empty */
    struct free_node *bins[FREE_BINS];
};

/* Orders nodes of equal size before their addresses do. The rank of a node
 * must not change while it is in a set. */
typedef uint64_t free_rank(const struct free_node *node);

struct free_set {
    struct free_bins *table; /* NULL: `only` has all nodes */
    struct free_node *only;
    free_rank *rank; /* NULL: only the addresses order nodes of equal size */
    uint32_t insertions; /* so far, until the table is made */
};

/* A step of a request or a free, which is part of its caller even where it has
 * many callers. */
#define FREE_STEP __attribute__((always_inline)) static inline

/* The bin of a size: eight bins an octave. Sizes below 512 are in bins 0 to 7,
 * so that no size needs a branch. */
FREE_STEP unsigned free_bin_of(frag_size size)
{
    const unsigned top = 63 ^ (unsigned)__builtin_clzll(size | 512);

    return (top - 9) * 8 + (unsigned)(size >> (top - 3));
}

/* The smallest node of the bins from *bin up (< FREE_BINS), and its bin; NULL
 * if there is none. */
FREE_STEP struct free_node *free_bins_first(const struct free_bins *t,
                                            unsigned *bin)
{
    unsigned word = *bin / 64;
    uint64_t bits = t->used[word] & (~(uint64_t)0 << (*bin % 64));

    while (!bits && ++word < FREE_WORDS)
        bits = t->used[word];
    if (!bits)
        return NULL;
    *bin = word * 64 + (unsigned)__builtin_ctzll(bits);
    return t->bins[*bin];
}

/* Frees the table of bins; the set is empty afterwards. */
void free_set_fini(struct free_set *set);

/* free_set_insert, free_set_remove and free_set_fit for bins of any number of
 * nodes, and for sets without a table. */
void free_set_insert_any(struct free_set *set, struct free_node *node);
void free_set_remove_any(struct free_set *set, struct free_node *node);
struct free_node *free_set_fit_any(const struct free_set *set, frag_size size);

FREE_STEP void free_set_insert(struct free_set *set, struct free_node *node)
{
    struct free_bins *t = set->table;
    const unsigned bin = free_bin_of(node->size);

    if (!t || t->bins[bin]) {
        free_set_insert_any(set, node);
        return;
    }
    node->left = node->right = NULL;
    t->bins[bin] = node;
    t->used[bin / 64] |= (uint64_t)1 << (bin % 64);
}

/* Removes a node that is the least one of its bin; with FREE_BINS as bin, any
 * node. */
FREE_STEP void free_set_remove_found(struct free_set *set,
                                     struct free_node *node, unsigned bin)
{
    struct free_bins *t = set->table;

    if (bin == FREE_BINS || node->right) {
        free_set_remove_any(set, node);
        return;
    }
    t->bins[bin] = NULL;
    t->used[bin / 64] &= ~((uint64_t)1 << (bin % 64));
}

FREE_STEP void free_set_remove(struct free_set *set, struct free_node *node)
{
    const unsigned bin = free_bin_of(node->size);
    const bool is_least = set->table && set->table->bins[bin] == node;

    free_set_remove_found(set, node, is_least ? bin : FREE_BINS);
}

/* The smallest node of at least `size` bytes, and its bin; among nodes of equal
 * size the one with the lowest rank and address. NULL if there is none. */
FREE_STEP struct free_node *free_set_find(const struct free_set *set,
                                          frag_size size, unsigned *bin)
{
    struct free_node *n;

    if (set->table) {
        *bin = free_bin_of(size);
        n = free_bins_first(set->table, bin);
        if (!n || n->size >= size)
            return n;
    }
    *bin = FREE_BINS;
    return free_set_fit_any(set, size);
}

FREE_STEP struct free_node *free_set_fit(const struct free_set *set,
                                         frag_size size)
{
    unsigned bin;

    return free_set_find(set, size, &bin);
}

/* The first and the last node in the order of the set, and the next and
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
