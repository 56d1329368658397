/* test_explain_faults.c - explains the death of a job, and validates its
 * recording, when the host has no memory once: at the first request for memory,
 * at the second, and so on. Each error says what had no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/answers/explain/explain.h"
#include "sim/validate/validate.h"
#include "tests/support/dead_job.h"
#include "tests/support/failing_malloc.h"

static const struct frag_layout no_blocks;

static enum frag_err explain(const struct frag_trace *t, struct frag_error *e)
{
    const struct explain_options options = {.trace = t, .device = t->devices};
    struct explain x;

    FRAG_TRY(explain_make(&options, &x, e));
    explain_close(&x);
    return FRAG_OK;
}

static enum frag_err validate(const struct frag_trace *t, struct frag_error *e)
{
    struct frag_device_trace d = t->devices[0];
    const struct frag_validate spec = {
        .trace = t, .device = &d, .limit = FRAG_UNLIMITED};
    struct frag_validation v;

    d.recorded.has_actions = true;
    d.recorded.has_end = true;
    d.recorded.end = no_blocks;
    FRAG_TRY(frag_validate(&spec, &v, e));
    frag_validation_free(&v);
    return FRAG_OK;
}

static uint64_t fail_each(enum frag_err (*answer)(const struct frag_trace *t,
                                                  struct frag_error *e))
{
    const struct job job = {.steps = 4, .dies_in = 3, .dies_at = 5};
    struct frag_trace *t = job_trace(&job);
    uint64_t failures = 0;
    bool met = true;

    assert_non_null(t);
    for (uint64_t k = 1; met; k++) {
        struct frag_error error = {""};
        enum frag_err err;

        calls_to_failure = k;
        err = answer(t, &error);
        met = calls_to_failure == 0;
        calls_to_failure = 0;
        /* A policy may do without some of its memory. */
        if (err != FRAG_OK && (!met || err != FRAG_NOMEM))
            fail_msg("request %llu: %s: %s", (unsigned long long)k,
                     frag_err_text(err), error.text);
        assert_error_says(err, error);
        failures += err != FRAG_OK;
    }
    frag_trace_close(t);
    return failures;
}

static void every_error_says_what_had_no_memory(void **state)
{
    (void)state;
    assert_true(fail_each(explain) > 20);
    assert_true(fail_each(validate) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_says_what_had_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
