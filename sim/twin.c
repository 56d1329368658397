/* twin.c - the twin as a backend: makes each call on the arena and on the
 * device, and translates the device's addresses to the arena's. */
#include "sim/twin.h"

#include <stdlib.h>

#include "policies/device/relay.h"
#include "sim/ranges.h"

/* A segment, a reservation or a physical allocation that exists on both sides.
 * The start of the range of a physical allocation is its handle. */
struct twin_address {
    struct range range; /* must be the first member; on the device */
    uint64_t arena;     /* address or handle on the arena */
};

/* The model of the memory that the device must clear. */
struct clearing {
    frag_size held;  /* bytes in use */
    frag_size dirty; /* bytes that were returned and are not cleared yet */
    frag_time seen;  /* modelled time at which `dirty` was updated */
};

struct twin {
    union { /* base is that of the relay */
        struct frag_relay relay;
        struct frag_backend base;
    };
    struct frag_backend *device, *arena;
    struct ranges segments, reservations, phys;
    struct frag_twin_cost costs[FRAG_DRIVER_CALL_COUNT];
    struct clearing clearing;
    frag_time spent, modelled; /* ns in all calls: measured, modelled */
    uint64_t refusals;
};

static struct twin *twin_of(const struct frag_backend *mem)
{
    return (struct twin *)(uintptr_t)mem;
}

/* Fills b and adds it to the set. The caller allocates b before it makes the
 * calls, so that this step cannot fail. */
static void enter(struct ranges *set, struct twin_address *b, uint64_t device,
                  uint64_t arena, uint64_t size)
{
    *b = (struct twin_address){{.at = device, .size = size}, arena};
    ranges_add(set, &b->range);
}

static struct twin_address *find(const struct ranges *set, uint64_t at)
{
    return (struct twin_address *)ranges_at(set, at);
}

static void leave(struct ranges *set, struct twin_address *b)
{
    ranges_remove(set, &b->range);
    free(b);
}

/* The address on the arena for a device address inside a reservation. */
static frag_addr arena_addr(const struct twin *t, frag_addr addr)
{
    const struct twin_address *b =
        (const struct twin_address *)ranges_upto(&t->reservations, addr);

    return b ? b->arena + (addr - b->range.at) : addr;
}

/* ---- times ---- */

/* Makes the call on one side and adds its duration to *time. A copy also waits
 * for the device, because the modelled time of a copy includes its execution.
 */
static enum frag_err make(const struct twin *t, struct frag_backend *mem,
                          struct frag_relayed *c, frag_time *time)
{
    const frag_time from = mem->ops->now(mem);
    enum frag_err err = frag_relay_pass(mem, c);

    if (err == FRAG_OK && c->call == FRAG_DRIVER_COPY && mem == t->device)
        err = mem->ops->synchronize(mem);
    *time += mem->ops->now(mem) - from;
    return err;
}

static void note(struct twin *t, const struct frag_relayed *c,
                 frag_time modelled, frag_time measured, enum frag_err err)
{
    struct frag_twin_cost *cost =
        &t->costs[frag_call_of_size(c->call, c->size)];

    cost->calls++;
    cost->bytes += c->size;
    cost->modelled += modelled;
    cost->measured += measured;
    t->spent += measured;
    t->modelled += modelled;
    t->refusals += err == FRAG_OOM;
    t->base.peak = t->arena->peak;
}

/* ---- memory that the device clears before it allocates it again ---- */

static frag_time clear_ns(frag_size bytes)
{
    return bytes * FRAG_CLEAR_NS_PER_MIB / FRAG_MIB;
}

/* Subtracts what the device has cleared since the last update. */
static void advance_clearing(struct twin *t)
{
    struct clearing *c = &t->clearing;
    const frag_size done =
        (t->modelled - c->seen) * FRAG_MIB / FRAG_CLEAR_NS_PER_MIB;

    c->dirty -= done < c->dirty ? done : c->dirty;
    c->seen = t->modelled;
}

/* Counts `size` bytes as held. Returns how long the call waits for memory to be
 * cleared, in ns. */
static frag_time acquire_cleared(struct twin *t, frag_size size)
{
    struct clearing *c = &t->clearing;
    frag_size unclean, missing;

    advance_clearing(t);
    unclean = c->held + c->dirty;
    c->held += size;
    if (size + unclean <= t->device->total)
        return 0;
    missing = size + unclean - t->device->total;
    return clear_ns(missing < c->dirty ? missing : c->dirty);
}

static void release_dirty(struct twin *t, frag_size size)
{
    advance_clearing(t);
    t->clearing.held -= size;
    t->clearing.dirty += size;
}

/* ---- calls ---- */

/* Where the addresses of a call that acquires or releases one are kept. */
static struct ranges *set_of(struct twin *t, enum frag_driver_call call)
{
    switch (call) {
    case FRAG_DRIVER_SEGMENT_ALLOC:
    case FRAG_DRIVER_SEGMENT_FREE:
        return &t->segments;
    case FRAG_DRIVER_VA_RESERVE:
    case FRAG_DRIVER_VA_FREE:
        return &t->reservations;
    default:
        return &t->phys;
    }
}

/* Makes the call on the arena first. If the arena refuses, the device is not
 * called; if the device refuses, the arena's part is taken back. */
