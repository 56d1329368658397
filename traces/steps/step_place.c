/* step_place.c - finds the place in a complete step at which the cut step ends.
 */
#include "traces/steps/cut.h"

enum {
    CONTEXT = 64, /* events before the failed request that are compared */
    LEAST = 4,    /* of them that must be alike */
    RECENT = 8,   /* complete steps that are looked at */
    NEAR = 16,    /* events around a place */
    PLAUSIBLE = 2 /* factor by which the ratio of two sizes may lie outside of
                     the ratios of the requests before */
};

/* As shape_of in steps.c: what an event is, without its size. */
static uint64_t shape(const struct cut *c, uint64_t i)
{
    return c->d->op[i] == FRAG_FREE
               ? FRAG_OP_COUNT + i - c->b->lives[c->b->of[i]].alloc
               : c->d->op[i];
}

static struct cut_place measure(const struct cut *c,
                                const struct frag_step *step, uint64_t at)
{
    const uint64_t length = at - step->from, cut = c->at - c->from;
    struct cut_place p = {
        .step = step,
        .at = at,
        .apart = length > cut ? length - cut : cut - length,
    };

    while (p.alike < CONTEXT && p.alike < length && p.alike < cut &&
           shape(c, at - 1 - p.alike) == shape(c, c->at - 1 - p.alike))
        p.alike++;
    return p;
}

static bool is_better(const struct cut_place *a, const struct cut_place *b)
{
    return a->alike > b->alike || (a->alike == b->alike && a->apart < b->apart);
}

/* The least and the largest ratio of the sizes of the cut step to those of the
 * complete step, over the events that are alike. */
static void find_ratios(const struct cut *c, const struct cut_place *p,
                        double *least, double *most)
{
    *least = *most = 1;
    for (uint64_t k = 1; k <= p->alike; k++) {
        double ratio;

        if (c->d->op[p->at - k] != FRAG_ALLOC)
            continue;
        ratio = (double)c->d->bytes[c->at - k] / (double)c->d->bytes[p->at - k];
        *least = ratio < *least ? ratio : *least;
        *most = ratio > *most ? ratio : *most;
    }
}

/* Moves the place to the nearest request whose size can be the failed one's: a
 * few requests may be missing in one of the steps. */
static void settle_place(const struct cut *c, struct cut_place *p)
{
    const double failed = (double)c->d->bytes[c->at];
    double least, most;

    find_ratios(c, p, &least, &most);
    for (uint64_t k = 0; k <= 2 * NEAR; k++) {
        const uint64_t at = k % 2 ? p->at - (k + 1) / 2 : p->at + k / 2;
        double ratio;

        if (at < p->step->from || at >= p->step->to ||
            c->d->op[at] != FRAG_ALLOC)
            continue;
        ratio = failed / (double)c->d->bytes[at];
        if (ratio < least / PLAUSIBLE || ratio > most * PLAUSIBLE)
            continue;
        p->at = at;
        p->fits = true;
        return;
    }
}

bool cut_find_place(struct cut *c)
{
    const uint64_t n = c->steps->count;

    c->place = (struct cut_place){0};
    for (uint64_t k = n; k-- > 0 && n - k <= RECENT;) {
        const struct frag_step *step = &c->steps->items[k];

        for (uint64_t i = step->from; i < step->to; i++) {
            struct cut_place p;

            if (c->d->op[i] != FRAG_ALLOC)
                continue;
            p = measure(c, step, i);
            if (!c->place.step || is_better(&p, &c->place))
                c->place = p;
        }
    }
    if (!c->place.step)
        return false;
    settle_place(c, &c->place);
    return c->place.fits || c->place.alike >= LEAST;
}
