/* figure_map.c - figure: the addresses of all blocks over events.
 *
 * Addresses that are never reserved are left out, so that segments are drawn
 * without gaps. The picture is a grid. The area of a cell is bytes times
 * events; the cell shows which kind covers most of its area: a block, reserved
 * and free, or not reserved. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/figures/heights.h"
#include "traces/facts.h"

enum { WIDE = 860, HIGH = 480 }; /* cells; each is one pixel */

/* Values of a cell that shows no block: not reserved; reserved and free. */
#define NOTHING (-2.0)
#define FREE    (-1.0)

/* A cell of the grid while blocks and ranges are added. */
struct cell {
    double reserved, filled; /* share of the area: reserved, in blocks */
    double most;             /* largest share of one block */
    double value;            /* of that block */
};

struct map {
    struct figure_track track;
    struct heights heights;
    uint64_t events;
    struct cell *cells; /* [HIGH][WIDE], from the lowest address */
};

/* -- cells --------------------------------------------------------------- */

/* The length of the overlap of [i, i + 1) with [from, to). */
static double part(size_t i, double from, double to)
{
    double low = from > (double)i ? from : (double)i;
    double high = to < (double)i + 1 ? to : (double)i + 1;

    return high > low ? high - low : 0;
}

static void add_block(struct cell *c, double area, double value)
{
    c->filled += area;
    if (area > c->most) {
        c->most = area;
        c->value = value;
    }
}

/* Adds a span to the cells that it covers: a reserved range if value is FREE,
 * else a block. */
static void draw(struct map *m, const struct span *s, double value)
{
    double per_event = WIDE / (double)m->events;
    double per_byte = HIGH / (double)m->heights.bytes;
    double left = (double)s->from * per_event,
           right = (double)s->to * per_event;
    double low = (double)height_of(&m->heights, s->addr) * per_byte;
    double high = low + (double)s->size * per_byte;

    for (size_t y = (size_t)low; y < HIGH && (double)y < high; y++)
        for (size_t x = (size_t)left; x < WIDE && (double)x < right; x++) {
            struct cell *c = &m->cells[y * WIDE + x];
            double area = part(x, left, right) * part(y, low, high);

            if (value == FREE)
                c->reserved += area;
            else
                add_block(c, area, value);
        }
}

/* The value that determines a block's colour: the logarithm to base 2 of its
 * size or lifetime; that of a block that was moved counts from its request. */
static double value_of(const struct trace_view *v, const struct span *s)
{
    if (v->color == FIGURE_SIZE)
        return log2((double)s->size);
    return log2((double)(s->to > s->asked ? s->to - s->asked : 1));
}

static double shown(const struct cell *c)
{
    if (c->reserved < 0.5 && c->filled < 0.5)
        return NOTHING;
    return c->filled >=
                   0.5 * (c->reserved > c->filled ? c->reserved : c->filled)
               ? c->value
               : FREE;
}

static void draw_all(struct map *m, const struct trace_view *v)
{
    for (size_t i = 0; i < m->track.reserved.count; i++)
        draw(m, &m->track.reserved.items[i], FREE);
    for (size_t i = 0; i < m->track.blocks.count; i++)
        draw(m, &m->track.blocks.items[i],
             value_of(v, &m->track.blocks.items[i]));
}

static void release(void *found)
{
    struct map *m = found;

    track_free(&m->track);
    free(m->heights.ranges);
    free(m->cells);
}

static int by_place(const void *left, const void *right)
{
    const struct span *a = left, *b = right;

    if (a->addr != b->addr)
        return a->addr < b->addr ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

static enum frag_err find(const struct figure_source *s, struct frag_error *e)
{
    const struct trace_view *v = s->trace;
    struct map *m = s->found;

    m->events = v->device->count;
    FRAG_TRY(track_make(v, &m->track, e));
    m->cells = calloc((size_t)WIDE * HIGH, sizeof(*m->cells));
    if (!m->cells || !heights_make(&m->track.reserved, &m->heights))
        return FRAG_NOMEM;
    if (!m->heights.bytes)
        return frag_fail(e, FRAG_INVALID, "%s: the policy reserved no memory",
                         v->name);
    draw_all(m, v);
    if (m->track.blocks.count)
        qsort(m->track.blocks.items, m->track.blocks.count, sizeof(struct span),
              by_place);
    return FRAG_OK;
}

/* -- the files ----------------------------------------------------------- */

static void facts(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct trace_view *v = s->trace;
    const struct map *m = s->found;

    fputs("trace\tpolicy\tcolor\tevents\tbytes\tpeak\tooms\tfirst_oom\t"
          "recorded_oom\n",
          out);
    put_short(out, v->name, 28);
    fputc('\t', out);
    put_short(out, v->policy->text, 40);
    if (v->bound.bytes != FRAG_UNLIMITED)
        fprintf(out, " on %s", FRAG_SHOW_BOUND(v->bound));
    fprintf(out, "\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
            v->color == FIGURE_SIZE ? "size" : "lifetime", m->events,
            m->heights.bytes, m->track.run.summary.peak_reserved,
            m->track.run.summary.num_ooms);
    fprintf(out, "\t%" PRId64 "\t%" PRId64 "\n",
            (int64_t)m->track.run.summary.first_oom_event,
            facts_last_oom(v->device));
}

static void ooms(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct map *m = s->found;

    /* A row that is not drawn, because gnuplot rejects a file without rows. */
    fputs("event\n-1\n", out);
    for (uint64_t i = 0; i < m->track.run.oom_count; i++)
        fprintf(out, "%" PRIu64 "\n", m->track.run.ooms[i].event);
}

static void cells(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct map *m = s->found;

    for (size_t y = 0; y < HIGH; y++)
        for (size_t x = 0; x < WIDE; x++)
            fprintf(out, "%.3g%c", shown(&m->cells[y * WIDE + x]),
                    x + 1 < WIDE ? ' ' : '\n');
}

/* The heights between which blocks of one private pool lie, and no others. The
 * blocks were drawn, so their order is free. */
static void pools(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct trace_view *v = s->trace;
    const struct map *m = s->found;
    const struct span *b = m->track.blocks.items;
    char name[FRAG_POOL_NAME];

    /* A row that is not drawn, because gnuplot rejects a file without rows. */
    fputs("from\tto\tpool\n0\t0\t- -\n", out);
    for (size_t i = 0, n; i < m->track.blocks.count; i = n) {
        const frag_pool pool = v->device->pool[b[i].asked];
        frag_addr end = 0;

        for (n = i;
             n < m->track.blocks.count && v->device->pool[b[n].asked] == pool;
             n++)
            end = b[n].addr + b[n].size > end ? b[n].addr + b[n].size : end;
        if (pool)
            fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%s\n",
                    height_of(&m->heights, b[i].addr),
                    height_of(&m->heights, b[n - 1].addr) + end - b[n - 1].addr,
                    frag_pool_name(v->trace, v->device, pool, name));
    }
}

const struct figure figure_map = {
    .name = "map",
    .is_of_trace = true,
    .files = {{".tsv", facts},
              {".ooms.tsv", ooms},
              {".cells", cells},
              {".pools.tsv", pools}},
    .size = sizeof(struct map),
    .find = find,
    .release = release,
};
