/* test_dry_runs.c - tests the interval of several runs of a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/cli/verbs/dry/dry_answer.h"

/* A run of one device that needs so much with both settings. */
static struct dry_answer run(struct dry_device *d, frag_size need)
{
    *d = (struct dry_device){.counted_reserved = need + 1};
    for (size_t w = 0; w < DRY_WAYS; w++) {
        d->ways[w].need =
            (struct frag_capacity_span){.from = need,
                                        .to = FRAG_UNLIMITED,
                                        .run.first_oom_event = FRAG_NEVER};
        d->ways[w].unlimited.run.peak_reserved = need + 2;
        dry_bounds_of(d, w);
    }
    return (struct dry_answer){.runs = 1, .devices = d, .count = 1};
}

static void the_interval_has_all_runs_and_the_gap(void **state)
{
    static const frag_size needs[] = {500, 300, 900, 700};
    struct dry_device devices[4];
    struct dry_answer a = run(&devices[0], needs[0]), other;

    (void)state;
    for (size_t i = 1; i < 4; i++) {
        other = run(&devices[i], needs[i]);
        dry_add_run(&a, &other);
    }
    assert_int_equal(a.runs, 4);
    assert_ptr_equal(a.devices, &devices[2]); /* the run that needs most */
    assert_int_equal(dry_need(&a, a.devices, 0), 900);
    assert_int_equal(dry_least(&a, a.devices, 1), 300);
    assert_int_equal(a.devices->reserved[0].most, 901); /* counted */
    assert_int_equal(a.devices->reserved[1].most, 902); /* replayed */
    other = run(&devices[0], 600);
    other.devices->ways[1].need.from = 950;
    dry_add_run(&a, &other);
    assert_int_equal(a.devices->ways[1].need.from, 950);
    a.runs = 4;
    dry_widen(&a); /* (900 - 300) / 3 at both ends */
    assert_int_equal(dry_need(&a, a.devices, 0), 1100);
    assert_int_equal(dry_least(&a, a.devices, 0), 100);
}

static void another_end_is_left_out(void **state)
{
    struct dry_device devices[2];
    struct dry_answer a = run(&devices[0], 500), other = run(&devices[1], 900);

    (void)state;
    assert_false(dry_is_same(&a, &other));
    other.status = 1;
    dry_add_run(&a, &other);
    assert_int_equal(a.left_out, 1);
    dry_widen(&a);
    assert_int_equal(dry_need(&a, a.devices, 0), 500);
    other = run(&devices[1], 500);
    assert_true(dry_is_same(&a, &other));
    devices[1].ways[0].unlimited.run.events = 1;
    assert_false(dry_is_same(&a, &other));
}

static void a_bound_in_the_interval_may_not_fit(void **state)
{
    static const struct frag_gpu gpu = {.total = 100 * FRAG_MIB};
    struct dry_device devices[2];
    struct dry_answer a = run(&devices[0], 50 * FRAG_MIB),
                      other = run(&devices[1], 150 * FRAG_MIB);

    (void)state;
    a.gpu = other.gpu = &gpu;
    assert_true(dry_all_fit(&a, &gpu, 0));
    dry_add_run(&a, &other);
    assert_false(dry_all_fit(&a, &gpu, 0));
    assert_true(dry_may_fit(&a, &gpu, 0));
    a.devices->need[0].least = 150 * FRAG_MIB;
    assert_false(dry_may_fit(&a, &gpu, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interval_has_all_runs_and_the_gap),
        cmocka_unit_test(another_end_is_left_out),
        cmocka_unit_test(a_bound_in_the_interval_may_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
