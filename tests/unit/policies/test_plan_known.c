/* test_plan_known.c - tests the planner on the instances of minimalloc, each at
 * an effort of 32 million steps, against known heights: all fit the 1 MiB that
 * they were made for, and some are lower. It takes seconds in a release build
 * and is not part of a sanitized build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/plan_desk.h"

struct known {
    const char *name;
    frag_size height; /* bytes, at most */
};

/* C is the optimum; D and J are the results of the search. */
static const struct known rows[] = {
    {"A", 1048576}, {"B", 1048576}, {"C", 1039360}, {"D", 1030144},
    {"E", 1048576}, {"F", 1048576}, {"G", 1048576}, {"H", 1048576},
    {"I", 1048576}, {"J", 1012736}, {"K", 1048576},
};

enum { ROWS = sizeof(rows) / sizeof(*rows) };

static void is_placed_as_low_as_known(void **state)
{
    const struct known *row = *state;
    static struct script s;
    static struct desk d;

    read_instance(row->name, &s);
    open_desk(&d, &s, "effort=32000000", FRAG_UNLIMITED);
    run(&d, &s);
    judge(&d, &s);
    for (size_t i = 0; i < s.count; i++)
        assert_true(d.is_served[i]);
    assert_true(extent(&d, &s) >= load_of(&s));
    assert_in_range(extent(&d, &s), 0, row->height);
    assert_in_range(d.mem.used, extent(&d, &s), row->height);
    close_desk(&d);
}

int main(void)
{
    struct CMUnitTest tests[ROWS];

    for (size_t i = 0; i < ROWS; i++)
        tests[i] =
            (struct CMUnitTest){.name = rows[i].name,
                                .test_func = is_placed_as_low_as_known,
                                .initial_state = (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests_name("known plans", tests, NULL, NULL);
}
