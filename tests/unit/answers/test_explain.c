/* test_explain.c - tests the explanation of a failed request on traces whose
 * cause is known by construction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "sim/answers/explain/explain.h"
#include "sim/arena/arena.h"
#include "tests/support/dead_job.h"
#include "traces/build/build.h"

static struct frag_error error;

/* ---- traces ---- */

/* A script: "+ID SIZE STREAM" allocates MiB, "-ID" frees. */
struct line {
    char op;
    uint64_t id;
    frag_size mib;
    uint64_t stream;
};

static struct frag_trace *script(const struct line *lines, size_t count)
{
    struct frag_build *b = frag_build_open("script", "test");
    struct frag_trace *t = NULL;

    for (size_t i = 0; i < count; i++)
        assert_int_equal(
            frag_build_event(b, 0, lines[i].op == '+' ? FRAG_ALLOC : FRAG_FREE,
                             lines[i].id, lines[i].mib << 20, lines[i].stream,
                             i, &error),
            FRAG_OK);
    assert_int_equal(frag_build_finish(b, NULL, &t, &error), FRAG_OK);
    frag_build_close(b);
    return t;
}

#define SCRIPT(lines) script(lines, sizeof(lines) / sizeof(*(lines)))

/* What the settings would do; none is the one that the trace has. */
static struct tune_ladder *climb(const struct frag_trace *t,
                                 struct frag_bound bound)
{
    static struct cell_settings settings;
    static struct tune_case one;
    static struct tune_ladder l;
    struct frag_completion c = {.reach = FRAG_REACH_WHOLE};

    settings = (struct cell_settings){.backend = &cell_arena_backend,
                                      .costs = frag_costs_h200,
                                      .stop_at_oom = true};
    one = (struct tune_case){.name = "job",
                             .trace = t,
                             .device = &t->devices[0],
                             .bound = bound,
                             .recorded = FRAG_NO_BOUND,
                             .completion = c};
    l = (struct tune_ladder){.settings = &settings,
                             .cases = &one,
                             .case_count = 1,
                             .version = 10,
                             .on = {.threads = 1}};
    assert_int_equal(tune_climb(&l, &error), FRAG_OK);
    return &l;
}

static void explained(const struct frag_trace *t, struct explain_options o,
                      struct explain *x)
{
    struct tune_ladder *l = o.bound.bytes ? climb(t, o.bound) : NULL;

    o.trace = t;
    o.device = &t->devices[0];
    o.ladder = l;
    assert_int_equal(explain_make(&o, x, &error), FRAG_OK);
    if (l)
        tune_ladder_close(l);
}

static void explained_at(const struct frag_trace *t, frag_size mib,
                         struct explain *x)
{
    explained(t,
              (struct explain_options){.bound = frag_capacity_bound(mib << 20)},
              x);
}

static const struct explain_change *change(const struct explain *x,
                                           const char *text)
{
    for (uint64_t i = 0; i < x->change_count; i++)
        if (strstr(x->changes[i].text, text))
            return &x->changes[i];
    fail_msg("no change \"%s\"", text);
    return NULL;
}

/* ---- causes ---- */

static void live_blocks_that_do_not_fit_are_demand(void **state)
{
    static const struct line lines[] = {{'+', 1, 600, 0}, {'+', 2, 600, 0}};
    struct frag_trace *t = SCRIPT(lines);
    struct explain x;

    (void)state;
    explained_at(t, 1000, &x);
    assert_true(x.failed);
    assert_int_equal(x.event, 1);
    assert_int_equal(x.request, 600 * FRAG_MIB);
    assert_int_equal(x.reserved, 600 * FRAG_MIB);
    assert_int_equal(x.unreserved, 400 * FRAG_MIB);
    assert_int_equal(x.cause, EXPLAIN_DEMAND);
    assert_non_null(strstr(x.evidence, "600 MiB"));
    /* More memory serves it, no setting does. */
    assert_false(change(&x, "expandable_segments:True")->served);
    assert_in_range(change(&x, "a capacity of")->bytes, 200 * FRAG_MIB,
                    202 * FRAG_MIB);
    explain_close(&x);
    frag_trace_close(t);
}

