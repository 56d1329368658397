/* test_fit.c - tests the search over bounds against one run at every 2 MiB, for
 * every policy and both kinds of bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/experiments/capacity/spans.h"

#define MIB FRAG_MIB

enum { EVENTS = 240, SLOTS = 20, TRIES = 70 };

struct columns {
    uint8_t op[EVENTS];
    uint32_t id[EVENTS];
    uint64_t bytes[EVENTS];
    frag_stream stream[EVENTS];
    frag_pool pool[EVENTS];
    uint64_t streams[2];
    struct frag_pool_id pools[1];
    struct frag_device_trace trace;
};

static void begin(struct columns *c)
{
    memset(c, 0, sizeof(*c));
    c->streams[1] = 1;
    c->trace = (struct frag_device_trace){
        .slots = SLOTS,
        .op = c->op,
        .id = c->id,
        .bytes = c->bytes,
        .stream = c->stream,
        .pool = c->pool,
        .stream_count = 2,
        .pool_count = 1,
        .streams = c->streams,
        .pools = c->pools,
    };
}

static void add(struct columns *c, enum frag_op op, uint32_t id, uint64_t bytes)
{
    uint64_t i = c->trace.count++;

    c->op[i] = (uint8_t)op;
    c->id[i] = id;
    c->bytes[i] = bytes;
    c->stream[i] = op == FRAG_ALLOC && id % 5 == 4;
}

static uint32_t dice(uint32_t *state, uint32_t sides)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % sides;
}

/* Slots in random order: an empty slot is allocated, a full one is freed. */
static void random_trace(struct columns *c, uint32_t seed)
{
    bool live[SLOTS] = {false};

    begin(c);
    while (c->trace.count < EVENTS) {
        uint32_t id = dice(&seed, SLOTS);
        uint64_t top = (uint64_t)1 << (10 + dice(&seed, 15));

        if (live[id])
            add(c, FRAG_FREE, id, 0);
        else
            add(c, FRAG_ALLOC, id, 1 + dice(&seed, (uint32_t)top));
        live[id] = !live[id];
    }
}

/* -- known answers ------------------------------------------------------- */

static const struct frag_policy *named(const char *name)
{
    const struct frag_policy *p = frag_policy_find(name);

    assert_non_null(p);
    return p;
}

static void assert_span(const struct frag_capacity_span *s, frag_size from,
                        frag_size to, uint64_t first_oom)
{
    assert_true(s->exact);
    assert_int_equal(s->from, from);
    assert_int_equal(s->to, to);
    assert_int_equal(s->run.first_oom_event, first_oom);
    assert_int_equal(frag_capacity_survives(s), first_oom == FRAG_NEVER);
}

/* A device allocates whole units of 2 MiB: 4 for 3, and then 6 for 5. */
static void direct_staircase(void **state)
{
    struct columns c;
    struct frag_capacity_spec fit = {.trace = &c.trace,
                                     .policy = named("direct")};
    struct frag_capacity_spans s = {0};

    (void)state;
    begin(&c);
    add(&c, FRAG_ALLOC, 0, 3 * MIB);
    add(&c, FRAG_ALLOC, 1, 5 * MIB);
    add(&c, FRAG_FREE, 0, 0);
    add(&c, FRAG_FREE, 1, 0);
    assert_int_equal(
        frag_capacity_walk(&fit, 0, FRAG_UNLIMITED, false, &s, NULL), FRAG_OK);
    assert_int_equal(s.count, 3);
    assert_span(&s.items[0], 0, 4 * MIB, 0);
    assert_span(&s.items[1], 4 * MIB, 10 * MIB, 1);
    assert_span(&s.items[2], 10 * MIB, FRAG_UNLIMITED, FRAG_NEVER);
    free(s.items);
}

static void first_ends_the_walk(void **state)
{
    struct columns c;
    struct frag_capacity_spec fit = {.trace = &c.trace,
                                     .policy = named("direct")};
    struct frag_capacity_spans s = {0};

    (void)state;
    begin(&c);
    add(&c, FRAG_ALLOC, 0, 1);
    add(&c, FRAG_FREE, 0, 0);
    assert_int_equal(frag_capacity_walk(&fit, 0, 8 * MIB, true, &s, NULL),
                     FRAG_OK);
    assert_int_equal(s.count, 2);
    assert_span(&s.items[1], 2 * MIB, FRAG_UNLIMITED, FRAG_NEVER);
    free(s.items);
}

