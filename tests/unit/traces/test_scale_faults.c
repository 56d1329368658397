/* test_scale_faults.c - predicts a batch size when the host has no memory once:
 * at the first call, at the second, and so on, until a run meets no failure.
 * ASan detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/batch_job.h"
#include "tests/support/failing_malloc.h"
#include "traces/scale/scale.h"

static enum frag_err predict(const struct scale_recording *r,
                             struct frag_error *e)
{
    struct scaling s;
    struct scaled made;
    enum frag_err err;

    FRAG_TRY(scale_open(r, 2, &s, e));
    err = scale_make(&s, 16, NULL, &made, e);
    if (err == FRAG_OK)
        scaled_close(&made);
    scale_close(&s);
    return err;
}

static void every_allocation_can_fail(void **state)
{
    static struct batch_trace traces[2];
    const struct scale_recording r[] = {
        {4, batch_trace(&traces[0], &(struct batch_job){.batch = 4}), "a"},
        {8, batch_trace(&traces[1], &(struct batch_job){.batch = 8}), "b"},
    };
    enum frag_err err = FRAG_NOMEM;
    uint64_t k;

    (void)state;
    for (k = 1; err != FRAG_OK; k++) {
        struct frag_error error = {""};

        calls_to_failure = k;
        err = predict(r, &error);
        if (calls_to_failure == 0) {
            assert_int_equal(err, FRAG_NOMEM);
            assert_non_null(strstr(error.text, "the host has no memory for"));
        }
        calls_to_failure = 0;
    }
    assert_true(k > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
