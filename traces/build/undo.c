/* undo.c - finds the segments that were reserved before the first entry.
 *
 * The address space is divided into parts at both ends of every range that an
 * action or a final segment has. A part was reserved at the start if the first
 * action on it returned it to the device, or if no action touched it and a
 * final segment contains it. If the final snapshot was taken after the last
 * entry, and nothing shows that memory was held before the first one, such a
 * segment is a later one.
 *
 * The actions, and after them the final segments, mark their parts in order. A
 * part keeps its first mark. A marked part refers to the next part, so that
 * later searches skip it, and the whole costs O(n log n).
 */
#include "traces/binary_search.h"
#include "traces/build/build_device.h"
#include "traces/torch_sizes.h"

struct parts {
    frag_addr *cuts; /* ascending; part k is from cuts[k] to cuts[k + 1] */
    uint64_t cut_count;
    uint64_t *next;  /* k if part k is not marked; otherwise a later part, up
                        to which all parts are marked */
    uint64_t *owner; /* index of an action, or the number of actions + index of
                        a final segment, or nobody */
};

static const uint64_t nobody = UINT64_MAX;

static int by_value(const void *a, const void *b)
{
    const frag_addr *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void cut(struct parts *p, frag_addr addr, frag_size size)
{
    p->cuts[p->cut_count++] = addr;
    p->cuts[p->cut_count++] = addr + size;
}

static void sort_cuts(struct parts *p)
{
    uint64_t kept = 0;

    if (p->cut_count)
        qsort(p->cuts, (size_t)p->cut_count, sizeof(*p->cuts), by_value);
    for (uint64_t i = 0; i < p->cut_count; i++)
        if (!kept || p->cuts[kept - 1] != p->cuts[i])
            p->cuts[kept++] = p->cuts[i];
    p->cut_count = kept;
}

static bool open_parts(struct parts *p, const struct device_build *d)
{
    size_t room = (size_t)(d->action_count + d->segment_count) * 2 + 1;

    p->cuts = calloc(room, sizeof(*p->cuts));
    p->next = calloc(room, sizeof(*p->next));
    p->owner = calloc(room, sizeof(*p->owner));
    if (!p->cuts || !p->next || !p->owner)
        return false;
    for (uint64_t i = 0; i < d->action_count; i++)
        if (d->actions[i].action != FRAG_OOM_REPORTED)
            cut(p, d->actions[i].addr, d->actions[i].size);
    for (uint64_t i = 0; i < d->segment_count; i++)
        cut(p, d->segments[i].addr, d->segments[i].size);
    sort_cuts(p);
    for (uint64_t i = 0; i < p->cut_count; i++) {
        p->next[i] = i;
        p->owner[i] = nobody;
    }
    return true;
}

static void close_parts(struct parts *p)
{
    free(p->cuts);
    free(p->next);
    free(p->owner);
}

static uint64_t part_at(const struct parts *p, frag_addr addr)
{
    const frag_addr *found = bsearch(&addr, p->cuts, (size_t)p->cut_count,
                                     sizeof(*p->cuts), by_value);

    return (uint64_t)(found - p->cuts);
}

/* The owner of the part that contains the address. */
static uint64_t owner_at(const struct parts *p, frag_addr addr)
{
    uint64_t low;

    SEARCH(low, p->cut_count, middle, p->cuts[middle] <= addr);
    return low ? p->owner[low - 1] : nobody;
}

/* Returns the first unmarked part from k on. The last cut starts no part and is
 * never marked, so the search ends there. */
static uint64_t unmarked(struct parts *p, uint64_t k)
{
    while (p->next[k] != k) {
        p->next[k] = p->next[p->next[k]];
        k = p->next[k];
    }
    return k;
}

static void mark(struct parts *p, frag_addr addr, frag_size size,
                 uint64_t owner)
{
    uint64_t end = part_at(p, addr + size);

    for (uint64_t k = unmarked(p, part_at(p, addr)); k < end;
         k = unmarked(p, k)) {
        p->owner[k] = owner;
        p->next[k] = k + 1;
    }
}

static void mark_all(struct parts *p, const struct device_build *d)
{
    for (uint64_t i = 0; i < d->action_count; i++)
        if (d->actions[i].action != FRAG_OOM_REPORTED)
            mark(p, d->actions[i].addr, d->actions[i].size, i);
    for (uint64_t i = 0; i < d->segment_count; i++)
        mark(p, d->segments[i].addr, d->segments[i].size, d->action_count + i);
}

/* The properties of a segment that an action returned. Pages of expandable
 * segments are 2 MiB in the small pool and 20 MiB in the large pool, unless the
 * settings change this. */
static struct frag_recorded_segment
returned_segment(const struct frag_recorded_action *a)
{
    bool expandable = a->action == FRAG_SEGMENT_UNMAP;
    bool small = expandable ? a->size % TORCH_LARGE_SEGMENT != 0
                            : a->size <= TORCH_SMALL_SEGMENT;

    return (struct frag_recorded_segment){
        .stream = a->stream, .is_small = small, .is_expandable = expandable};
}

/* Returns whether an entry frees a block, or returns or uses memory, that no
 * entry before it reserved. */
static bool shows_start(const struct device_build *d, const struct parts *p)
{
    for (uint64_t i = 0; i < d->early_count; i++)
        if (!d->early[i].exact)
            return true;
    for (uint64_t k = 0; k < p->cut_count; k++)
        if (p->owner[k] < d->action_count &&
            returns_memory(&d->actions[p->owner[k]]))
            return true;
    for (uint64_t i = 0; i < d->events.count; i++)
        if (d->events.op[i] == FRAG_ALLOC && d->events.addr[i] &&
            owner_at(p, d->events.addr[i]) >= d->action_count)
            return true;
    return false;
}

/* Returns whether the range of the owner was reserved at the start, and sets
 * the properties of its segment. */
static bool held(const struct device_build *d, uint64_t owner,
                 struct frag_recorded_segment *s)
{
    if (owner == nobody)
        return false;
    if (owner >= d->action_count && d->from_start)
        return false;
    if (owner >= d->action_count) {
        *s = d->segments[owner - d->action_count];
        s->first_block = s->block_count = 0;
        return true;
    }
    *s = returned_segment(&d->actions[owner]);
    return returns_memory(&d->actions[owner]);
}

/* Returns whether a part belongs to the segment before it: both are in the same
 * range, or both are expandable. Expandable segments that touch are in one
 * reservation, because reservations never touch. */
static bool joins(const struct frag_recorded_segment *last,
                  const struct frag_recorded_segment *s, bool same_owner)
{
    return last->addr + last->size == s->addr &&
           (same_owner || (last->is_expandable && s->is_expandable));
}

static enum frag_err collect(struct device_build *d, const struct parts *p)
{
    for (uint64_t k = 0; k + 1 < p->cut_count; k++) {
        struct frag_recorded_segment s;
        uint64_t n = d->start_segment_count;

        if (!held(d, p->owner[k], &s))
            continue;
        s.addr = p->cuts[k];
        s.size = p->cuts[k + 1] - p->cuts[k];
        if (n && joins(&d->start_segments[n - 1], &s,
                       k && p->owner[k] == p->owner[k - 1])) {
            d->start_segments[n - 1].size += s.size;
            continue;
        }
        if (!GROW(d->start_segments, d->start_segment_room, n + 1))
            return FRAG_NOMEM;
        d->start_segments[d->start_segment_count++] = s;
    }
    return FRAG_OK;
}

enum frag_err build_start_segments(struct device_build *d)
{
    struct parts p = {0};
    enum frag_err err = FRAG_NOMEM;

    if (open_parts(&p, d)) {
        mark_all(&p, d);
        d->from_start = d->ends_early && !shows_start(d, &p);
        err = collect(d, &p);
    }
    close_parts(&p);
    return err;
}
