/* test_batch.c - tests the search for the largest batch size that fits, against
 * a program whose needs are known in closed form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/answers/batch.h"
#include "tests/support/batch_job.h"

struct fixture {
    struct batch_trace traces[3];
    struct scaling scaling;
    struct policy_choice policy;
    struct frag_params *params;
    struct cell_settings settings;
    struct batch_question q;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct scale_recording r[3];

    assert_non_null(f);
    for (unsigned i = 0; i < 3; i++)
        r[i] = (struct scale_recording){
            2 + i,
            batch_trace(&f->traces[i], &(struct batch_job){.batch = 2 + i}),
            "r"};
    assert_int_equal(scale_open(r, 3, &f->scaling, NULL), FRAG_OK);
    assert_int_equal(policy_choice_read("direct", &f->policy, NULL), FRAG_OK);
    assert_int_equal(
        policy_choice_params(&f->policy, NULL, NULL, "r", 0, &f->params, NULL),
        FRAG_OK);
    f->settings = (struct cell_settings){.backend = &cell_arena_backend,
                                         .costs = frag_costs_h200,
                                         .stop_at_oom = true};
    f->q = (struct batch_question){.scaling = &f->scaling,
                                   .settings = &f->settings,
                                   .bound = frag_capacity_bound(64 * FRAG_MIB),
                                   .policies = &f->policy,
                                   .params = &f->params,
                                   .policy_count = 1};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    scale_close(&f->scaling);
    free(f->params);
    policy_choice_free(&f->policy);
    free(f);
    return 0;
}

enum { EVERY = 60 };

/* The largest batch size that fits, by replays of all of them. */
static uint64_t largest(struct fixture *f)
{
    uint64_t at[EVERY], found;
    struct batch_answer a;

    for (unsigned i = 0; i < EVERY; i++)
        at[i] = i + 1;
    f->q.at = at;
    f->q.at_count = EVERY;
    assert_int_equal(batch_answer(&f->q, &a, NULL), FRAG_OK);
    assert_int_equal(a.count, EVERY);
    found = a.largest[0];
    f->q.at_count = 0;
    batch_close(&a);
    return found;
}

static void the_search_finds_the_largest(void **state)
{
    struct fixture *f = *state;
    uint64_t before = 0;

    for (unsigned mib = 20; mib <= 80; mib += 6) {
        struct batch_answer a;

        f->q.bound = frag_capacity_bound(mib * FRAG_MIB);
        assert_int_equal(batch_answer(&f->q, &a, NULL), FRAG_OK);
        assert_int_equal(a.largest[0], largest(f));
        assert_true(a.largest[0] >= before);
        before = a.largest[0];
        for (size_t i = 1; i < a.count; i++)
            assert_true(a.rows[i - 1].batch < a.rows[i].batch);
        assert_true(a.rows[a.count - 1].batch >= a.largest[0] + BATCH_BEYOND);
        batch_close(&a);
    }
    assert_in_range(before, 10, EVERY - 1);
}

/* Of the recordings at 16, 24 and 32, that at 24 needs more than the others. */
static void reopen_with_a_large_24(struct fixture *f)
{
    struct scale_recording r[3];

    for (unsigned i = 0; i < 3; i++)
        r[i] = (struct scale_recording){
            16 + 8 * i,
            batch_trace(&f->traces[i],
                        &(struct batch_job){.batch = 16 + 8 * i}),
            "r"};
    batch_put(&f->traces[1], FRAG_ALLOC, 12, 100 * FRAG_MIB);
    scale_close(&f->scaling);
    assert_int_equal(scale_open(r, 3, &f->scaling, NULL), FRAG_OK);
}

/* Sets the smallest capacity, in pages, into which a batch size fits. */
static void shrink_to(struct fixture *f, uint64_t batch)
{
    uint64_t fits = 0;

    f->q.at = &batch;
    f->q.at_count = 1;
    for (f->q.bound = frag_capacity_bound(0); !fits;) {
        struct batch_answer a;

        f->q.bound.bytes += 2 * FRAG_MIB;
        assert_int_equal(batch_answer(&f->q, &a, NULL), FRAG_OK);
        fits = a.largest[0];
        batch_close(&a);
    }
    f->q.at_count = 0;
}

static void a_larger_batch_may_fit_again(void **state)
{
    struct fixture *f = *state;
    struct batch_answer a;

    reopen_with_a_large_24(f);
    shrink_to(f, 29);
    assert_int_equal(batch_answer(&f->q, &a, NULL), FRAG_OK);
    assert_in_range(a.largest[0], 29, 31);
    assert_int_equal(a.largest[0], largest(f));
    batch_close(&a);
}

static void no_batch_may_fit(void **state)
{
    struct fixture *f = *state;
    struct batch_answer a;

    f->q.bound = frag_capacity_bound(4 * FRAG_MIB);
    assert_int_equal(batch_answer(&f->q, &a, NULL), FRAG_OK);
    assert_int_equal(a.largest[0], 0);
    batch_close(&a);
}

