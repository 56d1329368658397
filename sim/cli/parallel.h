/* parallel.h - numbered jobs on threads. */
#ifndef FRAG_PARALLEL_H
#define FRAG_PARALLEL_H

#include "traces/base.h"

/* The processors that this process may use. */
size_t parallel_processors(void);

/* Runs job(user, i, e) for i = 0 ... count - 1, each started in that order, on
 * so many threads (0: one for each processor of this process). After a job that
 * fails or an interrupt no more are started. The answer is that of the first
 * failed job by its number, CANCELLED, or NOMEM. What jobs share is theirs to
 * guard. */
enum frag_err parallel_run(size_t count, uint64_t threads,
                           enum frag_err (*job)(void *user, size_t i,
                                                struct frag_error *e),
                           void *user, struct frag_error *e) FRAG_MUST_CHECK;

/* frag_replay's progress on a thread, which draws nothing: whether the user
 * interrupted. */
bool parallel_tick(void *user, uint64_t done, uint64_t total);

#endif
