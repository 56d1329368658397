/* ranges.c - the set of ranges: what a treap does, and the searches in it. */
#include "sim/ranges.h"

#include <stddef.h>

#define TREAP_NODE struct range
#include "policies/mechanism/treap.h"

void ranges_add(struct ranges *t, struct range *r)
{
    treap_insert(&t->root, r);
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

/* The better of best and what lies in t, looked at from low to high. */
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
    while (r->low) { /* turn the tree so that its root has no lower part */
        struct range *low = r->low;

        r->low = low->high;
        low->high = r;
        r = low;
    }
    t->root = r->high;
    return r;
}
