/* parallel.c - starts threads, and hands out the numbers of jobs to them. */
#include "sim/experiments/parallel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "traces/bytes/processors.h"

/* ---- stopping early ---- */

bool stop_is_asked(const struct stop *stop)
{
    return stop->asked && stop->asked(stop->user);
}

bool stop_tick(void *user, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    return stop_is_asked(user);
}

/* ---- threads ---- */

/* Bytes of address space that glibc reserves for the heap of a thread
 * (HEAP_MAX_SIZE on 64 bits). A thread uses only a small part of them. */
#define THREAD_HEAP (64 * FRAG_MIB)

static size_t stack_of_a_thread(void)
{
    pthread_attr_t usual;
    size_t bytes = 0;

    if (pthread_attr_init(&usual) != 0)
        return 0;
    pthread_attr_getstacksize(&usual, &bytes);
    pthread_attr_destroy(&usual);
    return bytes;
}

struct parallel_room parallel_room(uint64_t wanted)
{
    const size_t threads = wanted ? (size_t)wanted : processors();
    struct parallel_room found = {threads, threads, FRAG_UNLIMITED};
    struct rlimit limit;
    size_t room;

    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return found;
    found.limit = limit.rlim_cur;
    room = (size_t)limit.rlim_cur / 4 / (THREAD_HEAP + stack_of_a_thread());
    room = room ? room : 1;
    found.threads = room < threads ? room : threads;
    return found;
}

void workers_start(struct workers *workers, size_t threads,
                   void *(*work)(void *user), void *user)
{
    *workers =
        (struct workers){calloc(threads + 1, sizeof(*workers->ids)), 0, 0};
    if (!workers->ids)
        workers->error = ENOMEM;
    while (workers->count < threads && !workers->error) {
        workers->error =
            pthread_create(&workers->ids[workers->count], NULL, work, user);
        workers->count += !workers->error;
    }
}

void workers_join(struct workers *workers)
{
    for (size_t i = 0; i < workers->count; i++)
        pthread_join(workers->ids[i], NULL);
    free(workers->ids);
}

/* ---- jobs ---- */

struct jobs {
    pthread_mutex_t lock;
    size_t next, count;
    const struct stop *stop;
    enum frag_err (*job)(void *user, size_t i, struct frag_error *e);
    void *user;
    size_t failed; /* the lowest number of a failed job; count if none has
                      failed */
    enum frag_err err;
    struct frag_error *e; /* may be NULL */
};

/* The number of the next job; count if no job may start. */
static size_t next_job(struct jobs *t)
{
    size_t i = t->count;

    pthread_mutex_lock(&t->lock);
    if (t->failed == t->count && !stop_is_asked(t->stop) && t->next < t->count)
        i = t->next++;
    pthread_mutex_unlock(&t->lock);
    return i;
}

static void note(struct jobs *t, size_t i, enum frag_err err,
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
    struct jobs *t = user;

    for (size_t i = next_job(t); i < t->count; i = next_job(t)) {
        struct frag_error e = {""};
        enum frag_err err = t->job(t->user, i, &e);

        if (err != FRAG_OK)
            note(t, i, err, &e);
    }
    return NULL;
}

enum frag_err parallel_run(const struct parallel *on, size_t count,
                           enum frag_err (*job)(void *user, size_t i,
                                                struct frag_error *e),
                           void *user, struct frag_error *e)
{
    struct jobs t = {
        .count = count,
        .stop = &on->stop,
        .job = job,
        .user = user,
        .failed = count,
        .e = e,
    };
    const size_t wanted = on->threads < count ? on->threads : count;
    struct workers others;

    pthread_mutex_init(&t.lock, NULL);
    /* This thread runs jobs too. If fewer threads start, they still run all
     * jobs. */
    workers_start(&others, wanted ? wanted - 1 : 0, work, &t);
    work(&t);
    workers_join(&others);
    pthread_mutex_destroy(&t.lock);
    return t.err == FRAG_OK && stop_is_asked(t.stop) ? FRAG_CANCELLED : t.err;
}
