/* tap.c - the backend and the watch that together see every placement. */
#include "sim/export/tap.h"

#include <stdlib.h>

#define NO_SLOT UINT32_MAX

/* -- blocks -------------------------------------------------------------- */

static frag_size requested_by(const struct tap *t, const struct tap_slot *s)
{
    return t->device->bytes[s->asked];
}

static void tell(const struct tap *t, struct placement p)
{
    p.event = t->event;
    if (t->listener.placed)
        t->listener.placed(t->listener.user, t, &p);
}

static void tell_block(const struct tap *t, enum placement_kind kind,
                       uint32_t id, bool moved)
{
    const struct tap_slot *s = &t->slots[id];

    tell(t, (struct placement){.kind = kind,
                               .moved = moved,
                               .slot = id,
                               .asked = s->asked,
                               .addr = s->block.addr,
                               .size = s->block.size});
}

static void enter(struct tap *t, uint32_t id, uint64_t asked,
                  const struct frag_block *block)
{
    t->slots[id] =
        (struct tap_slot){.block = *block, .asked = asked, .state = TAP_LIVE};
    t->requested += requested_by(t, &t->slots[id]);
    t->allocated += block->size;
    tell_block(t, PLACED_BLOCK, id, false);
}

static void enqueue(struct tap *t, uint32_t id)
{
    t->slots[id].prev = t->last_pending;
    t->slots[id].next = NO_SLOT;
    if (t->last_pending != NO_SLOT)
        t->slots[t->last_pending].next = id;
    else
        t->first_pending = id;
    t->last_pending = id;
}

static void dequeue(struct tap *t, uint32_t id)
{
    const struct tap_slot *s = &t->slots[id];

    if (s->prev != NO_SLOT)
        t->slots[s->prev].next = s->next;
    else
        t->first_pending = s->next;
    if (s->next != NO_SLOT)
        t->slots[s->next].prev = s->prev;
    else
        t->last_pending = s->prev;
}

/* The client frees the block; it keeps its memory until leave(). */
static void release(struct tap *t, uint32_t id)
{
    struct tap_slot *s = &t->slots[id];

    t->requested -= requested_by(t, s);
    t->allocated -= s->block.size;
    s->state = TAP_PENDING;
    enqueue(t, id);
    tell_block(t, PLACED_PENDING, id, false);
}

static void leave(struct tap *t, uint32_t id)
{
    if (t->slots[id].state == TAP_LIVE)
        release(t, id);
    if (t->slots[id].state != TAP_PENDING)
        return;
    tell_block(t, PLACED_FREED, id, false);
    dequeue(t, id);
    t->slots[id].state = TAP_FREE;
}

/* Reports the free of the event under way, if it is one: before anything that
 * the policy does in answer. */
static void settle(struct tap *t)
{
    const struct frag_device_trace *d = t->device;
    const uint64_t i = t->event;

    if (t->is_settled || i >= d->count)
        return;
    t->is_settled = true;
    if (d->op[i] == FRAG_FREE) {
        leave(t, d->id[i]);
    } else if (d->op[i] == FRAG_FREE_REQUESTED &&
               t->slots[d->id[i]].state == TAP_LIVE) {
        release(t, d->id[i]);
    }
}

/* -- the backend in between ---------------------------------------------- */

static struct tap *tap_of(struct frag_backend *mem)
{
    return (struct tap *)mem;
}

static struct frag_backend *real_of(struct frag_backend *mem)
{
    return tap_of(mem)->real;
}

static void tell_range(struct frag_backend *mem, enum placement_kind kind,
                       frag_addr addr, frag_size size)
{
    struct tap *t = tap_of(mem);

    if (!t->is_over)
        tell(t, (struct placement){.kind = kind, .addr = addr, .size = size});
}

static enum frag_err segment_alloc(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr)
{
    settle(tap_of(mem));
    FRAG_TRY(real_of(mem)->ops->segment_alloc(real_of(mem), size, addr));
    tell_range(mem, PLACED_SEGMENT, *addr, size);
    return FRAG_OK;
}

static enum frag_err segment_free(struct frag_backend *mem, frag_addr addr,
                                  frag_size size)
{
    settle(tap_of(mem));
    FRAG_TRY(real_of(mem)->ops->segment_free(real_of(mem), addr, size));
    tell_range(mem, PLACED_SEGMENT_FREED, addr, size);
    return FRAG_OK;
}

static enum frag_err va_reserve(struct frag_backend *mem, frag_size size,
                                frag_addr *addr)
{
    return real_of(mem)->ops->va_reserve(real_of(mem), size, addr);
}

