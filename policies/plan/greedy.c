/* greedy.c - places one item after the other, each at the lowest offset where
 * it overlaps no item placed before.
 *
 * The sections are divided into groups, the leaves of a binary tree. A node
 * knows which quanta are used at any time in its sections, and which are used
 * by items that live in all of them. An item is compared with items one by one
 * only in the groups where it lives in some sections and not in others: where
 * its life begins or ends.
 */
#include <stdlib.h>
#include <string.h>

#include "policies/plan/plan_parts.h"
#include "traces/grow.h"

/* Quanta [offset, end) in sections [from, to). */
struct greedy_row {
    uint64_t offset, end;
    uint32_t from, to;
};

struct rows {
    struct greedy_row *items; /* by offset */
    uint32_t count;
    uint64_t room;
};

/* A run of sections. The rows of `used` and `through` neither overlap nor
 * touch each other, and hold at any time. */
struct node {
    struct rows used;    /* by any item, in at least one of the sections */
    struct rows through; /* by items that live in all of them, except those
                            that also live in all sections of the parent */
    struct rows own;     /* the leaves': one row for each other item */
};

/* Rows that a new item must not overlap, and the first that may matter. */
struct cursor {
    const struct greedy_row *at, *end;
};

enum {
    WIDTH = 16,    /* sections of a leaf */
    CURSORS = 128, /* > 4 for each level of the tree: see collect() */
};

/* The measure of effort: see count_rows(). */
enum { BUCKETS = 1024, NARROWEST = 16, STEP_ROWS = 64 };

struct greedy {
    const struct problem *p;
    enum plan_care care;
    struct plan_listener *listener;
    uint32_t leaves;    /* a power of two */
    struct node *nodes; /* [2 * leaves]: node k has the children 2k, 2k + 1 */
    struct cursor cursors[CURSORS];
    uint32_t cursor_count;
    uint32_t width;      /* sections in a bucket */
    uint32_t *populated; /* [bucket]: placed items that live in it */
    uint64_t rows_read;  /* in this pass: see count_rows() */
};

struct greedy *plan_greedy_open(const struct problem *p, enum plan_care care,
                                struct plan_listener *listener)
{
    struct greedy *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    g->p = p;
    g->care = care;
    g->listener = listener;
    g->width = p->sections / BUCKETS + 1;
    if (g->width < NARROWEST)
        g->width = NARROWEST;
    for (g->leaves = 1; (uint64_t)g->leaves * WIDTH < p->sections;)
        g->leaves *= 2;
    g->nodes = calloc(2 * (size_t)g->leaves, sizeof(*g->nodes));
    g->populated =
        calloc(p->sections / g->width + (size_t)1, sizeof(*g->populated));
    if (g->nodes && g->populated)
        return g;
    plan_greedy_close(g);
    return NULL;
}

void plan_greedy_close(struct greedy *g)
{
    if (!g)
        return;
    for (size_t k = 0; g->nodes && k < 2 * (size_t)g->leaves; k++) {
        free(g->nodes[k].used.items);
        free(g->nodes[k].through.items);
        free(g->nodes[k].own.items);
    }
    free(g->nodes);
    free(g->populated);
    free(g);
}

/* Removes all items. */
static void clear(struct greedy *g)
{
    for (size_t k = 0; k < 2 * (size_t)g->leaves; k++)
        g->nodes[k].used.count = g->nodes[k].through.count =
            g->nodes[k].own.count = 0;
    memset(g->populated, 0,
           (g->p->sections / g->width + (size_t)1) * sizeof(*g->populated));
    g->rows_read = 0;
}

/* ----------------------------------------------------------- rows --- */

