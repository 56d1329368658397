/* test_serve.c - tests sim/replay/serve.h: a recording served by address has
 * the numbers of its replay, for every policy that can serve, and wrong calls
 * are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "sim/arena/arena.h"
#include "sim/replay/serve.h"
#include "traces/trace.h"

static struct frag_error error;

#define MUST(call)                      \
    do {                                \
        if ((call) != FRAG_OK)          \
            fail_msg("%s", error.text); \
    } while (0)

/* ---- a trace as a program ---- */

/* The program's knowledge of a block. */
struct faulty_memory {
    frag_addr addr; /* 0: none */
    uint32_t ticket;
    bool pending;
};

static void ask(struct frag_serve *s, const struct frag_device_trace *d,
                uint64_t i, struct faulty_memory *h)
{
    struct frag_served at = {0};
    enum frag_err err =
        frag_serve_alloc(s, d->bytes[i], d->stream[i], 0, &at, &error);

    if (err != FRAG_OOM)
        MUST(err);
    *h = (struct faulty_memory){.addr = at.addr};
}

/* The free is completed, unless the policy has waited for it. */
static void give(struct frag_serve *s, struct faulty_memory *h)
{
    if (!h->addr)
        return;
    if (!h->pending)
        MUST(frag_serve_free(s, h->addr, &error));
    else
        MUST(frag_serve_complete(s, h->ticket, &error));
    *h = (struct faulty_memory){0};
}

static void forget_completed(const struct frag_serve *s,
                             struct faulty_memory *held, uint32_t slots)
{
    if (frag_serve_has_pending(s))
        return;
    for (uint32_t id = 0; id < slots; id++)
        if (held[id].pending)
            held[id] = (struct faulty_memory){0};
}

static void run_program(struct frag_serve *s, const struct frag_device_trace *d)
{
    struct faulty_memory *held = calloc(d->slots + (size_t)1, sizeof(*held));

    for (uint64_t i = 0; i < d->count; i++) {
        struct faulty_memory *h = &held[d->id[i]];

        if (d->op[i] == FRAG_ALLOC) {
            ask(s, d, i, h);
            forget_completed(s, held, d->slots);
        } else if (d->op[i] == FRAG_FREE) {
            give(s, h);
        } else if (d->op[i] == FRAG_FREE_REQUESTED && h->addr) {
            MUST(frag_serve_free_later(s, h->addr, &h->ticket, &error));
            h->pending = true;
        } else if (d->op[i] == FRAG_EMPTY_CACHE) {
            MUST(frag_serve_trim(s, &error));
        }
    }
    free(held);
}

/* ---- the judge: the replay of the same trace ---- */

static struct frag_summary replayed(const struct frag_device_trace *d,
                                    const struct frag_policy *policy,
                                    const char *params, frag_size capacity)
{
    const struct frag_arena_options o = {.capacity = capacity};
    struct frag_backend *arena = frag_arena_open(&o);
    const struct frag_replay spec = {.trace = d,
                                     .policy = policy,
                                     .params = params,
                                     .mem = arena,
                                     .repeat = 1};
    struct frag_run run;
    struct frag_summary sum;

    MUST(frag_replay(&spec, &run, &error));
    frag_arena_close(arena);
    sum = run.summary;
    frag_run_free(&run);
    return sum;
}

static struct frag_summary served(const struct frag_device_trace *d,
                                  const struct frag_policy *policy,
                                  const char *params, frag_size capacity)
{
    const struct frag_arena_options o = {.capacity = capacity};
    struct frag_backend *arena = frag_arena_open(&o);
    const struct frag_serve_options options = {
        .policy = policy, .params = params, .mem = arena, .max_ooms = 10};
    struct frag_serve *s = NULL;
    const struct frag_run *run;
    struct frag_summary sum;

    MUST(frag_serve_open(&options, &s, &error));
    run_program(s, d);
    MUST(frag_serve_sum(s, &run));
    sum = run->summary;
    frag_serve_close(s);
    assert_int_equal(frag_arena_used(arena), 0);
    frag_arena_close(arena);
    return sum;
}

