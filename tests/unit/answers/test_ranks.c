/* test_ranks.c - tests the comparison of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/answers/ranks/ranks.h"
#include "tests/support/dead_job.h"

static struct frag_error error;

/* ---- ranks ---- */

static const struct cell_settings cell = {.backend = &cell_arena_backend,
                                          .rule = 0};

static void add(struct ranks *r, const struct job *j)
{
    struct frag_trace *t = job_trace(j);
    const struct replay_settings s = {.cell = &cell};
    const struct input in = {t, t->devices, "job"};

    assert_int_equal(ranks_add(r, &s, &in, &error), FRAG_OK);
    frag_trace_close(t);
}

static void recorded_deaths_are_compared(void **state)
{
    const struct job lives = {.steps = 9, .dies_in = UINT64_MAX};
    const struct job late = {.steps = 9, .dies_in = 5, .dies_at = 3};
    const struct job early = {.steps = 9, .dies_in = 4, .dies_at = 3};
    struct ranks r = {.capacity = FRAG_UNLIMITED};
    struct ranks_first first;

    (void)state;
    add(&r, &lives);
    add(&r, &late);
    add(&r, &early);
    first = ranks_first(&r, offsetof(struct rank, recorded));
    assert_int_equal(first.rank, 2);
    assert_int_equal(first.dying, 2);
    assert_true(first.by_time);
    assert_int_equal(r.items[0].recorded.event, FRAG_NEVER);
    assert_int_equal(r.items[1].recorded_ooms, 1);
    assert_int_equal(r.items[1].recorded.bytes, 4 * 3 << 20);
    assert_true(r.items[2].recorded.after > 0);
    assert_int_equal(ranks_first(&r, offsetof(struct rank, replayed)).rank,
                     RANKS_NONE);
    ranks_free(&r);
}

static void a_capacity_is_replayed(void **state)
{
    const struct job small = {.steps = 9, .dies_in = UINT64_MAX};
    const struct job large = {
        .steps = 20, .varies = true, .leaks = true, .dies_in = UINT64_MAX};
    struct ranks r = {.capacity = FRAG_UNLIMITED};
    frag_size enough;
    struct ranks_first first;

    (void)state;
    add(&r, &small);
    enough = r.items[0].peak_reserved;
    ranks_free(&r);
    r.capacity = enough;
    add(&r, &small);
    add(&r, &large);
    first = ranks_first(&r, offsetof(struct rank, replayed));
    assert_int_equal(first.rank, 1);
    assert_int_equal(first.dying, 1);
    assert_int_equal(r.items[0].reserved_there, enough);
    assert_int_equal(r.items[0].ooms, 0);
    assert_true(r.items[1].ooms > 0);
    assert_int_equal(r.items[1].steps.growth, 256 << 10);
    assert_true(r.items[1].peak_requested > r.items[0].peak_requested);
    ranks_free(&r);
}

static void imbalance_is_largest_over_mean(void **state)
{
    struct rank items[] = {{.peak_reserved = 4},
                           {.peak_reserved = 8},
                           {.peak_reserved = 0},
                           {.peak_reserved = 8}};
    const struct ranks r = {.items = items, .count = 4};
    const struct rank_imbalance b =
        ranks_imbalance(&r, offsetof(struct rank, peak_reserved));
    const struct rank_imbalance none =
        ranks_imbalance(&r, offsetof(struct rank, peak_requested));

    (void)state;
    assert_int_equal(b.most, 1);
    assert_int_equal(b.least, 2);
    assert_int_equal(b.difference, 8);
    assert_true(b.ratio == 1.6);
    assert_true(none.ratio == 1);
}

static void without_times_the_event_decides(void **state)
{
    struct rank items[] = {{.recorded = {.event = 9, .time = 5}},
                           {.recorded = {.event = FRAG_NEVER}},
                           {.recorded = {.event = 7, .time = 6}}};
    const struct ranks r = {.items = items, .count = 3};
    const size_t recorded = offsetof(struct rank, recorded);

    (void)state;
    assert_int_equal(ranks_first(&r, recorded).rank, 0);
    items[0].recorded.time = 0;
    assert_int_equal(ranks_first(&r, recorded).rank, 2);
    assert_false(ranks_first(&r, recorded).by_time);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_deaths_are_compared),
        cmocka_unit_test(a_capacity_is_replayed),
        cmocka_unit_test(imbalance_is_largest_over_mean),
        cmocka_unit_test(without_times_the_event_decides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
