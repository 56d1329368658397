/* period.c - boundaries of steps by the period of the events: sequences of
 * GRAM events that recur at regular distances. */
#include <math.h>
#include <stdlib.h>

#include "traces/steps/step_parts.h"

enum {
    GRAM = 12,      /* events; a shorter sequence recurs by chance */
    SHORTEST = 8,   /* events of a step, on average */
    CANDIDATES = 24 /* that are scored */
};

/* Grams whose irregularity differs by less are equally regular; the one at
 * which fewer bytes are live is taken, because steps are cut best where little
 * is live. */
static const double close_enough = 0.02;

struct gram {
    uint64_t hash, at;
};

/* The occurrences of one sequence that do not overlap. */
struct occurrences {
    const struct gram *grams;
    uint64_t first, count; /* rows of grams, with overlapping ones left out */
    uint64_t grams_in;
    double irregularity, live;
};

/* Sorts by byte `shift` / 8 of the hash; equal ones keep their order. */
static void sort_pass(const struct gram *from, struct gram *to, uint64_t count,
                      unsigned shift)
{
    uint64_t next[256] = {0}, at = 0;

    for (uint64_t i = 0; i < count; i++)
        next[from[i].hash >> shift & 0xff]++;
    for (size_t k = 0; k < 256; k++) {
        const uint64_t n = next[k];

        next[k] = at;
        at += n;
    }
    for (uint64_t i = 0; i < count; i++)
        to[next[from[i].hash >> shift & 0xff]++] = from[i];
}

/* Sorts by hash, and equal ones by their place, in which order they come.
 * False if the host has no memory. */
static bool sort_grams(struct gram *grams, uint64_t count)
{
    struct gram *other = malloc((size_t)count * sizeof(*other));

    for (unsigned shift = 0; other && shift < 64; shift += 16) {
        sort_pass(grams, other, count, shift);
        sort_pass(other, grams, count, shift + 8);
    }
    free(other);
    return other != NULL;
}

static uint64_t hash_gram(const uint32_t *shape)
{
    uint64_t h = 0xcbf29ce484222325;

    for (int k = 0; k < GRAM; k++)
        h = (h ^ shape[k]) * 0x100000001b3;
    return h ^ h >> 29;
}

static struct gram *make_grams(const struct search *s, uint64_t from,
                               uint64_t count)
{
    struct gram *grams = malloc((size_t)count * sizeof(*grams));

    if (!grams)
        return NULL;
    for (uint64_t i = 0; i < count; i++)
        grams[i] = (struct gram){hash_gram(s->shape + from + i), from + i};
    if (sort_grams(grams, count))
        return grams;
    free(grams);
    return NULL;
}

/* Moves to the next occurrence that does not overlap `at`; count if none. */
static uint64_t next_apart(const struct gram *g, uint64_t i, uint64_t count,
                           uint64_t at)
{
    while (i < count && g[i].at < at + GRAM)
        i++;
    return i;
}

/* Measures the group of equal grams g[0] ... g[count - 1]. */
static struct occurrences measure(const struct search *s, const struct gram *g,
                                  uint64_t count)
{
    struct occurrences o = {.grams = g, .grams_in = count};
    double sum = 0, squares = 0, n;
    uint64_t last = 0;

    for (uint64_t i = 0; i < count;
         last = g[i].at, i = next_apart(g, i, count, last)) {
        double gap = o.count ? (double)(g[i].at - last) : 0;

        sum += gap;
        squares += gap * gap;
        o.live += (double)s->blocks->live[g[i].at];
        o.count++;
    }
    if (o.count < 2)
        return o;
    n = (double)(o.count - 1);
    o.live /= (double)o.count;
    o.irregularity = INFINITY;
    if (sum / n >= SHORTEST)
        o.irregularity =
            sqrt(fmax(0, squares / n - sum / n * (sum / n))) / (sum / n) -
            (double)(last - g[0].at) / (double)s->blocks->events;
    return o;
}

/* The best occurrences of each count, by count. */
struct best {
    struct occurrences *items;
    uint64_t count;
};

static bool is_better(const struct occurrences *a, const struct occurrences *b)
{
    const double gap = a->irregularity - b->irregularity;

    if (!b->count || gap < -close_enough)
        return true;
    return gap <= close_enough && a->live < b->live;
}

static void keep_best(const struct search *s, const struct gram *g,
                      uint64_t count, struct best *best)
{
    for (uint64_t i = 0, n; i < count; i += n) {
        struct occurrences o;

        for (n = 1; i + n < count && g[i + n].hash == g[i].hash; n++)
            ;
        o = measure(s, g + i, n);
        if (o.count >= 2 && o.count < best->count &&
            o.irregularity < INFINITY && is_better(&o, &best->items[o.count]))
            best->items[o.count] = o;
    }
}

static int by_irregularity(const void *a, const void *b)
{
    const struct occurrences *x = a, *y = b;
    const double gap = (x->count ? x->irregularity : INFINITY) -
                       (y->count ? y->irregularity : INFINITY);

    if (gap < 0 || gap > 0)
        return gap < 0 ? -1 : 1;
    return x->count > y->count ? -1 : x->count < y->count;
}

static enum frag_err add(struct search *s, const struct occurrences *o)
{
    struct bounds *b = candidates_add(s);

    if (!b)
        return FRAG_NOMEM;
    b->source = FRAG_STEPS_PERIOD;
    for (uint64_t i = 0; i < o->grams_in;
         i = next_apart(o->grams, i, o->grams_in, o->grams[i].at))
        if (!bounds_push(b, o->grams[i].at))
            return FRAG_NOMEM;
    return FRAG_OK;
}

enum frag_err period_candidates(struct search *s)
{
    const uint64_t from = s->device->initial < s->blocks->events
                              ? s->device->initial
                              : s->blocks->events;
    const uint64_t events = s->blocks->events - from;
    const uint64_t count = events > GRAM ? events - GRAM + 1 : 0;
    struct best best = {.count = count / SHORTEST + 2};
    struct gram *grams = count ? make_grams(s, from, count) : NULL;
    enum frag_err err = FRAG_OK;

    if (!count)
        return FRAG_OK;
    best.items = calloc((size_t)best.count, sizeof(*best.items));
    if (grams && best.items) {
        keep_best(s, grams, count, &best);
        qsort(best.items, best.count, sizeof(*best.items), by_irregularity);
        for (uint64_t i = 0; err == FRAG_OK && i < CANDIDATES &&
                             i < best.count && best.items[i].count;
             i++)
            err = add(s, &best.items[i]);
    } else {
        err = FRAG_NOMEM;
    }
    free(best.items);
    free(grams);
    return err;
}
