/* parallel.h - threads, and numbered jobs on them. */
#ifndef FRAG_SIM_EXPERIMENTS_PARALLEL_H
#define FRAG_SIM_EXPERIMENTS_PARALLEL_H

#include <pthread.h>

#include "traces/base.h"

struct call;

/* How many threads a command runs on that was asked for `wanted` (0: one for
 * each processor it may use): fewer, but one, where a quarter of what RLIMIT_AS
 * allows has no room for their stacks and heaps (the rest is what
 * budget_default gives away). Unless quiet, it is said on stderr where they are
 * fewer. */
size_t parallel_threads(const struct call *call, uint64_t wanted, bool quiet);

/* Threads that do the same beside the one that started them. */
struct crew {
    pthread_t *ids;
    size_t count; /* that were started */
    int why;      /* errno of the first that was not; 0 */
};

/* Starts work(user) on so many threads, or on fewer where the system gives no
 * more. What they share is theirs to guard. */
void crew_start(struct crew *crew, size_t threads, void *(*work)(void *user),
                void *user);
/* Waits for their end. */
void crew_join(struct crew *crew);

/* Runs job(user, i, e) for i = 0 ... count - 1, each started in that order, on
 * so many threads, at least 1. After a job that fails or an interrupt no more
 * are started. The answer is that of the first failed job by its number, or
 * CANCELLED. What jobs share is theirs to guard. */
enum frag_err parallel_run(size_t count, size_t threads,
                           enum frag_err (*job)(void *user, size_t i,
                                                struct frag_error *e),
                           void *user, struct frag_error *e) FRAG_MUST_CHECK;

/* frag_replay's progress on a thread, which draws nothing: whether the user
 * interrupted. */
bool parallel_tick(void *user, uint64_t done, uint64_t total);

#endif
