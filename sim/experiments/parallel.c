#define _GNU_SOURCE /* sched_getaffinity */
#include "sim/experiments/parallel.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "sim/cli/cli.h"

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

size_t parallel_threads(const struct call *call, uint64_t wanted, bool quiet)
{
    const size_t threads = wanted ? (size_t)wanted : processors();
    char size[FRAG_SIZE_TEXT];
    struct rlimit limit;
    size_t room;

    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return threads;
    room = (size_t)limit.rlim_cur / 4 / (THREAD_HEAP + stack_of_a_thread());
    room = room ? room : 1;
    if (room >= threads)
        return threads;
    if (!quiet)
        fprintf(stderr,
                "fragsim %s: %zu of %zu threads: the address space is limited "
                "to %s (ulimit -v)\n",
                call->verb->name, room, threads,
                frag_size_format(limit.rlim_cur, size));
    return room;
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

enum frag_err parallel_run(size_t count, size_t threads,
                           enum frag_err (*job)(void *user, size_t i,
                                                struct frag_error *e),
                           void *user, struct frag_error *e)
{
    struct team t = {
        .count = count, .job = job, .user = user, .failed = count, .e = e};
    const size_t wanted = threads < count ? threads : count;
    struct crew others;

    pthread_mutex_init(&t.lock, NULL);
    /* This thread is one of them; fewer do as well. */
    crew_start(&others, wanted ? wanted - 1 : 0, work, &t);
    work(&t);
    crew_join(&others);
    pthread_mutex_destroy(&t.lock);
    return t.err == FRAG_OK && cli_interrupted() ? FRAG_CANCELLED : t.err;
}

bool parallel_tick(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    (void)done;
    (void)total;
    return cli_interrupted();
}
