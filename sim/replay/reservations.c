/* reservations.c - groups the recorded ranges of expandable segments by
 * reservation. A reservation is dropped when nothing of it is mapped. */
#include "sim/replay/reservations.h"

#include <stdio.h>
#include <stdlib.h>

#include "policies/device/backend.h"
#include "traces/grow.h"
#include "traces/setting_changes.h"
#include "traces/torch_sizes.h"

struct listing {
    struct frag_reservation *rows;
    uint64_t count, room;
    const struct frag_device_trace *device;
    const struct frag_recorded *recorded; /* of the device */
    frag_size total;                      /* of the device */
    struct changes_now now;
    frag_size held; /* before an action */
};

frag_size frag_reservation_size(const struct frag_reservation *r,
                                frag_size total)
{
    return torch_reservation_size(r->reserve, total, r->page);
}

/* Adds what the settings of now decide on a new reservation. */
static void set_size(const struct listing *l, struct frag_reservation *r)
{
    r->page = r->is_small ? TORCH_SMALL_SEGMENT : l->now.large_segment;
    r->reserve = l->now.reserve;
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
           end - low <= frag_reservation_size(r, l->total);
}

/* The live reservation that can hold the range. */
static struct frag_reservation *find(const struct listing *l,
                                     const struct frag_reservation *part)
{
    for (uint64_t i = 0; i < l->count; i++)
        if (can_hold(l, &l->rows[i], part))
            return &l->rows[i];
    return NULL;
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
        /* The request had reserved other addresses before. */
        while (r->dropped == action && action + 1 < l->recorded->action_count &&
               l->recorded->actions[action + 1].event == a->event)
            r->dropped = ++action;
    }
}

static bool add_held(struct listing *l, const struct frag_layout *start)
{
    for (uint64_t i = 0; i < start->segment_count; i++) {
        const struct frag_recorded_segment *s = &start->segments[i];
        struct frag_reservation part = {.addr = s->addr,
                                        .end = s->addr + s->size,
                                        .mapped = s->size,
                                        .stream = s->stream,
                                        .pool = s->pool,
                                        .is_small = s->is_small,
                                        .held = true,
                                        .dropped = UINT64_MAX};

        set_size(l, &part);
        l->held += s->size;
        if (s->is_expandable && !add_mapped(l, &part))
            return false;
    }
    return true;
}

/* Adds the addresses that a request reserved before a full device refused its
 * first page: none if it had some that were large enough, or if a limit refused
 * the request. A request larger than any reservation reserves anew in each
 * attempt (torch_segments.c). Requests of private pools use expandable segments
 * since PyTorch 2.5, and are repeated since 2.13 unless a graph captures them.
 */
static bool add_failed(struct listing *l, const struct frag_recorded_action *a,
                       const struct frag_reservation *asked)
{
    const char *named = torch_value_of(l->recorded->settings, "torch_version");
    const frag_size page = asked->page;
    const bool is_large = a->size > frag_reservation_size(asked, l->total);
    unsigned release = 99, count = 1;

    if (named)
        sscanf(named, "2.%u", &release);
    if (!l->now.expandable || (asked->pool && release < 5) ||
        (is_large && asked->reserve.value > 0) ||
        l->held + torch_segment_size(a->size, page) > l->now.limit ||
        frag_device_room(a->device_free) / page >= (a->size + page - 1) / page)
        return true;
    for (uint64_t i = 0; i < l->count; i++)
        count -= count && !is_large && is_of(&l->rows[i], asked);
    if (is_large && (!asked->pool ||
                     (release >= 13 && !l->device->pools[asked->pool].owner)))
        count++;
    for (; count; count--)
        if (!add_row(l, asked))
            return false;
    return true;
}

/* A map in a small pool is one page of 2 MiB, and every map in a large pool is
 * larger. */
static bool add_actions(struct listing *l)
{
    const struct frag_device_trace *d = l->device;

    for (uint64_t i = 0; i < d->recorded.action_count; i++) {
        const struct frag_recorded_action *a = &d->recorded.actions[i];
        const bool failed = a->action == FRAG_OOM_REPORTED;
        struct frag_reservation part = {
            .addr = a->addr,
            .end = a->addr + a->size,
            .mapped = failed ? 0 : a->size,
            .stream = a->stream,
            .pool = frag_pool_of_action(d, a),
            .is_small =
                a->size <= (failed ? TORCH_SMALL_SIZE : TORCH_SMALL_SEGMENT),
            .unseen = failed,
            .made = i,
            .dropped = UINT64_MAX};

        changes_pass(d, &l->now, a->event);
        set_size(l, &part);
        if ((a->action == FRAG_SEGMENT_MAP && !add_mapped(l, &part)) ||
            (failed && !add_failed(l, a, &part)))
            return false;
        if (a->action == FRAG_SEGMENT_UNMAP)
            remove_mapped(l, i, a);
        l->held = frag_held_after(a, l->held);
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
                        .now = changes_begin(d->recorded.settings)};

    if (!add_held(&l, &d->recorded.start) || !add_actions(&l)) {
        free(l.rows);
        return frag_no_memory(e, "the recorded reservations");
    }
    *out = l.rows;
    *count = l.count;
    return FRAG_OK;
}

frag_size frag_reservations_total(const struct frag_reservation *rows,
                                  uint64_t count, frag_size total)
{
    for (uint64_t i = 0; i < count; i++)
        if (rows[i].reserve.value > 0)
            return total; /* the ranges do not depend on it alone */
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < count; k++) {
            const frag_size gap = rows[k].addr - rows[i].addr;

            if (rows[k].addr < rows[i].end || rows[k].made > rows[i].dropped ||
                rows[i].made > rows[k].dropped || rows[i].unseen ||
                rows[k].unseen || frag_reservation_size(&rows[i], total) <= gap)
                continue;
            /* Whole pages above 9/8 of the total have to fit in the gap. */
            total = (gap - gap % rows[i].page) / 9 * 8;
        }
    return total;
}
