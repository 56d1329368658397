/* test_live.c - tests the table of live addresses against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "traces/live.h"

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Keys that are addresses, or small ids; nearly half the table is used, so
 * that rows are displaced often. */
static void traffic(uint64_t unit)
{
    enum { KEYS = 1000 };
    uint32_t slots[KEYS];
    struct live t = {0};
    uint64_t seed = unit, count = 0;

    for (uint32_t k = 0; k < KEYS; k++)
        slots[k] = UINT32_MAX;
    for (uint32_t step = 0; step < 40000; step++) {
        uint64_t k = next(&seed) % KEYS;
        struct live_row *row = live_find(&t, k * unit);

        assert_int_equal(row != NULL, slots[k] != UINT32_MAX);
        if (row) {
            assert_int_equal(row->slot, slots[k]);
            live_remove(&t, row);
            slots[k] = UINT32_MAX;
            count--;
        } else {
            assert_true(live_put(&t, k * unit, step));
            slots[k] = step;
            count++;
        }
        assert_int_equal(t.count, count);
    }
    live_fini(&t);
}

static void the_table_agrees_with_an_array(void **state)
{
    (void)state;
    traffic(1);
    traffic(512);
    traffic((uint64_t)1 << 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_agrees_with_an_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