#define SAME(field)                                                           \
    if (a.field != b.field)                                                   \
    fail_msg("%s:%s: " #field " is %llu served, %llu replayed", policy->name, \
             params ? params : "", (unsigned long long)a.field,               \
             (unsigned long long)b.field)

/* Events that are not calls of the program (frees of refused requests, noted
 * streams) are counted by a replay only, so a mean over events differs. */
static void compare(const struct frag_device_trace *d,
                    const struct frag_policy *policy, const char *params,
                    frag_size capacity)
{
    const struct frag_summary a = served(d, policy, params, capacity);
    const struct frag_summary b = replayed(d, policy, params, capacity);

    SAME(peak_requested);
    SAME(peak_allocated);
    SAME(peak_active);
    SAME(peak_reserved);
    SAME(peak_inactive_split);
    SAME(end_reserved);
    SAME(lower_bound);
    SAME(num_ooms);
    SAME(num_alloc_retries);
    SAME(peak_segments);
    SAME(bytes_moved);
    SAME(at_peak.requested);
    SAME(at_peak.pending);
    SAME(at_peak.free_here);
    SAME(at_peak.free_stream);
    for (int i = 0; i < FRAG_CALL_COUNT; i++)
        SAME(calls[i]);
    if (!b.num_ooms) { /* the trace frees refused requests, a program does not
                        */
        SAME(demand);
    }
    assert_true(a.demand >= a.lower_bound && a.demand <= b.demand);
    if (a.events == b.events) {
        SAME(first_oom_event);
        SAME(peak_reserved_event);
        assert_true(a.fragmentation_mean - b.fragmentation_mean < 1e-9);
        assert_true(b.fragmentation_mean - a.fragmentation_mean < 1e-9);
    }
}

static void every_policy(const char *name, double share)
{
    char path[512];
    struct frag_trace *t = NULL;
    const struct frag_device_trace *d;
    frag_size capacity = FRAG_UNLIMITED;

    snprintf(path, sizeof(path), FRAG_SOURCE_DIR "/traces/bundled/%s", name);
    MUST(frag_trace_open(path, NULL, &t, &error));
    d = &t->devices[0];
    if (share > 0)
        capacity =
            (frag_size)(share * (double)replayed(d, frag_policy_find("direct"),
                                                 NULL, FRAG_UNLIMITED)
                                    .peak_reserved);
    for (size_t i = 0; frag_policies[i]; i++)
        if (!(frag_policies[i]->needs & (FRAG_NEEDS_MOVES | FRAG_NEEDS_FUTURE)))
            compare(d, frag_policies[i], NULL, capacity);
    compare(d, frag_policy_find("torch"), "expandable_segments:True", capacity);
    frag_trace_close(t);
}

static void serves_a_training_run(void **state)
{
    (void)state;
    every_policy("gpt2_train.pickle.xz", 0);
}

static void serves_streams_and_late_frees(void **state)
{
    (void)state;
    every_policy("two_streams.pt", 0);
    every_policy("multistream.pickle.xz", 0);
}

static void counts_what_does_not_fit(void **state)
{
    (void)state;
    every_policy("two_streams.pt", 0.8);
    every_policy("leak.pickle.xz", 0.7);
}

/* ---- wrong use ---- */

static struct frag_serve *open_best_fit(struct frag_backend *arena)
{
    const struct frag_serve_options options = {
        .policy = frag_policy_find("best_fit"), .mem = arena};
    struct frag_serve *s = NULL;

    MUST(frag_serve_open(&options, &s, &error));
    return s;
}

