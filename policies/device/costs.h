/* costs.h - what a call of the driver costs: so much, and so much for each MiB.
 *
 * The default was measured on an H200 (`fragsim calibrate`, real/data): the
 * host's time of a call when nothing disturbs it; of copy until the device is
 * done. Another device's numbers are read from a file of the same form.
 */
#ifndef FRAG_POLICIES_DEVICE_COSTS_H
#define FRAG_POLICIES_DEVICE_COSTS_H

#include <stdio.h>

#include "traces/base.h"

FRAG_BEGIN_DECLS

#define FRAG_DRIVER_CALLS(X)                         \
    X(VA_RESERVE, "va_reserve")                      \
    X(VA_FREE, "va_free")                            \
    X(PHYS_CREATE, "phys_create")                    \
    X(PHYS_RELEASE, "phys_release")                  \
    X(MAP, "map")     /* with the access it needs */ \
    X(UNMAP, "unmap") /* of one map */               \
    X(SEGMENT_ALLOC, "segment_alloc")                \
    X(SEGMENT_FREE, "segment_free")                  \
    X(SMALL_ALLOC, "small_alloc")                    \
    X(SMALL_FREE, "small_free")                      \
    X(COPY, "copy")                                  \
    X(SYNCHRONIZE, "synchronize")

enum frag_driver_call {
#define X(upper, text) FRAG_DRIVER_##upper,
    FRAG_DRIVER_CALLS(X)
#undef X
        FRAG_DRIVER_CALL_COUNT
};

/* A segment of less is cut from memory that the driver holds: small_alloc and
 * small_free, at a twentieth of the price. Now and then it has to take more of
 * that first, the more often the larger they are: their price a MiB. */
#define FRAG_SMALL_SEGMENT FRAG_MIB

/* Which of the two a call of that size is; others are what they are. */
static inline enum frag_driver_call
frag_call_of_size(enum frag_driver_call call, frag_size size)
{
    if (size >= FRAG_SMALL_SEGMENT)
        return call;
    return call == FRAG_DRIVER_SEGMENT_ALLOC  ? FRAG_DRIVER_SMALL_ALLOC
           : call == FRAG_DRIVER_SEGMENT_FREE ? FRAG_DRIVER_SMALL_FREE
                                              : call;
}

extern const char *const frag_driver_call_names[FRAG_DRIVER_CALL_COUNT];

/* Memory that was given back is cleared before anybody gets it again. The
 * device does that beside its other work; a call waits for it only where no
 * other memory is left. So long for a MiB, 400 GiB/s. Source: an H200, where
 * 340 to 440 GiB a second were taken and given back once more than its memory
 * had been (paper/device.md). No price of a policy, since programs do other
 * things in between; what calls wait that follow each other at once. */
#define FRAG_CLEAR_NS_PER_MIB 2500

struct frag_cost {
    double fixed_ns, ns_per_mib; /* both >= 0 */
};

struct frag_costs {
    struct frag_cost call[FRAG_DRIVER_CALL_COUNT];
};

/* real/data/nvidia-h200-costs.csv, which a test holds it to. */
extern const struct frag_costs frag_costs_h200;

/* Reads a CSV with the header call,fixed_ns,ns_per_mib (further columns and
 * lines that begin with # are skipped), a row for every call. IO; CORRUPT with
 * the line. On error *costs is untouched. */
enum frag_err frag_costs_read(const char *path, struct frag_costs *costs,
                              struct frag_error *e) FRAG_MUST_CHECK;

static inline frag_time frag_cost_ns(const struct frag_costs *costs,
                                     enum frag_driver_call call, frag_size size)
{
    const struct frag_cost *c = &costs->call[call];

    return (frag_time)(c->fixed_ns +
                       c->ns_per_mib * ((double)size / (double)FRAG_MIB) + 0.5);
}

FRAG_END_DECLS

#endif
