/* test_record_faults.c - tests the import of recorder logs when the host has no
 * memory: at the first request for memory, at the second, and so on, until none
 * fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/failing_malloc.h"
#include "tests/support/record_calls.h"

static void no_memory_at_any_point_is_an_error_and_no_leak(void **state)
{
    unsigned char log[LOG_ROOM];
    const size_t size = write_log(log, all_kinds);
    uint64_t k = 0;
    bool met;

    (void)state;
    do {
        struct frag_trace *t = NULL;
        struct frag_error e = {""};
        enum frag_err err;

        calls_to_failure = ++k;
        err = import_log(log, size, &t, &e);
        met = !calls_to_failure;
        calls_to_failure = 0;
        assert_int_equal(err, met ? FRAG_NOMEM : FRAG_OK);
        assert_true((err == FRAG_OK) == (t != NULL));
        frag_trace_close(t);
    } while (met);
    assert_true(k > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_at_any_point_is_an_error_and_no_leak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
