/* validate_end.c - compares the final snapshot and the counters with the
 * recording. */
#include "sim/validate/validate_parts.h"
#include "traces/grow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the final snapshot ---- */

static void keep_block(void *user, const struct frag_torch_block *b)
{
    struct checked_run *c = user;

    if (!GROW(c->blocks, c->block_room, c->block_count + 1)) {
        c->nomem = true;
        return;
    }
    c->blocks[c->block_count] = *b;
    c->blocks[c->block_count].addr = check_translate(c, b->addr);
    c->blocks[c->block_count++].segment = check_translate(c, b->segment);
}

static int by_address(const void *a, const void *b)
{
    const struct frag_torch_block *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void check_ended(void *user, const struct frag_heap *heap)
{
    struct checked_run *c = user;

    if (c->spec->device->device == FRAG_HOST_DEVICE)
        frag_torch_host_snapshot(heap, keep_block, c);
    else
        frag_torch_snapshot(heap, keep_block, c);
    if (c->block_count)
        qsort(c->blocks, c->block_count, sizeof(*c->blocks), by_address);
}

static bool same_size(frag_size recorded, frag_size replayed)
{
    return recorded == replayed || recorded == FRAG_SIZE_UNKNOWN ||
           replayed == FRAG_SIZE_UNKNOWN;
}

static uint32_t state_of(const struct frag_torch_block *b)
{
    if (b->pending)
        return FRAG_ACTIVE_PENDING_FREE;
    return b->allocated ? FRAG_ACTIVE_ALLOCATED : FRAG_INACTIVE;
}

static bool same_block(const struct frag_recorded_segment *s,
                       const struct frag_recorded_block *want,
                       const struct frag_torch_block *got)
{
    return want->addr == got->addr && want->size == got->size &&
           want->state == state_of(got) &&
           same_size(want->requested, got->requested) &&
           s->addr == got->segment && s->stream == got->stream &&
           s->pool == got->pool && s->is_small == got->is_small &&
           s->is_expandable == got->is_expandable;
}

static void compare_block(struct checked_run *c,
                          const struct frag_recorded_segment *s,
                          const struct frag_recorded_block *want,
                          const struct frag_torch_block *got)
{
    static const char format[] =
        "final block 0x%" PRIx64 ", %" PRIu64 " bytes, requested %" PRIu64
        ", state %u, in segment 0x%" PRIx64 " (stream %u, pool %u)";

    if (got && same_block(s, want, got)) {
        c->v->blocks_matched++;
        return;
    }
    check_expect(c, format, want->addr, want->size, want->requested,
                 want->state, s->addr, s->stream, s->pool);
    if (!got) {
        check_found(c, "no such block");
        return;
    }
    check_found(c, format, got->addr, got->size, got->requested, state_of(got),
                got->segment, got->stream, got->pool);
}

static void compare_blocks(struct checked_run *c)
{
    const struct frag_layout *end = &c->recorded->end;
    uint64_t k = 0;

    for (uint64_t i = 0; i < end->segment_count; i++) {
        const struct frag_recorded_segment *s = &end->segments[i];

        for (uint64_t j = 0; j < s->block_count; j++, k++)
            compare_block(c, s, &end->blocks[s->first_block + j],
                          k < c->block_count ? &c->blocks[k] : NULL);
    }
    if (k < c->block_count) {
        check_expect(c, "%" PRIu64 " blocks at the end", k);
        check_found(c, "%" PRIu64 " blocks", c->block_count);
    }
}

/* Counts the blocks that only the last entry, or only the snapshot, has. */
static void count_later(struct checked_run *c)
{
    const struct frag_device_trace *d = c->spec->device;
    const struct frag_layout *end = &c->recorded->end;
    struct frag_validation *v = c->v;
    uint64_t live = 0, found = 0;

    for (uint64_t i = 0; i < d->count; i++) {
        live += d->op[i] == FRAG_ALLOC;
        live -= d->op[i] == FRAG_FREE;
    }
    for (uint64_t i = 0; i < end->block_count; i++) {
        if (end->blocks[i].state == FRAG_INACTIVE)
            continue;
        found += end->blocks[i].slot != UINT32_MAX;
        v->blocks_allocated_later += end->blocks[i].slot == UINT32_MAX;
    }
    v->blocks_freed_later = live - found;
    v->ends_early = v->blocks_freed_later || v->blocks_allocated_later;
}

/* If no event differs, the reserved bytes after the last entry are the recorded
 * ones, and a snapshot with others was taken later. A difference between the
 * states is then none of the replay. */
void check_end(struct checked_run *c)
{
    const struct frag_layout *end = &c->recorded->end;
    const bool differs = c->v->first.found;

    c->v->blocks = end->block_count;
    for (uint64_t i = 0; i < end->segment_count; i++)
        c->v->end_reserved_recorded += end->segments[i].size;
    compare_blocks(c);
    count_later(c);
    if (differs)
        return;
    c->v->ends_early |=
        c->v->end_reserved_recorded != c->v->end_reserved_replayed;
    c->v->first.found &= !c->v->ends_early;
}

/* ---- counters ---- */

static const char *const stat_names[] = {
#define X(name, text) text,
    FRAG_TORCH_STATS(X)
#undef X
};

static bool is_current(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && !strcmp(dot, ".current");
}

/* Whether the counter counts what a snapshot does not record, so that the
 * recorded value may be larger: empty_cache calls that free nothing, and
 * requests that throw_on_cudamalloc_oom rejected. */
static bool counts_unseen(const char *name)
{
    return !strcmp(name, "num_sync_all_streams") ||
           !strcmp(name, "num_oom_rejections");
}

static void compare_stat(struct checked_run *c, const char *name,
                         uint64_t replayed)
{
    struct frag_compared *row = &c->v->stats[c->v->stat_count];
    const struct frag_validate *spec = c->spec;

    if (!frag_stats_file_get(spec->stats, spec->device->device, name,
                             &row->recorded))
        return;
    snprintf(row->name, sizeof(row->name), "%s", name);
    row->replayed = replayed;
    row->is_lower_bound =
        (check_is_late(spec->device) || c->v->ends_early) && !is_current(name);
    row->determined = !(c->v->ends_early && is_current(name)) &&
                      (row->recorded < row->replayed ||
                       (!counts_unseen(name) && !row->is_lower_bound));
    c->v->stat_count++;
    if (row->recorded == replayed || !row->determined) {
        c->v->stats_matched++;
        return;
    }
    check_expect(c, "%s of %" PRIu64, name, row->recorded);
    check_found(c, "%" PRIu64, replayed);
}

static void compare_count(struct checked_run *c, const char *stem,
                          const struct frag_torch_count *count)
{
    const struct {
        const char *name;
        uint64_t value;
    } parts[] = {
        {"current", count->current},
        {"peak", count->peak},
        {"allocated", count->allocated},
        {"freed", count->freed},
    };
    char name[FRAG_STAT_NAME];

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        snprintf(name, sizeof(name), "%.90s.%s", stem, parts[i].name);
        compare_stat(c, name, parts[i].value);
    }
}

