/* test_policies.c - tests policies one by one: pictures of each rule and
 * tie-break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/canvas.h"

/* ---- pictures ---- */

/* Segments have 12 units unless the policy has another size; larger ones are
 * multiples of 4 units, and the device has `room` units.
 */
enum { UNIT = 512, ROOM = 64 };

static const char SEGMENTS[] = "segment=6KiB";

static const struct picture pictures[] = {
    /* clang-format off */
    {"direct", ROOM, "a3 b2",                      "aaa|bb"},
    {"direct", ROOM, "a3 b2 -a c1",                "c|bb"},
    {"direct", 4,    "a3 b2 -a c2",                "cc"},

    /* The lowest hole, its low part. */
    {"first_fit", ROOM, "a4 b2",                   "aaaabb......"},
    {"first_fit", ROOM, "a4 b1 c2 d5 -a -c e2",    "ee..b..ddddd"},
    {"first_fit", ROOM, "a2 b1 c4 d5 -c -a e3",    "..beee.ddddd"},
    {"first_fit", ROOM, "a12 b12 -b -a c2",        "cc..........|............"},
    {"first_fit", ROOM, "a12 b12 c12 -a -c -b d2", "dd..........|............|............"},
    {"first_fit", ROOM, "a4@1 -a b2@2",            "bb.........."},
    /* Coalescing: up, down, both, never across segments. */
    {"first_fit", ROOM, "a4 b4 c4 -a -b d8",       "ddddddddcccc"},
    {"first_fit", ROOM, "a4 b4 c4 -b -a d8",       "ddddddddcccc"},
    {"first_fit", ROOM, "a4 b4 c4 -a -c -b d12",   "dddddddddddd"},
    {"first_fit", ROOM, "a12 b12 -a -b c16",       "cccccccccccccccc|............|............"},
    /* Growth: a segment, or one's own in granules; its rest serves others. */
    {"first_fit", ROOM, "a7 b6",                   "aaaaaaa.....|bbbbbb......"},
    {"first_fit:segment=5KiB", ROOM, "a10",        "aaaaaaaaaa"},
    {"first_fit:segment=5KiB", ROOM, "a11",        "aaaaaaaaaaa."},
    {"first_fit", ROOM, "a13 b3",                  "aaaaaaaaaaaaabbb"},
    /* Trim returns wholly free segments. */
    {"first_fit", ROOM, "a12 b12 -a !",            "bbbbbbbbbbbb"},
    {"first_fit", ROOM, "a12 b12 -b !",            "aaaaaaaaaaaa"},
    {"first_fit", ROOM, "a6 b6 -a !",              "......bbbbbb"},
    {"first_fit", ROOM, "a6 b6 -b !",              "aaaaaa......"},
    {"first_fit", ROOM, "a1 b12 -a -b !",          ""},
    /* A full device: what can be spared is returned first. */
    {"first_fit", 16,   "a12 b2",                  "aaaaaaaaaaaa"},
    {"first_fit", 16,   "a12 -a b13",              "bbbbbbbbbbbbb..."},
    {"first_fit", 24,   "a1 b12 -b c13",           "a..........."},
    {"first_fit", 24,   "a1 b12 c13 -b d3",        "addd........|............"},

    /* From where the last block ended, upwards, and round. */
    {"next_fit", ROOM, "a4 b2",                    "aaaabb......"},
    {"next_fit", ROOM, "a4 b1 c2 d2 -a -c e2",     "....b..ddee."},
    {"next_fit", ROOM, "a4 b1 c2 d2 -a -c e4",     "eeeeb..dd..."},
    {"next_fit", ROOM, "a4 b1 c2 d5 -c -a e1 f1",  "ef..b..ddddd"},
    {"next_fit", ROOM, "a4 b1 c2 d5 -c -a e2 f2 g2", "eeffbggddddd"},
    /* A hole that has grown over the place is behind it. */
    {"next_fit", ROOM, "a2 b2 -a -b c1",           "c..........."},
    {"next_fit", ROOM, "a2 b2 c2 d2 -c e1 -b -a -d -e f1", "f..........."},
    {"next_fit", ROOM, "a3 b1 c2 d2 e4 -a f1 -f -d g1", "...bccg.eeee"},
    {"next_fit", ROOM, "a12 b12 c12 -a -c -b d2",  "............|dd..........|............"},
    {"next_fit", ROOM, "a12 b12 c4 -b d2",         "ccccdd......|aaaaaaaaaaaa|............"},
    {"next_fit", ROOM, "a12 b12 -a c2 -b d2",      "ccdd........|............"},

    /* The tightest hole; of equals the lowest; its low part. */
    {"best_fit", ROOM, "a4 b1 c2 d5 -a -c e2",     "....beeddddd"},
    {"best_fit", ROOM, "a2 b1 c4 d5 -a -c e2",     "eeb....ddddd"},
    {"best_fit", ROOM, "a2 b1 c2 d1 e2 f4 -a -e -c g2", "ggb..d..ffff"},
    {"best_fit", ROOM, "a2 b1 c2 d1 e2 f4 -e -c -a g1", "g.b..d..ffff"},
    {"best_fit", ROOM, "a4 b1 c3 d4 -a -c e2",     "....bee.dddd"},
    {"best_fit", ROOM, "a12 b6 -a c6",             "............|bbbbbbcccccc"},
    {"best_fit", ROOM, "a12 b12 c12 -b -c -a d2", "dd..........|............|............"},
    {"best_fit", ROOM, "a4@1 -a b2@2",             "bb.........."},
    {"best_fit", ROOM, "a4 b4 c4 -a -c -b d12",    "dddddddddddd"},
    {"best_fit", ROOM, "a12 b12 -a -b c16",        "cccccccccccccccc|............|............"},
    {"best_fit", ROOM, "a12 b12 -a !",             "bbbbbbbbbbbb"},
    {"best_fit", 16,   "a12 -a b13",               "bbbbbbbbbbbbb..."},

    /* Classes of one and of four subdivisions. */
    {"size_class:subdivisions=1", ROOM, "a3 b1 c2 d5", "aaaabcc.....|dddddddd...."},
    {"size_class", ROOM, "a3 b9",                  "aaa.........|bbbbbbbbbb.."},
    {"size_class", ROOM, "a5 b7",                  "aaaaabbbbbbb"},
    /* A freed block serves its class only, the last one freed first. */
    {"size_class", ROOM, "a4 -a b2",               "....bb......"},
    {"size_class", ROOM, "a2 b2 c2 -a -b d2",      "..ddcc......"},
    {"size_class", ROOM, "a2 b2 c2 -b -a d2",      "dd..cc......"},
    {"size_class", ROOM, "a4@1 -a b4@2",           "bbbb........"},
    /* The rest of a full segment is split, the largest class first. */
    {"size_class:subdivisions=1", ROOM, "a8 b8 c4", "aaaaaaaacccc|bbbbbbbb...."},
    {"size_class:subdivisions=1", ROOM, "a4 b1 c8 d4 e2 f1", "aaaabddddeef|cccccccc...."},
    {"size_class:subdivisions=1", ROOM, "a8 b8 c2", "aaaaaaaa....|bbbbbbbbcc.."},
    /* A larger class gets its own segment, which is cut at once. */
    {"size_class", ROOM, "a13 b2",                 "aaaaaaaaaaaaaabb"},
    {"size_class", ROOM, "a1 b13 c1",              "ac..........|bbbbbbbbbbbbbb.."},
    /* Trim returns segments without a block in use, whatever their cuts. */
    {"size_class", ROOM, "a8 b8 -b !",             "aaaaaaaa...."},
    {"size_class", ROOM, "a8 b8 -b ! c1",          "c...........|aaaaaaaa...."},
    {"size_class", ROOM, "a8 b8 -a ! c4",          "bbbbbbbbcccc"},
    {"size_class", ROOM, "a8 b8 -a ! c8",          "cccccccc....|bbbbbbbb...."},
    {"size_class", ROOM, "a8 b4 -a !",             "........bbbb"},
    {"size_class", ROOM, "a8 b4 -b -a !",          ""},
    {"size_class", 16,   "a12 -a b13",             "bbbbbbbbbbbbbb.."},
    {"size_class", 16,   "a6 b2 -a c13",           "......bb...."},
    /* clang-format on */
};

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, SEGMENTS);
}

