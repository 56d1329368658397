/* reservations.c - groups the recorded ranges of expandable segments by
 * reservation. A reservation is dropped when nothing of it is mapped. */
#include "sim/replay/reservations.h"

#include <stdio.h>
#include <stdlib.h>

#include "traces/grow.h"
#include "traces/torch_sizes.h"

struct listing {
    struct frag_reservation *rows;
    uint64_t count, room;
    const struct frag_device_trace *device;
    const struct frag_recorded *recorded; /* of the device */
    frag_size total, page;                /* of the device, of large segments */
};

static frag_size divisor(frag_size a, frag_size b)
{
    while (b) {
        const frag_size rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

frag_size frag_reservation_page(const struct frag_recorded *r)
{
    frag_size page = 0;

    for (uint64_t i = 0; i < r->action_count; i++)
        if (r->actions[i].action == FRAG_SEGMENT_MAP &&
            r->actions[i].size > TORCH_SMALL_SEGMENT)
            page = divisor(page, r->actions[i].size);
    return page % TORCH_LARGE_SEGMENT ? page : TORCH_LARGE_SEGMENT;
}

frag_size frag_reservation_size(const struct frag_recorded *r, frag_size total,
                                frag_size page, bool is_small)
{
    return torch_reservation_size(torch_reserve_of(r->settings), total,
                                  is_small ? TORCH_SMALL_SEGMENT : page);
}

/* Whether the reservation is live, and has the stream and the pool. */
static bool is_of(const struct frag_reservation *r,
                  const struct frag_reservation *part)
{
    return (r->mapped || r->unseen) && r->stream == part->stream &&
           r->pool == part->pool && r->is_small == part->is_small;
}

/* Whether the range can be a part of the reservation: no reservation is as
 * large as the two together. */
static bool can_hold(const struct listing *l, const struct frag_reservation *r,
                     const struct frag_reservation *part)
{
    const frag_addr low = part->addr < r->addr ? part->addr : r->addr;
    const frag_addr end = part->end > r->end ? part->end : r->end;

    if (!is_of(r, part) || r->unseen)
        return is_of(r, part);
    return (part->addr >= r->addr || r->held) &&
           end - low <= frag_reservation_size(l->recorded, l->total, l->page,
                                              r->is_small);
}

/* Bytes between a reservation and a range; 0 if they meet. */
static frag_size distance(const struct frag_reservation *r,
                          const struct frag_reservation *part)
{
    if (part->addr > r->end)
        return part->addr - r->end;
    return part->end < r->addr ? r->addr - part->end : 0;
}

/* The live reservation that can hold the range; of several, the nearest. */
static struct frag_reservation *find(const struct listing *l,
                                     const struct frag_reservation *part)
{
    struct frag_reservation *best = NULL;

    for (uint64_t i = 0; i < l->count; i++) {
        struct frag_reservation *r = &l->rows[i];

        if (can_hold(l, r, part) &&
            (!best || distance(r, part) < distance(best, part)))
            best = r;
    }
    return best;
}

static bool add_row(struct listing *l, const struct frag_reservation *row)
{
    if (!GROW(l->rows, l->room, l->count + 1))
        return false;
    l->rows[l->count++] = *row;
    return true;
}

static bool add_mapped(struct listing *l, const struct frag_reservation *part)
{
    struct frag_reservation *r = find(l, part);

    if (!r)
        return add_row(l, part);
    if (part->addr < r->addr || r->unseen)
        r->addr = part->addr;
    if (part->end > r->end || r->unseen)
        r->end = part->end;
    r->unseen = false;
    r->mapped += part->mapped;
    return true;
}

static void remove_mapped(struct listing *l, uint64_t action,
                          const struct frag_recorded_action *a)
{
    for (uint64_t i = 0; i < l->count; i++) {
        struct frag_reservation *r = &l->rows[i];

        if (!r->mapped || a->addr < r->addr || a->addr >= r->end)
            continue;
        r->mapped -= a->size < r->mapped ? a->size : r->mapped;
        if (!r->mapped)
            r->dropped = action;
    }
}

static bool add_held(struct listing *l, const struct frag_layout *start)
{
    for (uint64_t i = 0; i < start->segment_count; i++) {
        const struct frag_recorded_segment *s = &start->segments[i];
        const struct frag_reservation part = {.addr = s->addr,
                                              .end = s->addr + s->size,
                                              .mapped = s->size,
                                              .stream = s->stream,
                                              .pool = s->pool,
                                              .is_small = s->is_small,
                                              .held = true,
                                              .dropped = UINT64_MAX};

        if (s->is_expandable && !add_mapped(l, &part))
            return false;
    }
    return true;
}

/* Whether requests of the pool use expandable segments where they are on:
 * those of private pools do since PyTorch 2.5 (policies/torch/versions.h). */
static bool has_pages(const char *settings, uint32_t pool)
{
    const char *version = torch_value_of(settings, "torch_version");
    unsigned minor;

    return !pool || !version || sscanf(version, "2.%u", &minor) != 1 ||
           minor >= 5;
}

/* A request that a full device could not serve had reserved addresses, if the
 * pool and stream had none: the first pages had no room. */
static bool add_failed(struct listing *l, const struct frag_recorded_action *a,
                       const struct frag_reservation *asked)
{
    const frag_size page = asked->is_small ? TORCH_SMALL_SEGMENT : l->page;
    const char *settings = l->recorded->settings;
    const char *expands = torch_value_of(settings, "expandable_segments");

    if (!expands || *expands != 'T' ||
        frag_device_room(a->device_free) / page >=
            (a->size + page - 1) / page ||
        a->size > frag_reservation_size(l->recorded, l->total, l->page,
                                        asked->is_small) ||
        !has_pages(settings, asked->pool))
        return true;
    for (uint64_t i = 0; i < l->count; i++)
        if (is_of(&l->rows[i], asked))
            return true;
    return add_row(l, asked);
}

/* A map in a small pool is one page of 2 MiB, and every map in a large pool is
 * larger. */
static bool add_actions(struct listing *l)
{
    const struct frag_device_trace *d = l->device;

    for (uint64_t i = 0; i < d->recorded.action_count; i++) {
        const struct frag_recorded_action *a = &d->recorded.actions[i];
        const bool failed = a->action == FRAG_OOM_REPORTED;
        const bool asks = a->event < d->count && d->op[a->event] == FRAG_ALLOC;
        const struct frag_reservation part = {
            .addr = a->addr,
            .end = a->addr + a->size,
            .mapped = failed ? 0 : a->size,
            .stream = a->stream,
            .pool = asks ? d->pool[a->event] : 0,
            .is_small =
                a->size <= (failed ? TORCH_SMALL_SIZE : TORCH_SMALL_SEGMENT),
            .unseen = failed,
            .made = i,
            .dropped = UINT64_MAX};

        if ((a->action == FRAG_SEGMENT_MAP && !add_mapped(l, &part)) ||
            (failed && !add_failed(l, a, &part)))
            return false;
        if (a->action == FRAG_SEGMENT_UNMAP)
            remove_mapped(l, i, a);
    }
    return true;
}

enum frag_err frag_reservations(const struct frag_device_trace *d,
                                frag_size total, struct frag_reservation **out,
                                uint64_t *count, struct frag_error *e)
{
    struct listing l = {.device = d,
                        .recorded = &d->recorded,
                        .total = total,
                        .page = frag_reservation_page(&d->recorded)};

    if (!add_held(&l, &d->recorded.start) || !add_actions(&l)) {
        free(l.rows);
        return frag_no_memory(e, "the recorded reservations");
    }
    *out = l.rows;
    *count = l.count;
    return FRAG_OK;
}

frag_size frag_reservations_total(const struct frag_recorded *r,
                                  const struct frag_reservation *rows,
                                  uint64_t count, frag_size total)
{
    const frag_size page = frag_reservation_page(r);

    if (torch_reserve_of(r->settings).value > 0)
        return total; /* the ranges do not depend on it alone */
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < count; k++) {
            const frag_size gap = rows[k].addr - rows[i].addr;

            if (rows[k].addr < rows[i].end || rows[k].made > rows[i].dropped ||
                rows[i].made > rows[k].dropped || rows[i].unseen ||
                rows[k].unseen ||
                frag_reservation_size(r, total, page, rows[i].is_small) <= gap)
                continue;
            /* Whole pages above 9/8 of the total have to fit in the gap. */
            total = (gap - gap % page) / 9 * 8;
        }
    return total;
}
