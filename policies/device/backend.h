/* backend.h - the device memory under a policy, simulated or real.
 *
 * A policy reaches device memory only through this table of functions.
 * sim/arena/arena.c implements it with arithmetic, real/ with calls of the CUDA
 * driver; the policy cannot tell which. Names follow the CUDA driver API
 * (cuda.h, "Virtual Memory Management").
 *
 * Sizes are in bytes, times in ns. Every function returns FRAG_OK or an error.
 * On any error the out parameters are untouched and the memory is as it was.
 * Sizes and addresses of virtual memory calls are multiples of `granularity`;
 * a call with one that is not returns INVALID.
 */
#ifndef FRAG_POLICIES_DEVICE_BACKEND_H
#define FRAG_POLICIES_DEVICE_BACKEND_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

/* Bytes that a full device reports as free although the driver keeps them. Two
 * H200 (driver 580.159.04, paper/pages/live.md) refuse 2 MiB and report this
 * much as free; errors of 24 GB GPUs in public code state the same 3.12 MiB. A
 * capacity excludes these bytes. */
#define FRAG_DRIVER_KEEPS ((frag_size)3276800)

/* What can be allocated of a device that reports so many bytes as free. */
static inline frag_size frag_device_room(frag_size device_free)
{
    return device_free > FRAG_DRIVER_KEEPS ? device_free - FRAG_DRIVER_KEEPS
                                           : 0;
}

typedef uint64_t frag_phys; /* handle of physical memory; 0: none */

struct frag_backend;

/* The declaration passed to frag_engine_ops.hold. */
enum frag_holding {
    FRAG_HOLD_SEGMENT,     /* an ordinary segment */
    FRAG_HOLD_RESERVATION, /* reserved addresses, nothing of them mapped */
    FRAG_HOLD_MAPS,        /* mapped granules of a reservation. Their handles
                              are released: unmap frees the memory */
};

struct frag_backend_ops {
    const char *name; /* "arena", "cuda" */

    /* Segments: an address range together with its memory, as cudaMalloc and
     * cudaFree. A segment is freed as a whole, with the address and size of its
     * allocation. segment_alloc fails with OOM, DEVICE or NOMEM. */
    enum frag_err (*segment_alloc)(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr);
    enum frag_err (*segment_free)(struct frag_backend *mem, frag_addr addr,
                                  frag_size size);

    /* Virtual memory: address ranges and physical memory apart. A backend has
     * all six functions or none (all NULL). phys_create fails with OOM, DEVICE
     * or NOMEM. phys_release receives the same size as phys_create. map also
     * sets read and write access; one handle may be mapped at several
     * addresses. unmap covers one whole map, or several adjacent ones, never
     * part of a map. */
    enum frag_err (*va_reserve)(struct frag_backend *mem, frag_size size,
                                frag_addr *addr);
    enum frag_err (*va_free)(struct frag_backend *mem, frag_addr addr,
                             frag_size size);
    enum frag_err (*phys_create)(struct frag_backend *mem, frag_size size,
                                 frag_phys *phys);
    enum frag_err (*phys_release)(struct frag_backend *mem, frag_phys phys,
                                  frag_size size);
    enum frag_err (*map)(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys);
    enum frag_err (*unmap)(struct frag_backend *mem, frag_addr addr,
                           frag_size size);

    /* Queues a copy on a stream, device to device. The two ranges must not
     * overlap. */
    enum frag_err (*copy)(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream);

    /* Waits until all work that is queued on the device is complete. Frees that
     * waited only for this work are completed before it returns: during this
     * call, the caller of the policy calls the policy's free() for each of
     * them. A policy must expect these calls. */
    enum frag_err (*synchronize)(struct frag_backend *mem);

    frag_time (*now)(struct frag_backend *mem); /* ns; never runs backwards */
};

/* Calls that the caller of a policy makes, and no policy. Each may be NULL. */
struct frag_engine_ops {
    /* Made before the first request on each stream except index 0, to report
     * that the client has created the stream. */
    void (*stream_used)(struct frag_backend *mem, frag_stream stream);

