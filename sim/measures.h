/* measures.h - the numbers that a run is described by: calls, bytes, OOMs, the
 * series, segments, the summary. It holds their types and meanings; those who
 * count them are the meter and the engine.
 */
#ifndef FRAG_SIM_MEASURES_H
#define FRAG_SIM_MEASURES_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

/* Calls of the backend, counted by kind. */
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

/* Where the reserved bytes are after one event. The parts sum to reserved; at
 * the peak, to peak_reserved. A segment (a reservation) belongs to the stream
 * and pool of the first block handed out in it, and to the one that asks
 * before that. */
struct frag_breakdown {
    frag_size requested; /* asked for by live blocks, but for pending ones */
    frag_size rounding;  /* granted to them beyond that */
    frag_size pending;   /* freed by the client, not yet reusable */
    frag_size
        free_here; /* free, in segments of the stream and pool that asks */
    frag_size free_stream; /* free, in segments of another stream */
    frag_size free_pool;   /* free, in segments of another pool */
    frag_size unusable; /* free in pieces smaller than FRAG_QUANTUM, or mapped
                           nowhere, or given back before the event was over */
};

/* A request that failed. */
struct frag_oom {
    uint64_t event;
    frag_time time; /* ns; 0 if the trace has none */
    frag_size bytes;
    frag_size requested, allocated, active, reserved; /* at that moment */
    frag_size total_free;                             /* reserved - active */
    frag_size largest_free; /* largest free run inside one segment */
    uint32_t stream, pool;
    struct frag_breakdown breakdown;
};

/* A bucket of the decimated series: events [event, next point's event). The
 * envelope is exact: min and max over every event of the bucket. */
struct frag_point {
    uint64_t event;                                   /* first of the bucket */
    frag_time time;                                   /* of that event */
    frag_size requested, allocated, active, reserved; /* after its last event */
    frag_size requested_max, allocated_min, allocated_max, active_max,
        reserved_min, reserved_max;
    frag_size largest_free; /* after its last event */
};

/* A segment at the end or at an OOM that is kept, and what lies in it. OOMs add
 * no more rows once there are FRAG_SEGMENT_ROWS of them. */
#define FRAG_SEGMENT_ROWS ((uint64_t)1 << 20)
struct frag_segment_row {
    frag_addr addr;
    frag_size size;
    frag_size allocated; /* bytes of live blocks in it */
    uint64_t at;         /* event of the picture: an OOM's, or the count */
    uint32_t blocks;     /* live blocks in it */
    uint32_t kind;       /* 0 segment, 1 mapped range */
};

/* The numbers of one run. Names and meanings are those of the /summary table;
 * results.c has one row a field. */
struct frag_summary {
    uint64_t events;
    frag_size peak_requested, peak_allocated, peak_active, peak_reserved;
    frag_size end_reserved;
    frag_size peak_inactive_split; /* free bytes in ordinary segments that also
                                      hold a live block; PyTorch's measure */
    double fragmentation_ratio, fragmentation_at_peak, fragmentation_mean;
    double overhead;
    double external_at_peak, internal_at_peak;
    /* Johnstone and Wilson's measures 1 to 3 of reserved over requested: of the
     * areas under the two curves over events, at the first event of peak
     * requested, at the first event of peak reserved. 0 where nothing was
     * requested. */
    double overhead_average, overhead_at_live_peak, overhead_at_held_peak;
    frag_size lower_bound; /* most bytes live at once, pending ones included,
                              each request served rounded up to FRAG_QUANTUM:
                              no policy, moving or not, can reserve less */
    double gap_to_bound;   /* peak_reserved / lower_bound - 1; 0 where nothing
                              was served */
    uint64_t optimal; /* 1: peak_reserved is lower_bound, all were served */
    uint64_t peak_reserved_event;
    uint64_t num_ooms;
    uint64_t first_oom_event;   /* FRAG_NEVER if none */
    uint64_t num_alloc_retries; /* requests during which the device refused and
                                   was asked again, or the policy waited for it:
                                   not met at first. For torch that is PyTorch's
                                   counter, whether the device or a limit of its
                                   own refused. A policy that waits only to map
                                   or copy what it holds has met them */
    uint64_t calls[FRAG_CALL_COUNT];
    frag_size bytes_moved;
    uint64_t num_moves;  /* live blocks that got another address */
    uint64_t num_stalls; /* events that moved some */
    uint64_t peak_segments;
    double modelled_device_seconds;
    double ns_per_event; /* the replay loop alone */
    struct frag_breakdown at_peak;
};

FRAG_END_DECLS

#endif
