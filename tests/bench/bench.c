/* bench.c - measures the speed of the replay loop: each policy beside an empty
 * one.
 *
 * usage: bench TRACE... [-p POLICY[:PARAMS]]... [-n EVENTS] [-r ROUNDS] [-c]
 *
 * Each trace is repeated to at least EVENTS events (10 million). Policies run
 * in turns, ROUNDS times (5), in one thread of one process. The table shows
 * medians of the ns per event, and of the ratio to the empty policy in the same
 * round, with its least and largest value. So a machine that slows down for a
 * while slows down both.
 * With -c the time is the processor time of the whole replay and not the time
 * of the loop, for a machine with other work.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/arena/arena.h"
#include "sim/replay/replay.h"
#include "tests/bench/peers/peer_policies.h"
#include "traces/trace.h"

enum { MOST = 32, MOST_ROUNDS = 99 };

/* ------------------------------------------------------ the empty policy */

/* The policy allocates increasing addresses in one segment, starts again at its
 * end, and keeps no lists: the time that remains is that of the loop. */
struct empty {
    frag_addr start, next, end;
};

static enum frag_err empty_init(struct frag_heap *heap)
{
    struct empty *s = heap->state;
    const frag_size size = 64 * FRAG_GIB;

    FRAG_TRY(heap->mem->ops->segment_alloc(heap->mem, size, &s->start));
    s->next = s->start;
    s->end = s->start + size;
    return FRAG_OK;
}

static enum frag_err empty_alloc(struct frag_heap *heap,
                                 const struct frag_request *req,
                                 struct frag_block *out)
{
    struct empty *s = heap->state;
    frag_size size = (req->size + 511) & ~(frag_size)511;

    if (size > s->end - s->next)
        s->next = s->start;
    *out = (struct frag_block){s->next, size, NULL};
    s->next += size;
    return FRAG_OK;
}

static void empty_free(struct frag_heap *heap, const struct frag_block *block)
{
    (void)heap;
    (void)block;
}

static const struct frag_policy empty = {
    .name = "empty",
    .summary = "increasing addresses, nothing kept",
    .source = "this file",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct empty),
    .init = empty_init,
    .alloc = empty_alloc,
    .free = empty_free,
};

/* ---------------------------------------------------------- measurement */

struct contestant {
    const char *text; /* as given */
    const struct frag_policy *policy;
    const char *params;
    double ns[MOST_ROUNDS], ratio[MOST_ROUNDS];
};

struct bench {
    const char *trace[MOST];
    int trace_count;
    struct contestant c[MOST];
    int count;
    uint64_t events;
    int rounds;
    bool processor; /* measures processor time */
};

static double processor_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static bool measure(const struct bench *b, const struct frag_device_trace *t,
                    const struct contestant *c, double *ns)
{
    struct frag_backend *mem = frag_arena_open(
        &(struct frag_arena_options){.capacity = FRAG_UNLIMITED});
    struct frag_replay spec = {.trace = t,
                               .policy = c->policy,
                               .params = c->params,
                               .mem = mem,
                               .repeat = (b->events + t->count - 1) / t->count};
    const double start = processor_ns();
    struct frag_error e = {""};
    struct frag_run run;

    if (!mem || frag_replay(&spec, &run, &e) != FRAG_OK) {
        fprintf(stderr, "bench: %s\n", mem ? e.text : "no memory");
        frag_arena_close(mem);
        return false;
    }
    *ns = b->processor
              ? (processor_ns() - start) / (double)(spec.repeat * t->count)
              : run.summary.ns_per_event;
    frag_run_free(&run);
    frag_arena_close(mem);
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_value);
    return values[count / 2];
}

static bool measure_all(struct bench *b, const struct frag_device_trace *t)
{
    for (int round = 0; round < b->rounds; round++)
        for (int i = 0; i < b->count; i++) {
            struct contestant *c = &b->c[i];

            if (!measure(b, t, c, &c->ns[round]))
                return false;
            c->ratio[round] = c->ns[round] / b->c[0].ns[round];
        }
    return true;
}

