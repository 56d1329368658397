/* treap.h - a tree by address whose nodes store the largest size in their
 * subtree.
 *
 * A file that uses such a tree defines TREAP_NODE, the struct of its nodes, and
 * then includes this header. The struct has the members `low` and `high`
 * (links), `at` (the key, different in every node of a tree), `size`, `widest`
 * and `rank`. This header sets `widest` and `rank`; the caller never does. A
 * tree is the pointer to its root; NULL is an empty tree. No function here
 * allocates or fails.
 *
 * The rank of a node is a hash of a number that the caller passes when it
 * inserts the node. The rank is stored, so the same calls always build the same
 * tree, at whatever host addresses the nodes are.
 *
 * Source: Seidel and Aragon, Randomized Search Trees, Algorithmica 16, 1996.
 */
#ifndef FRAG_POLICIES_MECHANISM_TREAP_H
#define FRAG_POLICIES_MECHANISM_TREAP_H

#include <stddef.h>
#include <stdint.h>

/* The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t treap_mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The largest size in a tree; 0 if the tree is empty. */
static inline uint64_t treap_widest(const TREAP_NODE *t)
{
    return t ? t->widest : 0;
}

/* Computes widest of t from its children and returns t. */
static inline TREAP_NODE *treap_measured(TREAP_NODE *t)
{
    const uint64_t low = treap_widest(t->low), high = treap_widest(t->high);
    const uint64_t below = low > high ? low : high;

    t->widest = t->size > below ? t->size : below;
    return t;
}

/* Divides a tree into the nodes below address `at` and all other nodes. */
static inline void treap_part(TREAP_NODE *t, uint64_t at, TREAP_NODE **low,
                              TREAP_NODE **high)
{
    if (!t) {
        *low = *high = NULL;
    } else if (t->at < at) {
        treap_part(t->high, at, &t->high, high);
        *low = treap_measured(t);
    } else {
        treap_part(t->low, at, low, &t->low);
        *high = treap_measured(t);
    }
}

/* Joins two trees; all nodes of `low` are below those of `high`. */
static inline TREAP_NODE *treap_joined(TREAP_NODE *low, TREAP_NODE *high)
{
    if (!low || !high)
        return low ? low : high;
    if (low->rank > high->rank) {
        low->high = treap_joined(low->high, high);
        return treap_measured(low);
    }
    high->low = treap_joined(low, high->low);
    return treap_measured(high);
}

/* The link of t that leads to n; n is not t. */
static inline TREAP_NODE **treap_toward(TREAP_NODE *t, const TREAP_NODE *n)
{
    return n->at < t->at ? &t->low : &t->high;
}

/* Removes n from the tree t and returns the new root. */
static inline TREAP_NODE *treap_without(TREAP_NODE *t, const TREAP_NODE *n)
{
    if (t == n)
        return treap_joined(t->low, t->high);
    if (n->at < t->at)
        t->low = treap_without(t->low, n);
    else
        t->high = treap_without(t->high, n);
    return treap_measured(t);
}

/* Computes widest again on the path from t to n. */
static inline void treap_remeasure(TREAP_NODE *t, const TREAP_NODE *n)
{
    if (t != n)
        treap_remeasure(*treap_toward(t, n), n);
    treap_measured(t);
}

/* The link to the first node on the path to n whose `widest` is at most `size`,
 * or to n. All nodes above it contain a larger node, so a change of n does not
 * change their `widest`. */
static inline TREAP_NODE **
treap_first_touched(TREAP_NODE **tree, const TREAP_NODE *n, uint64_t size)
{
    TREAP_NODE **link = tree;

    while (*link != n && (*link)->widest > size)
        link = treap_toward(*link, n);
    return link;
}

/* Inserts n; the caller has set n->at and n->size. The rank of n is a hash of
 * `seed`, which should differ between the nodes of a tree and depend on the
 * node alone. */
static inline void treap_insert(TREAP_NODE **tree, TREAP_NODE *n, uint64_t seed)
{
    TREAP_NODE **link = tree;

    n->rank = treap_mixed(seed);
    while (*link && (*link)->rank >= n->rank) {
        if ((*link)->widest < n->size)
            (*link)->widest = n->size;
        link = treap_toward(*link, n);
    }
    treap_part(*link, n->at, &n->low, &n->high);
    *link = treap_measured(n);
}

static inline void treap_remove(TREAP_NODE **tree, TREAP_NODE *n)
{
    TREAP_NODE **link = treap_first_touched(tree, n, n->size);

    *link = treap_without(*link, n);
}

/* Changes the address and size of a node in the tree. The node keeps its place
 * in the order of addresses. */
static inline void treap_resize(TREAP_NODE **tree, TREAP_NODE *n, uint64_t at,
                                uint64_t size)
{
    const uint64_t before = n->widest;

    n->at = at;
    n->size = size;
    treap_measured(n);
    if (n->widest > before) {
        for (TREAP_NODE *t = *tree; t != n; t = *treap_toward(t, n))
            if (t->widest < size)
                t->widest = size;
    } else if (n->widest < before) {
        treap_remeasure(*treap_first_touched(tree, n, before), n);
    }
}

/* The lowest node of at least `size` bytes; the tree must have one. */
static inline TREAP_NODE *treap_lowest_in(TREAP_NODE *t, uint64_t size)
{
    for (;;) {
        if (treap_widest(t->low) >= size)
            t = t->low;
        else if (t->size >= size)
            return t;
        else
            t = t->high;
    }
}

#endif
