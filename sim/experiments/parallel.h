/* parallel.h - threads, and numbered jobs on them. */
#ifndef FRAG_SIM_EXPERIMENTS_PARALLEL_H
#define FRAG_SIM_EXPERIMENTS_PARALLEL_H

#include <pthread.h>

#include "traces/base.h"

/* Asks the caller whether the work is to end before it is done. Asked from any
 * thread. NULL: it never is. */
struct stop {
    bool (*asked)(void *user);
    void *user;
};

bool stop_is_asked(const struct stop *stop);

/* frag_replay's progress on a thread, which draws nothing; user is a const
 * struct stop. */
bool stop_tick(void *user, uint64_t done, uint64_t total);

/* On how many threads to work, at least 1, and what ends the work. */
struct parallel {
    size_t threads;
    struct stop stop;
};

/* How many threads this process has room for. */
struct parallel_room {
    size_t threads;  /* at least 1 */
    size_t wanted;   /* above threads where the limit leaves no room for all */
    frag_size limit; /* RLIMIT_AS; FRAG_UNLIMITED if there is none */
};

/* Room for `wanted` threads (0: one for each processor that the process may
 * use): fewer, but one, where a quarter of what RLIMIT_AS allows has no room
 * for their stacks and heaps. The rest of it is the budget of a sweep:
 * budget_default. */
struct parallel_room parallel_room(uint64_t wanted);

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

/* Runs job(user, i, e) for i = 0 ... count - 1, each started in that order.
 * After a job that fails or a stop no more are started. The answer is that of
 * the first failed job by its number, or CANCELLED. What jobs share is theirs
 * to guard. */
enum frag_err parallel_run(const struct parallel *on, size_t count,
                           enum frag_err (*job)(void *user, size_t i,
                                                struct frag_error *e),
                           void *user, struct frag_error *e) FRAG_MUST_CHECK;

#endif
