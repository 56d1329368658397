/* build_start.c - rebuilds the state before the first entry from the early
 * blocks.
 *
 * The early blocks were live before the first entry. Some are known because
 * they are freed without an alloc; for these, only the requested size is known,
 * and sizes.c infers the rest. Others are known exactly, because they are in
 * the final snapshot and no entry allocated them. Each early block is an ALLOC
 * among the first events of the trace. The early blocks and the segments of
 * undo.c are the layout `start`.
 */
#include <inttypes.h>

#include "traces/binary_search.h"
#include "traces/build/build_device.h"
#include "traces/torch_sizes.h"

static int by_address(const void *a, const void *b)
{
    const struct early_block *x = a, *y = b;

    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return (x->freed > y->freed) - (x->freed < y->freed);
}

static int at_address(const void *key, const void *row)
{
    const frag_addr *addr = key;
    const struct early_block *early = row;

    return (*addr > early->addr) - (*addr < early->addr);
}

static enum frag_err freed_twice(const struct frag_build *b,
                                 const struct device_build *d,
                                 const struct early_block *early,
                                 struct frag_error *e)
{
    return frag_fail(e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected the free of a live block, found "
                     "address 0x%" PRIx64 " on %s, which was freed before",
                     b->path, early->where, early->addr,
                     FRAG_DEVICE_NAME(d->device));
}

/* Handles an early block at an address that an entry allocated or freed before.
 * A block that is known from its free was freed twice: CORRUPT. A block that is
 * known from the final snapshot is marked for removal, because an entry for it
 * is missing. */
static enum frag_err refute(const struct frag_build *b, struct device_build *d,
                            struct early_block *early, uint64_t *refuted,
                            struct frag_error *e)
{
    if (!early->exact)
        return freed_twice(b, d, early, e);
    *refuted += early->size != 0;
    early->size = 0;
    d->blocks[early->block].slot = UINT32_MAX;
    return FRAG_OK;
}

/* The size of an early block, or the least that it can have. */
static frag_size least_size(const struct frag_build *b,
                            const struct early_block *early)
{
    return early->exact
               ? early->size
               : torch_round_size(early->requested + b->settings.padding,
                                  b->settings.divisions);
}

/* Refutes the exact early blocks in a range that a block of the history has:
 * they were allocated after the last entry. */
static enum frag_err refute_range(const struct frag_build *b,
                                  struct device_build *d, frag_addr addr,
                                  frag_size size, uint64_t *refuted,
                                  struct frag_error *e)
{
    uint64_t low;

    SEARCH(low, d->early_count, middle,
           d->early[middle].addr + least_size(b, &d->early[middle]) <= addr);
    for (; low < d->early_count && d->early[low].addr < addr + size; low++)
        if (d->early[low].exact && d->early[low].size)
            FRAG_TRY(refute(b, d, &d->early[low], refuted, e));
    return FRAG_OK;
}

/* Refutes what overlaps with the history, if the final snapshot was taken after
 * its end. */
static enum frag_err refute_later(const struct frag_build *b,
                                  struct device_build *d, uint64_t *refuted,
                                  struct frag_error *e)
{
    const struct columns *c = &d->events;

    for (uint64_t i = 0; i < d->early_count; i++)
        if (!d->early[i].exact)
            FRAG_TRY(refute_range(b, d, d->early[i].addr,
                                  least_size(b, &d->early[i]), refuted, e));
    for (uint64_t i = 0; i < c->count; i++)
        if (c->op[i] == FRAG_ALLOC && c->addr[i])
            FRAG_TRY(refute_range(b, d, c->addr[i],
                                  torch_round_size(c->bytes[i], NULL), refuted,
                                  e));
    return FRAG_OK;
}

static enum frag_err refute_all(const struct frag_build *b,
                                struct device_build *d, uint64_t *refuted,
                                struct frag_error *e)
{
    const struct columns *c = &d->events;

    for (uint64_t i = 1; i < d->early_count; i++)
        if (d->early[i].addr == d->early[i - 1].addr)
            FRAG_TRY(refute(b, d, &d->early[i], refuted, e));
    for (uint64_t i = 0; i < c->count; i++) {
        struct early_block *early;

        if (c->op[i] != FRAG_ALLOC || !c->addr[i])
            continue;
        early = bsearch(&c->addr[i], d->early, (size_t)d->early_count,
                        sizeof(*d->early), at_address);
        if (early && i < early->freed)
            FRAG_TRY(refute(b, d, early, refuted, e));
    }
    return FRAG_OK;
}

