/* test_summary.c - tests the text of PyTorch's memory summary, the counters of
 * any policy, and runs that end at an event. check_summary.py compares them
 * with PyTorch's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policies.h"
#include "sim/answers/summary/summary.h"
#include "sim/arena/arena.h"
#include "tests/support/dead_job.h"

static struct frag_error error;

/* ---- the text ---- */

static char *counters_text(const struct summary *s)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    summary_print_counters(s, out);
    fclose(out);
    return text;
}

static void assert_has(const char *text, const char *line)
{
    if (!strstr(text, line))
        fail_msg("expected the line\n%s\nin\n%s", line, text);
}

/* The units that memory_summary chooses: each column of a group of rows has the
 * unit of its first row; a size is divided from 768 Ki on, a count from 750
 * thousand on. */
static void units_are_those_of_pytorch(void **state)
{
    struct summary s = {.device = 12, .has_pools = true, .is_pytorch = true};
    struct frag_torch_count(*stat)[FRAG_TORCH_POOLS_COUNT] = s.counters.stat;
    char *text;

    (void)state;
    stat[FRAG_TORCH_ALLOCATED_BYTES][FRAG_TORCH_ALL] =
        (struct frag_torch_count){786431, 786432, (frag_size)768 << 20,
                                  ((frag_size)768 << 30) - 1};
    stat[FRAG_TORCH_ALLOCATED_BYTES][FRAG_TORCH_SMALL] =
        (struct frag_torch_count){1, 1023, 1 << 20, 1 << 20};
    stat[FRAG_TORCH_RESERVED_BYTES][FRAG_TORCH_ALL] = (struct frag_torch_count){
        (frag_size)768 << 30, (frag_size)768 << 40, (frag_size)768 << 50, 0};
    stat[FRAG_TORCH_ALLOCATION][FRAG_TORCH_ALL] =
        (struct frag_torch_count){749999, 750000, 749999999, 750000000};
    stat[FRAG_TORCH_ALLOCATION][FRAG_TORCH_LARGE] =
        (struct frag_torch_count){7, 1999, 2000, 1999999};
    s.counters.num_ooms = 3;
    s.counters.num_alloc_retries = 12345;
    text = counters_text(&s);
    assert_has(text,
               "|                  PyTorch CUDA memory summary, device ID "
               "12                |\n");
    assert_has(text, "|            CUDA OOMs: 3            |        cudaMalloc "
                     "retries: 12345     |\n");
    assert_has(text, "| Allocated memory      | 786431 B   |    768 KiB |    "
                     "768 MiB | 786431 MiB |\n");
    assert_has(text, "|       from small pool |      1 B   |      0 KiB |      "
                     "1 MiB |      1 MiB |\n");
    assert_has(text, "| GPU reserved memory   |    768 GiB |    768 TiB |    "
                     "768 PiB |      0 B   |\n");
    assert_has(text, "| Allocations           |  749999    |     750 K  |  "
                     "749999 K  |     750 M  |\n");
    assert_has(text,
               "|       from large pool |       7    |       1 K  |       "
               "2 K  |       1 M  |\n");
    free(text);
}

static void a_policy_without_pools_has_no_rows_of_them(void **state)
{
    const struct summary s = {.has_pools = false};
    char *text = counters_text(&s);
    size_t lines = 0;

    (void)state;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 6 + 2 * 9 + 4 + 1);
    assert_null(strstr(text, "pool"));
    free(text);
}

/* ---- runs that end at an event ---- */

static struct frag_run run_of(const struct frag_device_trace *d,
                              const struct frag_policy *policy, uint64_t events)
{
    const struct frag_arena_options options = {.capacity = FRAG_UNLIMITED};
    struct frag_replay r = {.trace = d,
                            .policy = policy,
                            .mem = frag_arena_open(&options),
                            .events = events};
    struct frag_run run;

    assert_int_equal(frag_replay(&r, &run, &error), FRAG_OK);
    frag_arena_close(r.mem);
    run.summary.ns_per_event = 0;
    return run;
}

