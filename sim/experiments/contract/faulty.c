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

static enum frag_err faulty_segment_alloc(struct frag_backend *mem,
                                          frag_size size, frag_addr *addr)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_turn(f));
    if (size > f->limit - f->used)
        return FRAG_OOM;
    FRAG_TRY(f->inner->ops->segment_alloc(f->inner, size, addr));
    f->base.peak = f->inner->peak;
    f->used += size;
    faulty_hold(f, *addr, size, false);
    return FRAG_OK;
}

static enum frag_err faulty_segment_free(struct frag_backend *mem,
                                         frag_addr addr, frag_size size)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_device_turn(f));
    FRAG_TRY(f->inner->ops->segment_free(f->inner, addr, size));
    f->used -= size;
    faulty_drop(f, addr, size, false);
    return FRAG_OK;
}

static enum frag_err faulty_va_reserve(struct frag_backend *mem, frag_size size,
                                       frag_addr *addr)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_device_turn(f));
    FRAG_TRY(f->inner->ops->va_reserve(f->inner, size, addr));
    f->va += size;
    return FRAG_OK;
}

static enum frag_err faulty_va_free(struct frag_backend *mem, frag_addr addr,
                                    frag_size size)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_device_turn(f));
    FRAG_TRY(f->inner->ops->va_free(f->inner, addr, size));
    f->va -= size;
    return FRAG_OK;
}

static enum frag_err faulty_phys_create(struct frag_backend *mem,
                                        frag_size size, frag_phys *phys)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_turn(f));
    if (size > f->limit - f->used)
        return FRAG_OOM;
    FRAG_TRY(f->inner->ops->phys_create(f->inner, size, phys));
    f->base.peak = f->inner->peak;
    f->used += size;
    return FRAG_OK;
}

static enum frag_err faulty_phys_release(struct frag_backend *mem,
                                         frag_phys phys, frag_size size)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_device_turn(f));
    FRAG_TRY(f->inner->ops->phys_release(f->inner, phys, size));
    f->used -= size;
    return FRAG_OK;
}

static enum frag_err faulty_map(struct frag_backend *mem, frag_addr addr,
                                frag_size size, frag_phys phys)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_device_turn(f));
    FRAG_TRY(f->inner->ops->map(f->inner, addr, size, phys));
    faulty_hold(f, addr, size, true);
    return FRAG_OK;
}

static enum frag_err faulty_unmap(struct frag_backend *mem, frag_addr addr,
                                  frag_size size)
{
    struct faulty *f = faulty_of(mem);

    FRAG_TRY(faulty_device_turn(f));
    FRAG_TRY(f->inner->ops->unmap(f->inner, addr, size));
    faulty_drop(f, addr, size, true);
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