/* ---- size classes ---- */

/* The smallest class of at least size, found by making them all: the whole
 * quanta among the equal parts of each octave. */
static frag_size naive_class(frag_size size, frag_size cuts)
{
    if (size <= UNIT)
        return UNIT;
    for (frag_size octave = 1;; octave *= 2)
        for (frag_size i = 1; i <= cuts; i++)
            if (octave * i % cuts == 0 &&
                (octave + octave * i / cuts) * UNIT >= size)
                return (octave + octave * i / cuts) * UNIT;
}

static void classes_are_powers_of_two_cut_into_equal_parts(void **state)
{
    static const frag_size cuts[] = {1, 2, 4, 8, 16, 32, 64};
    const struct picture huge = {.policy = "size_class"};

    (void)state;
    for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
        char spec[64];
        static struct canvas c;

        canvas_open(&c, &huge, UNIT, SEGMENTS);
        frag_heap_close(&c.heap);
        snprintf(spec, sizeof(spec), "size_class:subdivisions=%u",
                 (unsigned)cuts[i]);
        canvas_heap(&c, spec, SEGMENTS);
        c.mem.limit = FRAG_UNLIMITED;
        for (frag_size size = 1; size < 64 * FRAG_MIB; size += size / 7 + 1) {
            struct frag_request req = {.size = size};
            struct frag_block b;

            assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &b), FRAG_OK);
            assert_int_equal(b.size, naive_class(size, cuts[i]));
            c.heap.policy->free(&c.heap, &b);
            c.heap.policy->trim(&c.heap);
        }
        canvas_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_powers_of_two_cut_into_equal_parts),
    };

    return run_pictures("pictures", pictures,
                        sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn) +
           cmocka_run_group_tests(tests, NULL, NULL);
}
