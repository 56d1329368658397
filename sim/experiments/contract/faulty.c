/* faulty.c - the calls of a backend that watches, limits and fails. */
#include "sim/experiments/contract/faulty.h"

#include <string.h>

static struct faulty *faulty_of(struct frag_backend *mem)
{
    return (struct faulty *)mem;
}

/* The result of the next call, if it may fail with any error. */
static enum frag_err faulty_turn(struct faulty *f)
{
    if (f->closing)
        return FRAG_OK;
    f->calls++;
    return f->calls == f->fail_at ? f->error : FRAG_OK;
}

/* The same for a call that can only fail with a device error. */
static enum frag_err faulty_device_turn(struct faulty *f)
{
    return f->error == FRAG_DEVICE ? faulty_turn(f) : FRAG_OK;
}

static void faulty_hold(struct faulty *f, frag_addr addr, frag_size size,
                        bool mapped)
{
    if (f->count == FAULTY_RANGES) {
        f->misuse = "more ranges held than the test can watch";
        return;
    }
    f->held[f->count++] =
        (struct faulty_memory){addr, size, f->births++, mapped};
}

/* Removes the ranges of [addr, addr + size) from the list; they must be whole
 * ranges. */
static void faulty_drop(struct faulty *f, frag_addr addr, frag_size size,
                        bool mapped)
{
    frag_size dropped = 0;

    for (size_t i = 0; i < f->count;) {
        const struct faulty_memory h = f->held[i];

        if (h.mapped != mapped || h.addr < addr ||
            h.addr + h.size > addr + size) {
            i++;
            continue;
        }
        dropped += h.size;
        f->held[i] = f->held[--f->count];
    }
    if (dropped != size)
        f->misuse = "returned what it did not hold";
}

/* The same for a call that takes memory. */
static enum frag_err faulty_taking_turn(struct faulty *f, frag_size size)
{
    FRAG_TRY(faulty_turn(f));
    return size > f->limit - f->used ? FRAG_OOM : FRAG_OK;
}

static void faulty_took(struct faulty *f, frag_size size)
{
    f->base.peak = f->inner->peak;
    f->used += size;
}

/* Define the calls that acquire or release an address or a handle; both are 64
 * bits. `turn` decides whether a call fails; a release can only fail with a
 * device error. `...` follows a call that has succeeded. */
#define FAULTY_ACQUIRE(call, turn, ...)                              \
    static enum frag_err faulty_##call(struct frag_backend *mem,     \
                                       frag_size size, uint64_t *at) \
    {                                                                \
        struct faulty *f = faulty_of(mem);                           \
                                                                     \
        FRAG_TRY(turn);                                              \
        FRAG_TRY(f->inner->ops->call(f->inner, size, at));           \
        __VA_ARGS__;                                                 \
        return FRAG_OK;                                              \
    }
#define FAULTY_RELEASE(call, ...)                                             \
    static enum frag_err faulty_##call(struct frag_backend *mem, uint64_t at, \
                                       frag_size size)                        \
    {                                                                         \
        struct faulty *f = faulty_of(mem);                                    \
                                                                              \
        FRAG_TRY(faulty_device_turn(f));                                      \
        FRAG_TRY(f->inner->ops->call(f->inner, at, size));                    \
        __VA_ARGS__;                                                          \
        return FRAG_OK;                                                       \
    }

FAULTY_ACQUIRE(segment_alloc, faulty_taking_turn(f, size), faulty_took(f, size),
               faulty_hold(f, *at, size, false))
FAULTY_RELEASE(segment_free, f->used -= size, faulty_drop(f, at, size, false))
FAULTY_ACQUIRE(va_reserve, faulty_device_turn(f), f->va += size)
FAULTY_RELEASE(va_free, f->va -= size)
FAULTY_ACQUIRE(phys_create, faulty_taking_turn(f, size), faulty_took(f, size))
FAULTY_RELEASE(phys_release, f->used -= size)
FAULTY_RELEASE(unmap, faulty_drop(f, at, size, true))

static enum frag_err faulty_map(struct frag_backend *mem, frag_addr addr,
                                frag_size size, frag_phys phys)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_device_turn(f));
    FRAG_TRY(f->inner->ops->map(f->inner, addr, size, phys));
    faulty_hold(f, addr, size, true);
    return FRAG_OK;
}

enum frag_err faulty_copy(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_device_turn(f));
    return f->inner->ops->copy(f->inner, dst, src, size, stream);
}

static enum frag_err faulty_synchronize(struct frag_backend *mem)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_device_turn(f));
    FRAG_TRY(f->inner->ops->synchronize(f->inner));
    if (f->on_synchronize)
        f->on_synchronize(f->user);
    return FRAG_OK;
}

static frag_time faulty_now(struct frag_backend *mem)
{
    struct faulty *f = faulty_of(mem);

    return f->inner->ops->now(f->inner);
}

const struct frag_backend_ops faulty_ops = {
    .name = "faulty",
    .segment_alloc = faulty_segment_alloc,
    .segment_free = faulty_segment_free,
    .va_reserve = faulty_va_reserve,
    .va_free = faulty_va_free,
    .phys_create = faulty_phys_create,
    .phys_release = faulty_phys_release,
    .map = faulty_map,
    .unmap = faulty_unmap,
    .copy = faulty_copy,
    .synchronize = faulty_synchronize,
    .now = faulty_now,
};

void faulty_init(struct faulty *f, struct frag_backend *inner)
{
    memset(f, 0, sizeof(*f));
    f->base = *inner;
    f->base.ops = &faulty_ops;
    f->inner = inner;
    f->limit = FRAG_UNLIMITED;
    f->error = FRAG_OOM;
}

bool faulty_holds(const struct faulty *f, frag_addr addr, frag_size size)
{
    const frag_addr end = addr + size;

    for (size_t i = 0; i < f->count; i++) {
        const struct faulty_memory *h = &f->held[i];

        if (addr < h->addr || addr >= h->addr + h->size)
            continue;
        if (end <= h->addr + h->size)
            return true;
        return h->mapped &&
               faulty_holds(f, h->addr + h->size, end - (h->addr + h->size));
    }
    return false;
}
