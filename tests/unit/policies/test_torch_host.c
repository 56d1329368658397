/* test_torch_host.c - tests the policy torch_host: pictures of each rule of
 * PyTorch's allocator of pinned memory. A unit is 1 MiB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/canvas.h"

enum { UNIT = 1 << 20, ROOM = 64 };

#define ROUND3  "torch_host:pinned_max_round_threshold_mb:3"
#define CACHED4 "torch_host:pinned_max_cached_size_mb:4"

static const struct picture pictures[] = {
    /* clang-format off */
    /* A power of two for each request, in a segment of its own. */
    {"torch_host", ROOM, "a1 b2 c3 d5",       "cccc|a|bb|dddddddd"},
    {"torch_host", ROOM, "a4 -a b2",          "....|bb"},
    {"torch_host", ROOM, "a2 b2 -a -b c4",    "cccc|..|.."},
    /* The bucket's last block first; stream and order of blocks do not matter. */
    {"torch_host", ROOM, "a3 b4 -a -b c3",    "....|cccc"},
    {"torch_host", ROOM, "a3 b4 -b -a c3",    "cccc|...."},
    {"torch_host", ROOM, "a3@1 -a b3@2",      "bbbb"},
    /* A pool of a capture has its own blocks, since 2.11. */
    {"torch_host", ROOM, "a3@0/1 -a b3",      "....|bbbb"},
    {"torch_host:torch_version:2.11", ROOM, "a3@0/1 -a b3", "....|bbbb"},
    {"torch_host:torch_version:2.10", ROOM, "a3@0/1 -a b3", "bbbb"},
    /* empty_cache returns what is free, but not from such a pool. */
    {"torch_host", ROOM, "a3 b2 -a !",        "bb"},
    {"torch_host", ROOM, "a3@0/1 b2 -a -b !", "...."},
    /* A request that fails returns nothing, and is not tried again. */
    {"torch_host", 6,    "a4 -a b3 -b c5",    "...."},
    /* Above the threshold a request keeps its size. */
    {ROUND3, ROOM, "a2 b3 c5",                "ccccc|aa|bbbb"},
    /* Then a bucket has blocks of several sizes: the last that is enough. */
    {ROUND3, ROOM, "a7 b5 -a -b c6",          "ccccccc|....."},
    {ROUND3, ROOM, "a5 b5 -a -b c6",          "cccccc|.....|....."},
    {ROUND3, ROOM, "a7 b8 c5 -b -a -c d6",    ".....|ddddddd|........"},
    /* Above the cached size it does so too, and is returned when freed. */
    {CACHED4, ROOM, "a5 b3",                  "aaaaa|bbbb"},
    {CACHED4, ROOM, "a5 b3 -a -b",            "...."},
    {CACHED4, ROOM, "a5 -a b5 c4 -c d3",      "dddd|bbbbb"},
    /* clang-format on */
};

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, NULL);
}

static struct frag_block ask(struct frag_heap *heap, frag_size size)
{
    struct frag_block block = {0};

    assert_int_equal(
        heap->policy->alloc(heap, &(struct frag_request){.size = size}, &block),
        FRAG_OK);
    return block;
}

static void open_canvas(struct canvas *c, const char *policy)
{
    static const struct picture none = {.policy = "torch_host", .room = ROOM};

    canvas_open(c, &none, UNIT, NULL);
    frag_heap_close(&c->heap);
    canvas_heap(c, policy, NULL);
}

/* One segment; blocks are cut from it in steps of 4 KiB, while it has room, and
 * empty_cache does not make room in it. */
static void blocks_are_cut_from_the_reserve(void **state)
{
    static struct canvas c;
    struct frag_block a, b, d;

    (void)state;
    open_canvas(&c, "torch_host:pinned_reserve_segment_size_mb:1");
    a = ask(&c.heap, 100);
    b = ask(&c.heap, 5000);
    assert_int_equal(a.size, 128);
    assert_int_equal(b.addr, a.addr + 4096);
    c.heap.policy->free(&c.heap, &b);
    c.heap.policy->trim(&c.heap);
    b = ask(&c.heap, 5000);
    assert_int_equal(b.addr, a.addr + 4096 + 8192);
    d = ask(&c.heap, 600000);
    assert_int_equal(d.size, 1 << 20);
    assert_false(d.addr >= a.addr && d.addr < a.addr + (1 << 20));
    canvas_close(&c);
}

/* empty_cache returns the memory of a pool of a capture when it has ended. */
static void a_pool_that_ended_is_emptied(void **state)
{
    static struct canvas c;
    char memory[256];

    (void)state;
    open_canvas(&c, "torch_host");
    canvas_play(&c, "a4@0/1 b2@0/2 -a -b");
    assert_int_equal(
        c.heap.policy->hear(
            &c.heap, &(struct frag_heard){.pool = 1, .facts = FRAG_POOL_ENDED}),
        FRAG_OK);
    canvas_draw(&c, memory);
    assert_string_equal(memory, "....|..");
    canvas_play(&c, "!");
    canvas_draw(&c, memory);
    assert_string_equal(memory, "..");
    assert_int_equal(c.heap.policy->hear(
                         &c.heap, &(struct frag_heard){.pool = 2, .now = true}),
                     FRAG_OK);
    canvas_draw(&c, memory);
    assert_string_equal(memory, "");
    canvas_close(&c);
}

/* PyTorch 2.13 takes the last block of the bucket, although it is too small. */
static void release_2_13_takes_the_last_block(void **state)
{
    static struct canvas c;
    struct frag_block a, b;

    (void)state;
    open_canvas(
        &c, "torch_host:torch_version:2.13,pinned_max_round_threshold_mb:3");
    a = ask(&c.heap, 5 * UNIT);
    c.heap.policy->free(&c.heap, &a);
    b = ask(&c.heap, 7 * UNIT);
    assert_int_equal(b.addr, a.addr);
    assert_int_equal(b.size, 5 * UNIT);
    canvas_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_cut_from_the_reserve),
        cmocka_unit_test(a_pool_that_ended_is_emptied),
        cmocka_unit_test(release_2_13_takes_the_last_block),
    };

    return run_pictures("torch_host", pictures,
                        sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn) +
           cmocka_run_group_tests_name("torch_host rules", tests, NULL, NULL);
}
