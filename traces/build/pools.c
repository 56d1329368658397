/* pools.c - infers the pools of events, finds the frees on another stream, and
 * sorts the streams by their handles.
 *
 * A recording has the pool of a segment only if the segment is in the final
 * snapshot. An alloc in the address range of a final segment has the pool of
 * that segment, if the alloc comes after the segment's last segment_alloc. All
 * other allocs have the default pool.
 *
 * Expandable segments: all ranges that were ever mapped in one address
 * reservation touch each other, and ranges of two reservations never touch. A
 * reservation has one pool from the moment when it was last empty.
 * Source: PyTorch 2.11, read in its source and seen in recordings of CUDA
 * graphs.
 */
#include "traces/binary_search.h"
#include "traces/build/build_device.h"

/* A range of addresses that belongs to one pool from the event `from` on. */
struct region {
    frag_addr start, end;
    uint64_t from;
    frag_size mapped; /* bytes reserved now, while date() walks the actions */
    uint32_t pool;
    bool expandable;
};

struct regions {
    struct region *rows;
    uint64_t count, room;
};

static int by_start(const void *a, const void *b)
{
    const struct region *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static enum frag_err add_region(struct regions *r, struct region region)
{
    if (!GROW(r->rows, r->room, r->count + 1))
        return FRAG_NOMEM;
    r->rows[r->count++] = region;
    return FRAG_OK;
}

/* Adds the ranges of all final segments and of all segment_map and
 * segment_unmap actions. */
static enum frag_err add_ranges(struct regions *r, const struct device_build *d)
{
    for (uint64_t i = 0; i < d->segment_count; i++) {
        const struct frag_recorded_segment *s = &d->segments[i];

        FRAG_TRY(add_region(r, (struct region){s->addr, s->addr + s->size, 0, 0,
                                               s->pool, s->is_expandable}));
    }
    for (uint64_t i = 0; i < d->action_count; i++) {
        const struct frag_recorded_action *a = &d->actions[i];

        if (a->action == FRAG_SEGMENT_MAP || a->action == FRAG_SEGMENT_UNMAP)
            FRAG_TRY(add_region(
                r, (struct region){a->addr, a->addr + a->size, 0, 0, 0, true}));
    }
    return FRAG_OK;
}

/* Joins expandable ranges that touch or overlap. The joined range has the pool
 * of the final segment in it, if there is one. */
static void merge(struct regions *r)
{
    uint64_t kept = 0;

    if (r->count)
        qsort(r->rows, (size_t)r->count, sizeof(*r->rows), by_start);
    for (uint64_t i = 0; i < r->count; i++) {
        struct region *last = kept ? &r->rows[kept - 1] : NULL;
        const struct region *next = &r->rows[i];

        if (!last || !last->expandable || !next->expandable ||
            next->start > last->end) {
            r->rows[kept++] = *next;
            continue;
        }
        if (next->end > last->end)
            last->end = next->end;
        if (next->pool)
            last->pool = next->pool;
    }
    r->count = kept;
}

/* Returns the region of an address, NULL if there is none. */
static struct region *find(const struct regions *r, frag_addr addr)
{
    uint64_t low;

    SEARCH(low, r->count, middle, r->rows[middle].start <= addr);
    if (!low || addr >= r->rows[low - 1].end)
        return NULL;
    return &r->rows[low - 1];
}

/* Sets `from` of each region: the event of the last action that reserved memory
 * in the region while it was empty. A region that was mapped before the
 * recording counts as never empty. */
static void date(struct regions *r, const struct device_build *d)
{
    for (uint64_t i = 0; i < d->start_segment_count; i++) {
        struct region *region = find(r, d->start_segments[i].addr);

        if (region)
            region->mapped += d->start_segments[i].size;
    }
    for (uint64_t i = 0; i < d->action_count; i++) {
        const struct frag_recorded_action *a = &d->actions[i];
        struct region *region = find(r, a->addr);

        if (!region || a->action == FRAG_OOM_REPORTED)
            continue;
        if (a->action == FRAG_SEGMENT_ALLOC
                ? !region->expandable
                : a->action == FRAG_SEGMENT_MAP && !region->mapped)
            region->from = a->event;
        region->mapped = frag_held_after(a, region->mapped);
    }
}

/* Writes the pool column. */
static void assign(const struct regions *r, struct columns *c)
{
    for (uint64_t i = 0; i < c->count; i++) {
        const struct region *region;

        if (c->op[i] != FRAG_ALLOC || !c->addr[i])
            continue;
        region = find(r, c->addr[i]);
        if (region && i >= region->from)
            c->pool[i] = (frag_pool)region->pool;
    }
}

enum frag_err build_pools(struct device_build *d)
{
    struct regions r = {0};
    enum frag_err err;

    if (d->pool_count == 1 || d->has_pool_ids)
        return FRAG_OK;
    err = add_ranges(&r, d);
    if (err == FRAG_OK) {
        merge(&r);
        date(&r, d);
        assign(&r, &d->events);
    }
    free(r.rows);
    return err;
}

/* Streams. */

struct handle {
    uint64_t raw;
    uint32_t index;
};

static int by_raw(const void *a, const void *b)
{
    const struct handle *x = a, *y = b;

    return (x->raw > y->raw) - (x->raw < y->raw);
}

static void renumber_segments(struct frag_recorded_segment *s, uint64_t count,
                              const frag_stream *map)
{
    for (uint64_t i = 0; i < count; i++)
        s[i].stream = map[s[i].stream];
}

static void renumber(struct device_build *d, const frag_stream *map)
{
    struct columns *c = &d->events;

    for (uint64_t i = 0; i < c->count; i++)
        if (c->op[i] == FRAG_ALLOC || c->op[i] == FRAG_RECORD_STREAM)
            c->stream[i] = map[c->stream[i]];
        else if (c->op[i] == FRAG_FREE && c->stream[i])
            c->stream[i] = (frag_stream)(map[c->stream[i] - 1] + 1);
    for (uint64_t i = 0; i < d->action_count; i++)
        d->actions[i].stream = map[d->actions[i].stream];
    renumber_segments(d->segments, d->segment_count, map);
    renumber_segments(d->start_segments, d->start_segment_count, map);
}

/* Sets the stream of each FREE that states the stream of its own ALLOC to 0. */
enum frag_err build_free_streams(struct device_build *d)
{
    const struct columns *c = &d->events;
    frag_stream *of; /* of a slot */

    if (!d->free_streams)
        return FRAG_OK;
    of = calloc((size_t)d->slots + 1, sizeof(*of));
    if (!of)
        return FRAG_NOMEM;
    d->free_streams = false;
    for (uint64_t i = 0; i < c->count; i++) {
        if (c->op[i] == FRAG_ALLOC)
            of[c->id[i]] = c->stream[i];
        else if (c->op[i] == FRAG_FREE && c->stream[i] == of[c->id[i]] + 1)
            c->stream[i] = 0;
        else if (c->op[i] == FRAG_FREE && c->stream[i])
            d->free_streams = true;
    }
    free(of);
    return FRAG_OK;
}

enum frag_err build_streams(struct device_build *d)
{
    struct handle *order;
    frag_stream *map;

    if (d->stream_count < 2)
        return FRAG_OK;
    order = calloc((size_t)d->stream_count, sizeof(*order));
    map = calloc((size_t)d->stream_count, sizeof(*map));
    for (uint64_t i = 0; order && i < d->stream_count; i++)
        order[i] = (struct handle){d->streams[i], (uint32_t)i};
    if (order && map) {
        qsort(order, (size_t)d->stream_count, sizeof(*order), by_raw);
        for (uint64_t i = 0; i < d->stream_count; i++) {
            d->streams[i] = order[i].raw;
            map[order[i].index] = (frag_stream)i;
        }
        renumber(d, map);
    }
    free(order);
    free(map);
    return order && map ? FRAG_OK : FRAG_NOMEM;
}
