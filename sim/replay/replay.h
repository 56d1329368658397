/* replay.h - replays a trace against a policy on a backend and measures the
 * run. All replays of the program use this one loop.
 *
 * The engine derives every number from three sources: the requests of the
 * trace, the blocks that the policy returns, and the calls that the policy
 * makes to the backend. A policy reports nothing about itself.
 *
 * An out-of-memory condition is a result, not an error. The engine counts the
 * failed request, keeps a row about it (up to max_ooms rows), skips its later
 * free, and continues.
 */
#ifndef FRAG_SIM_REPLAY_REPLAY_H
#define FRAG_SIM_REPLAY_REPLAY_H

#include "policies/policy.h"
#include "sim/measures.h"
#include "traces/trace.h"

FRAG_BEGIN_DECLS

/* How memory is used after the last event of a run, in bytes. */
struct frag_end {
    frag_size requested, allocated, active, reserved;
    frag_size inactive_split; /* as in peak_inactive_split */
    frag_size largest_free;   /* largest free range inside one segment */
    frag_size acquired;       /* sum of all growth of `reserved` in the run */
    uint64_t blocks;          /* number of live and pending blocks */
    struct frag_breakdown parts; /* of `reserved` */
};

/* The result of a run. The arrays and the text belong to the run; frag_run_free
 * frees them. */
struct frag_run {
    struct frag_summary summary;
    struct frag_end end;
    uint64_t oom_count, point_count, segment_count;
    struct frag_oom *ooms;             /* [oom_count], by event */
    struct frag_point *points;         /* [point_count], by event */
    struct frag_segment_row *segments; /* [segment_count] */
    char *params;                      /* the policy's parameters, with all
                                          defaults filled in */
};

/* Functions that observe a run, for validation and figures. They slow the loop
 * down. Each function may be NULL. */
struct frag_replay_watch {
    void *user; /* first argument of each function */
    /* Called once, after the heap was opened and before the first event. */
    void (*opened)(void *user, struct frag_heap *heap);
    /* Called after a segment or a map was added or removed, from the init of
     * the policy to its fini: as meter.changed (sim/meter/meter.h). */
    void (*changed)(void *user, enum frag_call call, frag_addr addr,
                    frag_size size, frag_addr same);
    /* Called when the policy has waited for the device, for each slot whose
     * pending free this completes, before the first of these frees. */
    void (*left)(void *user, uint32_t slot);
    /* Called after each event. `block` is the allocated block if the event is
     * an ALLOC that was served, else NULL. */
    void (*done)(void *user, uint64_t event, const struct frag_block *block);
    /* Called once, after the last event, before live blocks are freed. */
    void (*ended)(void *user, const struct frag_heap *heap);
};

/* Access to the contents of device memory, for a backend that has contents.
 * The engine fills each block with a pattern of its own when the block is
 * allocated. It verifies the pattern when the block is freed, at the end of the
 * run, and after every event in which the policy moved the block, remapped its
 * addresses, or copied data to its memory. Both functions return OK or
 * DEVICE. */
struct frag_contents {
    void *user; /* first argument of both functions */
    /* Writes the pattern of `seed` to [addr, addr + size). */
    enum frag_err (*fill)(void *user, frag_addr addr, frag_size size,
                          uint64_t seed);
    /* Compares [addr, addr + size) with the pattern of `seed`. Sets *wrong to
     * the offset of the first difference, or to UINT64_MAX if there is none. */
    enum frag_err (*verify)(void *user, frag_addr addr, frag_size size,
                            uint64_t seed, frag_size *wrong);
};

/* The run. All pointers are borrowed for the call of frag_replay. */
struct frag_replay {
    const struct frag_device_trace *trace; /* required */
    const struct frag_replay_watch *watch; /* NULL: no observer */
    const struct frag_policy *policy;      /* ignored if `prepared` is set */
    const char *params;                    /* ignored if `prepared` is set;
                                              NULL: all defaults */
    const struct frag_params
        *prepared;            /* policy and parameters that were read
                                 before; NULL: the run reads `params` */
    struct frag_backend *mem; /* required; no memory is held on it */
    frag_size quantum; /* unit to which lower_bound and demand round requests.
                          Runs that are compared have the smallest quantum of
                          their policies. 0, or more than the quantum of
                          `policy`: that quantum is used */
    bool check; /* the ledger (sim/meter/ledger.h) checks every answer of the
                   policy */
    const struct frag_contents *contents; /* used only with `check`; NULL: the
                                             contents are not verified */
    bool stop_at_oom;                     /* the run ends after the first OOM */
    /* If the trace has a recorded start and the policy has adopt(), the run
     * starts from that layout and skips the first `initial` events. */
    bool adopt_start;
    uint64_t events;   /* number of events to run, at most those of the trace;
                          0: all. A policy that knows the future knows all
                          events in any case */
    uint64_t repeat;   /* number of times to run the trace; 0 counts as 1.
                          Live blocks are freed between two repetitions */
    uint64_t points;   /* largest number of buckets of the series; 0: none */
    uint64_t max_ooms; /* rows of OOMs to keep; every OOM is counted */
    /* Called about ten times a second with the number of events that are done
     * and the total number; with no event done while a policy that knows the
     * future prepares. If it returns true, the run ends with
     * FRAG_CANCELLED. May be NULL. */
    frag_progress *progress;
    void *user; /* first argument of progress */
    /* The memo of the policy's future, for several runs of one trace with the
     * same policy and parameters. NULL: the policy prepares anew. */
    struct frag_memo *memo;
};

/* Runs the trace and fills *out, which frag_run_free frees.
 *
 * CONTRACT if `check` finds that the policy broke its contract or that a block
 * lost its contents: e holds the event and the fault. INVALID or UNSUPPORTED
 * for the parameters or the needs of the policy; UNSUPPORTED if adopt_start is
 * set and the policy or the memory cannot hold the recorded layout; NOMEM;
 * DEVICE; CANCELLED. On error *out is untouched, and all memory was returned to
 * mem. */
enum frag_err frag_replay(const struct frag_replay *spec, struct frag_run *out,
                          struct frag_error *e) FRAG_MUST_CHECK;
void frag_run_free(struct frag_run *run);

/* The policy that a run of `spec` uses. */
static inline const struct frag_policy *
frag_replay_policy(const struct frag_replay *spec)
{
    return spec->prepared ? spec->prepared->policy : spec->policy;
}

FRAG_END_DECLS

#endif
