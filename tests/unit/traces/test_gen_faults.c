/* test_gen_faults.c - tests every generator when the host has no memory: at the
 * first request, and then at later requests, until a run meets no failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/failing_malloc.h"
#include "traces/gen/generator.h"

static void check(const char *name, const char *params)
{
    const struct frag_generator *g = frag_generator_find(name);
    enum frag_err err = FRAG_NOMEM;
    uint64_t met = 0;

    for (uint64_t k = 1; err != FRAG_OK; k += 1 + k / 16) {
        struct frag_trace *t = NULL;
        struct frag_error e = {""};

        calls_to_failure = k;
        err = frag_generate(g, params, 1, &t, &e);
        calls_to_failure = 0;
        assert_true(err == FRAG_OK || err == FRAG_NOMEM);
        assert_error_says(err, e);
        assert_true((err == FRAG_OK) == (t != NULL));
        met += err != FRAG_OK;
        frag_trace_close(t);
    }
    assert_true(met > 5);
}

static void a_full_host_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    check("stationary", "allocs=3000,live=50,streams=3");
    check("training", "steps=4,layers=5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_host_is_an_error_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
