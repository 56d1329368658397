/* relay.c - turns each call of a backend into a struct frag_relayed and back.
 */
#include "policies/device/relay.h"

static enum frag_err serve(struct frag_backend *mem, struct frag_relayed c)
{
    struct frag_relay *r = (struct frag_relay *)mem;

    return r->serve(r, &c);
}

/* A call that answers with an address or a handle; both have 64 bits. */
#define ACQUIRE(name, upper)                                                 \
    static enum frag_err name(struct frag_backend *mem, frag_size size,      \
                              uint64_t *at)                                  \
    {                                                                        \
        struct frag_relay *r = (struct frag_relay *)mem;                     \
        struct frag_relayed c = {.call = FRAG_DRIVER_##upper, .size = size}; \
                                                                             \
        FRAG_TRY(r->serve(r, &c));                                           \
        *at = c.at;                                                          \
        return FRAG_OK;                                                      \
    }
#define RELEASE(name, upper)                                                 \
    static enum frag_err name(struct frag_backend *mem, uint64_t at,         \
                              frag_size size)                                \
    {                                                                        \
        return serve(mem, (struct frag_relayed){.call = FRAG_DRIVER_##upper, \
                                                .at = at,                    \
                                                .size = size});              \
    }

ACQUIRE(segment_alloc, SEGMENT_ALLOC)
RELEASE(segment_free, SEGMENT_FREE)
ACQUIRE(va_reserve, VA_RESERVE)
RELEASE(va_free, VA_FREE)
ACQUIRE(phys_create, PHYS_CREATE)
RELEASE(phys_release, PHYS_RELEASE)
RELEASE(unmap, UNMAP)

static enum frag_err map(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys)
{
    return serve(mem,
                 (struct frag_relayed){FRAG_DRIVER_MAP, addr, size, phys, 0});
}

static enum frag_err copy(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream)
{
    return serve(
        mem, (struct frag_relayed){FRAG_DRIVER_COPY, dst, size, src, stream});
}

static enum frag_err synchronize(struct frag_backend *mem)
{
    return serve(mem, (struct frag_relayed){.call = FRAG_DRIVER_SYNCHRONIZE});
}

static frag_time now(struct frag_backend *mem)
{
    struct frag_backend *under = ((struct frag_relay *)mem)->under;

    return under->ops->now ? under->ops->now(under) : 0;
}

void frag_relay_open(struct frag_relay *r, struct frag_backend *under,
                     enum frag_err (*serve_call)(struct frag_relay *r,
                                                 struct frag_relayed *c))
{
    const struct frag_backend_ops *has = under ? under->ops : NULL;

    *r = (struct frag_relay){.under = under, .serve = serve_call};
    if (under)
        r->base = *under;
    r->base.ops = &r->ops;
    r->base.engine = NULL;
    r->ops =
        (struct frag_backend_ops){.name = has ? has->name : "", .now = now};
#define OP(name) r->ops.name = !has || has->name ? name : NULL
    OP(segment_alloc);
    OP(segment_free);
    OP(va_reserve);
    OP(va_free);
    OP(phys_create);
    OP(phys_release);
    OP(map);
    OP(unmap);
    OP(copy);
    OP(synchronize);
#undef OP
}

enum frag_err frag_relay_pass(struct frag_backend *mem, struct frag_relayed *c)
{
    const struct frag_backend_ops *ops = mem->ops;

    switch (c->call) {
    case FRAG_DRIVER_SEGMENT_ALLOC:
        return ops->segment_alloc(mem, c->size, &c->at);
    case FRAG_DRIVER_SEGMENT_FREE:
        return ops->segment_free(mem, c->at, c->size);
    case FRAG_DRIVER_VA_RESERVE:
        return ops->va_reserve(mem, c->size, &c->at);
    case FRAG_DRIVER_VA_FREE:
        return ops->va_free(mem, c->at, c->size);
    case FRAG_DRIVER_PHYS_CREATE:
        return ops->phys_create(mem, c->size, &c->at);
    case FRAG_DRIVER_PHYS_RELEASE:
        return ops->phys_release(mem, c->at, c->size);
    case FRAG_DRIVER_MAP:
        return ops->map(mem, c->at, c->size, c->with);
    case FRAG_DRIVER_UNMAP:
        return ops->unmap(mem, c->at, c->size);
    case FRAG_DRIVER_COPY:
        return ops->copy(mem, c->at, c->with, c->size, c->stream);
    default:
        return ops->synchronize(mem);
    }
}

enum frag_err frag_relay_undo(struct frag_backend *mem,
                              const struct frag_relayed *c)
{
    /* The list of calls has it behind the call. */
    struct frag_relayed back = {
        .call = c->call + 1, .at = c->at, .size = c->size};

    return frag_relay_pass(mem, &back);
}