/* Two segments fill 40 MiB; the third waits for the release of one. From 40 to
 * 60 MiB the device refuses and receives the request again: one more span,
 * which also survives. */
static void a_retry_is_a_span(void **state)
{
    struct columns c;
    struct frag_capacity_spec fit = {.trace = &c.trace,
                                     .policy = named("torch")};
    struct frag_capacity_spans s = {0};

    (void)state;
    begin(&c);
    add(&c, FRAG_ALLOC, 0, 20 * MIB);
    add(&c, FRAG_ALLOC, 1, 20 * MIB);
    add(&c, FRAG_FREE, 0, 0);
    add(&c, FRAG_ALLOC, 2, 22 * MIB);
    assert_int_equal(
        frag_capacity_walk(&fit, 40 * MIB, FRAG_UNLIMITED, false, &s, NULL),
        FRAG_OK);
    assert_int_equal(s.count, 3);
    assert_span(&s.items[0], 40 * MIB, 42 * MIB, 3);
    assert_span(&s.items[1], 42 * MIB, 62 * MIB, FRAG_NEVER);
    assert_int_equal(s.items[1].run.num_alloc_retries, 1);
    assert_span(&s.items[2], 62 * MIB, FRAG_UNLIMITED, FRAG_NEVER);
    assert_int_equal(s.items[2].run.num_alloc_retries, 0);
    free(s.items);
}

/* The plan of the first capacity serves the others, with the same spans. */
static void a_memo_serves_all_capacities(void **state)
{
    struct columns c;
    struct frag_memo memo = {0};
    struct frag_capacity_spec fit = {.trace = &c.trace,
                                     .policy = named("plan")};
    struct frag_capacity_spans s[3] = {{0}};
    void *made = NULL;

    (void)state;
    begin(&c);
    add(&c, FRAG_ALLOC, 0, 3 * MIB);
    add(&c, FRAG_ALLOC, 1, 5 * MIB);
    add(&c, FRAG_FREE, 0, 0);
    add(&c, FRAG_FREE, 1, 0);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(
            frag_capacity_walk(&fit, 0, 12 * MIB, false, &s[k], NULL), FRAG_OK);
        assert_int_equal(!memo.made, k == 0);
        assert_true(k < 2 || memo.made == made);
        made = memo.made;
        fit.memo = &memo;
        assert_int_equal(s[k].count, 6);
        for (size_t i = 0; i < s[k].count; i++) {
            assert_int_equal(s[k].items[i].to, s[0].items[i].to);
            assert_int_equal(s[k].items[i].run.first_oom_event,
                             s[0].items[i].run.first_oom_event);
        }
    }
    frag_memo_release(&memo);
    for (int k = 0; k < 3; k++)
        free(s[k].items);
}

/* A share of a total that goes with the capacity; of one that does not. */
static void by_value(void **state)
{
    struct columns c;
    struct frag_capacity_spec fit = {.trace = &c.trace,
                                     .policy = named("torch"),
                                     .params =
                                         "per_process_memory_fraction:0.5"};
    struct frag_capacity_span span;

    (void)state;
    begin(&c);
    add(&c, FRAG_ALLOC, 0, 20 * MIB);
    assert_int_equal(frag_capacity_at(&fit, 39 * MIB, &span, NULL), FRAG_OK);
    assert_false(span.exact);
    assert_false(frag_capacity_survives(&span));
    assert_int_equal(span.from, 39 * MIB);
    assert_int_equal(span.to, 40 * MIB);
    assert_int_equal(frag_capacity_at(&fit, 40 * MIB, &span, NULL), FRAG_OK);
    assert_true(frag_capacity_survives(&span));
    assert_int_equal(span.to, 42 * MIB);

    fit.total = 40 * MIB;
    assert_int_equal(frag_capacity_at(&fit, 39 * MIB, &span, NULL), FRAG_OK);
    assert_span(&span, 20 * MIB, FRAG_UNLIMITED, FRAG_NEVER);
}

/* -- against every 2 MiB ------------------------------------------------- */

