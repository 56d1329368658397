/* arena.c - the arena as a backend: opens and closes it, and allocates segments
 * by the selected address rule. */
#include "sim/arena/arena.h"

#include <stdlib.h>

#include "sim/arena/arena_parts.h"

#define GRANULE (2 * FRAG_MIB)

/* ----------------------------------------------------------- segments --- */

/* Allocates and charges a segment at this address. */
static enum frag_err fixed_range(struct arena *a, frag_addr addr,
                                 frag_size size, struct arena_range **out)
{
    frag_size charge = frag_round_up(size, GRANULE);
    struct arena_range *p;

    FRAG_TRY(arena_charge(a, charge));
    p = calloc(1, sizeof(*p));
    if (!p) {
        a->used -= charge;
        return FRAG_NOMEM;
    }
    *p = (struct arena_range){.range = {.at = addr, .size = size},
                              .requested = size,
                              .charge = charge};
    *out = p;
    return FRAG_OK;
}

/* Allocates adjacent segments, alternately above and below all others, at
 * addresses that were never used before. A policy must handle such addresses,
 * and must not rely on them. */
static enum frag_err hostile_alloc(struct arena *a, frag_size size,
                                   struct arena_range **out)
{
    frag_size whole = frag_round_up(size, 512);

    if (whole > a->down || whole > ADDRESS_END - a->up)
        return FRAG_OOM;
    FRAG_TRY(fixed_range(a, a->upwards ? a->up : a->down - whole, size, out));
    if (a->upwards)
        a->up += whole;
    else
        a->down -= whole;
    a->upwards = !a->upwards;
    return FRAG_OK;
}

/* Whether the next segment has a recorded base, and that range is free. */
static bool has_anchor(const struct arena *a, frag_size size)
{
    uint64_t i = a->segments_served;

    return a->opts.rule == FRAG_RULE_ANCHORED && i < a->opts.base_count &&
           a->opts.sizes[i] == size &&
           !ranges_overlap(&a->segments, a->opts.bases[i], size) &&
           !ranges_overlap(&a->reservations, a->opts.bases[i], size);
}

/* The driver's addresses; the segment uses exactly its own bytes. */
static enum frag_err exact_alloc(struct arena *a, frag_size size,
                                 struct arena_range **out)
{
    enum frag_err err;

    FRAG_TRY(arena_charge(a, size));
    err = driver_alloc(a, size, out);
    if (err == FRAG_OK)
        (*out)->charge = size;
    else
        a->used -= size;
    return err;
}

static enum frag_err new_segment(struct arena *a, frag_size size,
                                 struct arena_range **out)
{
    if (a->opts.rule == FRAG_RULE_HOSTILE)
        return hostile_alloc(a, size, out);
    if (a->opts.rule == FRAG_RULE_EXACT)
        return exact_alloc(a, size, out);
    if (has_anchor(a, size))
        return fixed_range(a, a->opts.bases[a->segments_served], size, out);
    return driver_alloc(a, size, out);
}

static enum frag_err segment_alloc(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr)
{
    struct arena *a = arena_of(mem);
    struct arena_range *p;

    if (size == 0)
        return FRAG_INVALID;
    arena_tick(a, FRAG_DRIVER_SEGMENT_ALLOC, size);
    if (size >= (frag_size)1 << 62)
        return FRAG_OOM;
    FRAG_TRY(new_segment(a, size, &p));
    p->requested = size;
    ranges_add(&a->segments, &p->range);
    a->segments_served++;
    *addr = p->range.at;
    return FRAG_OK;
}

static enum frag_err segment_free(struct frag_backend *mem, frag_addr addr,
                                  frag_size size)
{
    struct arena *a = arena_of(mem);
    struct range *r = ranges_at(&a->segments, addr);

    if (!r || ((struct arena_range *)r)->requested != size)
        return FRAG_INVALID;
    arena_tick(a, FRAG_DRIVER_SEGMENT_FREE, size);
    ranges_remove(&a->segments, r);
    driver_free(a, (struct arena_range *)r);
    return FRAG_OK;
}

/* ----------------------------------------------------- everything else --- */

static enum frag_err copy(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream)
{
    (void)stream;
    if (dst < src ? size > src - dst : size > dst - src)
        return FRAG_INVALID;
    arena_tick(arena_of(mem), FRAG_DRIVER_COPY, size);
    return FRAG_OK;
}

static enum frag_err synchronize(struct frag_backend *mem)
{
    arena_tick(arena_of(mem), FRAG_DRIVER_SYNCHRONIZE, 0);
    return FRAG_OK;
}

