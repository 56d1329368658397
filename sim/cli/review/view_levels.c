/* view_levels.c - chooses the blocks and the reserved ranges that a view writes
 * one by one, by their area, and adds up all others in a grid. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/review/view_parts.h"
#include "traces/grow.h"

/* -- columns ------------------------------------------------------------- */

static void put_value(struct view_run *r, enum view_column column,
                      const void *value, size_t size)
{
    struct view_bytes *b = &r->columns[column];

    if (GROW(b->items, b->room, b->size + size)) {
        memcpy(b->items + b->size, value, size);
        b->size += size;
    } else {
        r->is_short = true;
    }
}

void view_u32(struct view_run *r, enum view_column column, uint64_t value)
{
    const uint32_t narrow = (uint32_t)value;

    put_value(r, column, &narrow, sizeof(narrow));
}

void view_f64(struct view_run *r, enum view_column column, uint64_t value)
{
    const double real = (double)value;

    put_value(r, column, &real, sizeof(real));
}

void *view_get(struct view_run *r, uint64_t count, size_t size)
{
    void *made = calloc((size_t)count + 1, size);

    r->is_short = r->is_short || !made;
    return made;
}

frag_time view_time(const struct view *v, uint64_t event)
{
    const struct frag_device_trace *d = v->device;
    const frag_time time =
        d->count ? d->time[event < d->count ? event : d->count - 1] : 0;

    return time > v->start ? time - v->start : 0;
}

uint64_t view_first(const struct view *v, uint64_t column)
{
    return column * v->device->count / v->columns;
}

/* -- the choice ---------------------------------------------------------- */

/* Classes of areas, 64 for each power of two; the blocks at the peak are in the
 * highest one, above every area. */
enum { CLASSES = 128 * 64 };

static double area_of(const struct span *s)
{
    return (double)s->size * (double)(s->to - s->from);
}

static size_t class_of(const struct view_choice *c, const struct span *s)
{
    int power;
    const double part = frexp(area_of(s), &power); /* [0.5, 1), or 0 */

    if (view_is_live(s, c->peak))
        return CLASSES - 1;
    return part > 0 ? (size_t)(power * 64) + (size_t)((part - 0.5) * 128) : 0;
}

bool view_is_written(const struct view_choice *c, const struct span *s)
{
    return !c->least || class_of(c, s) >= c->least;
}

/* Chooses for writing the spans of the highest classes that have room. Those
 * that are live at the peak come first, unless they are too many. */
static struct view_choice choose(struct view_run *r, const struct spans *all,
                                 uint64_t peak, uint64_t room)
{
    uint64_t *counts, live = 0, sum = 0;
    struct view_choice c = {.peak = peak};

    if (all->count <= room || !(counts = view_get(r, CLASSES, sizeof(*counts))))
        return c;
    for (size_t i = 0; i < all->count; i++)
        live += view_is_live(&all->items[i], peak);
    if (live > room / 2)
        c.peak = UINT64_MAX;
    for (size_t i = 0; i < all->count; i++)
        counts[class_of(&c, &all->items[i])]++;
    c.least = CLASSES;
    while (c.least > 1 && (sum += counts[c.least - 1]) <= room)
        c.least--;
    free(counts);
    return c;
}

/* -- the grid ------------------------------------------------------------ */

/* Coverage of cells: the sum of the pieces in a cell, and of the differences up
 * to it. Both have one cell more in each row. */
struct grid {
    double *pieces, *changes;
};

/* Adds `weight`, a share of a row's height, on [left, right) of a row. */
static void add_row(struct grid *g, size_t at, double left, double right,
                    double weight)
{
    const size_t a = (size_t)left, b = (size_t)right;

    if (a == b) {
        g->pieces[at + a] += weight * (right - left);
        return;
    }
    g->pieces[at + a] += weight * ((double)a + 1 - left);
    g->pieces[at + b] += weight * (right - (double)b);
    g->changes[at + a + 1] += weight;
    g->changes[at + b] -= weight;
}

static void add_cells(const struct view_run *r, struct grid *g,
                      const struct span *s)
{
    const struct view *v = r->view;
    const double per_event = (double)v->wide / (double)v->device->count;
    const double per_byte = (double)v->high / (double)r->heights.bytes;
    const double low = (double)height_of(&r->heights, s->addr) * per_byte;
    const double high = low + (double)s->size * per_byte;

    for (uint64_t y = (uint64_t)low; y < v->high && (double)y < high; y++) {
        const double from = fmax(low, (double)y);
        const double to = fmin(high, (double)y + 1);

        add_row(g, (size_t)(y * (v->wide + 2)), (double)s->from * per_event,
                (double)s->to * per_event, to - from);
    }
}

static void put_cells(struct view_run *r, const struct grid *g,
                      enum view_column column)
{
    const struct view *v = r->view;

    for (uint64_t y = 0; y < v->high; y++) {
        double sum = 0;

        for (uint64_t x = 0; x < v->wide; x++) {
            const size_t at = (size_t)(y * (v->wide + 2) + x);
            double share;
            unsigned char byte;

            sum += g->changes[at];
            share = sum + g->pieces[at];
            byte = (unsigned char)fmin(255, ceil(255 * share - 1e-6));
            put_value(r, column, &byte, 1);
        }
    }
}

