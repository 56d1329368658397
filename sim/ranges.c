/* ranges.c - the set of ranges: applies policies/mechanism/treap.h to struct
 * range, and adds the searches and the check. */
#include "sim/ranges.h"

#include <stddef.h>

#define TREAP_NODE struct range
#include "policies/mechanism/treap.h"

void ranges_add(struct ranges *t, struct range *r)
{
    treap_insert(&t->root, r, r->at);
}

void ranges_remove(struct ranges *t, struct range *r)
{
    treap_remove(&t->root, r);
}

void ranges_resize(struct ranges *t, struct range *r, uint64_t size)
{
    treap_resize(&t->root, r, r->at, size);
}

struct range *ranges_upto(const struct ranges *t, uint64_t at)
{
    struct range *found = NULL;

    for (struct range *r = t->root; r;) {
        if (r->at <= at) {
            found = r;
            r = r->high;
        } else {
            r = r->low;
        }
    }
    return found;
}

struct range *ranges_from(const struct ranges *t, uint64_t at)
{
    struct range *found = NULL;

    for (struct range *r = t->root; r;) {
        if (r->at >= at) {
            found = r;
            r = r->low;
        } else {
            r = r->high;
        }
    }
    return found;
}

struct range *ranges_at(const struct ranges *t, uint64_t at)
{
    struct range *r = t->root;

    while (r && r->at != at)
        r = at < r->at ? r->low : r->high;
    return r;
}

struct range *ranges_overlap(const struct ranges *t, uint64_t at, uint64_t size)
{
    struct range *r = ranges_upto(t, at);

    if (r && at - r->at < r->size)
        return r;
    r = ranges_from(t, at);
    return r && r->at - at < size ? r : NULL;
}

struct range *ranges_highest_fit(const struct ranges *t, uint64_t size)
{
    struct range *r = t->root;

    if (!r || r->widest < size)
        return NULL;
    for (;;) {
        if (r->high && r->high->widest >= size)
            r = r->high;
        else if (r->size >= size)
            return r;
        else
            r = r->low;
    }
}

struct range *ranges_lowest_fit(const struct ranges *t, uint64_t size)
{
    if (!t->root || t->root->widest < size)
        return NULL;
    return treap_lowest_in(t->root, size);
}

/* The smallest range of at least `size` among `best` and the ranges of t; the
 * lowest one of equal size, since the search goes from low to high. */
static struct range *better(struct range *t, uint64_t size, struct range *best)
{
    if (!t || t->widest < size || (best && best->size == size))
        return best;
    best = better(t->low, size, best);
    if (t->size >= size && (!best || t->size < best->size))
        best = t;
    return better(t->high, size, best);
}

struct range *ranges_best_fit(const struct ranges *t, uint64_t size)
{
    return better(t->root, size, NULL);
}

struct range *ranges_pop(struct ranges *t)
{
    struct range *r = t->root;

    if (!r)
        return NULL;
    while (r->low) { /* rotate the tree until its root has no lower child */
        struct range *low = r->low;

        r->low = low->high;
        low->high = r;
        r = low;
    }
    t->root = r->high;
    return r;
}

/* ---- the check ---- */

static const char *check_one(const struct range *r, const struct range *last)
{
    const struct range *below[] = {r->low, r->high};
    uint64_t widest = r->size;

    if (last && (last->at >= r->at || last->size > r->at - last->at))
        return "ranges are not in order, or overlap";
    for (int i = 0; i < 2; i++) {
        if (below[i] && below[i]->rank > r->rank)
            return "a range has a higher rank than the one above it";
        if (below[i] && below[i]->widest > widest)
            widest = below[i]->widest;
    }
    return r->widest == widest
               ? NULL
               : "a range does not store the widest size below it";
}

/* On entry *last is the range before the tree, NULL if there is none; on return
 * *last is the highest range of the tree. */
static const char *check_tree(const struct range *r, const struct range **last)
{
    const char *fault;

    if (!r)
        return NULL;
    fault = check_tree(r->low, last);
    if (!fault)
        fault = check_one(r, *last);
    *last = r;
    return fault ? fault : check_tree(r->high, last);
}

const char *ranges_check(const struct ranges *t)
{
    const struct range *last = NULL;

    return check_tree(t->root, &last);
}