static void print_table(struct bench *b)
{
    printf("%-32s %12s %10s %8s (least..largest)\n", "policy", "Mevents/s",
           "ns/event", "x empty");
    for (int i = 0; i < b->count; i++) {
        struct contestant *c = &b->c[i];
        double ns = median(c->ns, b->rounds);

        double ratio = median(c->ratio, b->rounds); /* sorts the ratios */

        printf("%-32s %12.1f %10.2f %8.2f (%.2f..%.2f)\n", c->text, 1e3 / ns,
               ns, ratio, c->ratio[0], c->ratio[b->rounds - 1]);
    }
}

static bool bench_device(struct bench *b, const char *path,
                         const struct frag_device_trace *t)
{
    if (!t->count)
        return true;
    printf("%s, device %" PRIu32 ": %" PRIu64 " events, %" PRIu32
           " slots, repeated to %" PRIu64 "\n",
           path, t->device, t->count, t->slots,
           (b->events + t->count - 1) / t->count * t->count);
    fflush(stdout);
    if (!measure_all(b, t))
        return false;
    print_table(b);
    return true;
}

static bool bench_trace(struct bench *b, const char *path)
{
    struct frag_trace *trace;
    struct frag_error e = {""};
    bool good = true;

    if (frag_trace_open(path, NULL, &trace, &e) != FRAG_OK) {
        fprintf(stderr, "bench: %s\n", e.text);
        return false;
    }
    for (uint32_t i = 0; i < trace->device_count && good; i++)
        good = bench_device(b, path, &trace->devices[i]);
    frag_trace_close(trace);
    return good;
}

/* -------------------------------------------------------- the arguments */

/* One of our policies, or a peer. */
static const struct frag_policy *find_policy(const char *name)
{
    for (int i = 0; peer_policies[i]; i++)
        if (!strcmp(peer_policies[i]->name, name))
            return peer_policies[i];
    return frag_policy_find(name);
}

/* Splits "name:params" in place; text stays as given. */
static bool add_policy(struct bench *b, const char *text)
{
    struct contestant *c = &b->c[b->count];
    const char *colon = strchr(text, ':');
    char name[64];

    if (b->count == MOST)
        return false;
    snprintf(name, sizeof(name), "%.*s",
             colon ? (int)(colon - text) : (int)strlen(text), text);
    *c = (struct contestant){.text = text,
                             .policy = find_policy(name),
                             .params = colon ? colon + 1 : NULL};
    if (!c->policy) {
        fprintf(stderr, "bench: no policy \"%s\"\n", name);
        return false;
    }
    b->count++;
    return true;
}

static bool add_option(struct bench *b, char option, const char *value)
{
    if (option == 'p')
        return add_policy(b, value);
    if (option == 'n')
        b->events = strtoull(value, NULL, 10);
    else if (option == 'r')
        b->rounds = atoi(value);
    else
        return false;
    return b->events > 0 && b->rounds > 0 && b->rounds <= MOST_ROUNDS;
}

static bool read_arguments(struct bench *b, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-c") == 0) {
            b->processor = true;
        } else if (argv[i][0] == '-' && argv[i][1] && !argv[i][2] &&
                   i + 1 < argc) {
            if (!add_option(b, argv[i][1], argv[i + 1]))
                return false;
            i++;
        } else if (argv[i][0] == '-' || b->trace_count == MOST) {
            return false;
        } else {
            b->trace[b->trace_count++] = argv[i];
        }
    }
    for (int i = 0; b->count == 1 && frag_policies[i] && i < MOST - 1; i++)
        b->c[i + 1] = (struct contestant){.text = frag_policies[i]->name,
                                          .policy = frag_policies[i]};
    while (b->count < MOST && b->c[b->count].policy)
        b->count++;
    return b->trace_count > 0;
}

int main(int argc, char **argv)
{
    static struct bench b = {.c = {{.text = "empty", .policy = &empty}},
                             .count = 1,
                             .events = 10000000,
                             .rounds = 5};

    if (!read_arguments(&b, argc, argv)) {
        fprintf(stderr, "usage: bench TRACE... [-p POLICY[:PARAMS]]... "
                        "[-n EVENTS] [-r ROUNDS] [-c]\n");
        return 2;
    }
    for (int i = 0; i < b.trace_count; i++)
        if (!bench_trace(&b, b.trace[i]))
            return 1;
    return 0;
}
