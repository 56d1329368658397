/* parallel.h - starts threads, and runs numbered jobs on them. */
#ifndef FRAG_SIM_EXPERIMENTS_PARALLEL_H
#define FRAG_SIM_EXPERIMENTS_PARALLEL_H

#include <pthread.h>

#include "traces/base.h"

/* A way to stop the work early: any thread may call asked(user), and stops if
 * it returns true. asked is NULL if the work cannot be stopped. */
struct stop {
    bool (*asked)(void *user);
    void *user;
};

bool stop_is_asked(const struct stop *stop);

/* A progress callback for frag_replay on a thread; it prints nothing. user is a
 * const struct stop. */
bool stop_tick(void *user, uint64_t done, uint64_t total);

struct parallel {
    size_t threads; /* at least 1 */
    struct stop stop;
};

/* How many threads fit into the address space of this process. */
struct parallel_room {
    size_t threads;  /* at least 1 */
    size_t wanted;   /* more than `threads` if the limit is too small */
    frag_size limit; /* RLIMIT_AS; FRAG_UNLIMITED if there is none */
};

/* Computes the number of threads for a wish of `wanted` (0: one for each
 * processor that the process may use). Stacks and heaps of the threads may use
 * a quarter of RLIMIT_AS; if that is too little, the number is lower, but at
 * least 1. The other three quarters are for the traces of a sweep, see
 * host_memory. */
struct parallel_room parallel_room(uint64_t wanted);

/* Worker threads; all run the same function, beside the thread that starts
 * them. */
struct workers {
    pthread_t *ids;
    size_t count; /* of threads that were started */
    int error;    /* errno of the first thread that was not started; 0 */
};

/* Starts work(user) on `threads` threads, or on fewer if the system refuses
 * more. `work` must protect the data that the threads share. */
void workers_start(struct workers *workers, size_t threads,
                   void *(*work)(void *user), void *user);
/* Waits until all threads have ended. */
void workers_join(struct workers *workers);

/* Runs job(user, i, e) for i = 0 ... count - 1; the jobs start in that order.
 * After a failed job or a stop, no further job starts. Returns the error of the
 * failed job with the lowest number, or CANCELLED. `job` must protect the data
 * that the jobs share. */
enum frag_err parallel_run(const struct parallel *on, size_t count,
                           enum frag_err (*job)(void *user, size_t i,
                                                struct frag_error *e),
                           void *user, struct frag_error *e) FRAG_MUST_CHECK;

#endif
