/* test_held_faults.c - groups live blocks and compares two moments when the
 * host has no memory once: at the first call, at the second, and so on, until a
 * run meets no failure. ASan detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/answers/held/difference.h"
#include "sim/answers/held/run_changes.h"
#include "tests/support/dead_job.h"
#include "tests/support/failing_malloc.h"

static struct frag_error error;

static enum frag_err compare(const struct frag_trace *t, enum holders_by by)
{
    const struct frag_device_trace *d = t->devices;
    const struct holders_options options = {.by = by, .steps = true};
    struct holders before, after;
    struct difference found;
    enum frag_err err;

    FRAG_TRY(holders_find(t, d, d->count / 2, &options, &before, &error));
    err = holders_find(t, d, d->count - 1, &options, &after, &error);
    if (err == FRAG_OK) {
        err = difference_find(&before, &after, &found, &error);
        if (err == FRAG_OK)
            difference_close(&found);
        holders_close(&after);
    }
    holders_close(&before);
    return err;
}

static enum frag_err compare_runs(void)
{
    char name[] = "a";
    struct frag_loaded_run run = {.id = {.trace.name = name, .policy = name}};
    const struct frag_loaded file = {.count = 1, .runs = &run};
    struct run_changes r;

    FRAG_TRY(run_changes_find(&file, &file, &r, &error));
    run_changes_close(&r);
    return FRAG_OK;
}

static enum frag_err work(const struct frag_trace *t)
{
    FRAG_TRY(compare(t, HOLDERS_BY_SIZE));
    FRAG_TRY(compare(t, HOLDERS_BY_AGE));
    return compare_runs();
}

static void every_allocation_can_fail(void **state)
{
    const struct job j = {
        .steps = 12, .leaks = true, .marks = true, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    enum frag_err err = FRAG_NOMEM;
    uint64_t k;

    (void)state;
    assert_non_null(t);
    for (k = 1; err == FRAG_NOMEM; k++) {
        *error.text = 0;
        calls_to_failure = k;
        err = work(t);
        if (calls_to_failure == 0) {
            assert_int_equal(err, FRAG_NOMEM);
            assert_non_null(strstr(error.text, "the host has no memory for"));
        }
        calls_to_failure = 0;
    }
    assert_int_equal(err, FRAG_OK);
    assert_true(k > 60);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