static enum frag_err arena_first(struct twin *t, struct frag_relayed *on_arena,
                                 struct frag_relayed *c)
{
    const bool takes = c->call == FRAG_DRIVER_SEGMENT_ALLOC ||
                       c->call == FRAG_DRIVER_PHYS_CREATE;
    frag_time modelled = 0, measured = 0;
    enum frag_err err;

    FRAG_TRY(make(t, t->arena, on_arena, &modelled));
    err = make(t, t->device, c, &measured);
    if (err == FRAG_OK && takes)
        modelled += acquire_cleared(t, c->size);
    note(t, c, modelled, measured, err);
    if (err != FRAG_OK && c->call != FRAG_DRIVER_COPY &&
        frag_relay_undo(t->arena, on_arena) != FRAG_OK)
        return FRAG_DEVICE;
    return err;
}

/* Makes the call on the device first. If the device fails, nothing has changed,
 * and the call can be repeated. */
static enum frag_err device_first(struct twin *t, struct frag_relayed *on_arena,
                                  struct frag_relayed *c)
{
    frag_time modelled = 0, measured = 0;
    enum frag_err err = make(t, t->device, c, &measured);

    FRAG_THEN(err, make(t, t->arena, on_arena, &modelled));
    note(t, c, modelled, measured, err);
    return err;
}

static enum frag_err acquire(struct twin *t, struct frag_relayed *c)
{
    struct ranges *set = set_of(t, c->call);
    struct twin_address *b = malloc(sizeof(*b));
    struct frag_relayed on_arena = *c;
    enum frag_err err = b ? arena_first(t, &on_arena, c) : FRAG_NOMEM;

    if (err == FRAG_OK)
        enter(set, b, c->at, on_arena.at, set == &t->phys ? 1 : c->size);
    else
        free(b);
    return err;
}

static enum frag_err release(struct twin *t, struct frag_relayed *c)
{
    struct ranges *set = set_of(t, c->call);
    struct twin_address *b = find(set, c->at);
    struct frag_relayed on_arena = *c;

    if (!b)
        return FRAG_INVALID;
    on_arena.at = b->arena;
    FRAG_TRY(device_first(t, &on_arena, c));
    if (set != &t->reservations)
        release_dirty(t, c->size);
    leave(set, b);
    return FRAG_OK;
}

static enum frag_err serve(struct frag_relay *relay, struct frag_relayed *c)
{
    struct twin *t = (struct twin *)relay;
    struct frag_relayed on_arena = *c;
    const struct twin_address *b;

    switch (c->call) {
    case FRAG_DRIVER_SEGMENT_ALLOC:
    case FRAG_DRIVER_VA_RESERVE:
    case FRAG_DRIVER_PHYS_CREATE:
        return acquire(t, c);
    case FRAG_DRIVER_SEGMENT_FREE:
    case FRAG_DRIVER_VA_FREE:
    case FRAG_DRIVER_PHYS_RELEASE:
        return release(t, c);
    case FRAG_DRIVER_MAP:
        b = find(&t->phys, c->with);
        if (!b)
            return FRAG_INVALID;
        on_arena.at = arena_addr(t, c->at);
        on_arena.with = b->arena;
        return arena_first(t, &on_arena, c);
    case FRAG_DRIVER_UNMAP:
        on_arena.at = arena_addr(t, c->at);
        return device_first(t, &on_arena, c);
    case FRAG_DRIVER_COPY: /* an arena looks at the distance only */
        return arena_first(t, &on_arena, c);
    default:
        return device_first(t, &on_arena, c);
    }
}

/* ---- everything else ---- */

static frag_time now(struct frag_backend *mem)
{
    return twin_of(mem)->spent;
}

static void stream_used(struct frag_backend *mem, frag_stream stream)
{
    struct twin *t = twin_of(mem);

    frag_backend_stream_used(t->arena, stream);
    frag_backend_stream_used(t->device, stream);
}

/* ---- both ends ---- */

static const struct frag_engine_ops twin_engine = {.stream_used = stream_used};

enum frag_err frag_twin_open(struct frag_backend *device,
                             struct frag_backend *arena,
                             struct frag_backend **out)
{
    struct twin *t = calloc(1, sizeof(*t));

    if (!t)
        return FRAG_NOMEM;
    frag_relay_open(&t->relay, NULL, serve);
    t->relay.ops.name = "twin";
    t->relay.ops.now = now;
    t->base = (struct frag_backend){.ops = &t->relay.ops,
                                    .engine = &twin_engine,
                                    .capacity = arena->capacity,
                                    .total = arena->total,
                                    .granularity = device->granularity,
                                    .busy = device->busy};
    t->device = device;
    t->arena = arena;
    *out = &t->base;
    return FRAG_OK;
}

static void forget(struct ranges *set)
{
    struct range *r;

    while ((r = ranges_pop(set)))
        free(r);
}

void frag_twin_close(struct frag_backend *twin)
{
    struct twin *t = twin_of(twin);

    if (!t)
        return;
    forget(&t->segments);
    forget(&t->reservations);
    forget(&t->phys);
    free(t);
}

struct frag_twin_cost frag_twin_cost(const struct frag_backend *twin,
                                     enum frag_driver_call call)
{
    return twin_of(twin)->costs[call];
}

uint64_t frag_twin_refusals(const struct frag_backend *twin)
{
    return twin_of(twin)->refusals;
}
