/* validate.h - compares the policy `torch` with a recorded PyTorch allocator.
 *
 * A validation replays the requests of a snapshot with the recorded settings
 * and compares the result with everything that the snapshot records: each
 * segment that was allocated or freed, in order and with its size; the address
 * of each block; each OOM; every block of the final snapshot; and the counters
 * of torch.cuda.memory_stats(), if a file has them.
 *
 * Addresses are compared relative to their segments: the k-th segment of the
 * replay corresponds to the k-th segment of the recording, and gets its base
 * address, so that the policy breaks ties between equal blocks as the recorded
 * allocator did.
 */
#ifndef FRAG_SIM_VALIDATE_VALIDATE_H
#define FRAG_SIM_VALIDATE_VALIDATE_H

#include "sim/validate/stats_file.h"
#include "sim/validate/validate_limit.h"
#include "traces/trace.h"

FRAG_BEGIN_DECLS

/* The recording to validate. All pointers are borrowed for the call of
 * frag_validate. */
struct frag_validate {
    const struct frag_trace *trace;
    const struct frag_device_trace *device; /* a device of the trace */
    const char *settings; /* NULL: the settings recorded in the trace */
    frag_size limit;      /* memory limit of the recorded process in bytes;
                             FRAG_UNLIMITED: none; 0: not known, so the limit
                             is taken from the OOMs. An OOM of the device is
                             repeated in the last two cases */
    frag_size total;      /* bytes of the device; 0: FRAG_H200_TOTAL */
    const struct frag_stats_file *stats; /* NULL: no counters are compared */
};

/* One counter, recorded and replayed. */
enum { FRAG_STAT_NAME = 112 };
struct frag_compared {
    char name[FRAG_STAT_NAME]; /* as in memory_stats, for example
                                  "active.all.peak" */
    uint64_t recorded, replayed;
    bool determined; /* false: the trace does not determine this counter (see
                        compare_stat in validate_end.c), so a difference is
                        ignored */
    bool is_lower_bound; /* a total or a peak since the process began, of a
                            recording that began later: the recorded value is
                            at least the replayed one */
};

/* A difference between the recording and the replay. */
struct frag_divergence {
    bool found;         /* false: there is none; the other members are unset */
    uint64_t event;     /* index of the event; the event count if the final
                           states differ */
    char expected[160]; /* what the recording states */
    char replayed[160]; /* what the replay did */
};

/* The words are those of the JSON output. */
#define FRAG_VERDICTS(X)                     \
    X(EXACT, "exact")                        \
    X(TO_LAST, "exact up to the last entry") \
    X(DIFFERS, "differs")                    \
    X(NO_EVIDENCE, "no evidence")

enum frag_verdict {
    FRAG_VERDICT_EXACT,       /* no difference was found */
    FRAG_VERDICT_TO_LAST,     /* none up to the last entry, but the history
                                 ends before the snapshot (ends_early) */
    FRAG_VERDICT_DIFFERS,     /* at least one was found */
    FRAG_VERDICT_NO_EVIDENCE, /* no address, segment that was taken, OOM or
                                 counter was compared. Final blocks and
                                 returned segments alone prove nothing: the
                                 start layout and the empty_cache calls were
                                 inferred from them. Nor does a difference in
                                 a history that lacks its beginning and its
                                 end: blocks that were live throughout it are
                                 not known */
    FRAG_VERDICT_COUNT
};

extern const char *const frag_verdict_words[FRAG_VERDICT_COUNT];

/* The result of a validation. For each X_matched, X is the number in the
 * recording and X_matched the number that the replay reproduced. */
struct frag_validation {
    enum frag_verdict verdict;
    struct frag_recorded_limit limit; /* at which the requests were replayed */
    uint64_t events; /* without those of the blocks that were live before */
    uint64_t segment_events, segment_events_matched;
    uint64_t allocs, addresses_matched;
    uint64_t blocks, blocks_matched; /* of the final snapshot */
    uint64_t ooms_recorded, ooms_matched;
    uint64_t evidence; /* of addresses, segments taken, OOMs and counters */
    /* The snapshot was taken after the last entry: blocks that are live after
     * this entry and not in the snapshot, blocks of the snapshot without an
     * entry, or other bytes reserved show it. Its blocks and the counters are
     * then not those of the replay. */
    bool ends_early;
    uint64_t blocks_freed_later, blocks_allocated_later;
    frag_size peak_reserved_recorded, peak_reserved_replayed;
    frag_size end_reserved_recorded, end_reserved_replayed;
    uint64_t stat_count, stats_matched;
    struct frag_compared *stats;  /* [stat_count] */
    struct frag_divergence first; /* the first difference in event order */
};

/* Runs the validation and fills *out, which frag_validation_free frees.
 * UNSUPPORTED if the trace has no recorded answers (it is not a snapshot), or
 * if its start cannot be rebuilt; INVALID for invalid settings; CONTRACT if the
 * policy broke its contract; NOMEM. On error *out is untouched. */
enum frag_err frag_validate(const struct frag_validate *spec,
                            struct frag_validation *out,
                            struct frag_error *e) FRAG_MUST_CHECK;
void frag_validation_free(struct frag_validation *v);

FRAG_END_DECLS

#endif
