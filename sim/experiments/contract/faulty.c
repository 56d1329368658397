/* faulty.c - the calls of a backend that watches, limits and fails. */
#include "sim/experiments/contract/faulty.h"

#include <string.h>

/* The result of the next call, if it may fail with any error. */
static enum frag_err faulty_turn(struct faulty *f)
{
    if (f->closing)
        return FRAG_OK;
    f->calls++;
    return f->calls == f->fail_at ? f->error : FRAG_OK;
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

/* Whether the call fails, and with what. A call that takes no memory can only
 * fail with a device error. */
static enum frag_err faulty_before(struct faulty *f,
                                   const struct frag_relayed *c)
{
    const bool takes = c->call == FRAG_DRIVER_SEGMENT_ALLOC ||
                       c->call == FRAG_DRIVER_PHYS_CREATE;

    if (takes || f->error == FRAG_DEVICE)
        FRAG_TRY(faulty_turn(f));
    return takes && c->size > f->limit - f->used ? FRAG_OOM : FRAG_OK;
}

static void faulty_after(struct faulty *f, const struct frag_relayed *c)
{
    switch (c->call) {
    case FRAG_DRIVER_SEGMENT_ALLOC:
    case FRAG_DRIVER_PHYS_CREATE:
        f->base.peak = f->relay.under->peak;
        f->used += c->size;
        if (c->call == FRAG_DRIVER_SEGMENT_ALLOC)
            faulty_hold(f, c->at, c->size, false);
        break;
    case FRAG_DRIVER_SEGMENT_FREE:
        faulty_drop(f, c->at, c->size, false);
        /* fall through */
    case FRAG_DRIVER_PHYS_RELEASE:
        f->used -= c->size;
        break;
    case FRAG_DRIVER_VA_RESERVE:
        f->va += c->size;
        break;
    case FRAG_DRIVER_VA_FREE:
        f->va -= c->size;
        break;
    case FRAG_DRIVER_MAP:
        faulty_hold(f, c->at, c->size, true);
        break;
    case FRAG_DRIVER_UNMAP:
        faulty_drop(f, c->at, c->size, true);
        break;
    case FRAG_DRIVER_SYNCHRONIZE:
        if (f->on_synchronize)
            f->on_synchronize(f->user);
        break;
    default:
        break;
    }
}

static enum frag_err faulty_serve(struct frag_relay *relay,
                                  struct frag_relayed *c)
{
    struct faulty *f = (struct faulty *)relay;

    FRAG_TRY(faulty_before(f, c));
    FRAG_TRY(frag_relay_pass(relay->under, c));
    faulty_after(f, c);
    return FRAG_OK;
}

void faulty_init(struct faulty *f, struct frag_backend *inner)
{
    memset(f, 0, sizeof(*f));
    frag_relay_open(&f->relay, inner, faulty_serve);
    f->relay.ops.name = "faulty";
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
