/* validate.h - the torch policy against what the recorded allocator did.
 *
 * A snapshot's requests are replayed with the recorded settings, and everything
 * the recording holds is compared: each segment taken and given back, in order,
 * with its size; the address of each block; each OOM; every block of the final
 * snapshot; and the counters of memory_stats where a file has them.
 *
 * Addresses are compared through the segments: the k-th segment of the replay
 * stands for the k-th of the recording. Anchored, segments get the recorded
 * base addresses, so ties between equal blocks fall as they fell; predicted,
 * the arena's address rule has to foresee them.
 */
#ifndef FRAG_SIM_VALIDATE_VALIDATE_H
#define FRAG_SIM_VALIDATE_VALIDATE_H

#include "sim/validate/stats_file.h"
#include "traces/trace.h"

FRAG_BEGIN_DECLS

struct frag_validate {
    const struct frag_trace *trace; /* borrowed */
    const struct frag_device_trace *device;
    bool predicted;       /* base addresses from the arena's rule */
    const char *settings; /* NULL: those recorded in the trace */
    frag_size limit;      /* per-process limit in bytes; FRAG_UNLIMITED: none */
    frag_size total;      /* the device's size; 0: an H200's */
    const struct frag_stats_file *stats; /* NULL: no counters are compared */
};

struct frag_compared {
    char name[64]; /* as in memory_stats, "active.all.peak" */
    uint64_t recorded, replayed;
    bool determined; /* false: the trace cannot tell (see validate.c), so a
                        difference does not count */
};

struct frag_divergence {
    bool found;
    uint64_t event;     /* count of events: in the final state */
    char expected[160]; /* by the recording */
    char replayed[160];
};

struct frag_validation {
    bool exact; /* all that was compared is equal */
    uint64_t events;
    uint64_t segment_events, segment_events_matched;
    uint64_t allocs, addresses_matched;
    uint64_t blocks, blocks_matched; /* of the final snapshot; predicted: blocks
                                        of segments that match whole */
    uint64_t ooms_recorded, ooms_matched;
    frag_size peak_reserved_recorded, peak_reserved_replayed;
    frag_size end_reserved_recorded, end_reserved_replayed;
    uint64_t stat_count, stats_matched;
    struct frag_compared *stats;  /* [stat_count] */
    struct frag_divergence first; /* the first difference in event order */
    struct frag_divergence
        cause; /* predicted: the first address that differs */
};

/* UNSUPPORTED if the trace holds no answers to compare with (it is not a
 * snapshot) or a start that cannot be rebuilt; INVALID for settings; NOMEM.
 * On error out needs no frag_validation_free. */
enum frag_err frag_validate(const struct frag_validate *spec,
                            struct frag_validation *out,
                            struct frag_error *e) FRAG_MUST_CHECK;
void frag_validation_free(struct frag_validation *v);

FRAG_END_DECLS

#endif
