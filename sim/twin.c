#include "sim/twin.h"

#include <stdlib.h>

#include "sim/ranges.h"

/* Something that both have: a segment, a reservation, a physical allocation
 * (its handle is the start of the range). */
struct both {
    struct range range; /* first; as the device names it */
    uint64_t arena;     /* as the arena does */
};

struct twin {
    struct frag_backend base;
    struct frag_backend *device, *arena;
    struct ranges segments, reservations, phys;
    struct frag_twin_cost costs[FRAG_DRIVER_CALL_COUNT];
    frag_time spent;
    uint64_t refusals;
};

static struct twin *twin_of(const struct frag_backend *mem)
{
    return (struct twin *)(uintptr_t)mem;
}

/* The record is made before the calls, while nothing has to be undone. */
static void enter(struct ranges *set, struct both *b, uint64_t device,
                  uint64_t arena, uint64_t size)
{
    *b = (struct both){{.at = device, .size = size}, arena};
    ranges_add(set, &b->range);
}

static struct both *find(const struct ranges *set, uint64_t at)
{
    return (struct both *)ranges_at(set, at);
}

static void leave(struct ranges *set, struct both *b)
{
    ranges_remove(set, &b->range);
    free(b);
}

/* The arena's name of an address inside a reservation. */
static frag_addr arena_addr(const struct twin *t, frag_addr addr)
{
    const struct both *b =
        (const struct both *)ranges_upto(&t->reservations, addr);

    return b ? b->arena + (addr - b->range.at) : addr;
}

/* ---- times ---- */

/* err = a call on one of the two; its time goes to `time`. */
#define TIMED(err, mem, time, call)             \
    do {                                        \
        frag_time from_ = (mem)->ops->now(mem); \
                                                \
        err = (mem)->ops->call;                 \
        time = (mem)->ops->now(mem) - from_;    \
    } while (0)

static void note(struct twin *t, enum frag_driver_call call, frag_time modelled,
                 frag_time measured, enum frag_err err)
{
    t->costs[call].calls++;
    t->costs[call].modelled += modelled;
    t->costs[call].measured += measured;
    t->spent += measured;
    t->refusals += err == FRAG_OOM;
}

/* A call that takes something: what the arena refuses the device is not asked,
 * and what the device refuses the arena takes back. */
#define TAKE(t, err, kind, arena_call, device_call, undo_call)           \
    do {                                                                 \
        frag_time modelled_, measured_;                                  \
                                                                         \
        TIMED(err, (t)->arena, modelled_, arena_call);                   \
        if (err == FRAG_OK) {                                            \
            TIMED(err, (t)->device, measured_, device_call);             \
            note(t, kind, modelled_, measured_, err);                    \
            if (err != FRAG_OK && (t)->arena->ops->undo_call != FRAG_OK) \
                err = FRAG_DEVICE;                                       \
        }                                                                \
    } while (0)

/* A call that gives something back, or waits: where the device fails, it can be
 * made again. */
#define GIVE(t, err, kind, arena_call, device_call)        \
    do {                                                   \
        frag_time modelled_ = 0, measured_;                \
                                                           \
        TIMED(err, (t)->device, measured_, device_call);   \
        if (err == FRAG_OK)                                \
            TIMED(err, (t)->arena, modelled_, arena_call); \
        note(t, kind, modelled_, measured_, err);          \
    } while (0)

/* ---- segments ---- */

static enum frag_err segment_alloc(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr)
{
    struct twin *t = twin_of(mem);
    struct both *b = malloc(sizeof(*b));
    frag_addr arena, device;
    enum frag_err err;

    if (!b)
        return FRAG_NOMEM;
    TAKE(t, err, FRAG_DRIVER_SEGMENT_ALLOC,
         segment_alloc(t->arena, size, &arena),
         segment_alloc(t->device, size, &device),
         segment_free(t->arena, arena, size));
    if (err != FRAG_OK) {
        free(b);
        return err;
    }
    enter(&t->segments, b, device, arena, size);
    *addr = device;
    return FRAG_OK;
}

static enum frag_err segment_free(struct frag_backend *mem, frag_addr addr,
                                  frag_size size)
{
    struct twin *t = twin_of(mem);
    struct both *b = find(&t->segments, addr);
    enum frag_err err;

    if (!b)
        return FRAG_INVALID;
    GIVE(t, err, FRAG_DRIVER_SEGMENT_FREE,
         segment_free(t->arena, b->arena, size),
         segment_free(t->device, addr, size));
    if (err == FRAG_OK)
        leave(&t->segments, b);
    return err;
}

