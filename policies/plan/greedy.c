#include <stdlib.h>
#include <string.h>

#include "policies/plan/parts.h"
#include "traces/grow.h"

/* Where an item lies. */
struct laid {
    uint64_t offset, end;
    uint32_t from, to;
};

/* The items laid so far that live in a run of sections, by offset. */
struct shelf {
    struct laid *rows;
    uint32_t count;
    uint64_t room;
};

struct greedy {
    const struct problem *p;
    uint32_t width; /* sections of a shelf */
    uint32_t shelf_count;
    struct shelf *shelves;
    struct laid *found; /* [count] */
    uint64_t looked_at; /* rows, in this pass */
};

/* A step is as many rows as a look of the search at a section costs. */
enum { SHELVES = 1024, NARROWEST = 16, STEP_ROWS = 64 };

struct greedy *plan_greedy_open(const struct problem *p)
{
    struct greedy *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    g->p = p;
    g->width = p->sections / SHELVES + 1;
    if (g->width < NARROWEST)
        g->width = NARROWEST;
    g->shelf_count = p->sections / g->width + 1;
    g->shelves = calloc(g->shelf_count, sizeof(*g->shelves));
    g->found = malloc((p->count + (size_t)1) * sizeof(*g->found));
    if (g->shelves && g->found)
        return g;
    plan_greedy_close(g);
    return NULL;
}

void plan_greedy_close(struct greedy *g)
{
    if (!g)
        return;
    for (uint32_t k = 0; g->shelves && k < g->shelf_count; k++)
        free(g->shelves[k].rows);
    free(g->shelves);
    free(g->found);
    free(g);
}

static bool overlap(const struct laid *laid, const struct item *item)
{
    return laid->from < item->to && item->from < laid->to;
}

static int by_offset(const void *a, const void *b)
{
    const struct laid *x = a, *y = b;

    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1)
                                  : (x->end > y->end) - (x->end < y->end);
}

/* All that is live together with the item, each once, by offset. An item on
 * several shelves is taken from the first it shares with the new one. */
static uint32_t collect(struct greedy *g, const struct item *item)
{
    const uint32_t first = item->from / g->width;
    uint32_t count = 0;

    for (uint32_t k = first; k <= (item->to - 1) / g->width; k++) {
        g->looked_at += g->shelves[k].count;
        for (uint32_t r = 0; r < g->shelves[k].count; r++) {
            const struct laid *laid = &g->shelves[k].rows[r];

            if (overlap(laid, item) &&
                (k == first || laid->from / g->width == k))
                g->found[count++] = *laid;
        }
    }
    qsort(g->found, count, sizeof(*g->found), by_offset);
    return count;
}

/* The lowest offset at which the item meets none of the rows. */
static uint64_t lowest_gap(const struct laid *rows, uint32_t count,
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

static bool put(struct shelf *s, const struct laid *laid)
{
    uint32_t low = 0, high = s->count;

    if (!GROW(s->rows, s->room, s->count + (uint64_t)1))
        return false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (s->rows[middle].offset <= laid->offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&s->rows[low + 1], &s->rows[low],
            (s->count - low) * sizeof(*s->rows));
    s->rows[low] = *laid;
    s->count++;
    return true;
}

static bool lay(struct greedy *g, const struct item *item, uint64_t *offset)
{
    const uint32_t first = item->from / g->width;
    const uint32_t last = (item->to - 1) / g->width;
    const struct shelf *only = &g->shelves[first];
    struct laid laid = {.from = item->from, .to = item->to};

    if (first == last) {
        g->looked_at += only->count;
        laid.offset = lowest_gap(only->rows, only->count, item);
    } else {
        laid.offset = lowest_gap(g->found, collect(g, item), item);
    }
    laid.end = laid.offset + item->size;
    for (uint32_t k = first; k <= last; k++)
        if (!put(&g->shelves[k], &laid))
            return false;
    *offset = laid.offset;
    return true;
}

bool plan_greedy(struct greedy *g, const uint32_t *order, uint64_t *offsets,
                 uint64_t *steps)
{
    g->looked_at = 0;
    for (uint32_t k = 0; k < g->shelf_count; k++)
        g->shelves[k].count = 0;
    for (uint32_t n = 0; n < g->p->count; n++)
        if (!lay(g, &g->p->items[order[n]], &offsets[order[n]]))
            return false;
    *steps = g->p->count + g->looked_at / STEP_ROWS;
    return true;
}