/* A run under one bound, without the walk's code. */
static struct frag_summary run_at(const struct frag_capacity_spec *fit,
                                  frag_size bound)
{
    const bool is_limit = fit->kind == FRAG_BOUND_LIMIT;
    struct frag_backend *arena = frag_arena_open(&(struct frag_arena_options){
        .capacity = is_limit ? FRAG_UNLIMITED : bound,
        .limit = is_limit ? bound + !bound : 0,
        .total = fit->total});
    struct frag_run run;
    struct frag_summary s;

    assert_non_null(arena);
    assert_int_equal(frag_replay(&(struct frag_replay){.trace = fit->trace,
                                                       .policy = fit->policy,
                                                       .params = fit->params,
                                                       .mem = arena,
                                                       .stop_at_oom = true,
                                                       .repeat = 1},
                                 &run, NULL),
                     FRAG_OK);
    s = run.summary;
    frag_run_free(&run);
    frag_arena_close(arena);
    return s;
}

static void assert_same(const struct frag_capacity_spec *fit,
                        const struct frag_capacity_span *span,
                        frag_size capacity)
{
    struct frag_summary s = run_at(fit, capacity);

    if (s.first_oom_event != span->run.first_oom_event ||
        s.peak_reserved != span->run.peak_reserved ||
        s.num_alloc_retries != span->run.num_alloc_retries)
        fail_msg("%s at %llu: OOM %lld, peak %llu; its span says %lld, %llu",
                 fit->policy->name, (unsigned long long)capacity,
                 (long long)s.first_oom_event,
                 (unsigned long long)s.peak_reserved,
                 (long long)span->run.first_oom_event,
                 (unsigned long long)span->run.peak_reserved);
}

/* With sanitizers, one bound in four is replayed; the other build replays all.
 */
static const frag_size stride = FRAG_CAPACITY_STEP * (FRAG_SANITIZED ? 4 : 1);

static void compare(const struct frag_capacity_spec *fit, frag_size from)
{
    const frag_size to = from + TRIES * FRAG_CAPACITY_STEP;
    struct frag_capacity_spans s = {0};
    size_t k = 0;

    assert_int_equal(frag_capacity_walk(fit, from, to, false, &s, NULL),
                     FRAG_OK);
    for (frag_size at = from; at < to; at += stride) {
        while (s.items[k].to <= at)
            k++;
        assert_in_range(at, s.items[k].from, s.items[k].to - 1);
        assert_same(fit, &s.items[k], at);
    }
    for (k = 0; k < s.count; k++) {
        assert_true(k == 0 || s.items[k].from == s.items[k - 1].to);
        if (s.items[k].exact && s.items[k].to != FRAG_UNLIMITED)
            assert_same(fit, &s.items[k], s.items[k].to - 1);
        assert_same(fit, &s.items[k], s.items[k].from);
    }
    free(s.items);
}

/* A plan is made anew for each capacity that is compared. */
static const char *params_of(const struct frag_policy *policy)
{
    return strcmp(policy->name, "plan") ? NULL : "effort=20000";
}

/* From the need on every bound survives, and the one below it fails. */
static void compare_need(const struct frag_capacity_spec *fit)
{
    struct frag_capacity_span unlimited, need;
    frag_size below;

    assert_int_equal(frag_capacity_at(fit, FRAG_UNLIMITED, &unlimited, NULL),
                     FRAG_OK);
    assert_int_equal(frag_capacity_need(fit, &unlimited, &need, NULL), FRAG_OK);
    assert_true(frag_capacity_survives(&need));
    below = need.from - (need.exact ? 1 : FRAG_CAPACITY_STEP);
    if (!run_at(fit, below).num_ooms)
        fail_msg("%s survives %llu, below its need of %llu", fit->policy->name,
                 (unsigned long long)below, (unsigned long long)need.from);
    for (frag_size at = need.from; at <= unlimited.used + 4 * MIB; at += stride)
        if (run_at(fit, at).num_ooms)
            fail_msg("%s fails at %llu, above its need of %llu",
                     fit->policy->name, (unsigned long long)at,
                     (unsigned long long)need.from);
}

static void every_policy(enum frag_bound_kind kind, frag_size total)
{
    struct columns c;

    for (uint32_t seed = 1; seed <= (FRAG_SANITIZED ? 1 : 2); seed++) {
        random_trace(&c, seed);
        for (size_t i = 0; frag_policies[i]; i++) {
            struct frag_capacity_spec fit = {.trace = &c.trace,
                                             .policy = frag_policies[i],
                                             .params =
                                                 params_of(frag_policies[i]),
                                             .kind = kind,
                                             .total = total};
            frag_size bound = run_at(&fit, FRAG_UNLIMITED).lower_bound;

            compare(&fit, frag_round_up(bound / 2, FRAG_CAPACITY_STEP));
            compare_need(&fit);
        }
    }
}