/* Adds up the spans that are not written one by one. */
static void fill_grid(struct view_run *r, const struct spans *all,
                      const struct view_choice *choice, enum view_column column)
{
    const uint64_t cells = r->view->high * (r->view->wide + 2);
    struct grid g;

    if (!choice->least)
        return;
    g = (struct grid){view_get(r, cells, sizeof(*g.pieces)),
                      view_get(r, cells, sizeof(*g.changes))};
    if (g.pieces && g.changes) {
        for (size_t i = 0; i < all->count; i++)
            if (!view_is_written(choice, &all->items[i]))
                add_cells(r, &g, &all->items[i]);
        put_cells(r, &g, column);
    }
    free(g.pieces);
    free(g.changes);
}

/* -- blocks -------------------------------------------------------------- */

static uint64_t height_in_units(const struct view_run *r, const struct span *s)
{
    return height_of(&r->heights, s->addr) / r->unit;
}

uint32_t view_node_of(struct view *v, const struct span *s)
{
    return v->device->stack ? view_node(&v->stacks, v->device->stack[s->asked])
                            : 0;
}

static void put_kind(struct view *v, struct view_run *r, const struct span *s)
{
    const struct frag_device_trace *d = v->device;
    const uint64_t before = r->kinds.count;
    const uint64_t row[5] = {view_requested(r, s), s->size, view_node_of(v, s),
                             d->stream[s->asked], d->pool[s->asked]};
    const uint32_t kind = view_row(&r->kinds, row);

    r->is_short = r->is_short || kind == UINT32_MAX;
    view_u32(r, VIEW_KIND, kind);
    if (r->kinds.count == before)
        return;
    view_f64(r, VIEW_REQUESTED, row[0]);
    view_f64(r, VIEW_SIZE, row[1]);
    view_u32(r, VIEW_NODE, row[2]);
    view_u32(r, VIEW_STREAM, row[3]);
    view_u32(r, VIEW_POOL, row[4]);
}

static void put_block(struct view *v, struct view_run *r, const struct span *s)
{
    view_u32(r, VIEW_FROM, s->from);
    view_u32(r, VIEW_TO, s->to);
    view_u32(r, VIEW_Y, height_in_units(r, s));
    put_kind(v, r, s);
    if (v->tick) {
        view_u32(r, VIEW_BORN, view_time(v, s->from) / v->tick);
        view_u32(r, VIEW_DIED, view_time(v, s->to) / v->tick);
    }
    if (r->has_moves)
        view_u32(r, VIEW_ASKED, s->asked);
}

void view_blocks(struct view *v, struct view_run *r)
{
    const struct spans *all = &r->track.blocks;

    r->choice = choose(r, all, v->peak, VIEW_BLOCKS / v->count);
    r->least = INFINITY;
    for (size_t i = 0; i < all->count; i++)
        r->has_moves =
            r->has_moves || all->items[i].asked != all->items[i].from;
    for (size_t i = 0; i < all->count; i++) {
        const struct span *s = &all->items[i];

        if (!view_is_written(&r->choice, s))
            continue;
        put_block(v, r, s);
        r->written++;
        if (!view_is_live(s, r->choice.peak))
            r->least = fmin(r->least, area_of(s));
    }
    fill_grid(r, all, &r->choice, VIEW_CELLS);
}

/* -- ranges -------------------------------------------------------------- */

static int by_lifetime(const void *left, const void *right)
{
    const struct span *a = left, *b = right;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

/* Joins adjacent ranges that exist for the same events, for example the maps of
 * one growth. */
static void join_ranges(struct spans *all)
{
    size_t kept = 0;

    if (all->count)
        qsort(all->items, all->count, sizeof(*all->items), by_lifetime);
    for (size_t i = 0; i < all->count; i++) {
        struct span *last = kept ? &all->items[kept - 1] : NULL;
        const struct span *s = &all->items[i];

        if (last && last->from == s->from && last->to == s->to &&
            last->addr + last->size == s->addr)
            last->size += s->size;
        else
            all->items[kept++] = *s;
    }
    all->count = kept;
}

void view_ranges(struct view_run *r)
{
    struct spans *all = &r->track.reserved;
    struct view_choice choice;

    join_ranges(all);
    choice = choose(r, all, UINT64_MAX, VIEW_RANGES / r->view->count);
    for (size_t i = 0; i < all->count; i++) {
        const struct span *s = &all->items[i];

        if (!view_is_written(&choice, s))
            continue;
        view_u32(r, VIEW_RANGE_FROM, s->from);
        view_u32(r, VIEW_RANGE_TO, s->to);
        view_u32(r, VIEW_RANGE_Y, height_in_units(r, s));
        view_u32(r, VIEW_RANGE_SIZE, (s->size + r->unit - 1) / r->unit);
        r->ranges_written++;
    }
    fill_grid(r, all, &choice, VIEW_RANGE_CELLS);
}
