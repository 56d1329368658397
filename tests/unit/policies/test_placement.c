/* test_placement.c - tests placement policies that have rules beyond their
 * choice of a hole: pictures of each rule and tie-break, in segments of 12
 * units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/canvas.h"

enum { UNIT = 512, ROOM = 64 };

static const struct picture pictures[] = {
    /* clang-format off */
    /* Among equals, the lowest; the tightest hole comes before all of them. */
    {"best_fit", ROOM, "a2 b1 c2 d1 e2 f4 -e -a -c g2 h2", "ggbhhd..ffff"},
    {"best_fit", ROOM, "a2 b1 c2 d1 e2 f1 g3 -a -c -e -b h2", ".....dhhfggg"},
    {"best_fit", ROOM, "a3 b1 c2 d6 -a -c e2", "...beedddddd"},
    {"best_fit", ROOM, "a12 b12 -a !",   "bbbbbbbbbbbb"},
    {"best_fit", ROOM, "a12 b12 -a -b !", ""},

    /* Lists of one size below 32 units: nothing is rounded. */
    {"tlsf", ROOM, "a5 b7",                        "aaaaabbbbbbb"},
    {"tlsf", ROOM, "a2 b1 -a c1",                  "c.b........."},
    {"tlsf", ROOM, "a2 b1 c2 d1 e2 f4 -a -e -c g2", "..bggd..ffff"},
    {"tlsf", ROOM, "a4 b1 c3 d4 -c -a e2",         "....bee.dddd"},
    {"tlsf", ROOM, "a4 b4 c4 -a -b d8",            "ddddddddcccc"},
    {"tlsf", ROOM, "a4 b4 c4 -b -a d8",            "ddddddddcccc"},
    {"tlsf", ROOM, "a4 b4 c4 -a -c -b d12",        "dddddddddddd"},
    {"tlsf", ROOM, "a12 b12 -a -b c16",            "cccccccccccccccc|............|............"},
    {"tlsf", ROOM, "a4@1 -a b2@2",                 "bb.........."},
    {"tlsf", ROOM, "a12 b12 -a !",                 "bbbbbbbbbbbb"},
    {"tlsf", ROOM, "a6 b6 -b !",                   "aaaaaa......"},
    {"tlsf", 16,   "a12 -a b13",                   "bbbbbbbbbbbbb..."},
    /* Lists from 4, 6, 8 and 12: requests are rounded to these. */
    {"tlsf:second_levels=2", ROOM, "a3 b5",        "aaabbbbbb..."},
    {"tlsf:second_levels=2", ROOM, "a7 b4",        "aaaaaaaabbbb"},
    {"tlsf:second_levels=1", ROOM, "a3 b5",        "aaaabbbbbbbb"},
    /* One list has holes of 4 and 5: the last one added is used, not the
     * tightest. */
    {"tlsf:second_levels=2", ROOM, "a4 b1 c2 d3 e2 -c -d -a f4", "ffffb.....ee"},
    {"tlsf:second_levels=2", ROOM, "a4 b1 c2 d3 e2 -a -c -d f4", "....bffff.ee"},
    {"tlsf:second_levels=2", ROOM, "a4 b1 c2 d3 e2 -c -d -a f3 g1", "fffgb.....ee"},
    {"tlsf:second_levels=2", ROOM, "a4 b1 c2 d3 e2 -c -d f5", "aaaab.....ee|ffffff......"},
    /* The rest of a split is the last one added to its list, if it stays in
     * that list. */
    {"tlsf:second_levels=1", ROOM, "a2 b1 c8 d1 -a -c e1 f2 g2", "e.bffgg....d"},
    {"tlsf:second_levels=1", ROOM, "a4 b1 c1 d4 e2 -a -d -b f4", "ffff.c....ee"},
    /* A last list from 1 up: not rounded, the first that is large enough. */
    {"tlsf:first_levels=1,second_levels=2", ROOM, "a5 b7", "aaaaabbbbbbb"},
    {"tlsf:first_levels=1,second_levels=2", ROOM, "a2 b1 c3 d1 e5 -c -a f3", "..bfffdeeeee"},
    {"tlsf:first_levels=1,second_levels=2", ROOM, "a2 b1 c3 d1 e5 -c -a f1", "f.b...deeeee"},
    {"tlsf:first_levels=1,second_levels=2", ROOM, "a2 b1 c3 d1 e5 -a -c f1", "..bf..deeeee"},
    {"tlsf:first_levels=1,second_levels=1", ROOM, "a2 b1 c3 d1 e5 -a -c f1", "..bf..deeeee"},

    /* The smallest block that is large enough, split; the lower half kept. */
    {"buddy", ROOM, "a3 b1",                       "aaaab..........."},
    {"buddy", ROOM, "a1 b2 c1",                    "acbb............"},
    {"buddy", ROOM, "a5 b4 c2",                    "aaaaaaaabbbbcc.."},
    {"buddy", ROOM, "a4@1 -a b2@2",                "bb.............."},
    /* Among equals, the last one freed, split off or merged. */
    {"buddy", ROOM, "a1 b1 c1 d1 e4 f8 -b -d g1",  "a.cgeeeeffffffff"},
    {"buddy", ROOM, "a1 b1 c1 d1 e4 f8 -d -b g1",  "agc.eeeeffffffff"},
    {"buddy", ROOM, "a2 b2 c4 d8 -b -c e1 f2",     "aae.ff..dddddddd"},
    {"buddy", ROOM, "a1 b1 c2 d2 e2 f8 -d -a -b g2", "ggcc..eeffffffff"},
    /* Buddies merge in any order of frees; other neighbours never do. */
    {"buddy", ROOM, "a4 b4 c4 d4 -a -b e8",        "eeeeeeeeccccdddd"},
    {"buddy", ROOM, "a4 b4 c4 d4 -b -a e8",        "eeeeeeeeccccdddd"},
    {"buddy", ROOM, "a4 b4 c4 d4 -b -c e8",        "aaaa........dddd|eeeeeeee........"},
    {"buddy", ROOM, "a1 b2 c4 d8 -b -c -d -a e16", "eeeeeeeeeeeeeeee"},
    {"buddy", ROOM, "a16 b16 -a -b c32",           "cccccccccccccccccccccccccccccccc|................|................"},
    /* Half of the buddy is in use: it is not whole. */
    {"buddy", ROOM, "a2 b1 c1 d4 e8 -a -b f4",     "...cddddeeeeeeee|ffff............"},
    {"buddy", ROOM, "a17",                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
    {"buddy:segment=512", ROOM, "a1 b3",           "a|bbbb"},
    {"buddy", ROOM, "a16 b16 -a !",                "bbbbbbbbbbbbbbbb"},
    {"buddy", ROOM, "a4 b4 -a !",                  "....bbbb........"},
    {"buddy", ROOM, "a4 b4 -a -b !",               ""},
    {"buddy", 32,   "a1 -a b17",                   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},
    {"buddy", 32,   "a1 b17",                      "a..............."},
    {"buddy:unit=1KiB", ROOM, "a1 b3",             "aa..bbbb........"},
    {"buddy:unit=1537", ROOM, "a3 b5",             "aaaa....bbbbbbbb"},
    {"buddy:unit=1536", ROOM, "a3 b5 c12",         "aaa...bbbbbb|cccccccccccc"},
    /* clang-format on */
};

