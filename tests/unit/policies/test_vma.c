/* test_vma.c - tests the policy vma: pictures of each rule of its source, with
 * numbers derived by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/canvas.h"

/* Units of 256 bytes. Blocks have 64 of them, the first ones 8, 16 and 32. */
enum { UNIT = 256, ROOM = 256 };

static const char BLOCKS[] = "block=16KiB";

static const struct picture pictures[] = {
    /* clang-format off */
    /* The first block: an eighth of the block size, or the size that is at
     * least twice the request. */
    {"vma", ROOM, "a4",                     "aaaa...."},
    {"vma", ROOM, "a5",                     "aaaaa..........."},
    {"vma", ROOM, "a8",                     "aaaaaaaa........"},
    {"vma", ROOM, "a9",                     "aaaaaaaaa......................."},
    {"vma", ROOM, "a16",                    "aaaaaaaaaaaaaaaa................"},
    {"vma", ROOM, "a17",
     "aaaaaaaaaaaaaaaaa..............................................."},
    /* The next ones: larger than any there is. */
    {"vma", ROOM, "a4 b4 c4",               "aaaabbbb|cccc............"},
    {"vma", ROOM, "a4 b4 c4 d12 e4",
     "eeee............................|aaaabbbb|ccccdddddddddddd"},
    {"vma", ROOM, "a16 b16 c4",
     "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb|"
     "cccc............................................................"},
    /* Full blocks are passed over until a free makes room, for an equal size
     * too; the fuller block comes first. */
    {"vma", ROOM, "a4 b4 c4 d12 -a e4",     "eeeebbbb|ccccdddddddddddd"},
    {"vma", ROOM, "a4 b4 c4 d12 -d -a e4",  "eeeebbbb|cccc............"},
    {"vma:strategy=min_time", ROOM, "a4 b4 c4 d12 -d -a e4",
     "....bbbb|cccceeee........"},
    /* More than half a block: memory of its own, which goes at once. */
    {"vma", ROOM, "a33",                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
    {"vma", ROOM, "a33 -a",                 ""},
    {"vma", ROOM, "a4 b65 -b c4",           "aaaacccc"},
    /* If the device has no room for that, the blocks serve it. */
    {"vma", 64,   "a32 -a b33",
     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb..............................."},
    {"vma", 64,   "a32 -a b65",
     "................................................................"},
    /* A block that the device refuses is halved, not below the request, not
     * below an eighth; then the request gets memory of its own. A block is kept
     * when it is empty, which tells them apart. */
    {"vma", 63,   "a17",                    "aaaaaaaaaaaaaaaaa..............."},
    {"vma", 32,   "a32 -a",                 "................................"},
    {"vma", 31,   "a17 -a",                 ""},
    {"vma", 31,   "a17",                    "aaaaaaaaaaaaaaaaa"},
    {"vma", 7,    "a1",                     "a"},
    {"vma", 16,   "a8",                     "aaaaaaaa........"},
    {"vma", 15,   "a8",                     "aaaaaaaa"},
    {"vma", 15,   "a8 -a",                  "........"},
    {"vma", 7,    "a8",                     ""},

    /* The next larger chunk, before the rest of the block, before a chunk of
     * exactly the size. */
    {"vma", ROOM, "a2 b1 -a c2",            "..bcc..."},
    {"vma", ROOM, "a2 b1 c3 d1 -a -c e2",   "..bee.d."},
    {"vma", ROOM, "a2 b1 c5 -a d2",         "ddbccccc"},
    {"vma", ROOM, "a1 b1 c2 -a d1",         ".bccd..."},
    {"vma:strategy=min_time", ROOM, "a2 b1 -a c2", "..bcc..."},
    {"vma:strategy=min_time", ROOM, "a2 b1 c3 d1 -a -c e2", "..bee.d."},
    /* The chunk of that size, before the rest, before the next larger one. */
    {"vma:strategy=min_memory", ROOM, "a2 b1 -a c2", "ccb....."},
    {"vma:strategy=min_memory", ROOM, "a2 b1 c3 d1 -a -c e2", "eeb...d."},
    {"vma:strategy=min_memory", ROOM, "a3 b1 c2 d1 -a -c e2", "...beed."},
    {"vma:strategy=min_memory", ROOM, "a3 b1 -a c2", "cc.b...."},
    /* The lowest, before the rest. */
    {"vma:strategy=min_offset", ROOM, "a3 b1 c2 d1 -a -c e2", "ee.b..d."},
    {"vma:strategy=min_offset", ROOM, "a2 b1 -a c2", "ccb....."},
    {"vma:strategy=min_offset", ROOM, "a2 b1 -a c3", "..bccc.."},
    /* Among equals, the last one freed. */
    {"vma", ROOM, "a1 b1 c1 d1 e4 -a -c f1", ".bfdeeee"},
    {"vma", ROOM, "a1 b1 c1 d1 e4 -c -a f1", "fb.deeee"},
    {"vma", ROOM, "a3 b1 c3 d1 -a -c e2",   "...bee.d"},
    {"vma", ROOM, "a3 b1 c3 d1 -c -a e2",   "ee.b...d"},
    /* Coalescing: up, down, both, with the rest. */
    {"vma", ROOM, "a2 b2 c2 d2 -a -b e4",   "eeeeccdd"},
    {"vma", ROOM, "a2 b2 c2 d2 -b -a e4",   "eeeeccdd"},
    {"vma", ROOM, "a2 b2 c2 d2 -a -c -b e6", "eeeeeedd"},
    {"vma", ROOM, "a2 b2 c4 -c -b e6",      "aaeeeeee"},
    {"vma", ROOM, "a2 b2 c4 -b -c e6",      "aaeeeeee"},
    /* The rest is in no list: a larger chunk comes first. */
    {"vma", ROOM, "a5 b1 c7 d3 -d -a e2",   "ee...bccccccc..."},
    {"vma", ROOM, "a4@1 -a b8@2/1",         "bbbbbbbb"},

    /* One empty block is kept, a second one is released. An empty block in the
     * last place is also released when another block has a free that does not
     * empty it. */
    {"vma", ROOM, "a4 -a",                  "........"},
    {"vma", ROOM, "a4 b4 c4 -a -b",         "........|cccc............"},
    {"vma", ROOM, "a4 b4 c4 -a -b -c",      "........"},
    {"vma", ROOM, "a4 b4 c4 -c -a",         "....bbbb"},
    {"vma", ROOM, "a4 b4 c4 d4 -a -b -c",   "........|....dddd........"},

    /* Blocks with little free come first: b's block has 4 free after a went,
     * the other none, so they change places and stay so when both have 4. */
    {"vma", ROOM, "a4 b4 c4 d12 -a -c e2",  "....bbbb|ee..dddddddddddd"},
    {"vma", ROOM, "a4 b4 c4 d12 -c -a e2",  "ee..bbbb|....dddddddddddd"},
    {"vma:strategy=min_time", ROOM, "a4 b4 c4 d12 -a -c e2",
     "ee..bbbb|....dddddddddddd"},
    /* One swap and no more: blocks of 16, 8 and 32 with 4, 4 and 24 free; g
     * leaves 2, which passes the second block only, so h goes to the first. */
    {"vma", ROOM, "a4 b4 c4 d12 e8 f24 -a -c -f g22 h2",
     "eeeeeeeegggggggggggggggggggggg..|....bbbb|hh..dddddddddddd"},
    /* One swap again: a's block passes the second one, not the third. */
    {"vma", ROOM, "a4 b4 c4 d12 e4 f28 -a -e g2",
     "....ffffffffffffffffffffffffffff|gg..bbbb|ccccdddddddddddd"},
    /* clang-format on */
};

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, BLOCKS);
}