static frag_time now(struct frag_backend *mem)
{
    return arena_of(mem)->clock;
}

static void stream_used(struct frag_backend *mem, frag_stream stream)
{
    struct arena *a = arena_of(mem);

    if (stream == 0 || a->side_streams || a->opts.rule == FRAG_RULE_HOSTILE)
        return;
    a->side_streams = true;
    driver_side_streams(a);
}

static const struct frag_backend_ops arena_ops = {
    .name = "arena",
    .segment_alloc = segment_alloc,
    .segment_free = segment_free,
    .va_reserve = vmm_reserve,
    .va_free = vmm_free,
    .phys_create = vmm_create,
    .phys_release = vmm_release,
    .map = vmm_map,
    .unmap = vmm_unmap,
    .copy = copy,
    .synchronize = synchronize,
    .now = now,
};

static const struct frag_engine_ops arena_engine = {
    .stream_used = stream_used,
    .hold = frag_arena_hold,
};

static frag_size reported_total(const struct frag_arena_options *opts)
{
    const frag_size total = opts->total                        ? opts->total
                            : opts->capacity == FRAG_UNLIMITED ? FRAG_H200_TOTAL
                                                               : opts->capacity;

    return total < FRAG_TOTAL_MOST ? total : FRAG_TOTAL_MOST;
}

/* The driver's rule, where it applies instead, keeps clear of every base. */
static enum frag_err withdraw_anchors(struct arena *a)
{
    const struct frag_arena_options *o = &a->opts;

    for (uint64_t i = 0; i < o->base_count; i++)
        FRAG_TRY(driver_withdraw(a, o->bases[i], o->sizes[i]));
    for (uint64_t i = 0; i < o->range_count; i++)
        FRAG_TRY(driver_withdraw(a, o->range_bases[i], o->range_sizes[i]));
    return FRAG_OK;
}

struct frag_backend *frag_arena_open(const struct frag_arena_options *opts)
{
    struct arena *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    a->base = (struct frag_backend){.ops = &arena_ops,
                                    .engine = &arena_engine,
                                    .capacity = opts->capacity,
                                    .limit = opts->limit,
                                    .total = reported_total(opts),
                                    .granularity = GRANULE};
    a->opts = *opts;
    a->refused_min = FRAG_UNLIMITED;
    if (!a->opts.costs)
        a->opts.costs = &frag_costs_h200;
    a->up = a->down = HOSTILE_MID;
    a->range_used = calloc(opts->range_count + 1, sizeof(*a->range_used));
    if (!a->range_used || driver_open(a) != FRAG_OK ||
        withdraw_anchors(a) != FRAG_OK) {
        frag_arena_close(&a->base);
        return NULL;
    }
    return &a->base;
}

void frag_arena_close(struct frag_backend *arena)
{
    struct arena *a = arena_of(arena);

    if (!arena)
        return;
    vmm_close(a);
    for (struct range *r = ranges_pop(&a->segments); r;
         r = ranges_pop(&a->segments))
        free(r);
    driver_close(a);
    free(a->range_used);
    free(a);
}

enum frag_err frag_arena_hold(struct frag_backend *arena, frag_addr addr,
                              frag_size size, enum frag_holding what)
{
    struct arena *a = arena_of(arena);
    struct arena_range *p;

    if (size == 0 || size >= (frag_size)1 << 62 || addr >= (frag_addr)1 << 62)
        return FRAG_INVALID;
    if (what == FRAG_HOLD_MAPS)
        return vmm_hold_maps(a, addr, size);
    if (ranges_overlap(&a->segments, addr, size) ||
        ranges_overlap(&a->reservations, addr, size))
        return FRAG_INVALID;
    if (what == FRAG_HOLD_RESERVATION)
        return vmm_hold(a, addr, size);
    FRAG_TRY(driver_withdraw(a, addr, size));
    FRAG_TRY(fixed_range(a, addr, size, &p));
    ranges_add(&a->segments, &p->range);
    return FRAG_OK;
}

frag_size frag_arena_used(const struct frag_backend *arena)
{
    return arena_of(arena)->used;
}

void frag_arena_same_for(const struct frag_backend *arena, frag_size *least,
                         frag_size *below)
{
    *least = arena->peak;
    *below = arena_of(arena)->refused_min;
}

frag_size frag_arena_reserved_va(const struct frag_backend *arena)
{
    return arena_of(arena)->reserved_va;
}
