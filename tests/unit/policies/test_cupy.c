/* test_cupy.c - tests the policy cupy: pictures of each rule of its source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/canvas.h"

enum { UNIT = 512, ROOM = 64 };

static const struct picture pictures[] = {
    /* clang-format off */
    /* A segment of just the size where no hole serves. */
    {"cupy", ROOM, "a3 b2",                 "aaa|bb"},
    {"cupy", ROOM, "a3 -a b4",              "...|bbbb"},
    /* The tightest hole, always cut, its low part; of equals the lowest. */
    {"cupy", ROOM, "a9 -a b2",              "bb......."},
    {"cupy", ROOM, "a3 b5 -b -a c2",        "cc.|....."},
    {"cupy", ROOM, "a3 b5 -a -b c4",        "...|cccc."},
    {"cupy", ROOM, "a2 b2 c2 -c -b -a d2",  "..|dd|.."},
    {"cupy", ROOM, "a2 b2 c2 -a -c -b d2",  "..|dd|.."},
    {"cupy", ROOM, "a2 b2 c2 -b -a d2",     "cc|dd|.."},
    /* A stream has its own holes, and so has a pool. */
    {"cupy", ROOM, "a4@1 -a b4@2",          "....|bbbb"},
    {"cupy", ROOM, "a4@1 -a b4@2 c4@1",     "cccc|bbbb"},
    {"cupy", ROOM, "a4@1/1 -a b4@1",        "....|bbbb"},
    {"cupy", ROOM, "a4@1/1 -a b4@1 c4@1/1", "cccc|bbbb"},
    /* Coalescing: up, down, both, never across segments. */
    {"cupy", ROOM, "a6 -a b2 c2 d2 -c -b e4", "eeeedd"},
    {"cupy", ROOM, "a6 -a b2 c2 d2 -b -c e4", "eeeedd"},
    {"cupy", ROOM, "a6 -a b2 c2 d2 -b -d -c e6", "eeeeee"},
    {"cupy", ROOM, "a2 b2 -a -b c4",        "cccc|..|.."},
    /* Trim releases whole segments of every stream and keeps split ones. */
    {"cupy", ROOM, "a4@1 b2 -a -b !",       ""},
    {"cupy", ROOM, "a4 b2 -a c1 -b !",      "c..."},
    {"cupy", ROOM, "a4 -a b1 -b !",         ""},
    /* On a full device, whole segments of every stream are released first. */
    {"cupy", 6,    "a4@1 -a b6@2",          "bbbbbb"},
    {"cupy", 6,    "a4 b2 -b c3",           "aaaa"},
    {"cupy", 6,    "a4 -a b1 c3 d3",        "bccc"},
    /* A full pool likewise: 4 units; but not for what exceeds the limit. */
    {"cupy:limit=2KiB", ROOM, "a2 b2 c1",   "aa|bb"},
    {"cupy:limit=2KiB", ROOM, "a2 b2 -a c3", "bb"},
    {"cupy:limit=2KiB", ROOM, "a2 b2 -a -b c3", "ccc"},
    {"cupy:limit=2KiB", ROOM, "a4 -a b5",   "...."},
    /* clang-format on */
};

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, NULL);
}

static void a_fraction_is_one_of_the_devices_memory(void **state)
{
    static const struct picture none = {.policy = "cupy", .room = ROOM};
    static struct canvas c;
    char memory[256];

    (void)state;
    canvas_open(&c, &none, UNIT, NULL);
    frag_heap_close(&c.heap);
    c.mem.base.total = 8 * UNIT;
    canvas_heap(&c, "cupy:fraction=0.5", NULL);
    canvas_play(&c, "a3 b1 c1");
    canvas_draw(&c, memory);
    assert_string_equal(memory, "aaa|b");
    canvas_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fraction_is_one_of_the_devices_memory),
    };

    return run_pictures("cupy", pictures, sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn) +
           cmocka_run_group_tests_name("cupy rules", tests, NULL, NULL);
}
