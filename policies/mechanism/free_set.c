/* free_set.c - bins that keep free blocks in the order of (size, rank,
 * address), and the check of that order. See free_set.h.
 */
#include "policies/mechanism/free_set.h"

#include <stdlib.h>

/* `rank` may be NULL. */
static inline bool less_by(free_rank *rank, const struct free_node *a,
                           const struct free_node *b)
{
    if (a->size != b->size)
        return a->size < b->size;
    if (rank) {
        const uint64_t x = rank(a), y = rank(b);

        if (x != y)
            return x < y;
    }
    return a->addr < b->addr;
}

static bool less(const struct free_set *set, const struct free_node *a,
                 const struct free_node *b)
{
    return less_by(set->rank, a, b);
}

static uint64_t priority(const struct free_node *n)
{
    return (n->addr >> 9) * 0x9e3779b97f4a7c15u;
}

/* Inserts a node into a treap. */
static __attribute__((noinline)) void plant(const struct free_set *set,
                                            struct free_node **link,
                                            struct free_node *node)
{
    struct free_node **low = &node->left, **high = &node->right;
    struct free_node *tree;

    while (*link && priority(*link) >= priority(node))
        link = less(set, node, *link) ? &(*link)->left : &(*link)->right;

    /* Split the subtree below into the nodes before and after `node`. */
    for (tree = *link; tree;) {
        if (less(set, tree, node)) {
            *low = tree;
            low = &tree->right;
            tree = *low;
        } else {
            *high = tree;
            high = &tree->left;
            tree = *high;
        }
    }
    *low = *high = NULL;
    *link = node;
}

/* Removes a node from the treap that has it. */
static void uproot(const struct free_set *set, struct free_node **link,
                   struct free_node *node)
{
    struct free_node *low = node->left, *high = node->right;

    while (*link != node)
        link = less(set, node, *link) ? &(*link)->left : &(*link)->right;

    while (low && high) {
        if (priority(low) >= priority(high)) {
            *link = low;
            link = &low->right;
            low = *link;
        } else {
            *link = high;
            link = &high->left;
            high = *link;
        }
    }
    *link = low ? low : high;
}

/* Removes and returns the least node of a treap, which is not empty. */
static struct free_node *pluck(struct free_node **link)
{
    struct free_node *least;

    while ((*link)->left)
        link = &(*link)->left;
    least = *link;
    *link = least->right;
    return least;
}

/* Nearly all bins hold at most two nodes; a treap of one needs no search. */
static void bin_insert(const struct free_set *set, struct free_node **bin,
                       struct free_node *node)
{
    struct free_node *least = *bin;

    if (!least || less(set, node, least)) {
        *bin = node;
        node->left = NULL;
        node->right = least ? least->right : NULL;
        node = least;
    }
    if (!node)
        return;
    if ((*bin)->right) {
        plant(set, &(*bin)->right, node);
        return;
    }
    node->left = node->right = NULL;
    (*bin)->right = node;
}

static void bin_remove(const struct free_set *set, struct free_node **bin,
                       struct free_node *node)
{
    struct free_node *rest = node->right;

    if (*bin != node) {
        uproot(set, &(*bin)->right, node);
        return;
    }
    *bin = rest ? pluck(&rest) : NULL;
    if (*bin)
        (*bin)->right = rest;
}

static void put_in_bin(const struct free_set *set, struct free_bins *t,
                       struct free_node *node)
{
    const unsigned bin = free_bin_of(node->size);

    t->used[bin / 64] |= (uint64_t)1 << (bin % 64);
    bin_insert(set, &t->bins[bin], node);
}

/* Moves all nodes into bins, unless the host has no memory. */
static __attribute__((noinline)) void make_table(struct free_set *set)
{
    struct free_bins *t = calloc(1, sizeof(*t));
    struct free_node *n;

    set->insertions = 0;
    if (!t)
        return;
    while ((n = set->only)) {
        bin_remove(set, &set->only, n);
        put_in_bin(set, t, n);
    }
    set->table = t;
}

void free_set_insert_any(struct free_set *set, struct free_node *node)
{
    if (set->table) {
        put_in_bin(set, set->table, node);
        return;
    }
    bin_insert(set, &set->only, node);
    if (++set->insertions == FREE_MANY)
        make_table(set);
}

void free_set_remove_any(struct free_set *set, struct free_node *node)
{
    struct free_bins *t = set->table;
    const unsigned bin = free_bin_of(node->size);

    if (!t) {
        bin_remove(set, &set->only, node);
        return;
    }
    bin_remove(set, &t->bins[bin], node);
    if (!t->bins[bin])
        t->used[bin / 64] &= ~((uint64_t)1 << (bin % 64));
}

void free_set_fini(struct free_set *set)
{
    free(set->table);
    *set = (struct free_set){0};
}

/* The largest node of a bin, or of a treap: `right` leads up in both. */
static struct free_node *rightmost(struct free_node *n)
{
    while (n && n->right)
        n = n->right;
    return n;
}

/* The least node of a bin; NULL if the bin is empty. */
static struct free_node *least_of(const struct free_set *set, unsigned bin)
{
    return set->table ? set->table->bins[bin] : set->only;
}

/* As free_bins_first; NULL also without a table. */
static struct free_node *first_from(const struct free_bins *set, unsigned bin)
{
    return set && bin < FREE_BINS ? free_bins_first(set, &bin) : NULL;
}