static void total_is_the_capacity(void **state)
{
    (void)state;
    every_policy(FRAG_BOUND_CAPACITY, 0);
}

static void total_stays(void **state)
{
    (void)state;
    every_policy(FRAG_BOUND_CAPACITY, FRAG_GIB);
}

static void a_limit_of_the_process(void **state)
{
    (void)state;
    every_policy(FRAG_BOUND_LIMIT, 0);
}

/* Two blocks of 22 MiB are freed before one of 30 is requested. At 0.4 of a
 * limit of 100 MiB, garbage collection returns them first; on a full device the
 * setting has no effect, as in PyTorch. */
static void garbage_needs_a_limit(void **state)
{
    struct columns c;
    struct frag_capacity_spec fit = {.trace = &c.trace,
                                     .policy = named("torch"),
                                     .params =
                                         "garbage_collection_threshold:0.4"};

    (void)state;
    begin(&c);
    add(&c, FRAG_ALLOC, 0, 22 * MIB);
    add(&c, FRAG_ALLOC, 1, 22 * MIB);
    add(&c, FRAG_FREE, 0, 0);
    add(&c, FRAG_FREE, 1, 0);
    add(&c, FRAG_ALLOC, 2, 30 * MIB);
    assert_int_equal(run_at(&fit, 100 * MIB).peak_reserved, 74 * MIB);
    fit.kind = FRAG_BOUND_LIMIT;
    assert_int_equal(run_at(&fit, 100 * MIB).peak_reserved, 44 * MIB);
    assert_int_equal(run_at(&fit, FRAG_UNLIMITED).peak_reserved, 74 * MIB);
}

/* A limit counts bytes, the device units of 2 MiB. */
static void a_limit_counts_bytes(void **state)
{
    struct columns c;
    struct frag_capacity_spec fit = {.trace = &c.trace,
                                     .policy = named("direct")};

    (void)state;
    begin(&c);
    add(&c, FRAG_ALLOC, 0, 3 * MIB);
    assert_int_equal(run_at(&fit, 3 * MIB).num_ooms, 1);
    fit.kind = FRAG_BOUND_LIMIT;
    assert_int_equal(run_at(&fit, 3 * MIB).num_ooms, 0);
    assert_int_equal(run_at(&fit, 3 * MIB - 1).num_ooms, 1);
}

static unsigned heaps;

static enum frag_err count_heaps(struct frag_heap *heap)
{
    heaps++;
    return named("rmm_arena")->init(heap);
}

/* A policy that takes all the memory of a device is not run at every 2 MiB of
 * 140 GiB. */
static void a_policy_that_takes_all(void **state)
{
    struct columns c;
    struct frag_policy counted = *named("rmm_arena");
    struct frag_capacity_spec fit = {
        .trace = &c.trace, .policy = &counted, .params = "fraction=1"};
    struct frag_capacity_span unlimited, need;

    (void)state;
    counted.init = count_heaps;
    random_trace(&c, 4);
    assert_int_equal(frag_capacity_at(&fit, FRAG_UNLIMITED, &unlimited, NULL),
                     FRAG_OK);
    assert_true(unlimited.used > 100 * FRAG_GIB);
    assert_int_equal(frag_capacity_need(&fit, &unlimited, &need, NULL),
                     FRAG_OK);
    assert_in_range(heaps, 100, 2000);
    assert_int_equal(run_at(&fit, need.from).num_ooms, 0);
    assert_int_equal(run_at(&fit, need.from - FRAG_CAPACITY_STEP).num_ooms, 1);
}

static void expandable_segments(void **state)
{
    struct columns c;
    struct frag_capacity_spec fit = {.trace = &c.trace,
                                     .policy = named("torch"),
                                     .params = "expandable_segments:True"};

    (void)state;
    random_trace(&c, 4);
    compare(&fit, 32 * MIB);
    fit.total = FRAG_GIB;
    compare(&fit, 32 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_staircase),
        cmocka_unit_test(first_ends_the_walk),
        cmocka_unit_test(a_retry_is_a_span),
        cmocka_unit_test(a_memo_serves_all_capacities),
        cmocka_unit_test(by_value),
        cmocka_unit_test(total_is_the_capacity),
        cmocka_unit_test(total_stays),
        cmocka_unit_test(a_limit_of_the_process),
        cmocka_unit_test(garbage_needs_a_limit),
        cmocka_unit_test(a_limit_counts_bytes),
        cmocka_unit_test(a_policy_that_takes_all),
        cmocka_unit_test(expandable_segments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
