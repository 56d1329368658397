/* test_summary_faults.c - makes a summary when the host has no memory once: at
 * the first call, at the second, and so on, until a run meets no failure. ASan
 * detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "policies/policies.h"
#include "sim/answers/summary/summary.h"
#include "tests/support/dead_job.h"
#include "tests/support/failing_malloc.h"

static struct frag_error error;

static void fail_everywhere(const struct frag_params *params)
{
    const struct cell_settings settings = {.backend = &cell_arena_backend,
                                           .costs = frag_costs_h200};
    const struct job j = {.steps = 3, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    const struct summary_spec spec = {.trace = t,
                                      .device = &t->devices[0],
                                      .event = 9,
                                      .params = params,
                                      .settings = &settings,
                                      .bound = FRAG_NO_BOUND};
    enum frag_err err;
    bool met = true;
    struct summary s;
    uint64_t k;

    for (k = 1; met; k++) {
        *error.text = 0;
        calls_to_failure = k;
        err = summary_make(&spec, &s, &error);
        met = calls_to_failure == 0;
        calls_to_failure = 0;
        /* Without memory to postpone the picture of a peak, a run succeeds. */
        assert_true(err == FRAG_OK || (met && err == FRAG_NOMEM));
        assert_error_says(err, error);
        if (err == FRAG_OK)
            summary_close(&s);
    }
    assert_true(k > 10);
    assert_int_equal(s.event, 9);
    frag_trace_close(t);
}

static void a_policy_survives(void **state)
{
    struct frag_params *params;

    (void)state;
    assert_int_equal(
        frag_params_read(&frag_policy_best_fit, NULL, &params, &error),
        FRAG_OK);
    fail_everywhere(params);
    free(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_survives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
