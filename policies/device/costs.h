/* costs.h - the time that each driver call costs: a fixed part, and a part for
 * each MiB.
 *
 * The default costs were measured on an H200 by `fragsim compare --calibrate`,
 * others on an H100 (raw data in real/data). They are the host's time of a call
 * on an idle device; for copy, the time until the device has finished. The
 * costs of another device are read from a CSV file.
 */
#ifndef FRAG_POLICIES_DEVICE_COSTS_H
#define FRAG_POLICIES_DEVICE_COSTS_H

#include <stdio.h>

#include "traces/base.h"

FRAG_BEGIN_DECLS

#define FRAG_DRIVER_CALLS(X)                        \
    X(VA_RESERVE, "va_reserve")                     \
    X(VA_FREE, "va_free")                           \
    X(PHYS_CREATE, "phys_create")                   \
    X(PHYS_RELEASE, "phys_release")                 \
    X(MAP, "map")     /* includes setting access */ \
    X(UNMAP, "unmap") /* of one map */              \
    X(SEGMENT_ALLOC, "segment_alloc")               \
    X(SEGMENT_FREE, "segment_free")                 \
    X(SMALL_ALLOC, "small_alloc")                   \
    X(SMALL_FREE, "small_free")                     \
    X(COPY, "copy")                                 \
    X(SYNCHRONIZE, "synchronize")

enum frag_driver_call {
#define X(upper, text) FRAG_DRIVER_##upper,
    FRAG_DRIVER_CALLS(X)
#undef X
        FRAG_DRIVER_CALL_COUNT
};

/* Bytes. The driver allocates a smaller segment from memory that it already
 * holds. Such calls are small_alloc and small_free; they cost about a twentieth
 * of the full calls. At times the driver must allocate more memory first, the
 * more often the larger the segments are; the cost per MiB of the small calls
 * accounts for this. */
#define FRAG_SMALL_SEGMENT FRAG_MIB

/* The call whose cost applies at this size: the small variant of segment_alloc
 * and segment_free below FRAG_SMALL_SEGMENT, else `call` itself. */
static inline enum frag_driver_call
frag_call_of_size(enum frag_driver_call call, frag_size size)
{
    if (size >= FRAG_SMALL_SEGMENT)
        return call;
    return call == FRAG_DRIVER_SEGMENT_ALLOC  ? FRAG_DRIVER_SMALL_ALLOC
           : call == FRAG_DRIVER_SEGMENT_FREE ? FRAG_DRIVER_SMALL_FREE
                                              : call;
}

/* The names of the calls in files, by enum frag_driver_call. */
extern const char *const frag_driver_call_names[FRAG_DRIVER_CALL_COUNT];

/* Time to clear a MiB of returned memory, 400 GiB/s. The device clears memory
 * before it is allocated again, in parallel with other work; an allocation
 * waits for this only if no other memory is left. It is no part of the costs of
 * a policy, because programs do other work between two calls. It is the wait of
 * calls that follow each other at once. Source: an H200, which allocated and
 * returned 340 to 440 GiB a second after all its memory had been used once
 * (paper/pages/device.md). */
#define FRAG_CLEAR_NS_PER_MIB 2500

struct frag_cost {
    double fixed_ns, ns_per_mib; /* both >= 0 */
};

struct frag_costs {
    struct frag_cost call[FRAG_DRIVER_CALL_COUNT];
};

/* The numbers of real/data/nvidia-h200-costs.csv; a test compares the two. */
extern const struct frag_costs frag_costs_h200;

/* A device whose costs were measured. real/data/nvidia-NAME-costs.csv has the
 * numbers, and real/data/nvidia-NAME-calls.csv the times. */
struct frag_measured_costs {
    const char *name;   /* as in --costs: "h200" */
    const char *device; /* as the driver reports it: "NVIDIA H200" */
    const struct frag_costs *costs;
};

/* All of them, the default first; the last row's name is NULL. */
extern const struct frag_measured_costs frag_measured_costs[];

/* The row of that name, or of the device in a description that begins with the
 * device's name, then a comma or the end (frag_cuda_describe). NULL if there is
 * none. */
const struct frag_measured_costs *frag_costs_named(const char *name);
const struct frag_measured_costs *frag_costs_of_device(const char *device);

/* Reads costs from a CSV file: a header that begins call,fixed_ns,ns_per_mib,
 * then one row for every call in any order. Further columns, empty lines and
 * lines that begin with # are skipped. IO; CORRUPT with the line number in e.
 * On error *costs is untouched. */
enum frag_err frag_costs_read(const char *path, struct frag_costs *costs,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* The cost of one call on `size` bytes, rounded to ns. */
static inline frag_time frag_cost_ns(const struct frag_costs *costs,
                                     enum frag_driver_call call, frag_size size)
{
    const struct frag_cost *c = &costs->call[call];

    return (frag_time)(c->fixed_ns +
                       c->ns_per_mib * ((double)size / (double)FRAG_MIB) + 0.5);
}

FRAG_END_DECLS

#endif
