/* view_sums.c - the curves of a view by column, and the sums by stack of the
 * blocks that are not written one by one. */
#include <stdlib.h>

#include "sim/cli/review/view_parts.h"

/* -- curves -------------------------------------------------------------- */

/* Puts the values of `bytes`, which are those after each event: the first of a
 * column, unless `first` is VIEW_COLUMN_COUNT, and the most. */
static void put_curve(struct view_run *r, const frag_size *bytes,
                      enum view_column first, enum view_column most)
{
    for (uint64_t c = 0; c < r->view->columns; c++) {
        const uint64_t end = view_first(r->view, c + 1);
        uint64_t i = view_first(r->view, c);
        frag_size high = bytes[i];

        if (first != VIEW_COLUMN_COUNT)
            view_f64(r, first, bytes[i]);
        for (; i < end; i++)
            high = bytes[i] > high ? bytes[i] : high;
        view_f64(r, most, high);
    }
}

void view_curve(struct view_run *r, bool is_requested, enum view_column first,
                enum view_column most)
{
    const struct spans *all = &r->track.blocks;
    const uint64_t events = r->view->device->count;
    /* Differences first; unsigned arithmetic wraps. */
    frag_size *bytes = view_get(r, events + 1, sizeof(*bytes)), sum = 0;

    for (size_t i = 0; bytes && i < all->count; i++) {
        const struct span *s = &all->items[i];
        const frag_size size = is_requested ? view_requested(r, s) : s->size;

        bytes[s->from] += size;
        bytes[s->to] -= size;
    }
    for (uint64_t i = 0; bytes && i < events; i++)
        bytes[i] = sum += bytes[i];
    if (bytes)
        put_curve(r, bytes, first, most);
    free(bytes);
}

void view_curve_reserved(struct view_run *r)
{
    put_curve(r, r->track.held, VIEW_COLUMN_COUNT, VIEW_RESERVED_MOST);
}

/* -- sums by stack ------------------------------------------------------- */

struct sum {
    frag_size requested, size;
    uint64_t blocks;
};

static int by_number(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* The moments: evenly spaced, and the peak. Returns their number. */
static uint64_t list_moments(const struct view *v, uint64_t room,
                             uint64_t *moments)
{
    const uint64_t events = v->device->count;
    uint64_t count = 0;

    for (uint64_t i = 0; i < room; i++)
        moments[count++] = i * events / room;
    moments[count++] = v->peak;
    qsort(moments, (size_t)count, sizeof(*moments), by_number);
    return count;
}

/* The first moment that is not before the event. */
static uint64_t moment_from(const uint64_t *moments, uint64_t count,
                            uint64_t event)
{
    uint64_t low = 0, high = count;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (moments[middle] < event)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds a block to the changes at the moments between which it is live. */
static void add_sum(const struct view_run *r, const struct span *s,
                    struct sum *begin, struct sum *end)
{
    const frag_size requested = view_requested(r, s);

    begin->requested += requested;
    begin->size += s->size;
    begin->blocks++;
    end->requested -= requested;
    end->size -= s->size;
    end->blocks--;
}

static void put_sums(struct view_run *r, struct sum *sums, uint64_t nodes,
                     const uint64_t *moments, uint64_t count)
{
    for (uint64_t m = 0; m < count; m++) {
        struct sum *now = &sums[m * nodes];

        view_u32(r, VIEW_MOMENT, moments[m]);
        view_u32(r, VIEW_MOMENT_FIRST,
                 r->columns[VIEW_SUM_NODE].size / sizeof(uint32_t));
        for (uint64_t k = 0; k < nodes; k++) {
            if (m) {
                now[k].requested += now[k - nodes].requested;
                now[k].size += now[k - nodes].size;
                now[k].blocks += now[k - nodes].blocks;
            }
            if (!now[k].blocks)
                continue;
            view_u32(r, VIEW_SUM_NODE, k);
            view_u32(r, VIEW_SUM_BLOCKS, now[k].blocks);
            view_f64(r, VIEW_SUM_REQUESTED, now[k].requested);
            view_f64(r, VIEW_SUM_SIZE, now[k].size);
        }
    }
}

/* Finds the nodes of all blocks that are not written. Returns the number of
 * distinct ones. */
static uint64_t count_nodes(struct view *v, struct view_run *r)
{
    const struct spans *all = &r->track.blocks;
    unsigned char *seen = view_get(r, VIEW_NODES + 2, sizeof(*seen));
    uint64_t count = 0;

    for (size_t i = 0; seen && i < all->count; i++)
        if (!view_is_written(&r->choice, &all->items[i])) {
            const uint32_t node = view_node_of(v, &all->items[i]);

            count += !seen[node];
            seen[node] = 1;
        }
    free(seen);
    return count;
}

static void add_all(struct view *v, struct view_run *r, uint64_t room)
{
    const struct spans *all = &r->track.blocks;
    const uint64_t nodes = v->stacks.nodes.count;
    uint64_t *moments = view_get(r, room + 1, sizeof(*moments));
    /* The blocks that outlive the last moment end in a row of their own. */
    struct sum *sums = view_get(r, (room + 2) * nodes, sizeof(*sums));
    uint64_t count;

    if (moments && sums) {
        count = list_moments(v, room, moments);
        for (size_t i = 0; i < all->count; i++) {
            const struct span *s = &all->items[i];
            uint32_t node;

            if (view_is_written(&r->choice, s))
                continue;
            node = view_node_of(v, s);
            add_sum(r, s,
                    &sums[moment_from(moments, count, s->from) * nodes + node],
                    &sums[moment_from(moments, count, s->to) * nodes + node]);
        }
        put_sums(r, sums, nodes, moments, count);
    }
    free(moments);
    free(sums);
}

void view_sums(struct view *v, struct view_run *r)
{
    uint64_t distinct, room = VIEW_MOMENTS;

    if (!r->choice.least)
        return;
    distinct = count_nodes(v, r);
    while (room > 1 && (room * distinct > VIEW_SUMS / v->count ||
                        room * v->stacks.nodes.count > VIEW_CELLS_MOST))
        room /= 2;
    add_all(v, r, room);
}