/* The series in units, to the largest one here. */
static const struct series {
    const char *policy;
    frag_size sizes[16];
} all_series[] = {
    {"buddy", {1, 2, 4, 8, 16, 32, 64, 128}},
};

static void a_buddy_grants_the_next_size_of_its_series(void **state)
{
    static struct canvas c;

    (void)state;
    for (size_t i = 0; i < sizeof(all_series) / sizeof(*all_series); i++) {
        const struct picture open = {.policy = all_series[i].policy,
                                     .room = 1024};
        const frag_size *granted = all_series[i].sizes;

        canvas_open(&c, &open, UNIT, "segment=6KiB");
        for (frag_size size = 1; size <= 80 * UNIT; size += 97) {
            struct frag_request req = {.size = size};
            struct frag_block b;

            while (*granted * UNIT < size)
                granted++;
            assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &b), FRAG_OK);
            assert_int_equal(b.size, *granted * UNIT);
            c.heap.policy->free(&c.heap, &b);
        }
        canvas_close(&c);
    }
}

/* 2^63 is the end of every series; the device has less. */
static void a_buddy_refuses_what_no_device_has(void **state)
{
    static struct canvas c;

    (void)state;
    for (size_t i = 0; i < sizeof(all_series) / sizeof(*all_series); i++) {
        const struct picture open = {.policy = all_series[i].policy,
                                     .room = 1024};
        struct frag_request req = {.size = ((frag_size)1 << 63) - 1};
        struct frag_block b;

        canvas_open(&c, &open, UNIT, "segment=6KiB");
        assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &b), FRAG_OOM);
        canvas_close(&c);
    }
}

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, "segment=6KiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buddy_grants_the_next_size_of_its_series),
        cmocka_unit_test(a_buddy_refuses_what_no_device_has),
    };

    return run_pictures("placement", pictures,
                        sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn) +
           cmocka_run_group_tests_name("buddies", tests, NULL, NULL);
}