    /* Declares, before any other call, that this range is already in use.
     * frag_policy.adopt relies on it. INVALID if part of the range is in use or
     * is no address of the device; OOM, NOMEM. */
    enum frag_err (*hold)(struct frag_backend *mem, frag_addr addr,
                          frag_size size, enum frag_holding what);
};

/* The first member of every backend's own struct. */
struct frag_backend {
    const struct frag_backend_ops *ops;
    frag_size capacity;      /* bytes that can be allocated in all, or
                                FRAG_UNLIMITED; a policy reads it through
                                frag_backend_capacity */
    frag_size limit;         /* bytes that the program allows itself, of the
                                capacity (FRAG_BOUND_LIMIT); 0: no limit. It may
                                change between two calls of the policy */
    frag_size limit_used;    /* the largest sum that the limit admitted */
    frag_size limit_refused; /* the smallest that it refused; 0: none */
    frag_size total;         /* bytes of the device as the device reports them
                                (cudaDeviceProp.totalGlobalMem); a policy reads
                                it through frag_backend_total */
    frag_size granularity; /* bytes; unit of va_reserve, phys_create and map */
    frag_size peak;        /* most bytes that were in use at once, as the device
                              counts them: a segment may use more than its own
                              bytes; 0: not known */
    bool busy; /* true: the program may queue work on live blocks at any time,
                  so their memory must stay mapped during a request too */
    unsigned asked; /* FRAG_ASKED_*: what the policy has read */
    const struct frag_engine_ops *engine; /* NULL: the backend has none */
};

/* frag_engine_ops.stream_used, if the backend has it. */
static inline void frag_backend_stream_used(struct frag_backend *mem,
                                            frag_stream stream)
{
    if (mem->engine && mem->engine->stream_used)
        mem->engine->stream_used(mem, stream);
}

/* Properties that influenced the policy's decisions. A policy that reads none
 * learns about its bound only from requests that are refused; its run is then
 * valid for every bound that refuses the same requests. */
enum frag_asked {
    FRAG_ASKED_CAPACITY = 1 << 0,
    FRAG_ASKED_TOTAL = 1 << 1,
    FRAG_ASKED_LIMIT = 1 << 2,
};

/* Reads the capacity and records that the policy did. */
static inline frag_size frag_backend_capacity(struct frag_backend *mem)
{
    mem->asked |= FRAG_ASKED_CAPACITY;
    return mem->capacity;
}

/* Reads the limit, FRAG_UNLIMITED if there is none, and records that the policy
 * did. A policy that only refuses what exceeds the limit calls
 * frag_backend_admits instead. */
static inline frag_size frag_backend_limit(struct frag_backend *mem)
{
    mem->asked |= FRAG_ASKED_LIMIT;
    return mem->limit ? mem->limit : FRAG_UNLIMITED;
}

/* Whether the limit admits that `sum` bytes are held, and records the answer:
 * the run is the same at all limits from limit_used up to, but not including,
 * limit_refused. */
static inline bool frag_backend_admits(struct frag_backend *mem, frag_size sum)
{
    if (!mem->limit)
        return true;
    if (sum <= mem->limit) {
        if (sum > mem->limit_used)
            mem->limit_used = sum;
        return true;
    }
    if (!mem->limit_refused || sum < mem->limit_refused)
        mem->limit_refused = sum;
    return false;
}

/* Reads the total and records that the policy did. */
static inline frag_size frag_backend_total(struct frag_backend *mem)
{
    mem->asked |= FRAG_ASKED_TOTAL;
    return mem->total;
}

/* The bytes that the program can have: the least of the capacity, the limit and
 * the total. Of two bounds of the same size, whichever kind they are, a policy
 * that reads no other of these numbers makes the same decisions. */
static inline frag_size frag_backend_bound(struct frag_backend *mem)
{
    const frag_size capacity = frag_backend_capacity(mem);
    const frag_size limit = frag_backend_limit(mem);
    const frag_size total = frag_backend_total(mem);
    const frag_size least = capacity < limit ? capacity : limit;

    return least < total ? least : total;
}

FRAG_END_DECLS

#endif
