/* The twin as a backend: each call goes to the arena and to the device, and the
 * two sets of addresses are translated into each other. */
#include "sim/twin.h"

#include <stdlib.h>

#include "sim/ranges.h"

/* Something that both have: a segment, a reservation, a physical allocation
 * (its handle is the start of the range). */
struct both {
    struct range range; /* first; as the device names it */
    uint64_t arena;     /* as the arena does */
};

/* The device's memory as the model has it. */
struct clearing {
    frag_size held, dirty; /* bytes; dirty: given back, not cleared */
    frag_time seen;        /* when dirty was so */
};

struct twin {
    struct frag_backend base;
    struct frag_backend *device, *arena;
    struct ranges segments, reservations, phys;
    struct frag_twin_cost costs[FRAG_DRIVER_CALL_COUNT];
    struct clearing clearing;
    frag_time spent, modelled; /* in all calls */
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
}

/* ---- memory that is cleared before it is given out again ---- */

static frag_time clear_ns(frag_size bytes)
{
    return bytes * FRAG_CLEAR_NS_PER_MIB / FRAG_MIB;
}

/* What the device has cleared since it was last looked at. */
static void go_on_clearing(struct twin *t)
{
    struct clearing *c = &t->clearing;
    const frag_size done =
        (t->modelled - c->seen) * FRAG_MIB / FRAG_CLEAR_NS_PER_MIB;

    c->dirty -= done < c->dirty ? done : c->dirty;
    c->seen = t->modelled;
}

/* How long a call waits that takes so much. */
static frag_time clear_and_take(struct twin *t, frag_size size)
{
    struct clearing *c = &t->clearing;
    frag_size unclean, missing;

    go_on_clearing(t);
    unclean = c->held + c->dirty;
    c->held += size;
    if (size + unclean <= t->device->total)
        return 0;
    missing = size + unclean - t->device->total;
    return clear_ns(missing < c->dirty ? missing : c->dirty);
}

static void give_unclean(struct twin *t, frag_size size)
{
    go_on_clearing(t);
    t->clearing.held -= size;
    t->clearing.dirty += size;
}

/* ---- segments, reservations, physical memory ---- */

/* The calls of the table that give a thing of some size, and that take it back:
 * an address or a handle, both 64 bits. */
typedef enum frag_err taking(struct frag_backend *, frag_size, uint64_t *);
typedef enum frag_err giving(struct frag_backend *, uint64_t, frag_size);

struct calls {
    taking *take;
    giving *give;
};

/* What the arena refuses the device is not asked, and what the device refuses
 * the arena takes back. */
static enum frag_err take(struct twin *t, struct ranges *set,
                          enum frag_driver_call kind, struct calls arena,
                          struct calls device, frag_size size, uint64_t *out)
{
    struct both *b = malloc(sizeof(*b));
    uint64_t on_arena = 0, on_device = 0;
    frag_time modelled, measured;
    enum frag_err err;

    if (!b)
        return FRAG_NOMEM;
    TIMED(err, t->arena, modelled, arena.take(t->arena, size, &on_arena));
    if (err == FRAG_OK) {
        TIMED(err, t->device, measured,
              device.take(t->device, size, &on_device));
        if (err == FRAG_OK && set != &t->reservations)
            modelled += clear_and_take(t, size);
        note(t, kind, size, modelled, measured, err);
        if (err != FRAG_OK && arena.give(t->arena, on_arena, size) != FRAG_OK)
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

/* Where the device fails nothing has changed and the call can be made again. */
static enum frag_err give(struct twin *t, struct ranges *set,
                          enum frag_driver_call kind, giving *arena,
                          giving *device, uint64_t at, frag_size size)
{
    struct both *b = find(set, at);
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
        give_unclean(t, size);
    leave(set, b);
    return FRAG_OK;
}

/* The two calls of the table that go together, of one side. */
#define PAIR(mem, taken, given)                              \
    (struct calls)                                           \
    {                                                        \
        .take = (mem)->ops->taken, .give = (mem)->ops->given \
    }

/* A thing of the table: what it is kept in, its two calls. */
#define THING(set, upper_take, taken, upper_give, given)                    \
    static enum frag_err taken(struct frag_backend *mem, frag_size size,    \
                               uint64_t *out)                               \
    {                                                                       \
        struct twin *t = twin_of(mem);                                      \
                                                                            \
        return take(t, &t->set,                                             \
                    frag_call_of_size(FRAG_DRIVER_##upper_take, size),      \
                    PAIR(t->arena, taken, given),                           \
                    PAIR(t->device, taken, given), size, out);              \
    }                                                                       \
                                                                            \
    static enum frag_err given(struct frag_backend *mem, uint64_t at,       \
                               frag_size size)                              \
    {                                                                       \
        struct twin *t = twin_of(mem);                                      \
                                                                            \
        return give(t, &t->set,                                             \
                    frag_call_of_size(FRAG_DRIVER_##upper_give, size),      \
                    t->arena->ops->given, t->device->ops->given, at, size); \
    }

THING(segments, SEGMENT_ALLOC, segment_alloc, SEGMENT_FREE, segment_free)
THING(reservations, VA_RESERVE, va_reserve, VA_FREE, va_free)
THING(phys, PHYS_CREATE, phys_create, PHYS_RELEASE, phys_release)

/* ---- maps ---- */

static enum frag_err map(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys)
{
    struct twin *t = twin_of(mem);
    const struct both *b = find(&t->phys, phys);
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
