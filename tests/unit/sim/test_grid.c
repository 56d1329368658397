/* test_grid.c - tests which cells a grid has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/experiments/sweep/grid.h"
#include "sim/experiments/sweep/values.h"

/* -- values -------------------------------------------------------------- */

static const struct {
    const char *text,
        *values; /* joined by blanks; what an error says after ! */
} lists[] = {
    /* clang-format off */
    {"1", "1"},
    {"20MiB,64MiB,inf", "20MiB 64MiB inf"},
    {"lifo,fifo", "lifo fifo"},
    {"[256:1,512:2,>:8],4", "[256:1,512:2,>:8] 4"},
    {"1..5:2", "1 3 5"},
    {"1..6:2", "1 3 5"},
    {"3..3:1", "3"},
    {"20MiB..60MiB:20MiB", "20MiB 40MiB 60MiB"},
    {"20MiB..60MiB:20", "20MiB 40MiB 60MiB"},
    {"0.1..0.4:0.1", "0.1 0.2 0.3 0.4"},
    {"1..16*2", "1 2 4 8 16"},
    {"1.5GiB..6GiB*2,inf", "1.5GiB 3GiB 6GiB inf"},
    {"1..10*3", "1 3 9"},
    {"", "!expected a value"},
    {"1,,2", "!expected a value"},
    {"..3:1", "!a number before .."},
    {"1..3", "!a number after .. and then"},
    {"1..3:", "!a number as the step"},
    {"1..3:1x", "!and nothing after it"},
    {"3..1:1", "!the smaller number first"},
    {"1MiB..3GiB:1MiB", "!one unit"},
    {"1MiB..3MiB:1GiB", "!a step in that unit"},
    {"1MiB..8MiB*2MiB", "!a factor without one"},
    {"1..3:0", "!a step above 0"},
    {"1..3*1", "!a factor above 1"},
    {"0..3*2", "!from a number above 0"},
    {"1..1000000:1", "!found more"},
    /* clang-format on */
};

static void values_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        struct values_of v = {0};
        struct frag_error e = {""};
        char found[512] = "";
        size_t used = 0;

        if (values_read(lists[i].text, &v, &e) != FRAG_OK) {
            if (*lists[i].values != '!' || !strstr(e.text, lists[i].values + 1))
                fail_msg("\"%s\": %s", lists[i].text, e.text);
        } else {
            for (size_t k = 0; k < v.count; k++)
                used += (size_t)snprintf(found + used, sizeof(found) - used,
                                         "%s%s", k ? " " : "", v.items[k]);
            assert_string_equal(found, lists[i].values);
        }
        values_free(&v);
    }
}

/* -- grids --------------------------------------------------------------- */

#define TEXTS(...)                                                             \
    {                                                                          \
        .items = (const char *[]){__VA_ARGS__},                                \
        .count = sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), \
    }

static const struct texts none = {NULL, 0}, no_bounds[FRAG_BOUND_KINDS];

/* All cells as "trace policy capacity;", the capacity in bytes. */
static void cells_of(const struct grid *g, char *out, size_t room)
{
    size_t used = 0;

    *out = '\0';
    for (uint64_t i = 0; i < grid_cells(g); i++) {
        struct grid_cell c = grid_cell(g, i);

        used += (size_t)snprintf(
            out + used, room - used, "%s%s%s %s %llu;",
            g->traces.items[c.trace], g->edits[c.edit].text ? "~" : "",
            g->edits[c.edit].text ? g->edits[c.edit].text : "",
            g->policies[c.policy].text,
            (unsigned long long)g->bounds[c.bound].fixed.bytes);
    }
}

