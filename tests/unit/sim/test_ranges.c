/* test_ranges.c - tests the set of ranges against an array that is searched
 * from one end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/ranges.h"
#include "tests/support/damage.h"

enum { SLOTS = 200, PITCH = 1000, STEPS = 30000 };

struct world {
    struct ranges set;
    struct range ranges[SLOTS]; /* the k-th starts at k * PITCH */
    bool in[SLOTS];
    uint64_t rng;
    uint64_t sizes; /* how many different ones */
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void change(struct world *w)
{
    const size_t k = next_random(&w->rng) % SLOTS;
    const uint64_t size = 1 + next_random(&w->rng) % w->sizes;
    struct range *r = &w->ranges[k];

    if (w->in[k] && size % 2) {
        ranges_resize(&w->set, r, size);
        return;
    }
    if (w->in[k]) {
        ranges_remove(&w->set, r);
    } else {
        *r = (struct range){.at = k * PITCH, .size = size};
        ranges_add(&w->set, r);
    }
    w->in[k] = !w->in[k];
}

struct answers {
    struct range *upto, *from, *at, *overlap, *highest, *lowest, *best;
    uint64_t widest;
};

static struct answers expected(struct world *w, uint64_t at, uint64_t size)
{
    struct answers a = {0};

    for (size_t k = 0; k < SLOTS; k++) {
        struct range *r = &w->ranges[k];

        if (!w->in[k])
            continue;
        if (r->at <= at)
            a.upto = r;
        if (r->at >= at && !a.from)
            a.from = r;
        if (r->at == at)
            a.at = r;
        if (r->at < at + size && at < r->at + r->size && !a.overlap)
            a.overlap = r;
        if (r->size >= size)
            a.highest = r;
        if (r->size >= size && !a.lowest)
            a.lowest = r;
        if (r->size >= size && (!a.best || r->size < a.best->size))
            a.best = r;
        if (r->size > a.widest)
            a.widest = r->size;
    }
    return a;
}

static void compare(struct world *w, uint64_t at, uint64_t size)
{
    const struct answers a = expected(w, at, size);

    assert_ptr_equal(ranges_upto(&w->set, at), a.upto);
    assert_ptr_equal(ranges_from(&w->set, at), a.from);
    assert_ptr_equal(ranges_at(&w->set, at), a.at);
    assert_ptr_equal(ranges_overlap(&w->set, at, size), a.overlap);
    assert_ptr_equal(ranges_highest_fit(&w->set, size), a.highest);
    assert_ptr_equal(ranges_lowest_fit(&w->set, size), a.lowest);
    assert_ptr_equal(ranges_best_fit(&w->set, size), a.best);
    assert_int_equal(ranges_widest(&w->set), a.widest);
}

static void agrees(uint64_t sizes)
{
    struct world w = {.rng = 88172645463325252u, .sizes = sizes};
    size_t left = 0;

    for (int step = 0; step < STEPS; step++) {
        const uint64_t k = next_random(&w.rng) % SLOTS;
        const uint64_t off = next_random(&w.rng) % 3 ? 0 : PITCH / 2;

        change(&w);
        assert_null(ranges_check(&w.set));
        compare(&w, k * PITCH + off, 1 + next_random(&w.rng) % sizes);
    }
    for (size_t k = 0; k < SLOTS; k++)
        left += w.in[k];
    for (; ranges_pop(&w.set); left--)
        assert_true(left > 0);
    assert_int_equal(left, 0);
}

static void agrees_with_an_array(void **state)
{
    (void)state;
    agrees(PITCH);
}

static void agrees_with_an_array_where_sizes_are_few(void **state)
{
    (void)state;
    agrees(4);
}

static void a_set_that_is_damaged_is_found(void **state)
{
    struct range ranges[] = {
        {.at = 0, .size = 10}, {.at = 10, .size = 5}, {.at = 20, .size = 8}};
    struct ranges set = {NULL};

    (void)state;
    for (int i = 0; i < 3; i++)
        ranges_add(&set, &ranges[i]);
    DAMAGE(ranges[0].at, 11, ranges_check(&set),
           "ranges are not in order, or overlap");
    DAMAGE(ranges[1].at, 9, ranges_check(&set),
           "ranges are not in order, or overlap");
    DAMAGE(ranges[1].widest, 99, ranges_check(&set),
           "a range does not store the widest size below it");
    DAMAGE(set.root->rank, 0, ranges_check(&set),
           "a range has a higher rank than the one above it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_an_array),
        cmocka_unit_test(agrees_with_an_array_where_sizes_are_few),
        cmocka_unit_test(a_set_that_is_damaged_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