/* The counters of `pools` private pools and of all. */
static size_t most_stats(size_t pools)
{
    const size_t stats = FRAG_TORCH_STAT_COUNT + pools;

    return (stats * FRAG_TORCH_POOLS_COUNT + 2) * 4 + 6;
}

/* Compares the counters of large pools, of small pools, and of all. */
static void compare_pools(struct checked_run *c, const char *stem,
                          const struct frag_torch_count *counts)
{
    static const char *const pools[] = {"all", "large_pool", "small_pool"};
    char name[FRAG_STAT_NAME];

    for (int k = 0; k < FRAG_TORCH_POOLS_COUNT; k++) {
        snprintf(name, sizeof(name), "%.90s.%s", stem, pools[k]);
        compare_count(c, name, &counts[k]);
    }
}

/* Since PyTorch 2.13: the reserved bytes of each private pool. */
static void compare_private(struct checked_run *c)
{
    const struct frag_device_trace *d = c->spec->device;

    for (uint32_t i = 1; i < d->pool_count; i++) {
        char stem[FRAG_STAT_NAME];

        snprintf(stem, sizeof(stem),
                 "reserved_bytes_by_private_pools.%" PRIu64 "_%" PRIu64,
                 d->pools[i].owner, d->pools[i].number);
        compare_pools(c, stem, c->observer.reserved[i].of);
    }
}

enum frag_err check_stats(struct checked_run *c)
{
    const struct frag_torch_counters *n = &c->observer.counters;

    if (!c->spec->stats)
        return FRAG_OK;
    c->v->stats =
        calloc(most_stats(c->spec->device->pool_count), sizeof(*c->v->stats));
    if (!c->v->stats)
        return FRAG_NOMEM;
    for (int i = 0; i < FRAG_TORCH_STAT_COUNT; i++)
        compare_pools(c, stat_names[i], n->stat[i]);
    compare_private(c);
    compare_count(c, "oversize_allocations", &n->oversize_allocations);
    compare_count(c, "oversize_segments", &n->oversize_segments);
    compare_stat(c, "num_alloc_retries", n->num_alloc_retries);
    compare_stat(c, "num_ooms", n->num_ooms);
    compare_stat(c, "num_oom_rejections", n->num_oom_rejections);
    compare_stat(c, "num_sync_all_streams", n->num_sync_all_streams);
    compare_stat(c, "num_device_alloc", n->num_device_alloc);
    compare_stat(c, "num_device_free", n->num_device_free);
    return FRAG_OK;
}
