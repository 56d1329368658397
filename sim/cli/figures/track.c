/* track.c - replays a trace and records the addresses of blocks and ranges. */
#include "sim/cli/figures/track.h"

#include <stdlib.h>

#include "sim/arena/arena.h"
#include "sim/experiments/plugin.h"
#include "traces/grow.h"

enum { OOMS = 1000 }; /* OOMs kept; a figure has no room for more marks */

/* The observer of a replay. `base` is the backend that the policy uses; it
 * forwards each call to `real`. */
struct recorder {
    struct frag_backend base;
    struct frag_backend *real;
    const struct trace_view *view;
    struct spans blocks, reserved;
    size_t *open; /* for each slot: index of its span in `blocks` + 1, or 0 */
    size_t *held; /* indices of spans in `reserved` without an end yet */
    size_t held_count;
    uint64_t held_room;
    uint64_t event; /* the current one */
    bool is_short;  /* an allocation failed */

    /* The callback of the replay that on_moved replaces and calls. */

    void (*moved)(void *user, uint32_t owner, const struct frag_block *block);
    void *user;
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
static void begin_range(struct recorder *r, frag_addr addr, frag_size size)
{
    const struct span span = {addr, size, r->event, FRAG_NEVER, 0};

    if (GROW(r->held, r->held_room, r->held_count + 1) &&
        push(&r->reserved, span))
        r->held[r->held_count++] = r->reserved.count - 1;
    else
        r->is_short = true;
}

/* Ends the spans of all reserved ranges inside [addr, addr + size). The search
 * begins with the latest span, the most likely one. */
static void end_ranges(struct recorder *r, frag_addr addr, frag_size size)
{
    for (size_t i = r->held_count; size && i-- > 0;) {
        struct span *s = &r->reserved.items[r->held[i]];

        if (s->addr < addr || s->addr - addr >= size)
            continue;
        s->to = r->event;
        r->held[i] = r->held[--r->held_count];
        if (s->size == size)
            return;
    }
}

/* -- the backend in between ---------------------------------------------- */

static struct recorder *recorder(struct frag_backend *mem)
{
    return (struct recorder *)mem;
}

static enum frag_err segment_alloc(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr)
{
    struct frag_backend *real = recorder(mem)->real;

    FRAG_TRY(real->ops->segment_alloc(real, size, addr));
    begin_range(recorder(mem), *addr, size);
    return FRAG_OK;
}

static enum frag_err segment_free(struct frag_backend *mem, frag_addr addr,
                                  frag_size size)
{
    struct frag_backend *real = recorder(mem)->real;

    FRAG_TRY(real->ops->segment_free(real, addr, size));
    end_ranges(recorder(mem), addr, size);
    return FRAG_OK;
}

static enum frag_err va_reserve(struct frag_backend *mem, frag_size size,
                                frag_addr *addr)
{
    struct frag_backend *real = recorder(mem)->real;

    return real->ops->va_reserve(real, size, addr);
}

static enum frag_err va_free(struct frag_backend *mem, frag_addr addr,
                             frag_size size)
{
    struct frag_backend *real = recorder(mem)->real;

    return real->ops->va_free(real, addr, size);
}

static enum frag_err phys_create(struct frag_backend *mem, frag_size size,
                                 frag_phys *phys)
{
    struct frag_backend *real = recorder(mem)->real;

    return real->ops->phys_create(real, size, phys);
}

static enum frag_err phys_release(struct frag_backend *mem, frag_phys phys,
                                  frag_size size)
{
    struct frag_backend *real = recorder(mem)->real;

    return real->ops->phys_release(real, phys, size);
}

static enum frag_err map(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys)
{
    struct frag_backend *real = recorder(mem)->real;

    FRAG_TRY(real->ops->map(real, addr, size, phys));
    begin_range(recorder(mem), addr, size);
    return FRAG_OK;
}

static enum frag_err unmap(struct frag_backend *mem, frag_addr addr,
                           frag_size size)
{
    struct frag_backend *real = recorder(mem)->real;

    FRAG_TRY(real->ops->unmap(real, addr, size));
    end_ranges(recorder(mem), addr, size);
    return FRAG_OK;
}

static enum frag_err copy(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream)
{
    struct frag_backend *real = recorder(mem)->real;

    return real->ops->copy(real, dst, src, size, stream);
}

static enum frag_err synchronize(struct frag_backend *mem)
{
    struct frag_backend *real = recorder(mem)->real;