/* The first row whose offset is above `offset`. */
static uint32_t first_above(const struct rows *s, uint64_t offset)
{
    uint32_t low = 0, high = s->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (s->items[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replaces the rows [from, to) by one. False if the host has no memory. */
static bool replace(struct rows *s, uint32_t from, uint32_t to,
                    const struct greedy_row *row)
{
    if (!GROW(s->items, s->room, s->count + (uint64_t)1))
        return false;
    memmove(&s->items[from + 1], &s->items[to],
            (s->count - to) * sizeof(*s->items));
    s->items[from] = *row;
    s->count += 1 - (to - from);
    return true;
}

static bool insert(struct rows *s, const struct greedy_row *row)
{
    const uint32_t at = first_above(s, row->offset);

    return replace(s, at, at, row);
}

/* Adds the row's quanta to rows that neither overlap nor touch each other. */
static bool unite(struct rows *s, const struct greedy_row *row)
{
    struct greedy_row whole = {
        .offset = row->offset, .end = row->end, .to = UINT32_MAX};
    uint32_t to = first_above(s, row->end), from = to;

    while (from && s->items[from - 1].end >= row->offset)
        from--;
    if (from < to && s->items[from].offset < whole.offset)
        whole.offset = s->items[from].offset;
    if (from < to && s->items[to - 1].end > whole.end)
        whole.end = s->items[to - 1].end;
    return replace(s, from, to, &whole);
}

/* ----------------------------------------------------------- tree --- */

/* A node with its sections [from, to). */
struct spot {
    uint32_t node;
    uint64_t from, to;
};

static struct spot root(const struct greedy *g)
{
    return (struct spot){1, 0, (uint64_t)g->leaves * WIDTH};
}

static struct spot child(struct spot s, uint32_t side)
{
    const uint64_t half = (s.to - s.from) / 2;
    const uint64_t from = s.from + side * half;

    return (struct spot){2 * s.node + side, from, from + half};
}

static bool is_filled(struct spot s, uint32_t from, uint32_t to)
{
    return from <= s.from && s.to <= to;
}

static bool is_met(struct spot s, uint32_t from, uint32_t to)
{
    return from < s.to && s.from < to;
}

/* Adds a placed item below this node. False if the host has no memory. */
static bool add(struct greedy *g, struct spot s, const struct greedy_row *row)
{
    struct node *node = &g->nodes[s.node];

    if (!is_met(s, row->from, row->to))
        return true;
    if (!unite(&node->used, row))
        return false;
    if (is_filled(s, row->from, row->to))
        return unite(&node->through, row);
    if (s.node >= g->leaves)
        return insert(&node->own, row);
    return add(g, child(s, 0), row) && add(g, child(s, 1), row);
}

static void look_at(struct greedy *g, const struct rows *rows)
{
    if (rows->count)
        g->cursors[g->cursor_count++] =
            (struct cursor){rows->items, rows->items + rows->count};
}

/* Collects the rows that the item must not overlap. On each level of the tree
 * at most two nodes are met and not filled, so there are at most four nodes, of
 * one cursor each, and two more cursors at the leaves. */
static void collect(struct greedy *g, struct spot s, const struct item *item)
{
    const struct node *node = &g->nodes[s.node];

    if (!is_met(s, item->from, item->to))
        return;
    if (is_filled(s, item->from, item->to)) {
        look_at(g, &node->used);
        return;
    }
    look_at(g, &node->through);
    if (s.node >= g->leaves) {
        look_at(g, &node->own);
        return;
    }
    collect(g, child(s, 0), item);
    collect(g, child(s, 1), item);
}

/* ---------------------------------------------------------- a pass --- */

/* Moves the cursor past all rows that end at or below the offset, and the
 * offset past all rows that the item would overlap there. */
static uint64_t climb(struct cursor *c, const struct item *item,
                      uint64_t offset)
{
    for (; c->at < c->end; c->at++) {
        if (c->at->end <= offset || c->at->from >= item->to ||
            c->at->to <= item->from)
            continue;
        if (c->at->offset >= offset + item->size)
            break;
        offset = c->at->end;
    }
    return offset;
}

/* The lowest offset at which the item overlaps no row. */
static uint64_t lowest_gap(struct greedy *g, const struct item *item)
{
    uint64_t offset = 0, before;

    g->cursor_count = 0;
    collect(g, root(g), item);
    do {
        before = offset;
        for (uint32_t k = 0; k < g->cursor_count; k++)
            offset = climb(&g->cursors[k], item, offset);
    } while (offset > before);
    return offset;
}

/* Counts the item, and the items placed before in each bucket of sections that
 * it lives in: a measure of how many items the new one had to avoid. */
static void count_rows(struct greedy *g, const struct item *item)
{
    const uint32_t last = (item->to - 1) / g->width;

    for (uint32_t k = item->from / g->width; k <= last; k++)
        g->rows_read += g->populated[k]++;
}

/* Places one item and stores its offset. False if the host has no memory. */
static bool place(struct greedy *g, const struct item *item, uint64_t *offset)
{
    *offset = lowest_gap(g, item);
    if (g->care == PLAN_BRIEFLY)
        count_rows(g, item);
    return add(g, root(g),
               &(struct greedy_row){*offset, *offset + item->size, item->from,
                                    item->to});
}

static uint64_t steps_for(const struct greedy *g, uint32_t items)
{
    return items + g->rows_read / STEP_ROWS;
}

enum frag_err plan_greedy(struct greedy *g, const uint32_t *order,
                          uint64_t *offsets, uint64_t *steps)
{
    uint64_t told = 0;

    clear(g);
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
