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
        &(const struct grid_source){&traces, &policies, bounds, NULL, NULL},
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
    expect_cells(
        &(const struct grid_source){&traces, &policies, bounds, NULL, &edits},
        "a direct 1024;a direct 2048;a~repeat:times=2;scale:factor=2 "
        "direct 1024;"
        "a~repeat:times=2;scale:factor=2 direct 2048;b direct 1024;"
        "b direct 2048;b~repeat:times=2;scale:factor=2 direct 1024;"
        "b~repeat:times=2;scale:factor=2 direct 2048;");
    expect_words(
        &(const struct grid_source){&traces, &policies, bounds, NULL, &wrong},
        "did you mean \"repeat\"?");
}

static void wrong_grids_are_refused(void **state)
{
    const struct texts traces = TEXTS("a"), policies = TEXTS("direct");
    const struct texts bad = TEXTS("best_fit:segment=x");

    (void)state;
    expect_words(
        &(const struct grid_source){&none, &policies, no_bounds, NULL, NULL},
        "expected a trace");
    expect_words(
        &(const struct grid_source){&traces, &bad, no_bounds, NULL, NULL},
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
                     "policy\tbest_fit\npolicy best_fit:segment=1MiB\n"
                     "capacity 1KiB");
    expect_cells(
        &(const struct grid_source){&traces, &none, no_bounds, good, NULL},
        "a best_fit 1024;a best_fit:segment=1MiB 1024;"
        "b c#d best_fit 1024;b c#d best_fit:segment=1MiB 1024;");
    unlink(good);
    write_file(memcpy(good, bad, sizeof(good)),
               "edit none\nedit scale:factor=2\npolicy direct\ncapacity 8B");
    expect_cells(
        &(const struct grid_source){&traces, &none, no_bounds, good, NULL},
        "a direct 8;a~scale:factor=2 direct 8;");
    write_file(bad, "policy direct\npolicies direct\n");
    expect_words(
        &(const struct grid_source){&traces, &none, no_bounds, bad, NULL},
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
        cmocka_unit_test(the_capacity_changes_fastest),
        cmocka_unit_test(edits_change_after_the_trace),
        cmocka_unit_test(wrong_grids_are_refused),
        cmocka_unit_test(a_file_adds_to_the_options),
        cmocka_unit_test(shards_share_all_cells),
        cmocka_unit_test(shards_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
