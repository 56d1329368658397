/* test_check.c - tests the rules of `fragsim check`, and the monitors, on
 * numbers that are known in closed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/answers/check/checks.h"
#include "tests/support/dead_job.h"

static struct frag_error error;

/* ---- rules ---- */

static enum frag_err read_text(const char *text, struct gates *out)
{
    char path[] = "/tmp/fragsim-rules-XXXXXX";
    const int file = mkstemp(path);
    enum frag_err err;

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    err = gates_read(path, out, &error);
    unlink(path);
    return err;
}

static void rules_are_read(void **state)
{
    struct gates g;
    char text[GATE_TEXT];

    (void)state;
    assert_int_equal(
        read_text("# nightly\n\n  policy torch:max_split_size_mb:64 # why\n"
                  "capacity 80GiB\r\npeak_reserved<=20GiB\n"
                  "fragmentation >= 25 %\nfragmentation <= 0.25\n"
                  "growth_per_step <= 0\nretries <= 3",
                  &g),
        FRAG_OK);
    assert_string_equal(g.policy, "torch:max_split_size_mb:64");
    assert_int_equal(g.capacity, 80 * FRAG_GIB);
    assert_int_equal(g.count, 6);
    assert_true(g.items[0].limit == 20.0 * FRAG_GIB);
    assert_int_equal(g.items[0].line, 5);
    assert_true(g.items[1].at_least && g.items[1].limit == 0.25);
    assert_true(!g.items[2].at_least && g.items[2].limit == 0.25);
    assert_string_equal(gate_text(&g.items[4], text), "retries <= 3");
    assert_string_equal(gate_text(&g.items[0], text),
                        "peak_reserved <= 20 GiB");
    assert_string_equal(gate_text(&g.items[5], text), "deaths <= 0");
    assert_int_equal(g.items[5].line, 0);
    gates_free(&g);
}

static void wrong_rules_are_named(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "expected a rule such as"},
        {"# nothing\n", "expected a rule such as"},
        {"ooms <= 0\npeak_reserved\n", ":2: expected \"MEASURE <= LIMIT\""},
        {"peak_reserved < 3GiB", ":1: expected \"MEASURE <= LIMIT\""},
        {"peak_reservd <= 3GiB", "did you mean \"peak_reserved\"?"},
        {"peak_reserved <= 20", "a size with its unit"},
        {"peak_reserved <= inf", "a size with its unit"},
        {"fragmentation <= 101%", "a share such as 25%"},
        {"fragmentation <= 1e", "a share such as 25%"},
        {"ooms <= -1", "a number such as 500"},
        {"ooms <= 1.5", "a number such as 500"},
        {"policy torhc\nooms <= 0", ":1: there is no policy \"torhc\""},
        {"policy torch\npolicy direct\n", ":2: expected one policy"},
        {"capacity 80\n", ":1: capacity: expected a size with its unit"},
        {"capacity 0\n", ":1: capacity: expected a size with its unit"},
        {"capacity 1GiB\ncapacity 1GiB\n", ":2: expected one capacity"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gates g;

        assert_int_equal(read_text(cases[i].text, &g), FRAG_INVALID);
        if (!strstr(error.text, cases[i].message))
            fail_msg("\"%s\": %s", cases[i].text, error.text);
        gates_free(&g);
    }
}

static void a_value_that_is_not_known_keeps_no_rule(void **state)
{
    struct gates g;
    const struct gate_facts f = {.growth = NAN, .ooms = 2, .retries = 3};
    char text[GATE_TEXT];

    (void)state;
    assert_int_equal(read_text("growth_per_step <= 1GiB\n"
                               "growth_per_step >= 0\nooms <= 2\nooms >= 2\n"
                               "retries <= 2\nretries >= 4\ndeaths >= 1\n",
                               &g),
                     FRAG_OK);
    assert_int_equal(g.count, 7); /* the rule about deaths is the file's */
    for (size_t i = 0; i < g.count; i++)
        assert_int_equal(gate_holds(&g.items[i], &f), i == 2 || i == 3);
    assert_string_equal(gate_value_text(g.items[0].measure, NAN, text),
                        "unknown");
    assert_string_equal(gate_value_text(g.items[0].measure, -2048, text),
                        "-2 KiB");
    gates_free(&g);
}