static void drop_refuted(struct device_build *d)
{
    uint64_t kept = 0;

    for (uint64_t i = 0; i < d->early_count; i++)
        if (!d->early[i].exact || d->early[i].size)
            d->early[kept++] = d->early[i];
    d->early_count = kept;
}

static enum frag_err check_early(struct frag_build *b, struct device_build *d,
                                 struct frag_error *e)
{
    uint64_t refuted = 0;

    qsort(d->early, (size_t)d->early_count, sizeof(*d->early), by_address);
    FRAG_TRY(refute_all(b, d, &refuted, e));
    if (d->ends_early)
        FRAG_TRY(refute_later(b, d, &refuted, e));
    if (!refuted)
        return FRAG_OK;
    drop_refuted(d);
    return frag_build_note(b,
                           "%s: %" PRIu64 " blocks of the final "
                           "snapshot were freed in the trace and allocated "
                           "again without an entry; they are left out",
                           FRAG_DEVICE_NAME(d->device), refuted);
}

/* Removes the blocks of the final snapshot that no entry allocated, all of
 * which are later than the last entry. */
static enum frag_err drop_later(struct frag_build *b, struct device_build *d)
{
    const uint64_t count = d->early_count;

    for (uint64_t i = 0; i < count; i++)
        d->blocks[d->early[i].block].slot = UINT32_MAX;
    d->early_count = 0;
    return frag_build_note(b,
                           "%s: %" PRIu64
                           " blocks of the final snapshot were allocated after "
                           "the last entry; they are left out",
                           FRAG_DEVICE_NAME(d->device), count);
}

/* The blocks of the layout `start`. */

static enum frag_err add_block(struct device_build *d,
                               struct frag_recorded_segment *s,
                               struct frag_recorded_block block)
{
    if (!GROW(d->start_blocks, d->start_block_room, d->start_block_count + 1))
        return FRAG_NOMEM;
    d->start_blocks[d->start_block_count++] = block;
    s->block_count++;
    return FRAG_OK;
}

static enum frag_err add_gap(struct device_build *d,
                             struct frag_recorded_segment *s, frag_addr from,
                             frag_addr to)
{
    if (from >= to)
        return FRAG_OK;
    return add_block(d, s,
                     (struct frag_recorded_block){from, to - from,
                                                  FRAG_SIZE_UNKNOWN,
                                                  FRAG_INACTIVE, UINT32_MAX});
}

/* Covers one segment with the early blocks in it, starting at *at, and with
 * free blocks in the gaps. */
static enum frag_err tile(struct device_build *d,
                          struct frag_recorded_segment *s, uint64_t *at)
{
    frag_addr end = s->addr + s->size, cursor = s->addr;

    s->first_block = d->start_block_count;
    for (; *at < d->early_count && d->early[*at].addr < end; ++*at) {
        struct early_block *early = &d->early[*at];

        if (!early->room)
            continue;
        early->stream = s->stream;
        early->placed = true;
        FRAG_TRY(add_gap(d, s, cursor, early->addr));
        FRAG_TRY(add_block(d, s,
                           (struct frag_recorded_block){
                               early->addr, early->size, early->requested,
                               early->state, early->slot}));
        cursor = early->addr + early->size;
    }
    return add_gap(d, s, cursor, end);
}

static enum frag_err tile_all(struct device_build *d)
{
    uint64_t at = 0;

    for (uint64_t i = 0; i < d->start_segment_count; i++) {
        while (at < d->early_count &&
               d->early[at].addr < d->start_segments[i].addr)
            at++;
        FRAG_TRY(tile(d, &d->start_segments[i], &at));
    }
    return FRAG_OK;
}

/* The events of the early blocks. */

static enum frag_err make_room(struct device_build *d, uint64_t count)
{
    struct columns *c = &d->events;
    uint64_t room = c->room;

#define X(name, type)                           \
    room = c->room;                             \
    if (!GROW(c->name, room, c->count + count)) \
        return FRAG_NOMEM;                      \
    memmove(c->name + count, c->name, (size_t)c->count * sizeof(type));
    COLUMNS(X)
#undef X
    c->room = room;
    c->count += count;
    return FRAG_OK;
}

static void put_event(struct columns *c, uint64_t i,
                      const struct early_block *early)
{
    struct event ev = {
        .op = FRAG_ALLOC,
        .id = early->slot,
        .bytes = early->requested == FRAG_SIZE_UNKNOWN || !early->requested
                     ? early->size
                     : early->requested,
        .stream = (frag_stream)early->stream,
        .addr = early->addr,
    };

#define X(name, type) c->name[i] = ev.name;
    COLUMNS(X)
#undef X
}

