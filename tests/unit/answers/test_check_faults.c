/* test_check_faults.c - asks about rules when the host has
 * no memory once: at the first call, at the second, and so on, until a run
 * meets no failure. ASan detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/answers/check/checks.h"
#include "tests/support/dead_job.h"
#include "tests/support/failing_malloc.h"

static const struct cell_settings cell = {.backend = &cell_arena_backend};
static const struct replay_settings settings = {.cell = &cell};

static enum frag_err ask_checks(const struct input *in, struct frag_error *e)
{
    struct gate gate = {.measure = gate_measures};
    const struct gates gates = {.items = &gate, .count = 1};
    const struct check_question q = {.gates = &gates,
                                     .capacity = 64 * FRAG_MIB};
    struct checks c = {.question = &q};
    const enum frag_err err = checks_add(&c, &settings, in, e);

    assert_int_equal(c.count, err == FRAG_OK);
    checks_free(&c);
    return err;
}

static enum frag_err read_rules(const struct input *in, struct frag_error *e)
{
    static const char path[] = FRAG_SOURCE_DIR "/tests/examples/nightly.rules";
    struct gates g;
    const enum frag_err err = gates_read(path, &g, e);

    (void)in;
    gates_free(&g);
    return err;
}

static void fail_each(enum frag_err (*ask)(const struct input *in,
                                           struct frag_error *e),
                      uint64_t least)
{
    const struct job j = {.steps = 6, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    const struct input in = {t, t->devices, "job"};
    bool failed = true;
    uint64_t k;

    for (k = 1; failed; k++) {
        struct frag_error error = {""};
        enum frag_err err;

        calls_to_failure = k;
        err = ask(&in, &error);
        failed = calls_to_failure == 0;
        calls_to_failure = 0;
        if (err == FRAG_OK)
            continue; /* a replay goes on without some of its memory */
        assert_int_equal(err, FRAG_NOMEM);
        assert_error_says(err, error);
    }
    assert_true(k > least);
    frag_trace_close(t);
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    fail_each(ask_checks, 20);
    fail_each(read_rules, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