/* Opens vma on a device that reports so many units. */
static void open_on(struct canvas *c, frag_size total, const char *spec)
{
    static const struct picture none = {.policy = "vma", .room = 4096};

    canvas_open(c, &none, UNIT, NULL);
    frag_heap_close(&c->heap);
    c->mem.base.total = total * UNIT;
    canvas_heap(c, spec, NULL);
}

static void expect(struct canvas *c, const char *script, const char *memory)
{
    char drawn[1024];

    canvas_play(c, script);
    canvas_draw(c, drawn);
    assert_string_equal(drawn, memory);
}

/* 0.8 of 20 units are 16: a block of 8, then, 16 being too much, another of 8.
 * Nothing is left for a third. Over the budget no empty block is kept. */
static void blocks_stay_within_the_budget(void **state)
{
    static struct canvas c;

    (void)state;
    open_on(&c, 20, "vma:block=16KiB,small_device=0");
    expect(&c, "a4 b4 c4 d4", "aaaabbbb|ccccdddd");
    expect(&c, "e4", "eeee|aaaabbbb|ccccdddd");
    expect(&c, "-a -b", "eeee|ccccdddd");
    expect(&c, "-e f4", "ccccdddd|ffff....");
    canvas_close(&c);
}

/* An eighth of 128 units is 16, an eighth of which is 2. */
static void a_small_device_has_blocks_of_an_eighth_of_it(void **state)
{
    static struct canvas c;

    (void)state;
    open_on(&c, 128, "vma");
    expect(&c, "a1", "a.");
    expect(&c, "b9", "a.|bbbbbbbbb");
    expect(&c, "-a -b", "..");
    canvas_close(&c);
    open_on(&c, 128, "vma:small_device=32767,block=8KiB");
    expect(&c, "a1", "a...");
    canvas_close(&c);
}

