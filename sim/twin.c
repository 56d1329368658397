/* twin.c - the twin as a backend: makes each call on the arena and on the
 * device, and translates the device's addresses to the arena's. */
#include "sim/twin.h"

#include <stdlib.h>

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
    struct frag_backend base;
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

/* Sets err to the result of a call on one side, and `time` to its duration. */
#define TIMED(err, mem, time, call)             \
    do {                                        \
        frag_time from_ = (mem)->ops->now(mem); \
                                                \
        err = call;                             \
        time = (mem)->ops->now(mem) - from_;    \
    } while (0)

static void note(struct twin *t, enum frag_driver_call call, frag_size size,
                 frag_time modelled, frag_time measured, enum frag_err err)
{
    t->costs[call].calls++;
    t->costs[call].bytes += size;
    t->costs[call].modelled += modelled;
    t->costs[call].measured += measured;
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

/* ---- segments, reservations, physical memory ---- */

/* The calls of the table that acquire an address or a handle (both are 64 bits)
 * and the calls that release it. */
typedef enum frag_err acquire_fn(struct frag_backend *, frag_size, uint64_t *);
typedef enum frag_err release_fn(struct frag_backend *, uint64_t, frag_size);

struct calls {
    acquire_fn *acquire;
    release_fn *release;
};

/* Acquires on the arena first. If the arena refuses, the device is not called;
 * if the device refuses, the arena's part is released. */
static enum frag_err acquire(struct twin *t, struct ranges *set,
                             enum frag_driver_call kind, struct calls arena,
                             struct calls device, frag_size size, uint64_t *out)
{
    struct twin_address *b = malloc(sizeof(*b));
    uint64_t on_arena = 0, on_device = 0;
    frag_time modelled, measured;
    enum frag_err err;

    if (!b)
        return FRAG_NOMEM;
    TIMED(err, t->arena, modelled, arena.acquire(t->arena, size, &on_arena));
    if (err == FRAG_OK) {
        TIMED(err, t->device, measured,
              device.acquire(t->device, size, &on_device));
        if (err == FRAG_OK && set != &t->reservations)
            modelled += acquire_cleared(t, size);
        note(t, kind, size, modelled, measured, err);
        if (err != FRAG_OK &&
            arena.release(t->arena, on_arena, size) != FRAG_OK)
            err = FRAG_DEVICE;
    }
    if (err != FRAG_OK) {
        free(b);
        return err;
    }
    enter(set, b, on_device, on_arena, set == &t->phys ? 1 : size);
    *out = on_device;
    return FRAG_OK;
}

/* Releases on the device first. If the device fails, nothing has changed, and
 * the call can be repeated. */
static enum frag_err release(struct twin *t, struct ranges *set,
                             enum frag_driver_call kind, release_fn *arena,
                             release_fn *device, uint64_t at, frag_size size)
{
    struct twin_address *b = find(set, at);
    frag_time modelled = 0, measured;
    enum frag_err err;

    if (!b)
        return FRAG_INVALID;
    TIMED(err, t->device, measured, device(t->device, at, size));
    if (err == FRAG_OK)
        TIMED(err, t->arena, modelled, arena(t->arena, b->arena, size));
    note(t, kind, size, modelled, measured, err);
    if (err != FRAG_OK)
        return err;
    if (set != &t->reservations)
        release_dirty(t, size);
    leave(set, b);
    return FRAG_OK;
}

/* The acquiring and the releasing call of one side. */
#define PAIR(mem, acquire_call, release_call) \
    (struct calls)                            \
    {                                         \
        .acquire = (mem)->ops->acquire_call,  \
        .release = (mem)->ops->release_call   \
    }

/* Defines the two calls of the twin for one set: segments, reservations or
 * physical memory. */
#define DEFINE_PAIR(set, upper_acquire, acquire_call, upper_release,          \
                    release_call)                                             \
    static enum frag_err acquire_call(struct frag_backend *mem,               \
                                      frag_size size, uint64_t *out)          \
    {                                                                         \
        struct twin *t = twin_of(mem);                                        \
                                                                              \
        return acquire(                                                       \
            t, &t->set, frag_call_of_size(FRAG_DRIVER_##upper_acquire, size), \
            PAIR(t->arena, acquire_call, release_call),                       \
            PAIR(t->device, acquire_call, release_call), size, out);          \
    }                                                                         \
                                                                              \
    static enum frag_err release_call(struct frag_backend *mem, uint64_t at,  \
                                      frag_size size)                         \
    {                                                                         \
        struct twin *t = twin_of(mem);                                        \
                                                                              \
        return release(t, &t->set,                                            \
                       frag_call_of_size(FRAG_DRIVER_##upper_release, size),  \
                       t->arena->ops->release_call,                           \
                       t->device->ops->release_call, at, size);               \
    }

DEFINE_PAIR(segments, SEGMENT_ALLOC, segment_alloc, SEGMENT_FREE, segment_free)
DEFINE_PAIR(reservations, VA_RESERVE, va_reserve, VA_FREE, va_free)
DEFINE_PAIR(phys, PHYS_CREATE, phys_create, PHYS_RELEASE, phys_release)

/* ---- maps ---- */

static enum frag_err map(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys)
{
    struct twin *t = twin_of(mem);
    const struct twin_address *b = find(&t->phys, phys);
    const frag_addr at = arena_addr(t, addr);
    frag_time modelled, measured;
    enum frag_err err;

    if (!b)
        return FRAG_INVALID;
    TIMED(err, t->arena, modelled,
          t->arena->ops->map(t->arena, at, size, b->arena));
    FRAG_TRY(err);
    TIMED(err, t->device, measured,
          t->device->ops->map(t->device, addr, size, phys));
    note(t, FRAG_DRIVER_MAP, size, modelled, measured, err);
    if (err != FRAG_OK && t->arena->ops->unmap(t->arena, at, size) != FRAG_OK)
        return FRAG_DEVICE;
    return err;
}

static enum frag_err unmap(struct frag_backend *mem, frag_addr addr,
                           frag_size size)
{
    struct twin *t = twin_of(mem);
    frag_time modelled = 0, measured;
    enum frag_err err;

    TIMED(err, t->device, measured,
          t->device->ops->unmap(t->device, addr, size));
    if (err == FRAG_OK)
        TIMED(err, t->arena, modelled,
              t->arena->ops->unmap(t->arena, arena_addr(t, addr), size));
    note(t, FRAG_DRIVER_UNMAP, size, modelled, measured, err);
    return err;
}

/* ---- everything else ---- */

/* Copies and waits for the device, because the modelled time of a copy includes
 * its execution. */
static enum frag_err copy_and_wait(struct frag_backend *mem, frag_addr dst,
                                   frag_addr src, frag_size size,
                                   frag_stream stream)
{
    FRAG_TRY(mem->ops->copy(mem, dst, src, size, stream));
    return mem->ops->synchronize(mem);
}

static enum frag_err copy(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream)
{
    struct twin *t = twin_of(mem);
    frag_time modelled, before;
    enum frag_err err;

    /* The device's addresses: an arena looks at their distance only. */
    TIMED(err, t->arena, modelled,
          t->arena->ops->copy(t->arena, dst, src, size, stream));
    FRAG_TRY(err);
    before = t->device->ops->now(t->device);
    err = copy_and_wait(t->device, dst, src, size, stream);
    note(t, FRAG_DRIVER_COPY, size, modelled,
         t->device->ops->now(t->device) - before, err);
    return err;
}

static enum frag_err synchronize(struct frag_backend *mem)
{
    struct twin *t = twin_of(mem);
    frag_time modelled = 0, measured;
    enum frag_err err;

    TIMED(err, t->device, measured, t->device->ops->synchronize(t->device));
    if (err == FRAG_OK)
        TIMED(err, t->arena, modelled, t->arena->ops->synchronize(t->arena));
    note(t, FRAG_DRIVER_SYNCHRONIZE, 0, modelled, measured, err);
    return err;
}

static frag_time now(struct frag_backend *mem)
{
    return twin_of(mem)->spent;
}

static void stream_used(struct frag_backend *mem, frag_stream stream)
{
    struct twin *t = twin_of(mem);

    if (t->arena->ops->stream_used)
        t->arena->ops->stream_used(t->arena, stream);
    if (t->device->ops->stream_used)
        t->device->ops->stream_used(t->device, stream);
}

/* ---- both ends ---- */

static const struct frag_backend_ops twin_ops = {
    .name = "twin",
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

enum frag_err frag_twin_open(struct frag_backend *device,
                             struct frag_backend *arena,
                             struct frag_backend **out)
{
    struct twin *t = calloc(1, sizeof(*t));

    if (!t)
        return FRAG_NOMEM;
    t->base = (struct frag_backend){.ops = &twin_ops,
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