/* Of 800 MiB that were cut into eight, every second piece is free. */
static const struct line combed[] = {
    {'+', 1, 800, 0},  {'-', 1, 0, 0},    {'+', 11, 100, 0}, {'+', 12, 100, 0},
    {'+', 13, 100, 0}, {'+', 14, 100, 0}, {'+', 15, 100, 0}, {'+', 16, 100, 0},
    {'+', 17, 100, 0}, {'+', 18, 100, 0}, {'-', 11, 0, 0},   {'-', 13, 0, 0},
    {'-', 15, 0, 0},   {'-', 17, 0, 0},   {'+', 2, 150, 0},
};
enum { COMBED = sizeof(combed) / sizeof(*combed) };

static void small_holes_are_fragmentation(void **state)
{
    struct line lines[COMBED + 1];
    const struct explain_change *freed;
    struct frag_trace *t;
    struct explain x;

    (void)state;
    memcpy(lines, combed, sizeof(combed));
    lines[COMBED] = (struct line){'-', 12, 0, 0}; /* after the request */
    t = SCRIPT(lines);
    explained_at(t, 900, &x);
    assert_int_equal(x.cause, EXPLAIN_FRAGMENTATION);
    assert_int_equal(x.event, 14);
    assert_int_equal(x.live, 400 * FRAG_MIB);
    assert_int_equal(x.cached, 400 * FRAG_MIB);
    assert_int_equal(x.own_largest, 100 * FRAG_MIB);
    assert_int_equal(x.holes, 4);
    assert_int_equal(x.space_count, 1);
    assert_int_equal(x.spaces[0].segments, 1);
    assert_int_equal(x.pin_count, 0);
    assert_int_equal(change(&x, "expandable_segments:True")->result,
                     EXPLAIN_SURVIVES);
    assert_false(change(&x, "directly before the request")->served);
    freed = change(&x, "free the block");
    assert_true(freed->served);
    assert_int_equal(freed->bytes, 100 * FRAG_MIB);
    assert_int_equal(freed->event, 3);
    assert_in_range(change(&x, "a capacity of")->bytes, 50 * FRAG_MIB,
                    52 * FRAG_MIB);
    explain_close(&x);
    frag_trace_close(t);
}

/* A hole of 6 MiB is pinned: the request fails although it would fit. */
static void a_full_limit_is_demand(void **state)
{
    const struct {
        frag_size request;
        enum explain_cause cause;
    } rows[] = {{990, EXPLAIN_DEMAND}, {200, EXPLAIN_FRAGMENTATION}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct line lines[] = {
            {'+', 1, 12, 0}, {'-', 1, 0, 0}, {'+', 2, 6, 0},
            {'+', 3, 6, 0},  {'-', 2, 0, 0}, {'+', 4, rows[i].request, 0}};
        const frag_size limit = rows[i].request + 10;
        struct frag_trace *t = SCRIPT(lines);
        struct explain x;

        explained(t,
                  (struct explain_options){
                      .bound = frag_bound_at(limit << 20, FRAG_BOUND_LIMIT)},
                  &x);
        assert_true(x.failed);
        assert_int_equal(x.limit_source, EXPLAIN_LIMIT_PROCESS);
        assert_int_equal(x.need, (rows[i].request + 6) * FRAG_MIB);
        assert_int_equal(x.cause, rows[i].cause);
        explain_close(&x);
        frag_trace_close(t);
    }
}

/* Expandable segments return 40 of the 50 MiB that are free. */
static void what_a_setting_survives_is_no_demand(void **state)
{
    static const struct line lines[] = {{'+', 1, 100, 0}, {'-', 1, 0, 0},
                                        {'+', 2, 50, 0},  {'+', 3, 50, 0},
                                        {'-', 2, 0, 0},   {'+', 4, 940, 0}};
    struct frag_trace *t = SCRIPT(lines);
    struct explain x;

    (void)state;
    explained_at(t, 1004, &x);
    assert_int_equal(x.need, 990 * FRAG_MIB);
    assert_int_equal(change(&x, "expandable_segments:True")->result,
                     EXPLAIN_SURVIVES);
    assert_int_equal(x.cause, EXPLAIN_FRAGMENTATION);
    explain_close(&x);
    frag_trace_close(t);
}