/* ---- virtual memory ---- */

static enum frag_err va_reserve(struct frag_backend *mem, frag_size size,
                                frag_addr *addr)
{
    struct twin *t = twin_of(mem);
    struct both *b = malloc(sizeof(*b));
    frag_addr arena, device;
    enum frag_err err;

    if (!b)
        return FRAG_NOMEM;
    TAKE(t, err, FRAG_DRIVER_VA_RESERVE, va_reserve(t->arena, size, &arena),
         va_reserve(t->device, size, &device), va_free(t->arena, arena, size));
    if (err != FRAG_OK) {
        free(b);
        return err;
    }
    enter(&t->reservations, b, device, arena, size);
    *addr = device;
    return FRAG_OK;
}

static enum frag_err va_free(struct frag_backend *mem, frag_addr addr,
                             frag_size size)
{
    struct twin *t = twin_of(mem);
    struct both *b = find(&t->reservations, addr);
    enum frag_err err;

    if (!b)
        return FRAG_INVALID;
    GIVE(t, err, FRAG_DRIVER_VA_FREE, va_free(t->arena, b->arena, size),
         va_free(t->device, addr, size));
    if (err == FRAG_OK)
        leave(&t->reservations, b);
    return err;
}

static enum frag_err phys_create(struct frag_backend *mem, frag_size size,
                                 frag_phys *phys)
{
    struct twin *t = twin_of(mem);
    struct both *b = malloc(sizeof(*b));
    frag_phys arena, device;
    enum frag_err err;

    if (!b)
        return FRAG_NOMEM;
    TAKE(t, err, FRAG_DRIVER_PHYS_CREATE, phys_create(t->arena, size, &arena),
         phys_create(t->device, size, &device),
         phys_release(t->arena, arena, size));
    if (err != FRAG_OK) {
        free(b);
        return err;
    }
    enter(&t->phys, b, device, arena, 1);
    *phys = device;
    return FRAG_OK;
}

static enum frag_err phys_release(struct frag_backend *mem, frag_phys phys,
                                  frag_size size)
{
    struct twin *t = twin_of(mem);
    struct both *b = find(&t->phys, phys);
    enum frag_err err;

    if (!b)
        return FRAG_INVALID;
    GIVE(t, err, FRAG_DRIVER_PHYS_RELEASE,
         phys_release(t->arena, b->arena, size),
         phys_release(t->device, phys, size));
    if (err == FRAG_OK)
        leave(&t->phys, b);
    return err;
}

static enum frag_err map(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys)
{
    struct twin *t = twin_of(mem);
    const struct both *b = find(&t->phys, phys);
    const frag_addr arena = arena_addr(t, addr);
    enum frag_err err;

    if (!b)
        return FRAG_INVALID;
    TAKE(t, err, FRAG_DRIVER_MAP, map(t->arena, arena, size, b->arena),
         map(t->device, addr, size, phys), unmap(t->arena, arena, size));
    return err;
}

static enum frag_err unmap(struct frag_backend *mem, frag_addr addr,
                           frag_size size)
{
    struct twin *t = twin_of(mem);
    const frag_addr arena = arena_addr(t, addr);
    enum frag_err err;

    GIVE(t, err, FRAG_DRIVER_UNMAP, unmap(t->arena, arena, size),
         unmap(t->device, addr, size));
    return err;
}

/* ---- everything else ---- */

/* The model's copy is over when the device is done. */
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

    TIMED(err, t->arena, modelled, copy(t->arena, dst, src, size, stream));
    FRAG_TRY(err);
    before = t->device->ops->now(t->device);
    err = copy_and_wait(t->device, dst, src, size, stream);
    note(t, FRAG_DRIVER_COPY, modelled, t->device->ops->now(t->device) - before,
         err);
    return err;
}

static enum frag_err synchronize(struct frag_backend *mem)
{
    struct twin *t = twin_of(mem);
    enum frag_err err;

    GIVE(t, err, FRAG_DRIVER_SYNCHRONIZE, synchronize(t->arena),
         synchronize(t->device));
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