static void expect_cells(const struct grid_source *source, const char *wanted)
{
    struct frag_error e = {""};
    struct grid g;
    char found[2048];

    if (grid_read(source, &g, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    cells_of(&g, found, sizeof(found));
    assert_string_equal(found, wanted);
    grid_free(&g);
}

static void expect_words(const struct grid_source *source, const char *wanted)
{
    struct frag_error e = {""};
    struct grid g;

    assert_int_equal(grid_read(source, &g, &e), FRAG_INVALID);
    if (!strstr(e.text, wanted))
        fail_msg("expected \"%s\", found \"%s\"", wanted, e.text);
    grid_free(&g);
}

static void the_capacity_changes_fastest(void **state)
{
    const struct texts traces = TEXTS("a", "b");
    const struct texts policies = TEXTS("direct", "first_fit");
    const struct texts bounds[FRAG_BOUND_KINDS] = {TEXTS("1KiB,2KiB")};

    (void)state;
    expect_cells(
        &(const struct grid_source){&traces, &policies, bounds, &none, NULL,
                                    NULL},
        "a direct 1024;a direct 2048;a first_fit 1024;a first_fit 2048;"
        "b direct 1024;b direct 2048;b first_fit 1024;b first_fit 2048;");
}

static void edits_change_after_the_trace(void **state)
{
    const struct texts traces = TEXTS("a", "b"), policies = TEXTS("direct");
    const struct texts bounds[FRAG_BOUND_KINDS] = {TEXTS("1KiB,2KiB")};
    const struct texts edits = TEXTS("none", "repeat:times=2; scale:factor=2");
    const struct texts wrong = TEXTS("none", "repaet:times=2");

    (void)state;
    expect_cells(&(const struct grid_source){&traces, &policies, bounds, &none,
                                             NULL, &edits},
                 "a direct 1024;a direct 2048;a~repeat:times=2;scale:factor=2 "
                 "direct 1024;"
                 "a~repeat:times=2;scale:factor=2 direct 2048;b direct 1024;"
                 "b direct 2048;b~repeat:times=2;scale:factor=2 direct 1024;"
                 "b~repeat:times=2;scale:factor=2 direct 2048;");
    expect_words(&(const struct grid_source){&traces, &policies, bounds, &none,
                                             NULL, &wrong},
                 "did you mean \"repeat\"?");
}

static void parameters_go_to_those_who_have_them(void **state)
{
    const struct texts traces = TEXTS("a");
    const struct texts bounds[FRAG_BOUND_KINDS] = {TEXTS("8B")};
    const struct texts policies =
        TEXTS("direct", "best_fit:ties=fifo", "torch");
    const struct texts params =
        TEXTS("segment=1MiB,2MiB", "torch:max_split_size_mb=20..40:20",
              "garbage_collection_threshold=0.5,0.6");

    (void)state;
    expect_cells(
        &(const struct grid_source){&traces, &policies, bounds, &params, NULL,
                                    NULL},
        "a direct 8;a best_fit:ties=fifo,segment=1MiB 8;"
        "a best_fit:ties=fifo,segment=2MiB 8;a best_fit:ties=fifo 8;"
        "a torch:max_split_size_mb:20,garbage_collection_threshold:0.5 8;"
        "a torch:max_split_size_mb:20,garbage_collection_threshold:0.6 8;"
        "a torch:max_split_size_mb:40,garbage_collection_threshold:0.5 8;"
        "a torch:max_split_size_mb:40,garbage_collection_threshold:0.6 8;"
        "a torch 8;");
}

/* The policy without parameters is the baseline of its combinations. A
 * combination that has its parameters takes its place. */
static void a_grid_has_the_plain_policy_once(void **state)
{
    const struct texts traces = TEXTS("a");
    const struct texts bounds[FRAG_BOUND_KINDS] = {TEXTS("8B")};
    const struct texts policies = TEXTS("best_fit");
    const struct texts with_default = TEXTS("segment=1MiB,20MiB");

    (void)state;
    expect_cells(&(const struct grid_source){&traces, &policies, bounds,
                                             &with_default, NULL, NULL},
                 "a best_fit:segment=1MiB 8;a best_fit:segment=20MiB 8;");
    expect_cells(&(const struct grid_source){&traces, &policies, bounds, &none,
                                             NULL, NULL},
                 "a best_fit 8;");
}

static void wrong_grids_are_refused(void **state)
{
    const struct texts traces = TEXTS("a"), policies = TEXTS("direct");
    const struct texts misspelt = TEXTS("segmnt=1"), no_key = TEXTS("=1");
    const struct texts bad_range = TEXTS("segment=2..1:1");
    const struct texts fits = TEXTS("best_fit"), bad = TEXTS("segment=x");

    (void)state;
    expect_words(&(const struct grid_source){&none, &policies, no_bounds, &none,
                                             NULL, NULL},
                 "expected a trace");
    expect_words(&(const struct grid_source){&traces, &policies, no_bounds,
                                             &misspelt, NULL, NULL},
                 "none of the policies");
    expect_words(&(const struct grid_source){&traces, &policies, no_bounds,
                                             &no_key, NULL, NULL},
                 "expected [POLICY:]KEY=VALUE");
    expect_words(&(const struct grid_source){&traces, &fits, no_bounds,
                                             &bad_range, NULL, NULL},
                 "the smaller number first");
    expect_words(&(const struct grid_source){&traces, &fits, no_bounds, &bad,
                                             NULL, NULL},
                 "segment");
}

static void write_file(char *name, const char *text)
{
    int fd = mkstemp(name);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void a_file_adds_to_the_options(void **state)
{
    char good[] = "/tmp/frag_grid_XXXXXX", bad[] = "/tmp/frag_grid_XXXXXX";
    const struct texts traces = TEXTS("a");

    (void)state;
    write_file(good, "# a grid\n\n  trace b c#d  # the second\r\n"
                     "policy\tbest_fit\nparam segment=1MiB,2MiB\n"
                     "capacity 1KiB");
    expect_cells(&(const struct grid_source){&traces, &none, no_bounds, &none,
                                             good, NULL},
                 "a best_fit:segment=1MiB 1024;a best_fit:segment=2MiB 1024;"
                 "a best_fit 1024;b c#d best_fit:segment=1MiB 1024;"
                 "b c#d best_fit:segment=2MiB 1024;b c#d best_fit 1024;");
    unlink(good);
    write_file(memcpy(good, bad, sizeof(good)),
               "edit none\nedit scale:factor=2\npolicy direct\ncapacity 8B");
    expect_cells(&(const struct grid_source){&traces, &none, no_bounds, &none,
                                             good, NULL},
                 "a direct 8;a~scale:factor=2 direct 8;");
    write_file(bad, "policy direct\npolicies direct\n");
    expect_words(&(const struct grid_source){&traces, &none, no_bounds, &none,
                                             bad, NULL},
                 ":2: expected \"trace\", \"policy\", \"capacity\", ");
    unlink(good);
    unlink(bad);
}

/* -- shards -------------------------------------------------------------- */

static void shards_share_all_cells(void **state)
{
    (void)state;
    for (uint64_t cells = 0; cells < 40; cells++)
        for (uint64_t n = 1; n < 50; n++) {
            uint64_t next = 0;

            for (uint64_t i = 1; i <= n; i++) {
                const struct shard s = {i, n};

                assert_int_equal(shard_first(&s, cells), next);
                next = shard_end(&s, cells);
                assert_in_range(next - shard_first(&s, cells), cells / n,
                                cells / n + 1);
            }
            assert_int_equal(next, cells);
        }
}

static void shards_are_read(void **state)
{
    static const char *const wrong[] = {"",     "1",    "0/3",  "4/3", "1/0",
                                        "1/3x", "-1/3", " 1/3", "1/ 3"};
    struct shard s;

    (void)state;
    assert_int_equal(shard_read("3/8", &s, NULL), FRAG_OK);
    assert_int_equal(s.index, 3);
    assert_int_equal(s.count, 8);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(shard_read(wrong[i], &s, NULL), FRAG_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(the_capacity_changes_fastest),
        cmocka_unit_test(edits_change_after_the_trace),
        cmocka_unit_test(parameters_go_to_those_who_have_them),
        cmocka_unit_test(a_grid_has_the_plain_policy_once),
        cmocka_unit_test(wrong_grids_are_refused),
        cmocka_unit_test(a_file_adds_to_the_options),
        cmocka_unit_test(shards_share_all_cells),
        cmocka_unit_test(shards_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
