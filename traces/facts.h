/* facts.h - counts and peaks of a device's trace that need no replay: one pass
 * over the events and the recorded actions computes them. */
#ifndef FRAG_TRACES_FACTS_H
#define FRAG_TRACES_FACTS_H

#include "traces/trace.h"

/* Whether event i is a request that failed in the recording: an ALLOC without
 * an address. Such a request is never live. Events that complete.h added have
 * not failed. */
bool facts_has_failed(const struct frag_device_trace *d, uint64_t i);

struct facts {
    uint64_t ops[FRAG_OP_COUNT]; /* events by enum frag_op, without those of
                                    the blocks that were live before */
    uint64_t actions[FRAG_ACTION_COUNT]; /* by enum frag_action */
    /* A block is live from its ALLOC until its FREE_REQUESTED or FREE. */
    frag_size peak_requested; /* maximum of the bytes that live blocks
                                 requested; a share of a capacity is one of
                                 it */
    uint64_t peak_live;       /* maximum number of live blocks */
    /* The same without the requests that failed in the recording. They fail
     * at once, so they count in peak_requested and peak_live for one event. */
    frag_size peak_served;
    uint64_t failed;         /* requests that failed in the recording */
    frag_size end_requested; /* bytes of the blocks that are live at the end */
    uint64_t end_live;       /* number of these blocks */
    frag_size peak_reserved; /* bytes, of the recorded allocator;
                                FRAG_UNLIMITED if not recorded */
    frag_time duration;      /* ns from the first recorded event to the last;
                                0 if no times were recorded */
};

/* The peak in bytes that the recorded allocator reserved; FRAG_UNLIMITED if not
 * recorded. */
frag_size facts_peak_reserved(const struct frag_device_trace *d);

/* The last event at which the recorded allocator ran out of memory; -1: it did
 * not, or that is not recorded. */
int64_t facts_last_oom(const struct frag_device_trace *d);

/* Fills *out. NOMEM; then *out is unchanged. The time is O(events), the
 * temporary memory 8 bytes per slot. */
enum frag_err facts_gather(const struct frag_device_trace *d,
                           struct facts *out) FRAG_MUST_CHECK;

/* What the requests of one pool needed, without those that failed. Bytes. */
struct facts_pool {
    frag_size peak_requested, end_requested; /* of the live blocks */
    frag_size end_reserved; /* by the recorded segments at the end; 0 if they
                               are not recorded */
};

/* Fills out[pool_count]. NOMEM. The time is O(events), the temporary memory 16
 * bytes per slot. */
enum frag_err facts_pools(const struct frag_device_trace *d,
                          struct facts_pool *out) FRAG_MUST_CHECK;

#endif
