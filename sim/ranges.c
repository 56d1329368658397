/* The treap behind ranges.h: a node's rank is a hash of its start, and its
 * widest range is kept up to date on the way back up. */
#include "sim/ranges.h"

#include <stddef.h>

/* The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static struct range *measured(struct range *r)
{
    r->widest = r->size;
    if (r->low && r->low->widest > r->widest)
        r->widest = r->low->widest;
    if (r->high && r->high->widest > r->widest)
        r->widest = r->high->widest;
    return r;
}

/* Parts the tree t in what starts below `at` and the rest. */
static void part(struct range *t, uint64_t at, struct range **low,
                 struct range **high)
{
    if (!t) {
        *low = *high = NULL;
    } else if (t->at < at) {
        part(t->high, at, &t->high, high);
        *low = measured(t);
    } else {
        part(t->low, at, low, &t->low);
        *high = measured(t);
    }
}

static struct range *joined(struct range *low, struct range *high)
{
    if (!low || !high)
        return low ? low : high;
    if (low->rank > high->rank) {
        low->high = joined(low->high, high);
        return measured(low);
    }
    high->low = joined(low, high->low);
    return measured(high);
}

static struct range *without(struct range *t, const struct range *r)
{
    if (t == r)
        return joined(t->low, t->high);
    if (r->at < t->at)
        t->low = without(t->low, r);
    else
        t->high = without(t->high, r);
    return measured(t);
}

static void remeasure(struct range *t, const struct range *r)
{
    if (t != r)
        remeasure(r->at < t->at ? t->low : t->high, r);
    measured(t);
}

static struct range **below(struct range *t, const struct range *r)
{
    return r->at < t->at ? &t->low : &t->high;
}

/* Where on the way to r the first node hangs that may owe its width to a range
 * of `size` or less: those above it need no new measure, whatever becomes of r.
 */
static struct range **first_touched(struct ranges *t, const struct range *r,
                                    uint64_t size)
{
    struct range **link = &t->root;

    while (*link != r && (*link)->widest > size)
        link = below(*link, r);
    return link;
}

void ranges_add(struct ranges *t, struct range *r)
{
    struct range **link = &t->root;

    r->rank = mixed(r->at);
    while (*link && (*link)->rank >= r->rank) {
        if ((*link)->widest < r->size)
            (*link)->widest = r->size;
        link = below(*link, r);
    }
    part(*link, r->at, &r->low, &r->high);
    *link = measured(r);
}

void ranges_remove(struct ranges *t, struct range *r)
{
    struct range **link = first_touched(t, r, r->size);

    *link = without(*link, r);
}

void ranges_resize(struct ranges *t, struct range *r, uint64_t size)
{
    const uint64_t most = size > r->size ? size : r->size;

    r->size = size;
    remeasure(*first_touched(t, r, most), r);
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
    struct range *r = t->root;

    if (!r || r->widest < size)
        return NULL;
    for (;;) {
        if (r->low && r->low->widest >= size)
            r = r->low;
        else if (r->size >= size)
            return r;
        else
            r = r->high;
    }
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