static void the_peak_is_divided(void **state)
{
    const uint64_t at[] = {10, 3, 10};
    struct fixture *f = *state;
    struct batch_answer a;
    frag_size weights = 0, slope = 0;

    for (unsigned k = 0; k < BATCH_LAYERS; k++) {
        weights += batch_weight(k) + 4000;
        slope += (k + 2) * 100000;
    }
    f->q.at = at;
    f->q.at_count = 3;
    f->q.bound = frag_capacity_bound(FRAG_UNLIMITED);
    assert_int_equal(batch_answer(&f->q, &a, NULL), FRAG_OK);
    assert_int_equal(a.count, 2);
    assert_int_equal(a.largest[0], 10);
    assert_true(a.rows[0].recorded && !a.rows[1].recorded);
    for (size_t i = 0; i < 2; i++) { /* with the last workspace */
        assert_int_equal(a.rows[i].constant, weights + 3000);
        assert_true(fabs(a.rows[i].per_sample - (double)slope - 300032) < 1e-6);
        assert_int_equal(a.rows[i].requested,
                         weights + 3000 + a.rows[i].batch * (slope + 300032));
        assert_true(fabs((double)a.rows[i].requested *
                             (1 - batch_growing_share(&a.rows[i])) -
                         (double)a.rows[i].constant) < 1);
    }
    batch_close(&a);
}

/* The workspace is live at the peak; of its guesses, absent is the least and
 * 10 % more is the most. */
static void the_range_follows_the_guesses(void **state)
{
    const uint64_t at[] = {3, 40};
    struct fixture *f = *state;
    struct batch_answer a;
    struct batch_row *r;
    frag_size other;

    f->q.at = at;
    f->q.at_count = 2;
    f->q.bound = frag_capacity_bound(FRAG_UNLIMITED);
    assert_int_equal(batch_answer(&f->q, &a, NULL), FRAG_OK);
    r = &a.rows[1];
    other = r->requested - batch_workspace(&(struct batch_job){.batch = 40});
    assert_int_equal(r->num_replays, SCALE_GUESSES + 1);
    assert_int_equal(r->num_replays_with_oom, 0);
    assert_in_range(r->low_reserved, other, other + FRAG_MIB / 16);
    assert_in_range(r->high_reserved, other + 44 * 300782,
                    other + 44 * 300782 + FRAG_MIB / 16);
    assert_false(batch_is_sure(r));
    r->low_reserved = r->high_reserved = r->summary.peak_reserved;
    assert_true(batch_is_sure(r));
    r->num_replays_with_oom = 1;
    assert_false(batch_is_sure(r));
    r->high_reserved += r->high_reserved / 49;
    r->num_replays_with_oom = 0;
    assert_false(batch_is_sure(r));
    r->num_replays_with_oom = r->num_replays; /* the peaks have no meaning */
    assert_true(batch_is_sure(r));
    assert_int_equal(a.rows[0].num_replays, 1);
    assert_true(batch_is_sure(&a.rows[0]));
    assert_int_equal(a.rows[0].low_reserved, a.rows[0].high_reserved);
    batch_close(&a);
}

/* Every batch size below the range fits in all replays, every one above it in
 * none. */
static void check_range(const struct batch_answer *a)
{
    assert_true(a->low_largest[0] <= a->largest[0]);
    assert_true(a->largest[0] < a->high_largest[0]);
    assert_true(a->high_largest[0] < EVERY);
    for (size_t i = 0; i < a->count; i++) {
        const struct batch_row *r = &a->rows[i];

        assert_int_equal(r->num_replays_with_oom == 0,
                         r->batch <= a->low_largest[0]);
        assert_int_equal(r->num_replays_with_oom < r->num_replays,
                         r->batch <= a->high_largest[0]);
    }
}

static void the_largest_has_a_range(void **state)
{
    struct fixture *f = *state;
    uint64_t at[EVERY];
    unsigned lower = 0;

    for (unsigned i = 0; i < EVERY; i++)
        at[i] = i + 1;
    f->q.at = at;
    f->q.at_count = EVERY;
    for (unsigned mib = 40; mib <= 80; mib += 4) {
        struct batch_answer a;

        f->q.bound = frag_capacity_bound(mib * FRAG_MIB);
        assert_int_equal(batch_answer(&f->q, &a, NULL), FRAG_OK);
        check_range(&a);
        lower += a.low_largest[0] < a.largest[0];
        batch_close(&a);
    }
    assert_true(lower > 0);
}

static void a_search_needs_a_capacity(void **state)
{
    struct fixture *f = *state;
    struct frag_error e = {""};
    struct batch_answer a;

    f->q.bound = frag_capacity_bound(FRAG_UNLIMITED);
    assert_int_equal(batch_answer(&f->q, &a, &e), FRAG_INVALID);
    assert_non_null(strstr(e.text, "pass a bound"));
    batch_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_search_finds_the_largest, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_larger_batch_may_fit_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_batch_may_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(the_peak_is_divided, setup, teardown),
        cmocka_unit_test_setup_teardown(the_range_follows_the_guesses, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_largest_has_a_range, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_search_needs_a_capacity, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
