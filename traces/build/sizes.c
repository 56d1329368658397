/* sizes.c - finds the sizes of the early blocks that are freed later.
 *
 * Only the requested size of such a block is recorded. In the small pool and in
 * expandable segments, the block has exactly the rounded request. A block of
 * the large pool has up to 1 MiB more, if the free block that served it was not
 * split. Two rules find out:
 *
 *   - No block of the large pool has 1 MiB or less, so an unused range of at
 *     most 1 MiB up to the next live block, or up to the end of the segment,
 *     belongs to the block. Nor is a block of max_split_size or more split.
 *   - While the block is live, the first alloc between it and the next early
 *     block begins where the block ends, since a free block is used from its
 *     low end.
 *
 * Where neither rule applies, the size stays the rounded request.
 * Source: should_split of PyTorch 2.11, as read in its source.
 */
#include "traces/binary_search.h"
#include "traces/build/build_device.h"
#include "traces/torch_sizes.h"

/* The size of the block of a request. */
static frag_size rounded_of(const struct frag_build *b, frag_size requested)
{
    return torch_round_size(requested + b->settings.padding,
                            b->settings.divisions);
}

/* The last early block that begins below the address; NULL: none. */
static struct early_block *below(const struct device_build *d, frag_addr addr)
{
    uint64_t low;

    SEARCH(low, d->early_count, middle, d->early[middle].addr < addr);
    return low ? &d->early[low - 1] : NULL;
}

/* Sets the room of the early blocks in a segment: up to the next one, or up to
 * the end of the segment. `at` is the first early block from the start of the
 * segment on. */
static uint64_t set_rooms(struct device_build *d,
                          const struct frag_recorded_segment *s, uint64_t at)
{
    const frag_addr end = s->addr + s->size;

    for (; at < d->early_count && d->early[at].addr < end; at++) {
        struct early_block *early = &d->early[at];
        const bool last = at + 1 == d->early_count || early[1].addr > end;

        early->room = (last ? end : early[1].addr) - early->addr;
        if (last && early->room < early->requested && !early->exact)
            early->room = 0; /* part of its segment is not known */
    }
    return at;
}

/* Sets the size of the early block that ends where the alloc begins, if it is
 * the first alloc above the block. */
static void see_alloc(const struct frag_build *b, struct device_build *d,
                      uint64_t event)
{
    const frag_addr addr = d->events.addr[event];
    struct early_block *early = below(d, addr);
    frag_size least;

    if (!early || early->exact || early->size || event >= early->freed ||
        addr - early->addr >= early->room)
        return;
    least = rounded_of(b, early->requested);
    if (addr - early->addr >= least)
        early->size = addr - early->addr;
}

static void settle_size(const struct frag_build *b,
                        const struct frag_recorded_segment *s,
                        struct early_block *early)
{
    const frag_size rounded = rounded_of(b, early->requested);
    const bool splits = s->is_small || s->is_expandable;
    const frag_size most = b->settings.max_split;

    early->certain = true;
    if (early->size > early->room)
        early->size = early->room;
    if (early->size)
        return;
    early->size = rounded;
    if (rounded >= early->room ||
        (!splits && (early->room - rounded <= TORCH_SMALL_SIZE ||
                     (most && rounded >= most))))
        early->size = early->room;
    else
        early->certain = splits;
}

void build_sizes(const struct frag_build *b, struct device_build *d)
{
    uint64_t at = 0;

    for (uint64_t i = 0; i < d->start_segment_count; i++) {
        while (at < d->early_count &&
               d->early[at].addr < d->start_segments[i].addr)
            at++;
        at = set_rooms(d, &d->start_segments[i], at);
    }
    for (uint64_t i = 0; i < d->events.count; i++)
        if (d->events.op[i] == FRAG_ALLOC && d->events.addr[i])
            see_alloc(b, d, i);
    at = 0;
    for (uint64_t i = 0; i < d->start_segment_count; i++)
        for (; at < d->early_count &&
               d->early[at].addr <
                   d->start_segments[i].addr + d->start_segments[i].size;
             at++)
            if (d->early[at].room)
                settle_size(b, &d->start_segments[i], &d->early[at]);
}