/* From 64 units on a list has two sizes: 64 and 65 share one. The block has 256
 * units, all of them in use. */
static void a_list_is_walked_to_the_first_that_is_large_enough(void **state)
{
    static const struct {
        const char *frees;
        char from; /* whose place a block of so many units takes */
        frag_size units;
    } rows[] = {
        {"-c -a", 'c', 65},
        {"-a -c", 'c', 65},
        {"-a -c", 'c', 64},
        {"-c -a", 'a', 64},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        static struct canvas c;
        frag_addr place;
        char word[16];

        open_on(&c, 65536, "vma:block=256KiB,small_device=0");
        canvas_play(&c, "x100 a64 b1 c65 d26");
        assert_int_equal(c.mem.used, 256 * UNIT);
        place = c.live[rows[i].from - 'a'].addr;
        canvas_play(&c, rows[i].frees);
        snprintf(word, sizeof(word), "y%u", (unsigned)rows[i].units);
        canvas_play(&c, word);
        assert_int_equal(c.mem.used, 256 * UNIT);
        assert_int_equal(c.live['y' - 'a'].addr, place);
        canvas_close(&c);
    }
}

static void sizes_are_whole_units_of_256_bytes(void **state)
{
    static const frag_size sizes[][2] = {
        {1, 256}, {256, 256}, {257, 512}, {200000001, 200000256}};
    static struct canvas c;

    (void)state;
    open_on(&c, 4 << 22, "vma");
    c.mem.limit = FRAG_GIB;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const struct frag_request req = {.size = sizes[i][0]};
        struct frag_block b;

        assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &b), FRAG_OK);
        assert_int_equal(b.size, sizes[i][1]);
    }
    canvas_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_stay_within_the_budget),
        cmocka_unit_test(a_small_device_has_blocks_of_an_eighth_of_it),
        cmocka_unit_test(a_list_is_walked_to_the_first_that_is_large_enough),
        cmocka_unit_test(sizes_are_whole_units_of_256_bytes),
    };

    return run_pictures("vma", pictures, sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn) +
           cmocka_run_group_tests_name("vma rules", tests, NULL, NULL);
}
