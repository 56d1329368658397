/* ahead.h - a second thread that prepares an input before the reader asks for
 * it. Private to traces/bytes/.
 *
 * The work consists of steps, numbered from 0; source.c decides what a step
 * does. The thread runs with all signals blocked, so that the handlers of a
 * program run in the program's own threads.
 */
#ifndef FRAG_TRACES_BYTES_AHEAD_H
#define FRAG_TRACES_BYTES_AHEAD_H

#include <pthread.h>

#include "traces/base.h"

struct ahead {
    /* Does step number `k` and returns whether it was the last one. The reader
     * sees what the step wrote. */
    bool (*step)(void *user, uint64_t k);
    void *user;
    uint64_t lead; /* step k begins when the reader has used k - lead steps */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool running; /* the thread is not joined yet */

    /* Protected by the lock. */
    uint64_t made;   /* steps that are done */
    uint64_t used;   /* steps that the reader has used */
    uint64_t wanted; /* the reader waits until so many steps are done */
    bool ended;      /* the last step is done */
    bool stopped;    /* the reader needs no further step */
};

/* Starts the thread; step, user and lead are set. False if the system refuses a
 * thread; then there is nothing to stop. */
bool ahead_start(struct ahead *a);

/* The reader has used `used` steps, and waits until `wanted` steps (at most
 * used + lead + 1) or all steps are done. */
void ahead_wait(struct ahead *a, uint64_t used, uint64_t wanted);

/* Ends the thread after its current step and joins it. May be called again, and
 * if the thread was never started. */
void ahead_stop(struct ahead *a);

#endif
