/* run_changes.h - what differs between the runs of two result files: peak
 * reserved, OOMs and driver calls of each run that both files have. */
#ifndef FRAG_SIM_ANSWERS_HELD_RUN_CHANGES_H
#define FRAG_SIM_ANSWERS_HELD_RUN_CHANGES_H

#include "sim/results/results.h"

/* A run of one file or of both. A run is the same in both files if trace,
 * device, policy (as the user wrote it) and capacity are equal; several such
 * runs of one file are matched in the order of the file. */
struct run_change {
    const struct frag_loaded_run *before, *after; /* borrowed; NULL: the file
                                                     lacks the run */
};

struct run_changes {
    struct run_change *items; /* by trace, device, policy, capacity */
    uint64_t count;
    uint64_t matched; /* items that both files have */
};

/* Whether the run got worse: its peak reserved grew by more than `most` (0.02
 * is 2 %), or it has more OOMs: a request that fails reserves nothing. False
 * unless both files have the run. */
bool run_is_worse(const struct run_change *c, double most);

/* Matches the runs. The caller closes *out before the files. INVALID if no run
 * is in both files; NOMEM; on error *out need not be closed. */
enum frag_err run_changes_find(const struct frag_loaded *before,
                               const struct frag_loaded *after,
                               struct run_changes *out,
                               struct frag_error *e) FRAG_MUST_CHECK;
void run_changes_close(struct run_changes *r);

#endif
