/* ranges.h - an ordered set of ranges that do not overlap.
 *
 * The set is a treap, ordered by start. The caller allocates and owns the
 * nodes, for example as members of its own structs, so no operation can fail.
 * Each node also stores the widest range in its subtree; with it, the set finds
 * "the highest range of at least N bytes" without a scan. All calls are
 * O(log n), except where the comment of a call states otherwise. The same calls
 * always build the same tree: see policies/mechanism/treap.h.
 */
#ifndef FRAG_SIM_RANGES_H
#define FRAG_SIM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint64_t at, size; /* start and number of bytes */
    uint64_t widest;   /* size of the widest range in this subtree. This member
                          and the ones below are private to ranges.c */
    struct range *low, *high;
    uint64_t rank;
};

struct ranges {
    struct range *root; /* NULL: the set is empty */
};

/* Adds r to the set. The caller has set r->at and r->size; no range of the set
 * has the same start. */
void ranges_add(struct ranges *t, struct range *r);
/* Removes r, which is in the set. */
void ranges_remove(struct ranges *t, struct range *r);
/* Changes the size of r, which is in the set. */
void ranges_resize(struct ranges *t, struct range *r, uint64_t size);

/* ranges_upto returns the range with the highest start <= at; ranges_from
 * returns the range with the lowest start >= at. NULL if there is none. */
struct range *ranges_upto(const struct ranges *t, uint64_t at);
struct range *ranges_from(const struct ranges *t, uint64_t at);
/* The range that starts at `at`; NULL if there is none. */
struct range *ranges_at(const struct ranges *t, uint64_t at);
/* The lowest range that shares a byte with [at, at + size), where size > 0;
 * NULL if there is none. */
struct range *ranges_overlap(const struct ranges *t, uint64_t at,
                             uint64_t size);

/* Among the ranges of at least `size` bytes: the highest, the lowest, and the
 * smallest (the lowest one of equal size). NULL if no range is large enough.
 * ranges_best_fit is linear in the number of ranges that are large enough. */
struct range *ranges_highest_fit(const struct ranges *t, uint64_t size);
struct range *ranges_lowest_fit(const struct ranges *t, uint64_t size);
struct range *ranges_best_fit(const struct ranges *t, uint64_t size);

/* The size of the widest range; 0 if the set is empty. */
static inline uint64_t ranges_widest(const struct ranges *t)
{
    return t->root ? t->root->widest : 0;
}

/* Checks the invariants: the ranges are in order and do not overlap, each node
 * stores the widest range of its subtree, and no node has a higher rank than
 * its parent. Returns a description of the first violation, NULL if there is
 * none. O(n); for tests. */
const char *ranges_check(const struct ranges *t);

/* Removes any one range and returns it; NULL if the set is empty. For closing
 * a set: if the call leaves ranges in the set, only ranges_pop may follow. */
struct range *ranges_pop(struct ranges *t);

#endif
