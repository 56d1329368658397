/* tap.c - turns what the replay tells its watch into placements. */
#include "sim/export/tap.h"

#include <stdlib.h>

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

/* The client frees the block; it keeps its memory until leave(). */
static void release(struct tap *t, uint32_t id)
{
    struct tap_slot *s = &t->slots[id];

    t->requested -= requested_by(t, s);
    t->allocated -= s->block.size;
    s->state = TAP_PENDING;
    tell_block(t, PLACED_PENDING, id, false);
}

static void leave(struct tap *t, uint32_t id)
{
    if (t->slots[id].state == TAP_LIVE)
        release(t, id);
    if (t->slots[id].state != TAP_PENDING)
        return;
    tell_block(t, PLACED_FREED, id, false);
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

static void on_changed(void *user, enum frag_call call, frag_addr addr,
                       frag_size size, frag_addr same)
{
    static const enum placement_kind kinds[FRAG_CALL_COUNT] = {
        [FRAG_CALL_SEGMENT_ALLOC] = PLACED_SEGMENT,
        [FRAG_CALL_SEGMENT_FREE] = PLACED_SEGMENT_FREED,
        [FRAG_CALL_MAP] = PLACED_MAP,
        [FRAG_CALL_UNMAP] = PLACED_UNMAP,
    };
    struct tap *t = user;

    (void)same;
    if (t->is_over)
        return;
    settle(t);
    if (size)
        tell(t, (struct placement){
                    .kind = kinds[call], .addr = addr, .size = size});
}

static void on_left(void *user, uint32_t id)
{
    settle(user);
    leave(user, id);
}

static void on_opened(void *user, struct frag_heap *heap)
{
    struct tap *t = user;

    t->meter = (const struct meter *)heap->mem;
    t->moved = heap->moved;
    t->moved_user = heap->user;
    heap->moved = on_moved;
    heap->user = t;
    if (t->listener.opened)
        t->listener.opened(t->listener.user, heap);
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

enum frag_err tap_open(struct tap *t, const struct frag_device_trace *device,
                       const struct tap_listener *listener)
{
    *t = (struct tap){
        .listener = *listener,
        .device = device,
        .slots = calloc((size_t)device->slots + 1, sizeof(*t->slots)),
    };
    t->watch = (struct frag_replay_watch){.user = t,
                                          .opened = on_opened,
                                          .changed = on_changed,
                                          .left = on_left,
                                          .done = on_done,
                                          .ended = on_ended};
    return t->slots ? FRAG_OK : FRAG_NOMEM;
}

void tap_close(struct tap *t)
{
    free(t->slots);
    t->slots = NULL;
}
