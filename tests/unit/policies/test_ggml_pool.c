/* test_ggml_pool.c - tests the policy ggml_pool: pictures of each rule of its
 * source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/canvas.h"

enum { UNIT = 256, ROOM = 64 };

static const struct picture pictures[] = {
    /* clang-format off */
    /* A segment of 1.05 times the request, in whole units. */
    {"ggml_pool", ROOM, "a4 b1",                 "aaaaa|bb"},
    {"ggml_pool", ROOM, "a20 b21",               "aaaaaaaaaaaaaaaaaaaaa|bbbbbbbbbbbbbbbbbbbbbbb"},
    /* The whole of the buffer that exceeds the request by least, */
    {"ggml_pool", ROOM, "a4 -a b1",              "bbbbb"},
    {"ggml_pool", ROOM, "a4 b2 -a -b c3",        ".....|ccc"},
    {"ggml_pool", ROOM, "a4 b2 -a -b c4",        "ccccc|..."},
    {"ggml_pool", ROOM, "a4 -a b6",              ".....|bbbbbbb"},
    /* of equals the one in the lowest slot, which is the lowest empty one. */
    {"ggml_pool", ROOM, "a2 b2 -b -a c2",        "...|ccc"},
    {"ggml_pool", ROOM, "a2 b2 -a -b c2",        "ccc|..."},
    {"ggml_pool", ROOM, "a2 b2 c2 -a -b d2 -c e2", "eee|ddd|..."},
    /* A stream and a pool have slots of their own. */
    {"ggml_pool", ROOM, "a4@1 -a b4@2",          ".....|bbbbb"},
    {"ggml_pool", ROOM, "a4@1/1 -a b4@1 c4@1/1", "ccccc|bbbbb"},
    /* A full device: the buffers of the stream are returned, no others. */
    {"ggml_pool", 16,   "a4 b4 -a -b c10",       "ccccccccccc"},
    {"ggml_pool", 16,   "a4@1 b4@2 -a -b c11@2", "....."},
    {"ggml_pool", 16,   "a4 b4 -a c14",          "bbbbb"},
    {"ggml_pool", ROOM, "a4@1 b4@2 c4 -a -b !",  "ccccc"},
    /* clang-format on */
};

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, NULL);
}

/* Buffers are freed beyond the 256 slots of their stream: the device gets the
 * last one back. */
static void a_buffer_without_a_slot_is_returned(void **state)
{
    static const struct picture none = {.policy = "ggml_pool", .room = 1024};
    static struct frag_block blocks[257];
    static struct canvas c;
    char memory[1024];

    (void)state;
    canvas_open(&c, &none, UNIT, NULL);
    for (size_t i = 0; i < 257; i++) {
        const struct frag_request req = {.size = 1, .frees_at = FRAG_NEVER};

        assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &blocks[i]),
                         FRAG_OK);
    }
    for (size_t i = 0; i < 257; i++)
        c.heap.policy->free(&c.heap, &blocks[i]);
    canvas_draw(&c, memory);
    assert_int_equal(strlen(memory), 256 + 255);
    assert_null(c.heap.policy->check(&c.heap));
    canvas_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_without_a_slot_is_returned),
    };

    return run_pictures("ggml_pool", pictures,
                        sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn) +
           cmocka_run_group_tests_name("ggml_pool rules", tests, NULL, NULL);
}
