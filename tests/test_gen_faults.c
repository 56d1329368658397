/* test_gen_faults.c - tests every generator when the host has no memory: at the
 * first request, and then at later requests, until a run meets no failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/failing_malloc.h"
#include "traces/gen/generator.h"

static char path[] = "/tmp/test_gen_faults.XXXXXX";

static void write_input(const char *text)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

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
    char params[96];

    (void)state;
    check("stationary", "allocs=3000,live=50,streams=3");
    check("training", "steps=4,layers=5");
    check("inference", "requests=40,running=8");
    check("tiling", "blocks=500");

    write_input("100, 1.0, 10.0\n7, 3.0, 2.0\n");
    snprintf(params, sizeof(params), "allocs=2000,live=100,profile=%s", path);
    check("fleetbench", params);
    write_input("op,id,bytes,stream\nalloc,1,100,0\nfree,1,0,0\n");
    snprintf(params, sizeof(params), "allocs=2000,trace=%s", path);
    check("fitted", params);
}

static int make_file(void **state)
{
    const int file = mkstemp(path);

    (void)state;
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_host_is_an_error_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