/* The combed trace goes on: a larger request follows the one that fails. */
static void a_served_request_is_no_promise(void **state)
{
    struct line lines[COMBED + 2];
    const struct explain_change *c;
    struct frag_trace *t;
    struct explain x;

    (void)state;
    memcpy(lines, combed, sizeof(combed));
    lines[COMBED] = (struct line){'-', 2, 0, 0};
    lines[COMBED + 1] = (struct line){'+', 3, 520, 0};
    t = SCRIPT(lines);
    explained_at(t, 900, &x);
    assert_int_equal(x.event, COMBED - 1);
    c = change(&x, "expandable_segments:True");
    assert_true(c->served);
    assert_int_equal(c->result, EXPLAIN_FAILS);
    assert_int_equal(c->fails_at, COMBED + 1);
    c = change(&x, "a capacity of");
    assert_int_equal(c->result, EXPLAIN_SURVIVES);
    assert_int_equal(c->fails_at, UINT64_MAX);
    assert_int_equal(x.need, 920 * FRAG_MIB);
    assert_int_equal(x.cause, EXPLAIN_DEMAND);
    assert_in_range(c->limit, 1320 * FRAG_MIB, 1322 * FRAG_MIB);
    explain_close(&x);
    frag_trace_close(t);
}

static void memory_of_another_stream_is_cache(void **state)
{
    static const struct line lines[] = {
        {'+', 1, 500, 7}, {'-', 1, 0, 0}, {'+', 2, 50, 7}, {'+', 3, 440, 0}};
    struct frag_trace *t = SCRIPT(lines);
    struct explain x;

    (void)state;
    explained_at(t, 900, &x);
    assert_int_equal(x.cause, EXPLAIN_CACHE);
    assert_int_equal(x.other_cached, 450 * FRAG_MIB);
    assert_int_equal(x.own_cached, 0);
    /* The block of 50 MiB keeps 500 MiB. */
    assert_int_equal(x.pin_count, 1);
    assert_int_equal(x.pins[0].size, 500 * FRAG_MIB);
    assert_int_equal(x.pins[0].cached, 450 * FRAG_MIB);
    assert_int_equal(x.pins[0].blocks, 1);
    assert_int_equal(x.pins[0].bytes, 50 * FRAG_MIB);
    assert_int_equal(x.pins[0].event, 2);
    assert_true(change(&x, "on the stream of this one")->served);
    explain_close(&x);
    frag_trace_close(t);
}

static void a_leak_is_growth(void **state)
{
    const struct job leaks = {
        .steps = 300, .leaks = true, .marks = true, .dies_in = UINT64_MAX};
    struct job silent = leaks;
    struct frag_trace *t = job_trace(&leaks);
    struct explain x;

    (void)state;
    explained_at(t, 150, &x);
    assert_int_equal(x.cause, EXPLAIN_GROWTH);
    assert_in_range(x.steps, 100, 299);
    assert_int_equal(x.grown % (256 << 10), 0);
    assert_int_equal(explain_program_advice(&x)->kind, EXPLAIN_STEP_FREE);
    explain_close(&x);
    frag_trace_close(t);

    /* Without marks and stacks the same blocks may be those of one pass. */
    silent.marks = false;
    t = job_trace(&silent);
    explained_at(t, 150, &x);
    assert_int_equal(x.grown, 0);
    assert_int_not_equal(x.cause, EXPLAIN_GROWTH);
    explain_close(&x);
    frag_trace_close(t);
}

/* ---- recorded failures ---- */

enum { FREE = 50 }; /* MiB that can be had when the request fails */

static struct frag_trace *log_of(const struct frag_entry *entries, size_t count)
{
    struct frag_build *b = frag_build_open("recorded", "test");
    struct frag_trace *t = NULL;

    for (size_t i = 0; i < count; i++)
        assert_int_equal(frag_build_entry(b, 0, &entries[i], i, &error),
                         FRAG_OK);
    assert_int_equal(frag_build_finish(b, NULL, &t, &error), FRAG_OK);
    frag_build_close(b);
    return t;
}

/* A recording: 100 MiB are live, and a request of 200 MiB fails. */
static struct frag_trace *recorded(frag_size device_free)
{
    const struct frag_entry entries[] = {
        {.kind = FRAG_ENTRY_SEGMENT_ALLOC,
         .addr = 1 << 30,
         .size = 100 * FRAG_MIB},
        {.kind = FRAG_ENTRY_ALLOC, .addr = 1 << 30, .size = 100 * FRAG_MIB},
        {.kind = FRAG_ENTRY_OOM, .addr = device_free, .size = 200 * FRAG_MIB},
    };
    return log_of(entries, sizeof(entries) / sizeof(*entries));
}

