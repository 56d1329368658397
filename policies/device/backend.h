/* backend.h - the memory under a policy, simulated or real.
 *
 * A policy sees device memory only through this table. sim/arena/arena.c fills
 * it with arithmetic, real/ with driver calls; the policy cannot tell which.
 * Names follow the CUDA driver API (cuda.h, "Virtual Memory Management").
 *
 * Sizes in bytes, times in ns. On any error the out parameters are untouched
 * and the memory is as it was. Virtual-memory sizes and addresses are multiples
 * of `granularity`; where one is not, the answer is FRAG_INVALID.
 */
#ifndef FRAG_POLICIES_DEVICE_BACKEND_H
#define FRAG_POLICIES_DEVICE_BACKEND_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

typedef uint64_t frag_phys; /* a physical allocation; 0 is none */

struct frag_backend;

struct frag_backend_ops {
    const char *name; /* "arena", "cuda" */

    /* Segments: address and memory together, whole or not at all, as
     * cudaMalloc and cudaFree. */
    enum frag_err (*segment_alloc)(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr); /* OOM, DEVICE, NOMEM */
    enum frag_err (*segment_free)(struct frag_backend *mem, frag_addr addr,
                                  frag_size size);

    /* Virtual memory: addresses and memory apart. All six or none (NULL). map
     * also grants access; a phys may be mapped in several places; unmap takes
     * whole maps, one or several in a row, never part of one. The size of a
     * phys is given again to release. */
    enum frag_err (*va_reserve)(struct frag_backend *mem, frag_size size,
                                frag_addr *addr);
    enum frag_err (*va_free)(struct frag_backend *mem, frag_addr addr,
                             frag_size size);
    enum frag_err (*phys_create)(struct frag_backend *mem, frag_size size,
                                 frag_phys *phys); /* OOM, DEVICE, NOMEM */
    enum frag_err (*phys_release)(struct frag_backend *mem, frag_phys phys,
                                  frag_size size);
    enum frag_err (*map)(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys);
    enum frag_err (*unmap)(struct frag_backend *mem, frag_addr addr,
                           frag_size size);

    /* Device-to-device copy, queued on stream; the ranges are disjoint. */
    enum frag_err (*copy)(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream);

    /* Waits for all work queued on the device. Before it returns, frees that
     * only waited for that work are completed: the caller of the policy calls
     * its free() for each of them from inside this call. */
    enum frag_err (*synchronize)(struct frag_backend *mem);

    frag_time (*now)(struct frag_backend *mem); /* never runs backwards */

    /* Told by the caller of the policy before the first request on a stream
     * other than index 0: the client has made it. NULL if that is no news. */
    void (*stream_used)(struct frag_backend *mem, frag_stream stream);

    /* Before any other call: memory is held there already, as a segment or as
     * granules mapped in a reservation of just that range; for adopt. NULL
     * where that cannot be arranged. INVALID if it is held or no address of
     * the device, OOM, NOMEM. */
    enum frag_err (*hold)(struct frag_backend *mem, frag_addr addr,
                          frag_size size, bool expandable);
};

/* First member of every backend. */
struct frag_backend {
    const struct frag_backend_ops *ops;
    frag_size capacity;    /* bytes the device can give; FRAG_UNLIMITED */
    frag_size total;       /* bytes of the device as it reports them
                              (cudaDeviceProp.totalGlobalMem) */
    frag_size granularity; /* unit of va_reserve, phys_create and map */
    bool busy; /* a program may queue work on live blocks at any time: their
                  memory has to stay mapped during a request too */
    unsigned asked; /* FRAG_ASKED_* */
};

/* What a policy decides by the value of. Elsewhere it learns of the capacity by
 * refusals alone, so that a run says how it would go on any device that refuses
 * the same requests. */
enum frag_asked {
    FRAG_ASKED_CAPACITY = 1 << 0,
    FRAG_ASKED_TOTAL = 1 << 1,
};

/* How a policy reads the two. */
static inline frag_size frag_backend_capacity(struct frag_backend *mem)
{
    mem->asked |= FRAG_ASKED_CAPACITY;
    return mem->capacity;
}

static inline frag_size frag_backend_total(struct frag_backend *mem)
{
    mem->asked |= FRAG_ASKED_TOTAL;
    return mem->total;
}

FRAG_END_DECLS

#endif