    return real->ops->synchronize(real);
}

static frag_time now(struct frag_backend *mem)
{
    struct frag_backend *real = recorder(mem)->real;

    return real->ops->now(real);
}

static void stream_used(struct frag_backend *mem, frag_stream stream)
{
    struct frag_backend *real = recorder(mem)->real;

    if (real->ops->stream_used)
        real->ops->stream_used(real, stream);
}

static const struct frag_backend_ops recorder_ops = {
    .name = "arena",
    .segment_alloc = segment_alloc,
    .segment_free = segment_free,
    .va_reserve = va_reserve,
    .va_free = va_free,
    .phys_create = phys_create,
    .phys_release = phys_release,
    .map = map,
    .unmap = unmap,
    .copy = copy,
    .synchronize = synchronize,
    .now = now,
    .stream_used = stream_used,
};

/* -- the watch ----------------------------------------------------------- */

static void close_block(struct recorder *r, uint32_t slot)
{
    if (r->open[slot])
        r->blocks.items[r->open[slot] - 1].to = r->event;
    r->open[slot] = 0;
}

static void open_block(struct recorder *r, uint32_t slot, uint64_t asked,
                       const struct frag_block *b)
{
    const struct span span = {b->addr, b->size, r->event, FRAG_NEVER, asked};

    if (push(&r->blocks, span))
        r->open[slot] = r->blocks.count;
    else
        r->is_short = true;
}

static void on_moved(void *user, uint32_t owner, const struct frag_block *block)
{
    struct recorder *r = user;

    if (r->open[owner]) {
        uint64_t asked = r->blocks.items[r->open[owner] - 1].asked;

        close_block(r, owner);
        open_block(r, owner, asked, block);
    }
    r->moved(r->user, owner, block);
}

static void on_opened(void *user, struct frag_heap *heap)
{
    struct recorder *r = user;

    r->moved = heap->moved;
    r->user = heap->user;
    heap->moved = on_moved;
    heap->user = r;
}

static void on_done(void *user, uint64_t event, const struct frag_block *block)
{
    struct recorder *r = user;
    const struct frag_device_trace *d = r->view->device;

    r->event = event;
    if (d->op[event] == FRAG_FREE)
        close_block(r, d->id[event]);
    else if (d->op[event] == FRAG_ALLOC && block)
        open_block(r, d->id[event], event, block);
    r->event = event + 1;
}

/* -- the run ------------------------------------------------------------- */

static bool tick(void *user, uint64_t done, uint64_t total)
{
    const struct recorder *r = user;

    return r->is_short || progress_tick(r->view->progress, done, total);
}

static bool prepare(void *user, uint64_t done, uint64_t total)
{
    const struct recorder *r = user;

    return progress_prepare(r->view->progress, done, total);
}

static enum frag_err replay(struct recorder *r, struct frag_run *out,
                            struct frag_error *e)
{
    const struct trace_view *v = r->view;
    const struct frag_replay_watch watch = {
        .user = r, .opened = on_opened, .done = on_done};
    enum frag_err err = frag_replay(
        &(const struct frag_replay){
            .trace = v->device,
            .watch = &watch,
            .prepared = v->params,
            .mem = &r->base,
            .check = plugin_made(v->params->policy),
            .repeat = 1,
            .max_ooms = OOMS,
            .progress = tick,
            .user = r,
            .preparing = prepare,
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

enum frag_err track_make(const struct trace_view *v, struct track *out,
                         struct frag_error *e)
{
    struct recorder r = {
        .view = v,
        .real = frag_arena_open(
            &(const struct frag_arena_options){.capacity = v->capacity}),
        .open = calloc((size_t)v->device->slots + 1, sizeof(*r.open))};
    struct track t = {0};
    enum frag_err err = FRAG_NOMEM;

    if (r.real && r.open) {
        r.base = *r.real;
        r.base.ops = &recorder_ops;
        err = replay(&r, &t.run, e);
    }
    t.blocks = r.blocks;
    t.reserved = r.reserved;
    end_spans(&t.blocks, v->device->count);
    end_spans(&t.reserved, v->device->count);
    free(r.open);
    free(r.held);
    frag_arena_close(r.real);
    if (err == FRAG_OK) {
        *out = t;
    } else {
        free(t.blocks.items);
        free(t.reserved.items);
    }
    return err;
}

void track_free(struct track *t)
{
    free(t->blocks.items);
    free(t->reserved.items);
    frag_run_free(&t->run);
}
