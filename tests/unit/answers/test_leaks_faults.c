/* test_leaks_faults.c - searches for leaks and makes the table of steps when
 * the host has no memory once: at the first call, at the second, and so on,
 * until a run meets no failure. ASan detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "policies/policy.h"
#include "sim/answers/steps/leaks.h"
#include "sim/answers/steps/step_table.h"
#include "tests/support/dead_job.h"
#include "tests/support/failing_malloc.h"

static const struct job job = {.steps = 16,
                               .varies = true,
                               .leaks = true,
                               .marks = true,
                               .dies_in = 14,
                               .dies_at = 8};

static enum frag_err find(const struct frag_trace *t, struct frag_error *e)
{
    struct leaks l;

    FRAG_TRY(leaks_find(t, t->devices, t->devices->count, NULL, &l, e));
    assert_int_equal(l.verdict, LEAKS_FOUND);
    leaks_close(&l);
    return FRAG_OK;
}

static enum frag_err tabulate(const struct frag_trace *t, struct frag_error *e)
{
    const struct cell_settings settings = {.costs = frag_costs_h200};
    struct step_spec spec = {
        .trace = t,
        .device = t->devices,
        .settings = &settings,
        .bound = FRAG_NO_BOUND,
    };
    const uint64_t failure = calls_to_failure;
    struct frag_params *policy;
    struct step_table table;
    enum frag_err err;

    calls_to_failure = 0;
    assert_int_equal(
        frag_params_read(frag_policy_find("torch"), "", &policy, e), FRAG_OK);
    spec.policy = policy;
    calls_to_failure = failure;
    err = step_table_make(&spec, &table, e);
    if (err == FRAG_OK)
        step_table_close(&table);
    free(policy);
    return err;
}

/* A policy may get along without some of its memory. */
static uint64_t count_failures(
    enum frag_err (*answer)(const struct frag_trace *t, struct frag_error *e))
{
    struct frag_trace *t = job_trace(&job);
    bool has_failed = true;
    uint64_t failures = 0;

    assert_non_null(t);
    for (uint64_t k = 1; has_failed; k++) {
        struct frag_error error = {""};
        enum frag_err err;

        calls_to_failure = k;
        err = answer(t, &error);
        has_failed = calls_to_failure == 0;
        calls_to_failure = 0;
        assert_true(err == FRAG_OK || (has_failed && err == FRAG_NOMEM));
        assert_error_says(err, error);
        failures += err != FRAG_OK;
    }
    frag_trace_close(t);
    return failures;
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    assert_true(count_failures(find) > 15);
    assert_true(count_failures(tabulate) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
