/* dry_runs.c - the answer of several runs of one program, which differ in the
 * numbers that stand for values that nobody computed. */
#include <string.h>

#include "sim/cli/verbs/dry/dry_answer.h"

static frag_size from(const struct dry_device *d, size_t way)
{
    const struct frag_capacity_span *need = &d->ways[way].need;

    return frag_capacity_survives(need) ? need->from : FRAG_UNLIMITED;
}

bool dry_is_same(const struct dry_answer *a, const struct dry_answer *other)
{
    if (a->count != other->count || a->status != other->status)
        return false;
    for (size_t i = 0; i < a->count; i++)
        for (size_t w = 0; w < DRY_WAYS; w++) {
            const struct dry_device *one = &a->devices[i],
                                    *two = &other->devices[i];

            if (from(one, w) != from(two, w) ||
                one->ways[w].unlimited.run.peak_reserved !=
                    two->ways[w].unlimited.run.peak_reserved ||
                one->ways[w].unlimited.run.events !=
                    two->ways[w].unlimited.run.events)
                return false;
        }
    return true;
}

void dry_bounds_of(struct dry_device *d, size_t way)
{
    const frag_size replayed = d->ways[way].unlimited.run.peak_reserved;
    const bool is_counted = way == 0 && d->counted_reserved;
    const frag_size reserved = is_counted ? d->counted_reserved : replayed;

    d->need[way] = (struct dry_bounds){from(d, way), from(d, way)};
    d->reserved[way] = (struct dry_bounds){reserved, reserved};
}

static void widen_bounds(struct dry_bounds *b, const struct dry_bounds *other)
{
    b->least = other->least < b->least ? other->least : b->least;
    b->most = other->most > b->most ? other->most : b->most;
}

/* Widens the intervals of a device by those of another run. */
static void widen(struct dry_device *d, const struct dry_device *other)
{
    for (size_t w = 0; w < DRY_WAYS; w++) {
        widen_bounds(&d->need[w], &other->need[w]);
        widen_bounds(&d->reserved[w], &other->reserved[w]);
        if (from(other, w) > from(d, w))
            d->ways[w] = other->ways[w];
    }
}

static void add_gap(struct dry_bounds *b, unsigned runs)
{
    const frag_size gap =
        b->most == FRAG_UNLIMITED ? 0 : (b->most - b->least) / (runs - 1);

    b->most += gap;
    b->least -= gap < b->least ? gap : b->least;
}

void dry_widen(struct dry_answer *a)
{
    const unsigned runs = a->runs - a->left_out;

    for (size_t i = 0; runs > 2 && i < a->count; i++)
        for (size_t w = 0; w < DRY_WAYS; w++) {
            add_gap(&a->devices[i].need[w], runs);
            add_gap(&a->devices[i].reserved[w], runs);
        }
}

void dry_add_run(struct dry_answer *a, struct dry_answer *other)
{
    const unsigned runs = a->runs + 1, left_out = a->left_out;

    a->runs = runs;
    if (a->count != other->count || a->status != other->status ||
        dry_died(a) != dry_died(other)) {
        a->left_out++;
        return;
    }
    if (dry_need(other, dry_largest(other), 0) >
        dry_need(a, dry_largest(a), 0)) {
        const struct dry_answer swapped = *a;

        *a = *other;
        *other = swapped;
    }
    a->runs = runs;
    a->left_out = left_out;
    for (size_t i = 0; i < a->count; i++)
        widen(&a->devices[i], &other->devices[i]);
}
