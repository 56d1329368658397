/* test_steps_faults.c - completes the trace of a dead job when the host has no
 * memory once: at the first call, at the second, and so on, until a run meets
 * no failure. ASan detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/dead_job.h"
#include "tests/support/failing_malloc.h"
#include "traces/steps/complete.h"

static void every_allocation_can_fail(void **state)
{
    const struct job j = {
        .steps = 6, .varies = true, .dies_in = 5, .dies_at = 8};
    enum frag_err err = FRAG_NOMEM;
    uint64_t k;

    (void)state;
    for (k = 1; err != FRAG_OK; k++) {
        struct frag_error error = {""};
        struct frag_completion c;
        struct frag_trace *t = job_trace(&j);

        assert_non_null(t);
        calls_to_failure = k;
        err = frag_trace_complete(t, NULL, &c, &error);
        if (calls_to_failure == 0) {
            assert_int_equal(err, FRAG_NOMEM);
            assert_non_null(strstr(error.text, "the host has no memory for"));
        }
        calls_to_failure = 0;
        frag_trace_close(t);
    }
    assert_true(k > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