static void refuses_what_is_not_live(void **state)
{
    struct frag_backend *arena =
        frag_arena_open(&(struct frag_arena_options){.capacity = FRAG_GIB});
    struct frag_serve *s = open_best_fit(arena);
    struct frag_served a, found;
    uint32_t ticket;

    (void)state;
    MUST(frag_serve_alloc(s, 4096, 0, 0, &a, &error));
    assert_int_equal(frag_serve_free(s, a.addr + 512, &error), FRAG_INVALID);
    assert_non_null(strstr(error.text, "no live block"));
    assert_true(frag_serve_find(s, a.addr, &found));
    assert_int_equal(found.size, 4096);
    assert_int_equal(frag_serve_memory(s).peak_allocated, 4096);
    MUST(frag_serve_free_later(s, a.addr, &ticket, &error));
    assert_false(frag_serve_find(s, a.addr, &found));
    assert_int_equal(frag_serve_free(s, a.addr, &error), FRAG_INVALID);
    assert_int_equal(frag_serve_free_later(s, a.addr, &ticket, &error),
                     FRAG_INVALID);
    assert_true(frag_serve_has_pending(s));
    MUST(frag_serve_complete(s, ticket, &error));
    assert_false(frag_serve_has_pending(s));
    assert_int_equal(frag_serve_alloc(s, 2 * FRAG_GIB, 0, 0, &a, &error),
                     FRAG_OOM);
    frag_serve_close(s);
    frag_arena_close(arena);
}

/* A policy that waits for the device completes what was pending. */
static void waiting_completes(void **state)
{
    struct frag_backend *arena = frag_arena_open(
        &(struct frag_arena_options){.capacity = 64 * FRAG_MIB});
    const struct frag_serve_options options = {
        .policy = frag_policy_find("torch"), .mem = arena};
    struct frag_serve *s = NULL;
    struct frag_served a, b;
    uint32_t ticket;

    (void)state;
    MUST(frag_serve_open(&options, &s, &error));
    MUST(frag_serve_alloc(s, 40 * FRAG_MIB, 0, 0, &a, &error));
    MUST(frag_serve_free_later(s, a.addr, &ticket, &error));
    MUST(frag_serve_alloc(s, 50 * FRAG_MIB, 0, 0, &b, &error));
    assert_false(frag_serve_has_pending(s));
    MUST(frag_serve_free(s, b.addr, &error));
    frag_serve_close(s);
    frag_arena_close(arena);
}

static void refuses_policies_that_move(void **state)
{
    struct frag_backend *arena =
        frag_arena_open(&(struct frag_arena_options){.capacity = FRAG_GIB});
    const struct frag_serve_options options = {
        .policy = frag_policy_find("compact"), .mem = arena};
    struct frag_serve *s = NULL;

    (void)state;
    assert_int_equal(frag_serve_open(&options, &s, &error), FRAG_UNSUPPORTED);
    assert_null(s);
    frag_arena_close(arena);
}

/* More blocks than there are slots at first. */
static void grows(void **state)
{
    enum { BLOCKS = 5000 };
    struct frag_backend *arena =
        frag_arena_open(&(struct frag_arena_options){.capacity = FRAG_GIB});
    struct frag_serve *s = open_best_fit(arena);
    static struct frag_served at[BLOCKS];
    uint32_t ticket;
    const struct frag_run *run;

    (void)state;
    MUST(frag_serve_alloc(s, 512, 0, 0, &at[0], &error));
    MUST(frag_serve_free_later(s, at[0].addr, &ticket,
                               &error)); /* the queue too */
    for (int i = 1; i < BLOCKS; i++)
        MUST(frag_serve_alloc(s, 512, 0, 0, &at[i], &error));
    MUST(frag_serve_complete(s, ticket, &error));
    for (int i = 1; i < BLOCKS; i++)
        MUST(frag_serve_free(s, at[i].addr, &error));
    MUST(frag_serve_sum(s, &run));
    assert_int_equal(run->summary.peak_allocated, (BLOCKS - 1) * 512);
    assert_int_equal(run->summary.events, 2 * BLOCKS + 1);
    frag_serve_close(s);
    frag_arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_a_training_run),
        cmocka_unit_test(serves_streams_and_late_frees),
        cmocka_unit_test(counts_what_does_not_fit),
        cmocka_unit_test(refuses_what_is_not_live),
        cmocka_unit_test(waiting_completes),
        cmocka_unit_test(refuses_policies_that_move),
        cmocka_unit_test(grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
