/* undo.c - the segments that were held before the first entry.
 *
 * The addresses are cut at every end of a range that an action or a final
 * segment has. A piece was held at the start if the first action on it returned
 * it, or if none did and it is held at the end. Actions paint pieces in order;
 * a painted piece points past itself, so the whole costs O(n log n).
 */
#include "traces/build/device.h"
#include "traces/torch_sizes.h"

struct pieces {
    frag_addr *cuts; /* ascending; piece k is cuts[k] .. cuts[k + 1] */
    uint64_t cut_count;
    uint64_t *next;  /* the first piece from here on that is not painted */
    uint64_t *owner; /* an action, or after them a final segment */
};

static const uint64_t nobody = UINT64_MAX;

static int by_value(const void *a, const void *b)
{
    const frag_addr *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void cut(struct pieces *p, frag_addr addr, frag_size size)
{
    p->cuts[p->cut_count++] = addr;
    p->cuts[p->cut_count++] = addr + size;
}

static void sort_cuts(struct pieces *p)
{
    uint64_t kept = 0;

    if (p->cut_count)
        qsort(p->cuts, (size_t)p->cut_count, sizeof(*p->cuts), by_value);
    for (uint64_t i = 0; i < p->cut_count; i++)
        if (!kept || p->cuts[kept - 1] != p->cuts[i])
            p->cuts[kept++] = p->cuts[i];
    p->cut_count = kept;
}

static bool open_pieces(struct pieces *p, const struct device_build *d)
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

static void close_pieces(struct pieces *p)
{
    free(p->cuts);
    free(p->next);
    free(p->owner);
}

static uint64_t piece_at(const struct pieces *p, frag_addr addr)
{
    const frag_addr *found = bsearch(&addr, p->cuts, (size_t)p->cut_count,
                                     sizeof(*p->cuts), by_value);

    return (uint64_t)(found - p->cuts);
}

/* The last cut starts no piece, so the walk ends there. */
static uint64_t unpainted(struct pieces *p, uint64_t k)
{
    while (p->next[k] != k) {
        p->next[k] = p->next[p->next[k]];
        k = p->next[k];
    }
    return k;
}

static void paint(struct pieces *p, frag_addr addr, frag_size size,
                  uint64_t owner)
{
    uint64_t end = piece_at(p, addr + size);

    for (uint64_t k = unpainted(p, piece_at(p, addr)); k < end;
         k = unpainted(p, k)) {
        p->owner[k] = owner;
        p->next[k] = k + 1;
    }
}

static void paint_all(struct pieces *p, const struct device_build *d)
{
    for (uint64_t i = 0; i < d->action_count; i++)
        if (d->actions[i].action != FRAG_OOM_REPORTED)
            paint(p, d->actions[i].addr, d->actions[i].size, i);
    for (uint64_t i = 0; i < d->segment_count; i++)
        paint(p, d->segments[i].addr, d->segments[i].size, d->action_count + i);
}

/* Small pages are 2 MiB and large ones 20 MiB unless set otherwise. */
static struct frag_recorded_segment
returned_segment(const struct frag_recorded_action *a)
{
    bool expandable = a->action == FRAG_SEGMENT_UNMAP;
    bool small = expandable ? a->size % TORCH_LARGE_SEGMENT != 0
                            : a->size <= TORCH_SMALL_SEGMENT;

    return (struct frag_recorded_segment){
        .stream = a->stream, .is_small = small, .is_expandable = expandable};
}

/* Whether the owner's range was held at the start, and as what. */
static bool held(const struct device_build *d, uint64_t owner,
                 struct frag_recorded_segment *s)
{
    if (owner == nobody)
        return false;
    if (owner >= d->action_count) {
        *s = d->segments[owner - d->action_count];
        s->first_block = s->block_count = 0;
        return true;
    }
    *s = returned_segment(&d->actions[owner]);
    return returns_memory(&d->actions[owner]);
}

/* A piece joins the segment before it if both are of one range, or parts of
 * one expandable reservation: reservations never touch. */
static bool joins(const struct frag_recorded_segment *last,
                  const struct frag_recorded_segment *s, bool same_owner)
{
    return last->addr + last->size == s->addr &&
           (same_owner || (last->is_expandable && s->is_expandable));
}

static enum frag_err collect(struct device_build *d, const struct pieces *p)
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
    struct pieces p = {0};
    enum frag_err err = FRAG_NOMEM;

    if (open_pieces(&p, d)) {
        paint_all(&p, d);
        err = collect(d, &p);
    }
    close_pieces(&p);
    return err;
}
