/* test_grow.c - tests GROW with capacities of 32 and 64 bits, and its
 * refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "traces/grow.h"

static void items_survive_growth(void **state)
{
    uint32_t *narrow = NULL, narrow_room = 0;
    uint16_t *wide = NULL;
    size_t wide_room = 0;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(GROW(narrow, narrow_room, i + 1));
        assert_true(GROW(wide, wide_room, i + 1));
        assert_true(narrow_room > i && narrow_room < 2 * i + 17);
        assert_int_equal(wide_room, narrow_room);
        narrow[i] = i;
        wide[i] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(narrow[i] == i && wide[i] == i);
    free(narrow);
    free(wide);
}

static void a_refusal_leaves_the_array(void **state)
{
    struct {
        char *array;
        uint32_t room, next;
    } narrow = {.next = 7};
    uint64_t *wide = NULL, wide_room = 0;

    (void)state;
    assert_true(GROW(narrow.array, narrow.room, 100));
    assert_int_equal(narrow.room, 128);
    narrow.array[99] = 'x';
    assert_false(GROW(narrow.array, narrow.room, (uint64_t)1 << 32));
    assert_false(GROW(narrow.array, narrow.room, ((uint64_t)1 << 31) + 1));
    assert_int_equal(narrow.room, 128);
    assert_int_equal(narrow.next, 7);
    assert_int_equal(narrow.array[99], 'x');
    assert_true(GROW(wide, wide_room, 1));
    *wide = 5;
    assert_false(GROW(wide, wide_room, UINT64_MAX));
    assert_false(GROW(wide, wide_room, SIZE_MAX / sizeof(*wide)));
    assert_int_equal(wide_room, 16);
    assert_int_equal(*wide, 5);
    free(narrow.array);
    free(wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_survive_growth),
        cmocka_unit_test(a_refusal_leaves_the_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