/* ---- measures ---- */

static const struct cell_settings cell = {.backend = &cell_arena_backend,
                                          .rule = 0};
static const struct replay_settings settings = {.cell = &cell};

static struct gate_facts measure(const struct job *j, frag_size capacity)
{
    struct frag_trace *t = job_trace(j);
    const struct input in = {t, t->devices, "job"};
    struct gate_facts f;

    assert_int_equal(gates_measure(&settings, &in, capacity, &f, &error),
                     FRAG_OK);
    frag_trace_close(t);
    return f;
}

static void facts_are_measured(void **state)
{
    const struct job leak = {.steps = 20, .leaks = true, .dies_in = UINT64_MAX};
    const struct job dead = {.steps = 9, .dies_in = 5, .dies_at = 3};
    const struct job whole = {.steps = 9, .dies_in = UINT64_MAX};
    const struct job brief = {.steps = 1, .dies_in = UINT64_MAX};
    struct gate_facts f = measure(&leak, FRAG_UNLIMITED);

    (void)state;
    assert_true(f.growth == 256 << 10);
    assert_true(f.peak_requested <= f.peak_allocated &&
                f.peak_allocated <= f.peak_reserved);
    assert_true(f.fragmentation == 1 - f.peak_allocated / f.peak_reserved);
    assert_true(f.ooms == 0 && f.retries == 0 && f.calls > 0);
    f = measure(&dead, FRAG_UNLIMITED);
    assert_true(f.ooms == 1 && f.retries == 1);
    f = measure(&dead, 80 * FRAG_GIB);
    assert_true(f.ooms == 0 && f.retries == 0);
    f = measure(&whole, 64 * FRAG_MIB);
    assert_true(f.ooms > 0 && f.retries >= f.ooms);
    assert_true(isnan(measure(&brief, FRAG_UNLIMITED).growth));
}

/* A policy with a limit of its own fails on a device that refuses nothing. */
static void a_limit_of_the_policy_counts(void **state)
{
    const struct job j = {.steps = 3, .dies_in = UINT64_MAX};
    const struct replay_settings limited = {
        .cell = &cell, .policy = "torch:per_process_memory_fraction:0.0001"};
    struct frag_trace *t = job_trace(&j);
    const struct input in = {t, t->devices, "job"};
    struct gate_facts f;

    (void)state;
    assert_int_equal(gates_measure(&limited, &in, FRAG_UNLIMITED, &f, &error),
                     FRAG_OK);
    assert_true(f.ooms > 0 && f.retries > 0);
    frag_trace_close(t);
}

static void checks_count_what_failed(void **state)
{
    const struct job leak = {.steps = 20, .leaks = true, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&leak);
    const struct input in = {t, t->devices, "job"};
    struct gates g;
    struct check_question q = {.gates = &g, .capacity = FRAG_UNLIMITED};
    struct checks c = {.question = &q};

    (void)state;
    assert_int_equal(read_text("growth_per_step <= 255KiB\nooms <= 0\n", &g),
                     FRAG_OK);
    assert_int_equal(checks_add(&c, &settings, &in, &error), FRAG_OK);
    assert_int_equal(checks_add(&c, &settings, &in, &error), FRAG_OK);
    frag_trace_close(t);
    assert_int_equal(checks_failed(&c), 2);
    checks_free(&c);
    gates_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read),
        cmocka_unit_test(wrong_rules_are_named),
        cmocka_unit_test(a_value_that_is_not_known_keeps_no_rule),
        cmocka_unit_test(facts_are_measured),
        cmocka_unit_test(a_limit_of_the_policy_counts),
        cmocka_unit_test(checks_count_what_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
