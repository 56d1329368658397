/* measures.h - the numbers that describe one run: calls of the backend, bytes,
 * OOMs, the series, segments and the summary.
 *
 * This header only defines the types and their meaning. The meter (sim/meter/)
 * and the engine (sim/replay/) count and compute the numbers.
 *
 * Four sums describe memory after each event. A block is live from the event
 * that allocates it until the client frees it, at its FREE_REQUESTED or its
 * FREE. It is pending from its FREE_REQUESTED until its memory is reusable: at
 * its FREE, or earlier if the policy waits for the device.
 *   requested  bytes that the client requested for live blocks
 *   allocated  bytes that the policy allocated for these blocks
 *   active     allocated, plus the bytes of pending blocks
 *   reserved   bytes that the policy holds from the device
 * So requested <= allocated <= active <= reserved, after every event and for
 * the peaks. A request that failed is skipped with its frees, and counts in
 * none of them. PyTorch's counter requested_bytes differs: it includes pending
 * blocks, although PyTorch's allocated_bytes does not.
 */
#ifndef FRAG_SIM_MEASURES_H
#define FRAG_SIM_MEASURES_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

/* The calls of the backend that are counted, by kind. */
#define FRAG_CALLS(X)               \
    X(SEGMENT_ALLOC, segment_alloc) \
    X(SEGMENT_FREE, segment_free)   \
    X(MAP, map)                     \
    X(UNMAP, unmap)                 \
    X(COPY, copy)                   \
    X(SYNCHRONIZE, synchronize)

enum frag_call {
#define X(upper, lower) FRAG_CALL_##upper,
    FRAG_CALLS(X)
#undef X
        FRAG_CALL_COUNT
};

/* The number of calls of all kinds. */
static inline uint64_t frag_calls_sum(const uint64_t calls[FRAG_CALL_COUNT])
{
    uint64_t sum = 0;

    for (int i = 0; i < FRAG_CALL_COUNT; i++)
        sum += calls[i];
    return sum;
}

static inline void frag_raise(frag_size *most, frag_size n)
{
    if (n > *most)
        *most = n;
}

/* Orders two numbers, as strcmp does texts. */
static inline int frag_order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static inline frag_size frag_larger(frag_size a, frag_size b)
{
    return a > b ? a : b;
}

/* How the reserved bytes are used after one event. The parts sum to the
 * reserved bytes; in the breakdown of the peak, they sum to peak_reserved.
 *
 * The three free parts are classified relative to the stream and the pool of
 * the request of that event. A segment or
 * reservation belongs to the stream and pool of the first block that was
 * allocated in it. Before its first block, it counts as belonging to the
 * stream and pool of the request. An event without a request counts as stream
 * 0 and pool 0. */
struct frag_breakdown {
    frag_size requested;   /* requested for live blocks, without pending ones */
    frag_size rounding;    /* allocated for these blocks beyond `requested` */
    frag_size pending;     /* freed by the client, but not yet reusable */
    frag_size free_here;   /* free, in segments of the request's stream, pool */
    frag_size free_stream; /* free, in segments of the same pool and another
                              stream */
    frag_size free_pool;   /* free, in segments of another pool */
    frag_size unusable;    /* free in gaps smaller than the policy's quantum, or
                              not mapped anywhere, or returned to the device
                              before the event ended */
};

/* A request that failed with FRAG_OOM, and the state of memory at that
 * moment. */
struct frag_oom {
    uint64_t event;  /* index of the event */
    frag_time time;  /* time of the event in ns; 0 if the trace has no times */
    frag_size bytes; /* requested size */
    frag_size requested, allocated, active, reserved; /* at that moment, without
                                                         this request */
    frag_size total_free;                             /* reserved - active */
    frag_size largest_free; /* largest free range inside one segment */
    uint32_t stream, pool;  /* of the request */
    struct frag_breakdown breakdown;
};

/* One bucket of the series. The bucket covers the events from `event` up to,
 * but not including, the `event` of the next point. The minima and maxima are
 * exact: they include every event of the bucket. */
struct frag_point {
    uint64_t event; /* index of the first event of the bucket */
    frag_time time; /* time of that event in ns; 0 if the trace has no times */
    frag_size requested, allocated, active, reserved; /* after the last event */
    frag_size requested_max, allocated_min, allocated_max, active_max,
        reserved_min, reserved_max;
    frag_size largest_free; /* largest free range inside one segment, after the
                               last event */
};

/* One segment and the live blocks in it, at the end of the run or at an OOM
 * whose row is kept. Once a run has FRAG_SEGMENT_ROWS of these rows, further
 * OOMs add none. */
