/* figure_track.c - replays a trace and records the addresses of blocks and
 * ranges. */
#include "sim/cli/figures/figure_track.h"

#include <stdlib.h>

#include "sim/arena/arena.h"
#include "sim/experiments/plugin.h"
#include "sim/export/tap.h"
#include "traces/grow.h"

enum { OOMS = 1000 }; /* OOMs kept; a figure has no room for more marks */

/* The listener of a replay. */
struct recorder {
    const struct trace_view *view;
    struct spans blocks, reserved;
    size_t *open; /* for each slot: index of its span in `blocks` + 1, or 0 */
    size_t *held; /* indices of spans in `reserved` without an end yet */
    size_t held_count;
    uint64_t held_room;
    frag_size *reserved_after; /* for each event */
    bool is_short;             /* an allocation failed */
};

/* -- spans --------------------------------------------------------------- */

static bool push(struct spans *s, struct span span)
{
    if (!GROW(s->items, s->room, s->count + 1))
        return false;
    s->items[s->count++] = span;
    return true;
}

/* Begins the span of a reserved range. */
static void begin_range(struct recorder *r, const struct placement *p)
{
    const struct span span = {p->addr, p->size, p->event, FRAG_NEVER, 0};

    if (GROW(r->held, r->held_room, r->held_count + 1) &&
        push(&r->reserved, span))
        r->held[r->held_count++] = r->reserved.count - 1;
    else
        r->is_short = true;
}

/* Ends the spans of all reserved ranges inside the range of p. The search
 * begins with the latest span, the most likely one. */
static void end_ranges(struct recorder *r, const struct placement *p)
{
    for (size_t i = r->held_count; i-- > 0;) {
        struct span *s = &r->reserved.items[r->held[i]];

        if (s->addr < p->addr || s->addr - p->addr >= p->size)
            continue;
        s->to = p->event;
        r->held[i] = r->held[--r->held_count];
        if (s->size == p->size)
            return;
    }
}

static void begin_block(struct recorder *r, const struct placement *p)
{
    const struct span span = {p->addr, p->size, p->event, FRAG_NEVER, p->asked};

    if (push(&r->blocks, span))
        r->open[p->slot] = r->blocks.count;
    else
        r->is_short = true;
}

static void end_block(struct recorder *r, const struct placement *p)
{
    if (r->open[p->slot])
        r->blocks.items[r->open[p->slot] - 1].to = p->event;
    r->open[p->slot] = 0;
}

static void on_placed(void *user, const struct tap *t,
                      const struct placement *p)
{
    static void (*const ways[])(struct recorder *, const struct placement *) = {
        [PLACED_SEGMENT] = begin_range, [PLACED_SEGMENT_FREED] = end_ranges,
        [PLACED_MAP] = begin_range,     [PLACED_UNMAP] = end_ranges,
        [PLACED_BLOCK] = begin_block,   [PLACED_FREED] = end_block,
        [PLACED_PENDING] = NULL,        [PLACED_REFUSED] = NULL,
    };

    (void)t;
    if (ways[p->kind])
        ways[p->kind](user, p);
}

static void on_done(void *user, const struct tap *t, uint64_t event)
{
    struct recorder *r = user;

    r->reserved_after[event] = t->meter->reserved;
}

/* -- the run ------------------------------------------------------------- */

static bool tick(void *user, uint64_t done, uint64_t total)
{
    const struct recorder *r = user;

    return r->is_short || progress_tick(r->view->progress, done, total);
}

static enum frag_err replay(struct recorder *r, const struct tap *tap,
                            struct frag_backend *arena, struct frag_run *out,
                            struct frag_error *e)
{
    const struct trace_view *v = r->view;
    enum frag_err err = frag_replay(
        &(const struct frag_replay){
            .trace = v->device,
            .watch = &tap->watch,
            .prepared = v->params,
            .mem = arena,
            .check = plugin_made(v->params->policy),
            .repeat = 1,
            .max_ooms = OOMS,
            .progress = tick,
            .user = r,
        },
        out, e);

    if (r->is_short && err == FRAG_OK)
        frag_run_free(out);
    return r->is_short ? FRAG_NOMEM : err;
}

/* Spans without an end last to the end of the trace. */
static void end_spans(struct spans *s, uint64_t events)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].to == FRAG_NEVER)
            s->items[i].to = events;
}

enum frag_err track_make(const struct trace_view *v, struct figure_track *out,
                         struct frag_error *e)
{
    struct recorder r = {
        .view = v,
        .open = calloc((size_t)v->device->slots + 1, sizeof(*r.open)),
        .reserved_after =
            calloc((size_t)v->device->count + 1, sizeof(*r.reserved_after))};
    const struct tap_listener listener = {
        .user = &r, .placed = on_placed, .done = on_done};
    struct frag_backend *arena =
        frag_arena_open(&(const struct frag_arena_options){
            .capacity = frag_bound_of(v->bound, FRAG_BOUND_CAPACITY),
            .limit = v->bound.kind == FRAG_BOUND_LIMIT ? v->bound.bytes : 0});
    struct figure_track t = {0};
    struct tap tap = {0};
    enum frag_err err = FRAG_NOMEM;

    if (arena && r.open && r.reserved_after)
        err = tap_open(&tap, v->device, &listener);
    FRAG_THEN(err, replay(&r, &tap, arena, &t.run, e));
    t.blocks = r.blocks;
    t.reserved = r.reserved;
    t.held = r.reserved_after;
    end_spans(&t.blocks, v->device->count);
    end_spans(&t.reserved, v->device->count);
    free(r.open);
    free(r.held);
    tap_close(&tap);
    frag_arena_close(arena);
    if (err == FRAG_OK) {
        *out = t;
    } else {
        free(t.blocks.items);
        free(t.reserved.items);
        free(t.held);
    }
    return err;
}

void track_free(struct figure_track *t)
{
    free(t->blocks.items);
    free(t->reserved.items);
    free(t->held);
    frag_run_free(&t->run);
}
