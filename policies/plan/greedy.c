/* greedy.c - places one item after the other, each at the lowest offset where
 * it overlaps no item placed before.
 *
 * Placed items are kept in buckets, one for each group of `width` sections, so
 * that an item is compared only with items of its own part of the trace.
 */
#include <stdlib.h>
#include <string.h>

#include "policies/plan/parts.h"
#include "traces/grow.h"

/* The place of an item: quanta [offset, end), sections [from, to). */
struct placed {
    uint64_t offset, end;
    uint32_t from, to;
};

/* The items placed so far that live in one group of sections, by offset. */
struct bucket {
    struct placed *rows;
    uint32_t count;
    uint64_t room;
};

struct greedy {
    const struct problem *p;
    struct plan_listener *listener;
    uint32_t width; /* sections in a group */
    uint32_t bucket_count;
    struct bucket *buckets;
    struct placed *found; /* [items]: buffer of collect() */
    uint64_t rows_read;   /* rows compared in this pass */
};

/* STEP_ROWS rows cost about as much time as one section of the search, so they
 * count as one step. */
enum { BUCKETS = 1024, NARROWEST = 16, STEP_ROWS = 64 };

struct greedy *plan_greedy_open(const struct problem *p,
                                struct plan_listener *listener)
{
    struct greedy *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    g->p = p;
    g->listener = listener;
    g->width = p->sections / BUCKETS + 1;
    if (g->width < NARROWEST)
        g->width = NARROWEST;
    g->bucket_count = p->sections / g->width + 1;
    g->buckets = calloc(g->bucket_count, sizeof(*g->buckets));
    g->found = malloc((p->count + (size_t)1) * sizeof(*g->found));
    if (g->buckets && g->found)
        return g;
    plan_greedy_close(g);
    return NULL;
}

void plan_greedy_close(struct greedy *g)
{
    if (!g)
        return;
    for (uint32_t k = 0; g->buckets && k < g->bucket_count; k++)
        free(g->buckets[k].rows);
    free(g->buckets);
    free(g->found);
    free(g);
}

static bool overlap(const struct placed *placed, const struct item *item)
{
    return placed->from < item->to && item->from < placed->to;
}

static int by_offset(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1)
                                  : (x->end > y->end) - (x->end < y->end);
}

/* Collects in g->found, by offset, all placed items that share a section with
 * the item, each once. An item in several buckets is read from the first bucket
 * that it shares with the new item. Returns their number. */
static uint32_t collect(struct greedy *g, const struct item *item)
{
    const uint32_t first = item->from / g->width;
    uint32_t count = 0;

    for (uint32_t k = first; k <= (item->to - 1) / g->width; k++) {
        g->rows_read += g->buckets[k].count;
        for (uint32_t r = 0; r < g->buckets[k].count; r++) {
            const struct placed *placed = &g->buckets[k].rows[r];

            if (overlap(placed, item) &&
                (k == first || placed->from / g->width == k))
                g->found[count++] = *placed;
        }
    }
    qsort(g->found, count, sizeof(*g->found), by_offset);
    return count;
}

/* The lowest offset at which the item overlaps none of the rows. */
static uint64_t lowest_gap(const struct placed *rows, uint32_t count,
                           const struct item *item)
{
    uint64_t offset = 0;

    for (uint32_t r = 0; r < count; r++) {
        if (rows[r].end <= offset || !overlap(&rows[r], item))
            continue;
        if (rows[r].offset >= offset + item->size)
            break;
        offset = rows[r].end;
    }
    return offset;
}

/* Inserts a row by its offset. False if the host has no memory. */
static bool insert(struct bucket *s, const struct placed *placed)
{
    uint32_t low = 0, high = s->count;

    if (!GROW(s->rows, s->room, s->count + (uint64_t)1))
        return false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (s->rows[middle].offset <= placed->offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&s->rows[low + 1], &s->rows[low],
            (s->count - low) * sizeof(*s->rows));
    s->rows[low] = *placed;
    s->count++;
    return true;
}

/* Places one item and stores its offset. False if the host has no memory. */
static bool place(struct greedy *g, const struct item *item, uint64_t *offset)
{
    const uint32_t first = item->from / g->width;
    const uint32_t last = (item->to - 1) / g->width;
    const struct bucket *only = &g->buckets[first];
    struct placed placed = {.from = item->from, .to = item->to};

    if (first == last) {
        g->rows_read += only->count;
        placed.offset = lowest_gap(only->rows, only->count, item);
    } else {
        placed.offset = lowest_gap(g->found, collect(g, item), item);
    }
    placed.end = placed.offset + item->size;
    for (uint32_t k = first; k <= last; k++)
        if (!insert(&g->buckets[k], &placed))
            return false;
    *offset = placed.offset;
    return true;
}

static uint64_t steps_for(const struct greedy *g, uint32_t items)
{
    return items + g->rows_read / STEP_ROWS;
}

enum frag_err plan_greedy(struct greedy *g, const uint32_t *order,
                          uint64_t *offsets, uint64_t *steps)
{
    uint64_t told = 0;

    g->rows_read = 0;
    for (uint32_t k = 0; k < g->bucket_count; k++)
        g->buckets[k].count = 0;
    for (uint32_t n = 0; n < g->p->count; n++) {
        if (!place(g, &g->p->items[order[n]], &offsets[order[n]]))
            return FRAG_NOMEM;
        *steps = steps_for(g, n + 1);
        if (*steps - told < TELL_STEPS)
            continue;
        if (!plan_tell(g->listener, *steps - told))
            return FRAG_CANCELLED;
        told = *steps;
    }
    *steps = steps_for(g, g->p->count);
    return plan_tell(g->listener, *steps - told) ? FRAG_OK : FRAG_CANCELLED;
}
