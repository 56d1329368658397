/* ahead.c - runs the steps of a second thread, and keeps the thread and the
 * reader within a bounded distance. */
#include "traces/bytes/ahead.h"

#include <signal.h>

static void *work(void *user)
{
    struct ahead *a = user;

    pthread_mutex_lock(&a->lock);
    while (!a->ended && !a->stopped) {
        bool ended;

        if (a->made > a->used + a->lead) {
            pthread_cond_wait(&a->moved, &a->lock);
            continue;
        }
        pthread_mutex_unlock(&a->lock);
        ended = a->step(a->user, a->made); /* only this thread changes it */
        pthread_mutex_lock(&a->lock);
        a->made++;
        a->ended = ended;
        if (ended || a->made == a->wanted)
            pthread_cond_signal(&a->moved);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

static int create(struct ahead *a)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&a->thread, NULL, work, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

bool ahead_start(struct ahead *a)
{
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->moved, NULL);
    a->running = create(a) == 0;
    if (!a->running) {
        pthread_cond_destroy(&a->moved);
        pthread_mutex_destroy(&a->lock);
    }
    return a->running;
}

void ahead_wait(struct ahead *a, uint64_t used, uint64_t wanted)
{
    pthread_mutex_lock(&a->lock);
    if (a->used != used)
        pthread_cond_signal(&a->moved);
    a->used = used;
    a->wanted = wanted;
    while (a->made < wanted && !a->ended)
        pthread_cond_wait(&a->moved, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

void ahead_stop(struct ahead *a)
{
    if (!a->running)
        return;
    pthread_mutex_lock(&a->lock);
    a->stopped = true;
    pthread_cond_signal(&a->moved);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->moved);
    pthread_mutex_destroy(&a->lock);
    a->running = false;
}