/* The largest node of the bins below `bin`. NULL also without a table. */
static struct free_node *last_below(const struct free_bins *set, unsigned bin)
{
    unsigned word = bin / 64;
    uint64_t bits = !set ? 0
                    : word < FREE_WORDS
                        ? set->used[word] & (((uint64_t)1 << (bin % 64)) - 1)
                        : 0;

    while (set && !bits && word-- > 0)
        bits = set->used[word];
    if (!bits)
        return NULL;
    return rightmost(
        set->bins[word * 64 + 63 - (unsigned)__builtin_clzll(bits)]);
}

struct free_node *free_set_fit_any(const struct free_set *set, frag_size size)
{
    const unsigned bin = free_bin_of(size);
    struct free_node *least = least_of(set, bin), *best = NULL;

    if (least && least->size >= size)
        return least;
    for (struct free_node *n = least ? least->right : NULL; n;) {
        if (n->size >= size) {
            best = n;
            n = n->left;
        } else {
            n = n->right;
        }
    }
    return best ? best : first_from(set->table, bin + 1);
}

struct free_node *free_set_first(const struct free_set *set)
{
    return set->table ? first_from(set->table, 0) : set->only;
}

struct free_node *free_set_last(const struct free_set *set)
{
    return set->table ? last_below(set->table, FREE_BINS)
                      : rightmost(set->only);
}

static inline __attribute__((always_inline)) struct free_node *
after(const struct free_set *set, const struct free_node *node, free_rank *rank)
{
    const unsigned bin = free_bin_of(node->size);
    struct free_node *least = least_of(set, bin), *best = NULL;

    if (least && less_by(rank, node, least))
        return least;
    for (struct free_node *n = least ? least->right : NULL; n;) {
        if (less_by(rank, node, n)) {
            best = n;
            n = n->left;
        } else {
            n = n->right;
        }
    }
    return best ? best : first_from(set->table, bin + 1);
}

/* Apart, so that free_set_after calls nothing and saves no registers: of its
 * instructions a third.
 */
static __attribute__((noinline)) struct free_node *
after_in_rank(const struct free_set *set, const struct free_node *node)
{
    return after(set, node, set->rank);
}

struct free_node *free_set_after(const struct free_set *set,
                                 const struct free_node *node)
{
    return set->rank ? after_in_rank(set, node) : after(set, node, NULL);
}

struct free_node *free_set_before(const struct free_set *set,
                                  const struct free_node *node)
{
    const unsigned bin = free_bin_of(node->size);
    struct free_node *least = least_of(set, bin), *best = NULL;

    if (least && less(set, least, node))
        best = least;
    for (struct free_node *n = best ? best->right : NULL; n;) {
        if (less(set, n, node)) {
            best = n;
            n = n->right;
        } else {
            n = n->left;
        }
    }
    return best ? best : last_below(set->table, bin);
}

/* ---- the check ---- */

/* The least size of a bin, in units of 64 bytes. */
static uint64_t start_of(unsigned bin)
{
    return bin < 8 ? bin : (uint64_t)(8 + bin % 8) << (bin / 8 - 1);
}

struct free_set_walk {
    const struct free_set *set;
    unsigned bin; /* FREE_BINS: the only bin of a set without a table */
    const void *home;
    struct met *met;
    const struct free_node *last; /* the previous node of the walk */
};

static const char *check_node(struct free_set_walk *w,
                              const struct free_node *n)
{
    const uint64_t units = n->size >> 6;

    CHECK(w->bin == FREE_BINS ||
              (units >= start_of(w->bin) && units < start_of(w->bin + 1)),
          "a node of a free set is not in the bin of its size");
    CHECK(!w->last || less(w->set, w->last, n),
          "the nodes of a free set are not in order");
    w->last = n;
    return NULL;
}

static const char *check_tree(struct free_set_walk *w,
                              const struct free_node *n)
{
    if (!n)
        return NULL;
    CHECK(met_add(w->met, n, w->home),
          "a free set has more nodes than are free");
    CHECK((!n->left || priority(n->left) <= priority(n)) &&
              (!n->right || priority(n->right) <= priority(n)),
          "a node of a free set has a higher priority than the one above it");
    CHECK_ALL(check_tree(w, n->left));
    CHECK_ALL(check_node(w, n));
    return check_tree(w, n->right);
}

static const char *check_bin(struct free_set_walk *w,
                             const struct free_node *least)
{
    if (!least)
        return NULL;
    CHECK(met_add(w->met, least, w->home),
          "a free set has more nodes than are free");
    CHECK(!least->left, "the first node of a bin is not its least one");
    CHECK_ALL(check_node(w, least));
    return check_tree(w, least->right);
}

const char *free_set_check(const struct free_set *set, const void *home,
                           struct met *met)
{
    const struct free_bins *t = set->table;
    struct free_set_walk all = {
        .set = set, .bin = FREE_BINS, .home = home, .met = met};

    if (!t)
        return check_bin(&all, set->only);
    for (unsigned bin = 0; bin < FREE_BINS; bin++) {
        struct free_set_walk w = {
            .set = set, .bin = bin, .home = home, .met = met};
        const bool is_marked = t->used[bin / 64] >> (bin % 64) & 1;

        CHECK(is_marked == (t->bins[bin] != NULL),
              "the bitmap of a free set does not match the bins in use");
        CHECK_ALL(check_bin(&w, t->bins[bin]));
    }
    return NULL;
}