/* The first events of a trace give what a trace of only these events gives. */
static void a_run_can_end_at_any_event(void **state)
{
    const struct job j = {.steps = 4, .varies = true, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    const struct frag_device_trace *d = &t->devices[0];

    (void)state;
    for (uint64_t events = 1; events <= d->count; events++) {
        struct frag_device_trace cut = *d;
        struct frag_run part = run_of(d, &frag_policy_best_fit, events), whole;

        cut.count = events;
        whole = run_of(&cut, &frag_policy_best_fit, 0);
        assert_memory_equal(&part.summary, &whole.summary,
                            sizeof(part.summary));
        assert_memory_equal(&part.end, &whole.end, sizeof(part.end));
        assert_int_equal(part.summary.events, events);
        frag_run_free(&part);
        frag_run_free(&whole);
    }
    frag_trace_close(t);
}

/* A policy that knows the future knows what follows the event, too: its plan is
 * that of the whole trace. */
static void a_plan_is_made_for_the_whole_trace(void **state)
{
    const struct job j = {.steps = 4, .varies = true, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    const struct frag_device_trace *d = &t->devices[0];
    struct frag_run whole = run_of(d, &frag_policy_plan, 0);
    struct frag_run part = run_of(d, &frag_policy_plan, 1);

    (void)state;
    assert_int_equal(part.end.reserved, whole.summary.peak_reserved);
    assert_true(part.end.reserved > part.end.requested);
    frag_run_free(&whole);
    frag_run_free(&part);
    frag_trace_close(t);
}

/* ---- counters of any policy ---- */

static struct summary summary_of(const struct frag_trace *t, uint64_t event,
                                 const struct frag_policy *policy)
{
    const struct cell_settings settings = {.backend = &cell_arena_backend,
                                           .costs = frag_costs_h200};
    struct frag_params *params;
    struct summary_spec spec = {.trace = t,
                                .device = &t->devices[0],
                                .event = event,
                                .settings = &settings,
                                .bound = FRAG_NO_BOUND};
    struct summary s;

    assert_int_equal(frag_params_read(policy, NULL, &params, &error), FRAG_OK);
    spec.params = params;
    assert_int_equal(summary_make(&spec, &s, &error), FRAG_OK);
    free(params);
    return s;
}

/* Every known counter of the policy `direct`, by counting in the trace: it
 * allocates each block from the device and returns it at once. */
static void counters_of_a_policy_are_counted(void **state)
{
    const struct job j = {.steps = 3, .varies = true, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    const struct frag_device_trace *d = &t->devices[0];
    uint64_t allocs = 0, frees = 0, bytes = 0, most = 0;

    (void)state;
    for (uint64_t i = 0; i < d->count; i++) {
        struct summary s = summary_of(t, i, &frag_policy_direct);
        const struct frag_torch_count *n, *granted;

        allocs += d->op[i] == FRAG_ALLOC;
        frees += d->op[i] == FRAG_FREE;
        bytes += d->bytes[i];
        most = allocs - frees > most ? allocs - frees : most;
        assert_false(s.has_pools);
        n = s.counters.stat[FRAG_TORCH_ALLOCATION];
        assert_int_equal(n->allocated, allocs);
        assert_int_equal(n->freed, frees);
        assert_int_equal(n->current, allocs - frees);
        assert_int_equal(n->peak, most);
        n = s.counters.stat[FRAG_TORCH_SEGMENT];
        assert_int_equal(n->allocated, allocs);
        assert_int_equal(n->freed, frees);
        n = s.counters.stat[FRAG_TORCH_REQUESTED_BYTES];
        assert_int_equal(n->allocated, bytes);
        granted = s.counters.stat[FRAG_TORCH_ALLOCATED_BYTES];
        n = s.counters.stat[FRAG_TORCH_RESERVED_BYTES];
        assert_memory_equal(n, granted, sizeof(*n));
        n = s.counters.stat[FRAG_TORCH_ACTIVE];
        assert_int_equal(n->peak, SUMMARY_UNKNOWN);
        n = s.counters.stat[FRAG_TORCH_INACTIVE_SPLIT];
        assert_int_equal(n->current, SUMMARY_UNKNOWN);
        summary_close(&s);
    }
    assert_int_equal(allocs + frees, d->count);
    frag_trace_close(t);
}

static void unknown_counters_are_dashes(void **state)
{
    const struct job j = {.steps = 3, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    struct summary s = summary_of(t, 5, &frag_policy_direct);
    char *text = counters_text(&s);

    (void)state;
    assert_has(text, "|                    direct memory summary, device ID 0  "
                     "                   |\n");
    assert_has(text,
               "| Non-releasable allocs |       -    |       -    |       "
               "-    |       -    |\n");
    assert_null(strstr(text, "pool"));
    free(text);
    summary_close(&s);
    frag_trace_close(t);
}

/* ---- what cannot be answered ---- */

static void faults_are_named(void **state)
{
    const struct job j = {.steps = 3, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    struct frag_device_trace *d = &t->devices[0];
    struct summary_spec spec = {
        .trace = t, .device = d, .event = d->count, .bound = FRAG_NO_BOUND};
    struct summary s = {.event = 7};

    (void)state;
    assert_int_equal(summary_make(&spec, &s, &error), FRAG_INVALID);
    assert_non_null(strstr(error.text, "expected an event below"));
    spec.event = 0;
    d->recorded.has_actions = false;
    assert_false(summary_has_recorded(d));
    assert_int_equal(summary_make(&spec, &s, &error), FRAG_UNSUPPORTED);
    assert_int_equal(s.event, 7);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_those_of_pytorch),
        cmocka_unit_test(a_policy_without_pools_has_no_rows_of_them),
        cmocka_unit_test(a_run_can_end_at_any_event),
        cmocka_unit_test(a_plan_is_made_for_the_whole_trace),
        cmocka_unit_test(counters_of_a_policy_are_counted),
        cmocka_unit_test(unknown_counters_are_dashes),
        cmocka_unit_test(faults_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