static enum frag_err prepend(struct device_build *d)
{
    FRAG_TRY(make_room(d, d->early_count));
    d->initial = d->early_count;
    for (uint64_t i = 0; i < d->early_count; i++)
        put_event(&d->events, i, &d->early[i]);
    for (uint64_t i = 0; i < d->action_count; i++)
        d->actions[i].event += d->initial;
    return FRAG_OK;
}

/* The bytes held before the first entry: requested for the early
 * blocks, and segments. */
struct early_sums {
    frag_size requested, segments;
    uint64_t freed, guessed, lost; /* early blocks: freed later, of these
                                      without a certain size, in no segment */
};

static struct early_sums sum_early(const struct device_build *d)
{
    struct early_sums sums = {0};

    for (uint64_t i = 0; i < d->early_count; i++) {
        sums.requested += d->events.bytes[i];
        sums.freed += !d->early[i].exact && d->early[i].placed;
        sums.guessed += !d->early[i].certain && d->early[i].placed;
        sums.lost += !d->early[i].placed;
    }
    for (uint64_t i = 0; i < d->start_segment_count; i++)
        sums.segments += d->start_segments[i].size;
    return sums;
}

/* The early part of a device that has entries: the need of the job before the
 * first entry is unknown. */
static enum frag_err note_late(struct frag_build *b,
                               const struct device_build *d,
                               const struct early_sums *sums)
{
    FRAG_TRY(frag_build_note(
        b,
        "%s: the recording lacks the beginning of the job: "
        "before the first entry, %" PRIu64 " blocks (%s) were live and %" PRIu64
        " segments (%s) were held",
        FRAG_DEVICE_NAME(d->device), d->early_count,
        FRAG_SHOW_SIZE(sums->requested), d->start_segment_count,
        FRAG_SHOW_SIZE(sums->segments)));
    return frag_build_note(
        b,
        "%s: the peak before the recording began is not known, "
        "so the need that is stated for this trace is a lower bound",
        FRAG_DEVICE_NAME(d->device));
}

static enum frag_err note_held(struct frag_build *b,
                               const struct device_build *d,
                               const struct early_sums *sums)
{
    return frag_build_note(
        b,
        "%s: no event was recorded; %" PRIu64 " blocks (%s) "
        "were live and %" PRIu64 " segments (%s) were held when the snapshot "
        "was taken",
        FRAG_DEVICE_NAME(d->device), d->early_count,
        FRAG_SHOW_SIZE(sums->requested), d->start_segment_count,
        FRAG_SHOW_SIZE(sums->segments));
}

static enum frag_err note_start(struct frag_build *b,
                                const struct device_build *d)
{
    const struct early_sums sums = sum_early(d);

    FRAG_TRY(d->entries ? note_late(b, d, &sums) : note_held(b, d, &sums));
    if (sums.guessed)
        FRAG_TRY(frag_build_note(
            b,
            "%s: %" PRIu64 " of the blocks that were live "
            "before the first entry are freed later; the sizes of %" PRIu64
            " of them are uncertain (each is the rounded request, but may have "
            "been up to 1 MiB more)",
            FRAG_DEVICE_NAME(d->device), sums.freed, sums.guessed));
    if (d->entries && b->settings.gc_threshold > 0 &&
        d->device != FRAG_HOST_DEVICE)
        FRAG_TRY(frag_build_note(
            b,
            "%s: garbage collection releases by age, and the "
            "ages of the blocks that were free before the first entry are not "
            "recorded; a replay may release others",
            FRAG_DEVICE_NAME(d->device)));
    if (sums.lost)
        FRAG_TRY(frag_build_note(
            b,
            "%s: %" PRIu64 " of the blocks that were live "
            "before the first entry lie in no known segment; they are "
            "allocated first but are missing in the start layout",
            FRAG_DEVICE_NAME(d->device), sums.lost));
    return FRAG_OK;
}

enum frag_err build_start(struct frag_build *b, struct device_build *d,
                          struct frag_error *e)
{
    FRAG_TRY(build_start_segments(d));
    if (d->early_count)
        FRAG_TRY(d->from_start ? drop_later(b, d) : check_early(b, d, e));
    build_sizes(b, d);
    FRAG_TRY(tile_all(d));
    if (d->early_count)
        FRAG_TRY(prepend(d));
    if (!d->early_count && !d->start_segment_count)
        return FRAG_OK;
    return note_start(b, d);
}
