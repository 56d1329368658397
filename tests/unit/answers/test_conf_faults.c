/* test_conf_faults.c - reads settings when the host has no memory once: at the
 * first call, at the second, and so on, until a run meets no failure. ASan
 * detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/answers/conf/conf.h"
#include "tests/support/failing_malloc.h"

static const char text[] =
    "expandable_segments:True,max_split_size_mb:64,unknown:1,"
    "garbage_collection_threshold:0.8,roundup_power2_divisions:[4:2,64:8],"
    "pinned_num_register_threads:3,max_non_split_rounding_mb:1,"
    "max_split_size_mb:128";

static void every_allocation_can_fail(void **state)
{
    const struct conf_input input = {
        .sources = {{"A", text}, {"B", ""}, {"C", "max_split_size_mb:64"}}};
    enum frag_err err = FRAG_NOMEM;
    uint64_t k;

    (void)state;
    for (k = 1; err != FRAG_OK; k++) {
        struct frag_error error = {""};
        struct conf_answer a;

        calls_to_failure = k;
        err = conf_read(&input, TORCH_MODEL, &a, &error);
        if (calls_to_failure == 0) {
            assert_int_equal(err, FRAG_NOMEM);
            assert_non_null(strstr(error.text, "the host has no memory"));
        }
        calls_to_failure = 0;
        conf_close(&a);
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