static enum frag_err va_free(struct frag_backend *mem, frag_addr addr,
                             frag_size size)
{
    return real_of(mem)->ops->va_free(real_of(mem), addr, size);
}

static enum frag_err phys_create(struct frag_backend *mem, frag_size size,
                                 frag_phys *phys)
{
    return real_of(mem)->ops->phys_create(real_of(mem), size, phys);
}

static enum frag_err phys_release(struct frag_backend *mem, frag_phys phys,
                                  frag_size size)
{
    return real_of(mem)->ops->phys_release(real_of(mem), phys, size);
}

static enum frag_err map(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys)
{
    settle(tap_of(mem));
    FRAG_TRY(real_of(mem)->ops->map(real_of(mem), addr, size, phys));
    tell_range(mem, PLACED_MAP, addr, size);
    return FRAG_OK;
}

static enum frag_err unmap(struct frag_backend *mem, frag_addr addr,
                           frag_size size)
{
    settle(tap_of(mem));
    FRAG_TRY(real_of(mem)->ops->unmap(real_of(mem), addr, size));
    if (size)
        tell_range(mem, PLACED_UNMAP, addr, size);
    return FRAG_OK;
}

static enum frag_err copy(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream)
{
    return real_of(mem)->ops->copy(real_of(mem), dst, src, size, stream);
}

/* The replay completes all pending frees during this call, in this order. */
static enum frag_err synchronize(struct frag_backend *mem)
{
    struct tap *t = tap_of(mem);

    settle(t);
    FRAG_TRY(t->real->ops->synchronize(t->real));
    while (!t->is_over && t->first_pending != NO_SLOT)
        leave(t, t->first_pending);
    return FRAG_OK;
}

static frag_time now(struct frag_backend *mem)
{
    return real_of(mem)->ops->now(real_of(mem));
}

static void stream_used(struct frag_backend *mem, frag_stream stream)
{
    if (real_of(mem)->ops->stream_used)
        real_of(mem)->ops->stream_used(real_of(mem), stream);
}

static const struct frag_backend_ops tap_ops = {
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

static void on_moved(void *user, uint32_t owner, const struct frag_block *block)
{
    struct tap *t = user;
    struct tap_slot *s = &t->slots[owner];

    settle(t);
    if (s->state != TAP_FREE) {
        if (s->state == TAP_LIVE)
            tell_block(t, PLACED_PENDING, owner, true);
        tell_block(t, PLACED_FREED, owner, true);
        if (s->state == TAP_LIVE)
            t->allocated += block->size - s->block.size;
        s->block = *block;
        t->moves++;
        tell_block(t, PLACED_BLOCK, owner, true);
        if (s->state == TAP_PENDING)
            tell_block(t, PLACED_PENDING, owner, true);
    }
    t->moved(t->moved_user, owner, block);
}

static void on_opened(void *user, struct frag_heap *heap)
{
    struct tap *t = user;

    t->meter = (const struct meter *)heap->mem;
    t->moved = heap->moved;
    t->moved_user = heap->user;
    heap->moved = on_moved;
    heap->user = t;
}

static void on_done(void *user, uint64_t event, const struct frag_block *block)
{
    struct tap *t = user;
    const struct frag_device_trace *d = t->device;

    t->event = event;
    settle(t);
    if (d->op[event] == FRAG_ALLOC && block)
        enter(t, d->id[event], event, block);
    else if (d->op[event] == FRAG_ALLOC)
        tell(t, (struct placement){.kind = PLACED_REFUSED,
                                   .slot = d->id[event],
                                   .asked = event,
                                   .size = d->bytes[event]});
    if (t->listener.done)
        t->listener.done(t->listener.user, t, event);
    t->event = event + 1;
    t->is_settled = false;
}

static void on_ended(void *user, const struct frag_heap *heap)
{
    struct tap *t = user;

    (void)heap;
    t->is_over = true;
    if (t->listener.ended)
        t->listener.ended(t->listener.user, t);
    t->meter = NULL;
}

enum frag_err tap_open(struct tap *t, struct frag_backend *real,
                       const struct frag_device_trace *device,
                       const struct tap_listener *listener)
{
    *t = (struct tap){
        .listener = *listener,
        .base = *real,
        .real = real,
        .device = device,
        .slots = calloc((size_t)device->slots + 1, sizeof(*t->slots)),
        .first_pending = NO_SLOT,
        .last_pending = NO_SLOT,
    };
    t->base.ops = &tap_ops;
    t->watch = (struct frag_replay_watch){
        .user = t, .opened = on_opened, .done = on_done, .ended = on_ended};
    return t->slots ? FRAG_OK : FRAG_NOMEM;
}

void tap_close(struct tap *t)
{
    free(t->slots);
    t->slots = NULL;
}