#define FRAG_SEGMENT_ROWS ((uint64_t)1 << 20)
struct frag_segment_row {
    frag_addr addr;
    frag_size size;      /* bytes */
    frag_size allocated; /* bytes of the live blocks in the segment */
    uint64_t at;         /* event of the OOM; at the end, the event count */
    uint32_t blocks;     /* number of live blocks in the segment */
    uint32_t kind;       /* 0: a segment; 1: a mapped range of a reservation */
};

/* The memory with which a run began. A recording may begin late, when blocks
 * were live and segments were held. */
#define FRAG_STARTS(X)            \
    X(UNKNOWN, "")                \
    X(EMPTY, "empty")             \
    X(LIVE_BLOCKS, "live blocks") \
    X(ADOPTED, "adopted")

enum frag_start {
#define X(name, text) FRAG_START_##name,
    FRAG_STARTS(X)
#undef X
        FRAG_START_COUNT
};

/* UNKNOWN: a result file before schema 2.2. EMPTY: nothing was held.
 * LIVE_BLOCKS: the policy allocated the blocks that were live, in the order of
 * their addresses, before the first recorded event. ADOPTED: the policy took
 * over the recorded segments and blocks at their addresses. */
extern const char *const frag_start_names[FRAG_START_COUNT];

/* The summary of one run. Names and meanings are those of the table /summary
 * in a result file: sim/results/columns.c has one row for each field, with its
 * unit and formula. */
struct frag_summary {
    uint64_t events; /* events replayed */
    frag_size peak_requested, peak_allocated, peak_active, peak_reserved;
    frag_size end_reserved;        /* reserved bytes after the last event */
    frag_size peak_inactive_split; /* largest number of free bytes in ordinary
                                      segments that also hold a live block; this
                                      is PyTorch's measure */
    double fragmentation_ratio, fragmentation_at_peak, fragmentation_mean;
    double overhead;
    double external_at_peak, internal_at_peak;
    /* Measures 1 to 3 of Johnstone and Wilson, each a ratio of reserved to
     * requested bytes: the ratio of the areas under the two curves over all
     * events; the ratio at the first event of peak requested; the ratio at the
     * first event of peak reserved. 0 if nothing was requested. */
    double overhead_average, overhead_at_peak_requested,
        overhead_at_peak_reserved;
    frag_size lower_bound; /* largest sum of the served requests of live blocks,
                              each rounded up to `quantum'. A pending block
                              does not count: a policy that waits for the device
                              can reuse its memory. No policy with this quantum
                              or a larger one that serves these requests can
                              reserve less, even if it moves blocks. Runs that
                              serve every request of a trace have the same lower
                              bound for a quantum */
    double gap_to_bound;   /* peak_reserved / lower_bound - 1; 0 if no request
                              was served */
    uint64_t optimal;      /* 1 if peak_reserved equals lower_bound, every
                              request was served, and peak_device is at most
                              lower_bound, rounded up to the granularity of the
                              device; else 0 */
    frag_size demand;  /* as lower_bound, but a request that failed counts too,
                          until the client frees it. No policy with this quantum
                          or a larger one can serve every request of the trace
                          with less. All runs of a trace have the same demand for
                          a quantum, unless they stop at an OOM */
    frag_size quantum; /* bytes, of lower_bound and demand: that of the policy
                          (frag_policy.quantum), or the smallest of the policies
                          that are compared */
    frag_size peak_device; /* frag_backend.peak */
    frag_size need;        /* of a run without a bound, if it was sought (sim/
                              experiments/capacity): the least bound from which on
                              nothing fails; else FRAG_UNLIMITED */
    uint64_t peak_reserved_event; /* first event of peak reserved */
    uint64_t num_ooms;            /* requests that failed with FRAG_OOM */
    uint64_t first_oom_event;     /* FRAG_NEVER if no request failed */
    /* Requests that the policy could not serve at its first attempt. A request
     * counts if, during the policy's call, the device refused memory and was
     * then requested again, or the policy waited for the device (synchronize).
     * A wait after which the policy mapped or copied memory and returned none
     * does not count. For the policy `torch`, this is PyTorch's counter,
     * whether the device or torch's own limit refused. */
    uint64_t num_alloc_retries;
    uint64_t calls[FRAG_CALL_COUNT]; /* by enum frag_call */
    frag_size bytes_moved;           /* bytes copied to move live blocks */
    uint64_t num_moves;             /* moves of a live block to a new address */
    uint64_t num_stalls;            /* events during which blocks moved */
    uint64_t peak_segments;         /* most segments held at one time */
    double modelled_device_seconds; /* duration of the backend's calls by the
                                       clock of the backend */
    double ns_per_event;            /* host time of the replay loop alone */
    struct frag_breakdown at_peak;  /* at the first event of peak reserved */
    uint64_t start;                 /* enum frag_start */
};

FRAG_END_DECLS

#endif