static void memory_outside_is_told_from_demand(void **state)
{
    struct frag_trace *t = recorded(FREE * FRAG_MIB + FRAG_DRIVER_KEEPS);
    struct explain x;

    (void)state;
    explained(t, (struct explain_options){.total = 80 * FRAG_GIB}, &x);
    assert_true(x.reproduced);
    assert_int_equal(x.limit_source, EXPLAIN_LIMIT_DEVICE);
    assert_int_equal(x.bound.bytes, (100 + FREE) * FRAG_MIB);
    assert_int_equal(x.outside, 80 * FRAG_GIB - x.bound.bytes);
    assert_int_equal(x.cause, EXPLAIN_OUTSIDE);
    explain_close(&x);
    /* Without the size of the device nothing is known about it. */
    explained(t, (struct explain_options){0}, &x);
    assert_int_equal(x.outside, 0);
    assert_int_equal(x.cause, EXPLAIN_DEMAND);
    explain_close(&x);
    frag_trace_close(t);
}

/* As an H200 refused it: the device reports more as free than was wanted. */
static void a_device_that_reports_enough_as_free_was_full(void **state)
{
    struct frag_trace *t = recorded(201 * FRAG_MIB + FRAG_MIB / 2);
    struct explain x;

    (void)state;
    explained(t, (struct explain_options){0}, &x);
    assert_int_equal(x.limit_source, EXPLAIN_LIMIT_DEVICE);
    explain_close(&x);
    frag_trace_close(t);
}

/* The device had 300 MiB for PyTorch; when the request fails, it has 50. */
static void memory_that_others_took_is_outside(void **state)
{
    static const struct frag_entry entries[] = {
        {.kind = FRAG_ENTRY_SEGMENT_ALLOC,
         .addr = 1 << 30,
         .size = 300 * FRAG_MIB},
        {.kind = FRAG_ENTRY_ALLOC, .addr = 1 << 30, .size = 300 * FRAG_MIB},
        {.kind = FRAG_ENTRY_FREE_REQUESTED,
         .addr = 1 << 30,
         .size = 300 * FRAG_MIB},
        {.kind = FRAG_ENTRY_FREE_COMPLETED,
         .addr = 1 << 30,
         .size = 300 * FRAG_MIB},
        {.kind = FRAG_ENTRY_SEGMENT_FREE,
         .addr = 1 << 30,
         .size = 300 * FRAG_MIB},
        {.kind = FRAG_ENTRY_OOM,
         .addr = FREE * FRAG_MIB + FRAG_DRIVER_KEEPS,
         .size = 400 * FRAG_MIB},
    };
    struct frag_trace *t = log_of(entries, sizeof(entries) / sizeof(*entries));
    struct explain x;

    (void)state;
    explained(t, (struct explain_options){.total = 80 * FRAG_GIB}, &x);
    assert_int_equal(x.bound.bytes, FREE * FRAG_MIB);
    assert_false(x.reproduced);
    assert_int_equal(x.reserved, 0);
    assert_int_equal(x.cause, EXPLAIN_OUTSIDE);
    explain_close(&x);
    frag_trace_close(t);
}

static void a_limit_is_given_or_inferred(void **state)
{
    struct frag_trace *t = recorded(60 * FRAG_GIB);
    struct explain x;

    (void)state;
    explained(t, (struct explain_options){.total = 80 * FRAG_GIB}, &x);
    assert_int_equal(x.limit_source, EXPLAIN_LIMIT_INFERRED);
    assert_int_equal(x.limit_least, 100 * FRAG_MIB);
    assert_int_equal(x.limit_most, 300 * FRAG_MIB - 1);
    assert_non_null(
        strstr(x.evidence, "the process limit of 100 MiB to 300 MiB"));
    assert_in_range(x.bound.bytes, 199 * FRAG_MIB, 201 * FRAG_MIB);
    assert_true(x.reproduced);
    assert_int_equal(x.outside, 0);
    explain_close(&x);
    t->limit = 256 * FRAG_MIB;
    explained(t, (struct explain_options){0}, &x);
    assert_int_equal(x.limit_source, EXPLAIN_LIMIT_GIVEN);
    assert_int_equal(x.bound.bytes, 256 * FRAG_MIB);
    assert_int_equal(x.cause, EXPLAIN_DEMAND);
    explain_close(&x);
    frag_trace_close(t);
}

