#define _GNU_SOURCE /* sched_getaffinity */
#include "sim/cli/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "sim/cli/cli.h"

struct team {
    pthread_mutex_t lock;
    size_t next, count;
    enum frag_err (*job)(void *user, size_t i, struct frag_error *e);
    void *user;
    size_t failed; /* the lowest number of a failed job; count if none */
    enum frag_err err;
    struct frag_error *e; /* may be NULL */
};

/* The number of the next job, count if there is none to start. */
static size_t take(struct team *t)
{
    size_t i = t->count;

    pthread_mutex_lock(&t->lock);
    if (t->failed == t->count && !cli_interrupted() && t->next < t->count)
        i = t->next++;
    pthread_mutex_unlock(&t->lock);
    return i;
}

static void note(struct team *t, size_t i, enum frag_err err,
                 const struct frag_error *e)
{
    pthread_mutex_lock(&t->lock);
    if (i < t->failed) {
        t->failed = i;
        t->err = err;
        if (t->e)
            *t->e = *e;
    }
    pthread_mutex_unlock(&t->lock);
}

static void *work(void *user)
{
    struct team *t = user;

    for (size_t i = take(t); i < t->count; i = take(t)) {
        struct frag_error e = {""};
        enum frag_err err = t->job(t->user, i, &e);

        if (err != FRAG_OK)
            note(t, i, err, &e);
    }
    return NULL;
}

size_t parallel_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0
               ? (size_t)CPU_COUNT(&set)
               : 1;
}

enum frag_err parallel_run(size_t count, uint64_t threads,
                           enum frag_err (*job)(void *user, size_t i,
                                                struct frag_error *e),
                           void *user, struct frag_error *e)
{
    struct team t = {
        .count = count, .job = job, .user = user, .failed = count, .e = e};
    size_t wanted = threads ? (size_t)threads : parallel_processors(),
           started = 0;
    pthread_t *others;

    wanted = wanted < count ? wanted : count;
    others = calloc(wanted + 1, sizeof(*others));
    if (!others)
        return frag_fail(e, FRAG_NOMEM, "no memory for threads");
    pthread_mutex_init(&t.lock, NULL);
    /* This thread is one of them; fewer do as well. */
    while (started + 1 < wanted &&
           pthread_create(&others[started], NULL, work, &t) == 0)
        started++;
    work(&t);
    for (size_t i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    pthread_mutex_destroy(&t.lock);
    free(others);
    return t.err == FRAG_OK && cli_interrupted() ? FRAG_CANCELLED : t.err;
}

bool parallel_tick(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    (void)done;
    (void)total;
    return cli_interrupted();
}
