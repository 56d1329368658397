/* replay.h - the one loop: a trace against a policy on a backend, measured.
 *
 * The engine measures everything itself, from the requests, from the blocks the
 * policy hands out and from the calls it makes to the backend; a policy reports
 * nothing. Running out of device memory is an outcome: it is counted, its point
 * kept, the request skipped with its free, and the run goes on.
 */
#ifndef FRAG_SIM_REPLAY_REPLAY_H
#define FRAG_SIM_REPLAY_REPLAY_H

#include "policies/policy.h"
#include "sim/measures.h"
#include "traces/trace.h"

FRAG_BEGIN_DECLS

struct frag_run {
    struct frag_summary summary;
    uint64_t oom_count, point_count, segment_count;
    struct frag_oom *ooms;
    struct frag_point *points;
    struct frag_segment_row *segments;
    char params[FRAG_PARAMS_TEXT]; /* resolved */
};

/* A look into a run as it goes; for validation. Slows the loop down. Any
 * function may be NULL. */
struct frag_replay_watch {
    void *user;
    /* The heap is open, nothing has happened yet. */
    void (*opened)(void *user, struct frag_heap *heap);
    /* An event is done; block is the answer to an ALLOC that was served. */
    void (*done)(void *user, uint64_t event, const struct frag_block *block);
    /* After the last event, with everything that is live still live. */
    void (*ended)(void *user, const struct frag_heap *heap);
    /* Where the trace has a recorded start and the policy can adopt it, start
     * from that layout in place of the first `initial` events. */
    bool adopt_start;
};

/* What blocks hold, on a device that has contents: each gets a pattern of its
 * own when it is handed out, which has to be there when it is freed, at the
 * end, and after every event in which the policy moved the block, had another
 * map come to its addresses or copied something to its memory. DEVICE. */
struct frag_contents {
    void *user;
    enum frag_err (*fill)(void *user, frag_addr addr, frag_size size,
                          uint64_t seed);
    /* *wrong: offset of the first bytes that are not as filled, UINT64_MAX if
     * all are. */
    enum frag_err (*verify)(void *user, frag_addr addr, frag_size size,
                            uint64_t seed, frag_size *wrong);
};

struct frag_replay {
    const struct frag_device_trace *trace; /* borrowed */
    const struct frag_replay_watch *watch; /* NULL: nobody looks */
    const struct frag_policy *policy;
    const char *params;                 /* NULL: defaults */
    const struct frag_params *prepared; /* policy and params, read before; the
                                           run then ignores these two. NULL: the
                                           run reads them */
    struct frag_backend *mem;           /* borrowed; fresh: nothing held yet */
    bool check;                         /* the ledger proves every answer */
    const struct frag_contents *contents; /* NULL: nobody looks; with check */
    bool stop_at_oom;                     /* the run ends with the first OOM */
    uint64_t repeat;   /* times to run the stream, at least 1 */
    uint64_t points;   /* buckets of the series; 0: none */
    uint64_t max_ooms; /* OOM rows kept (all are counted) */
    /* Called about ten times a second with events done and in all; a true
     * answer ends the run with FRAG_CANCELLED. May be NULL. */
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

/* Runs it. CONTRACT with event and fault if `check` finds a broken policy
 * or a block without its contents;
 * INVALID, UNSUPPORTED for params; NOMEM, DEVICE, CANCELLED. On error out needs
 * no frag_run_free and everything is given back to mem. */
enum frag_err frag_replay(const struct frag_replay *spec, struct frag_run *out,
                          struct frag_error *e) FRAG_MUST_CHECK;
void frag_run_free(struct frag_run *run);

/* The policy of a run that is to be. */
static inline const struct frag_policy *
frag_replay_policy(const struct frag_replay *spec)
{
    return spec->prepared ? spec->prepared->policy : spec->policy;
}

FRAG_END_DECLS

#endif