static void an_event_that_did_not_fail_is_refused(void **state)
{
    struct frag_trace *t = recorded(60 * FRAG_GIB);
    struct explain_options o = {
        .trace = t, .device = &t->devices[0], .at = "0"};
    struct explain x;

    (void)state;
    assert_int_equal(explain_make(&o, &x, &error), FRAG_INVALID);
    assert_non_null(strstr(error.text, "an event at which the recording"));
    o.at = "1";
    assert_int_equal(explain_make(&o, &x, &error), FRAG_OK);
    explain_close(&x);
    frag_trace_close(t);
}

/* ---- without a failure ---- */

static void a_trace_without_failure_has_no_cause(void **state)
{
    struct frag_trace *t = SCRIPT(combed);
    struct explain x;

    (void)state;
    explained(t, (struct explain_options){0}, &x);
    assert_false(x.failed);
    assert_int_equal(x.cause, EXPLAIN_NONE);
    assert_int_equal(x.change_count, 0);
    assert_int_equal(x.live, 550 * FRAG_MIB);
    explain_close(&x);
    explained_at(t, 2000, &x);
    assert_false(x.failed);
    explain_close(&x);
    /* What the program never frees belongs to it. */
    explained_at(t, 900, &x);
    assert_null(explain_served_by(&x, EXPLAIN_FREE));
    explain_close(&x);
    frag_trace_close(t);
}

static struct frag_trace *snapshot(bool has_segment)
{
    const struct frag_snapshot_segment segment = {.addr = 1 << 30,
                                                  .size = 20 * FRAG_MIB};
    const struct frag_snapshot_block blocks[] = {
        {.size = 2 * FRAG_MIB,
         .requested = 2 * FRAG_MIB,
         .state = FRAG_ACTIVE_ALLOCATED},
        {.size = 18 * FRAG_MIB, .state = FRAG_INACTIVE},
    };
    struct frag_build *b = frag_build_open("snapshot", "test");
    struct frag_trace *t = NULL;

    assert_int_equal(frag_build_device(b, 0, &error), FRAG_OK);
    if (has_segment) {
        assert_int_equal(frag_build_segment(b, 0, &segment, 0, &error),
                         FRAG_OK);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(frag_build_block(b, 0, &blocks[i], i, &error),
                             FRAG_OK);
    }
    assert_int_equal(frag_build_finish(b, NULL, &t, &error), FRAG_OK);
    frag_build_close(b);
    return t;
}

static void a_snapshot_without_history_shows_its_segments(void **state)
{
    struct frag_trace *t = snapshot(true);
    struct explain x;

    (void)state;
    explained(t, (struct explain_options){0}, &x);
    assert_false(x.failed);
    assert_false(x.replayed);
    assert_int_equal(x.live, 2 * FRAG_MIB);
    assert_int_equal(x.cached, 18 * FRAG_MIB);
    assert_int_equal(x.pin_count, 1);
    explain_close(&x);
    frag_trace_close(t);
}

static void an_empty_snapshot_is_refused(void **state)
{
    struct frag_trace *t = snapshot(false);
    const struct explain_options o = {.trace = t, .device = &t->devices[0]};
    struct explain x;

    (void)state;
    assert_int_equal(explain_make(&o, &x, &error), FRAG_CORRUPT);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_blocks_that_do_not_fit_are_demand),
        cmocka_unit_test(small_holes_are_fragmentation),
        cmocka_unit_test(a_full_limit_is_demand),
        cmocka_unit_test(what_a_setting_survives_is_no_demand),
        cmocka_unit_test(a_served_request_is_no_promise),
        cmocka_unit_test(memory_of_another_stream_is_cache),
        cmocka_unit_test(a_leak_is_growth),
        cmocka_unit_test(memory_outside_is_told_from_demand),
        cmocka_unit_test(a_device_that_reports_enough_as_free_was_full),
        cmocka_unit_test(memory_that_others_took_is_outside),
        cmocka_unit_test(a_limit_is_given_or_inferred),
        cmocka_unit_test(an_event_that_did_not_fail_is_refused),
        cmocka_unit_test(a_trace_without_failure_has_no_cause),
        cmocka_unit_test(a_snapshot_without_history_shows_its_segments),
        cmocka_unit_test(an_empty_snapshot_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
