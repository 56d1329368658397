/* ranges.h - an ordered set of ranges that do not overlap.
 *
 * A treap by start whose nodes the caller owns (first member or not), so that
 * no operation can fail. Each node also knows the widest range below it, which
 * answers "the highest range of at least so many bytes" without a scan. All
 * calls are O(log n) but where said otherwise. The same calls always build the
 * same tree: see policies/mechanism/treap.h.
 */
#ifndef FRAG_SIM_RANGES_H
#define FRAG_SIM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint64_t at, size;
    uint64_t widest; /* of this node and all below it; as `rank` and the links
                        private to ranges.c */
    struct range *low, *high;
    uint64_t rank;
};

struct ranges {
    struct range *root;
};

/* r->at and r->size are set; no range of the set has the same start. */
void ranges_add(struct ranges *t, struct range *r);
/* r is in the set. */
void ranges_remove(struct ranges *t, struct range *r);
/* Gives r, which is in the set, another size. */
void ranges_resize(struct ranges *t, struct range *r, uint64_t size);

/* The range with the highest start <= at, or the lowest start >= at. NULL if
 * there is none. */
struct range *ranges_upto(const struct ranges *t, uint64_t at);
struct range *ranges_from(const struct ranges *t, uint64_t at);
/* The range that starts at `at`; NULL if none does. */
struct range *ranges_at(const struct ranges *t, uint64_t at);
/* A range that shares a byte with [at, at + size), size > 0; the lowest. */
struct range *ranges_overlap(const struct ranges *t, uint64_t at,
                             uint64_t size);

/* Of the ranges of at least `size`: the highest, the lowest, the smallest (the
 * lowest of equals; O(ranges that fit)). NULL if none fits. */
struct range *ranges_highest_fit(const struct ranges *t, uint64_t size);
struct range *ranges_lowest_fit(const struct ranges *t, uint64_t size);
struct range *ranges_best_fit(const struct ranges *t, uint64_t size);

/* The size of the widest range; 0 if the set is empty. */
static inline uint64_t ranges_widest(const struct ranges *t)
{
    return t->root ? t->root->widest : 0;
}

/* Says what is broken: the ranges are in order, none overlaps another, each
 * knows the widest below it, and none has a higher rank than the one above it.
 * NULL if all is so. O(n); for tests. */
const char *ranges_check(const struct ranges *t);

/* Takes some range out of the set in any order, NULL if it is empty: for
 * closing. Nothing else may be called in between. */
struct range *ranges_pop(struct ranges *t);

#endif
