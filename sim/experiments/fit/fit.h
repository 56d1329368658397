/* fit.h - what the capacity of the device does to a run.
 *
 * A policy learns of the capacity by refusals alone, so a run at one capacity
 * is the run at all capacities from the most memory that it had in use to what
 * the least refused request would have needed: see frag_arena_same_for. Walking
 * from one such span to the next decides every capacity, to the byte, and
 * assumes nothing about them: with more memory a policy may well fail where it
 * survived with less.
 *
 * A policy that decides by the value of the capacity or of the total escapes
 * that argument. Such a run stands for its own capacity only, and the walk goes
 * on FRAG_FIT_STEP above it.
 */
#ifndef FRAG_SIM_EXPERIMENTS_FIT_FIT_H
#define FRAG_SIM_EXPERIMENTS_FIT_FIT_H

#include "sim/arena/arena.h"
#include "sim/replay/replay.h"

/* Unit of what the simulated device grants, and of capacities tried one by one.
 */
#define FRAG_FIT_STEP (2 * FRAG_MIB)

/* What is run; borrowed. */
struct frag_fit {
    const struct frag_device_trace *trace;
    const struct frag_policy *policy;
    const char *params;                 /* NULL: defaults */
    const struct frag_params *prepared; /* as of struct frag_replay */
    const struct frag_costs *costs;     /* NULL: an H200's */
    enum frag_address_rule rule;
    frag_size total; /* as the device reports it at every capacity; 0: it
                        reports the capacity */
    /* As of struct frag_replay. */
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

/* Capacities from, from + 1, ... to - 1, bytes: what happens on them. */
struct frag_fit_span {
    frag_size from, to; /* to: FRAG_UNLIMITED if there is no end */
    bool exact;         /* false: only a run at `from` is known */
    frag_size used;     /* the most of the device that was in use at once */
    struct frag_summary run; /* up to the first OOM */
};

static inline bool frag_fit_survives(const struct frag_fit_span *span)
{
    return span->run.num_ooms == 0;
}

/* The span that holds the capacity. Errors of frag_replay, NOMEM. */
enum frag_err frag_fit_at(const struct frag_fit *fit, frag_size capacity,
                          struct frag_fit_span *out,
                          struct frag_error *e) FRAG_MUST_CHECK;

struct frag_fit_spans {
    struct frag_fit_span *items; /* to be freed */
    size_t count;
    uint64_t room;
};

/* Adds the spans that hold the capacities from ... to - 1, ascending; the first
 * may begin below `from`, the last end above `to`. With `first`, ends with the
 * first one that survives. Errors of frag_fit_at; what was added stays. */
enum frag_err frag_fit_walk(const struct frag_fit *fit, frag_size from,
                            frag_size to, bool first,
                            struct frag_fit_spans *spans,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
