/* parallel.c - starts threads and hands them the numbers of jobs. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "sim/experiments/parallel.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

/* ---- the end before the end ---- */

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

/* What glibc sets aside for the heap of a thread (HEAP_MAX_SIZE on 64 bits):
 * addresses, of which few are ever used. */
#define THREAD_HEAP (64 * FRAG_MIB)

static size_t processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0
               ? (size_t)CPU_COUNT(&set)
               : 1;
}

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

void crew_start(struct crew *crew, size_t threads, void *(*work)(void *user),
                void *user)
{
    *crew = (struct crew){calloc(threads + 1, sizeof(*crew->ids)), 0, 0};
    if (!crew->ids)
        crew->why = ENOMEM;
    while (crew->count < threads && !crew->why) {
        crew->why = pthread_create(&crew->ids[crew->count], NULL, work, user);
        crew->count += !crew->why;
    }
}

void crew_join(struct crew *crew)
{
    for (size_t i = 0; i < crew->count; i++)
        pthread_join(crew->ids[i], NULL);
    free(crew->ids);
}

/* ---- jobs ---- */

struct team {
    pthread_mutex_t lock;
    size_t next, count;
    const struct stop *stop;
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
    if (t->failed == t->count && !stop_is_asked(t->stop) && t->next < t->count)
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

enum frag_err parallel_run(const struct parallel *on, size_t count,
                           enum frag_err (*job)(void *user, size_t i,
                                                struct frag_error *e),
                           void *user, struct frag_error *e)
{
    struct team t = {
        .count = count,
        .stop = &on->stop,
        .job = job,
        .user = user,
        .failed = count,
        .e = e,
    };
    const size_t wanted = on->threads < count ? on->threads : count;
    struct crew others;

    pthread_mutex_init(&t.lock, NULL);
    /* This thread is one of them; fewer do as well. */
    crew_start(&others, wanted ? wanted - 1 : 0, work, &t);
    work(&t);
    crew_join(&others);
    pthread_mutex_destroy(&t.lock);
    return t.err == FRAG_OK && stop_is_asked(t.stop) ? FRAG_CANCELLED : t.err;
}
