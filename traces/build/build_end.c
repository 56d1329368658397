/* build_end.c - adds the final snapshot of a device: its segments and blocks.
 * Each block must begin where the previous one ends. */
#include <inttypes.h>

#include "traces/build/build_device.h"

static enum frag_err misplaced(const struct frag_build *b, uint64_t where,
                               const char *what, frag_addr expected,
                               frag_addr found, struct frag_error *e)
{
    return frag_fail(e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected %s 0x%" PRIx64
                     ", found 0x%" PRIx64,
                     b->path, where, what, expected, found);
}

static enum frag_err check_tiled(const struct frag_build *b,
                                 const struct device_build *d, uint64_t where,
                                 struct frag_error *e)
{
    const struct frag_recorded_segment *s;

    if (!d->segment_count)
        return FRAG_OK;
    s = &d->segments[d->segment_count - 1];
    if (d->block_end == s->addr + s->size)
        return FRAG_OK;
    return misplaced(b, where, "the blocks of a segment to end at",
                     s->addr + s->size, d->block_end, e);
}

enum frag_err frag_build_segment(struct frag_build *b, uint32_t device,
                                 const struct frag_snapshot_segment *s,
                                 uint64_t where, struct frag_error *e)
{
    struct device_build *d;
    struct frag_recorded_segment row = {.addr = s->addr,
                                        .size = s->size,
                                        .is_small = s->is_small,
                                        .is_expandable = s->is_expandable};

    FRAG_TRY(build_device(b, device, &d, e));
    FRAG_TRY(check_tiled(b, d, where, e));
    if (!frag_is_range(s->addr, s->size))
        return misplaced(b, where,
                         "a size from 1 to 2^63 - 1 of the segment at", s->addr,
                         s->size, e);
    FRAG_TRY(build_stream(b, d, s->stream, &row.stream, e));
    FRAG_TRY(build_pool(b, d, s->pool, &row.pool, e));
    if (!GROW(d->segments, d->segment_room, d->segment_count + 1))
        return FRAG_NOMEM;
    row.first_block = d->block_count;
    d->segments[d->segment_count++] = row;
    d->block_end = s->addr;
    return FRAG_OK;
}

enum frag_err frag_build_block(struct frag_build *b, uint32_t device,
                               const struct frag_snapshot_block *block,
                               uint64_t where, struct frag_error *e)
{
    struct device_build *d;
    struct frag_recorded_segment *s;

    FRAG_TRY(build_device(b, device, &d, e));
    if (!d->segment_count)
        return misplaced(b, where, "a segment before the block at", 0,
                         block->addr, e);
    s = &d->segments[d->segment_count - 1];
    if (block->addr && block->addr != d->block_end)
        return misplaced(b, where, "a block at", d->block_end, block->addr, e);
    if (!block->size || block->size > s->addr + s->size - d->block_end)
        return misplaced(b, where,
                         "a block of at most the rest of its segment,",
                         s->addr + s->size - d->block_end, block->size, e);
    if (!block->requested && block->state != FRAG_INACTIVE)
        return misplaced(b, where, "a live block whose request has at least", 1,
                         0, e);
    if (!GROW(d->blocks, d->block_room, d->block_count + 1))
        return FRAG_NOMEM;
    d->blocks[d->block_count++] = (struct frag_recorded_block){
        d->block_end, block->size, block->requested, block->state, UINT32_MAX};
    d->block_end += block->size;
    s->block_count++;
    return FRAG_OK;
}

static int by_address(const void *a, const void *b)
{
    const struct frag_recorded_segment *x = a, *y = b;

    return (x->addr > y->addr) - (x->addr < y->addr);
}

static enum frag_err sort_segments(struct frag_build *b, struct device_build *d,
                                   struct frag_error *e)
{
    struct frag_recorded_block *sorted =
        malloc((size_t)(d->block_count + 1) * sizeof(*sorted));
    uint64_t at = 0;

    if (!sorted)
        return FRAG_NOMEM;
    if (d->segment_count)
        qsort(d->segments, (size_t)d->segment_count, sizeof(*d->segments),
              by_address);
    for (uint64_t i = 0; i < d->segment_count; i++) {
        struct frag_recorded_segment *s = &d->segments[i];

        for (uint64_t k = 0; k < s->block_count; k++)
            sorted[at + k] = d->blocks[s->first_block + k];
        s->first_block = at;
        at += s->block_count;
    }
    free(d->blocks);
    d->blocks = sorted;
    d->block_room = d->block_count + 1;
    for (uint64_t i = 1; i < d->segment_count; i++)
        if (d->segments[i].addr - d->segments[i - 1].addr <
            d->segments[i - 1].size)
            return misplaced(b, 0, "segments that do not overlap; one ends at",
                             d->segments[i - 1].addr + d->segments[i - 1].size,
                             d->segments[i].addr, e);
    return FRAG_OK;
}

/* Adds a live block that no entry allocated to the early blocks. */
static enum frag_err add_early(struct device_build *d,
                               struct frag_recorded_block *block,
                               uint32_t stream)
{
    struct early_block early = {.addr = block->addr,
                                .size = block->size,
                                .requested = block->requested,
                                .freed = FRAG_NEVER,
                                .block = (uint64_t)(block - d->blocks),
                                .slot = d->slots,
                                .state = block->state,
                                .stream = stream,
                                .exact = true};

    if (d->slots == UINT32_MAX - 1 ||
        !GROW(d->early, d->early_room, d->early_count + 1))
        return FRAG_NOMEM;
    d->early[d->early_count++] = early;
    block->slot = d->slots++;
    return FRAG_OK;
}

static enum frag_err find_slots(struct device_build *d, uint64_t *found)
{
    for (uint64_t i = 0; i < d->segment_count; i++) {
        const struct frag_recorded_segment *s = &d->segments[i];

        for (uint64_t k = 0; k < s->block_count; k++) {
            struct frag_recorded_block *block = &d->blocks[s->first_block + k];
            struct live_row *row = live_find(&d->live, block->addr);

            if (block->state == FRAG_INACTIVE)
                continue;
            if (!row)
                FRAG_TRY(add_early(d, block, s->stream));
            else
                block->slot = row->slot;
            *found += row != NULL;
        }
    }
    return FRAG_OK;
}

enum frag_err build_end(struct frag_build *b, struct device_build *d,
                        struct frag_error *e)
{
    uint64_t found = 0;

    FRAG_TRY(check_tiled(b, d, 0, e));
    FRAG_TRY(sort_segments(b, d, e));
    FRAG_TRY(find_slots(d, &found));
    if (!d->segment_count || !d->entries || found == d->live.count)
        return FRAG_OK;
    return frag_build_note(b,
                           "%s: the history ends before the "
                           "snapshot was taken: %" PRIu64 " blocks that are "
                           "live after the last entry are not in the final "
                           "snapshot",
                           FRAG_DEVICE_NAME(d->device), d->live.count - found);
}
