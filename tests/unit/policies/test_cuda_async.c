/* test_cuda_async.c - tests the policy cuda_async: scripts whose expected
 * answers were measured on an H200, and pictures of the rules that fragsim
 * chose itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/canvas.h"

/* ---- what a device answered ---- */

/* Sizes, addresses and reserved memory in MiB, as the driver returned them for
 * the same calls (cuMemAllocFromPoolAsync, cuMemFreeAsync, CU_MEMPOOL_ATTR_
 * RESERVED_MEM_CURRENT; H200, driver 580.159.04, CUDA 13.0, a new pool for each
 * row). "!" is a synchronization under the release threshold 0; all other rows
 * ran under a threshold that has no effect, except those that name theirs. Rows
 * with opportunistic=no ran while both streams were busy. Blocks whose
 * addresses depend on ties, which fragsim decides itself, are not compared. */
static const struct answer {
    const char *policy, *script, *places;
    unsigned reserved;
} answers[] = {
    /* clang-format off */
    {"cuda_async", "a33",                             "a0",             64},
    {"cuda_async", "a40 b40 c40",                     "a0 b40 c80",     128},
    {"cuda_async", "a100 b100 c100",                  "a0 b100 c200",   320},
    {"cuda_async", "a4 b1 c2 d1 e8 f16",              "b4 c5 d7 e8 f16", 32},
    {"cuda_async", "a4 b1 c2 d1 e8 f16 -c -a g2 h1 i3", "g5 h0 i1",     32},
    {"cuda_async", "a8 b8 c8 d8 -a -b e16",           "e0",             32},
    {"cuda_async", "a8 b8 c8 d8 -a -c -b e24",        "e0",             32},
    {"cuda_async", "a100 b100 c100 -b d10 e80 f20",   "d100 e110 f300", 320},
    {"cuda_async", "a96 b32 -a c40 d40 e16",          "c0 d40 e80",     128},
    /* Free pages are remapped, from wherever they are. */
    {"cuda_async", "a32 b32 c32 d32 -a -c e64",       "e128",           128},
    {"cuda_async", "a32 b32 c32 d32 -a -c e64 f32",   "e128",           160},
    {"cuda_async", "a32 b32 c32 -a e64",              "e96",            128},
    {"cuda_async", "a40 b40 c40 -a e60",              "e120",           160},
    {"cuda_async", "a48 b48 c32 -a d64",              "d128",           160},
    {"cuda_async", "a64 b64 c64 -b d65",              "d192",           224},
    /* Not those that are only partly free. */
    {"cuda_async", "a20 b20 c20 d20 e16 -a -c f40",   "e80 f96",        160},
    /* A hole without memory is as good as one with it. */
    {"cuda_async", "a40 b40 c40 -a e60 f4",           "e120 f0",        192},
    {"cuda_async", "a64 b64 c64 -b d65 e64",          "d192 e64",       288},
    {"cuda_async", "a40 b40 c40 -a ! d40",            "d0",             128},
    {"cuda_async", "a40 b40 c40 -a ! d9",             "d0",             128},
    {"cuda_async", "a40 b40 c40 -a ! d8 e33",         "d0 e120",        160},
    {"cuda_async", "a64 b64 c64 -a -b ! d32 e32 f96", "d0 e32 f192",    224},
    {"cuda_async", "a64 b64 c64 -b ! d32 e64",        "d64 e192",       224},
    /* Synchronization. */
    {"cuda_async", "a1 -a !",                         "",               0},
    {"cuda_async", "a64 b64 -a !",                    "",               64},
    {"cuda_async", "a64 b64 -a ! -b !",               "",               0},
    {"cuda_async", "a40 b40 c40 -a !",                "",               96},
    {"cuda_async", "a40 b40 c40 -a ! -b !",           "",               64},
    {"cuda_async:threshold=64MiB,sync=4",
     "a32 b32 c32 d32 -a -b -c -d e32",               "e0",             64},
    {"cuda_async:threshold=64MiB,sync=4",
     "a32 b32 c32 d32 -a -b -c -d e32 f32 g32",       "e0 f32 g64",     96},
    /* Streams whose work is done, and streams that are busy. */
    {"cuda_async", "a32@0 -a b32@1",                  "b0",             32},
    {"cuda_async", "a16@0 b16@1 -a -b e32@0",         "e0",             32},
    {"cuda_async", "a16@0 b16@0 -a -b e32@1",         "e0",             32},
    {"cuda_async:opportunistic=no", "a32@0 -a b32@1", "b32",            64},
    {"cuda_async:opportunistic=no", "a32@0 -a ! b32@1", "b0",           32},
    {"cuda_async:opportunistic=no", "a16@0 b16@1 -a -b e32@0", "e32",   64},
    {"cuda_async:opportunistic=no", "a16@0 b16@0 -a -b e32@1", "e32",   64},
    {"cuda_async:opportunistic=no",
     "a16@0 b16@1 c16@0 d16@1 -a -b e16@1 f16@0",     "e16 f0",         64},
    {"cuda_async:opportunistic=no",
     "a16@0 b8@1 c8@0 -a -c d4@0 e4@1",               "d24 e32",        64},
    {"cuda_async:opportunistic=no", "a32@0 b32@0 -a c64@1", "c64",      128},
    /* clang-format on */
};

/* The first block of a pool lies where its address space begins. */
static frag_addr first_place(struct canvas *c)
{
    const struct frag_request req = {.size = 1};
    struct frag_block b;

    assert_int_equal(c->heap.policy->alloc(&c->heap, &req, &b), FRAG_OK);
    c->heap.policy->free(&c->heap, &b);
    c->heap.policy->trim(&c->heap);
    return b.addr;
}

static void it_answers_as_an_h200_did(void **state)
{
    const struct answer *a = *state;
    const struct picture p = {.policy = a->policy, .room = 1024};
    static struct canvas c;
    frag_addr base;
    char *end;

    canvas_open(&c, &p, FRAG_MIB, NULL);
    base = first_place(&c);
    canvas_play(&c, a->script);
    for (const char *at = a->places; *at; at = end + strspn(end, " ")) {
        const frag_addr place = strtoull(at + 1, &end, 10) * FRAG_MIB;

        assert_true(c.is_live[*at - 'a']);
        assert_int_equal(c.live[*at - 'a'].addr - base, place);
    }
    assert_int_equal(c.mem.used, a->reserved * FRAG_MIB);
    canvas_close(&c);
}

static void blocks_are_512_bytes_apart_as_on_an_h200(void **state)
{
    static const frag_size sizes[] = {1, 1, 257, 513, 1024, FRAG_MIB};
    static const frag_addr places[] = {0, 512, 1024, 1536, 2560, 3584};
    const struct picture p = {.policy = "cuda_async", .room = 64};
    static struct canvas c;
    frag_addr base;

    (void)state;
    canvas_open(&c, &p, FRAG_MIB, NULL);
    base = first_place(&c);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const struct frag_request req = {.size = sizes[i]};
        struct frag_block b;

        assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &b), FRAG_OK);
        assert_int_equal(b.addr - base, places[i]);
    }
    canvas_close(&c);
}

enum { ANSWERS = sizeof(answers) / sizeof(*answers) };

static int run_answers(void)
{
    static char names[ANSWERS][128];
    static struct CMUnitTest tests[ANSWERS];

    for (size_t i = 0; i < ANSWERS; i++) {
        const void *row = &answers[i];

        snprintf(names[i], sizeof(names[i]), "%s: %s", answers[i].policy,
                 answers[i].script);
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = it_answers_as_an_h200_did};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    return cmocka_run_group_tests_name("H200", tests, NULL, NULL);
}

/* ---- pictures ---- */

/* Pages of 4 units; a page without memory is not drawn. */
enum { UNIT = 512 * 1024, ROOM = 64 };

static const char PAGES[] = "page=2MiB";

static const struct picture pictures[] = {
    /* clang-format off */
    {"cuda_async", ROOM, "a1 b2",                     "abb."},
    {"cuda_async", ROOM, "a1 b4",                     "abbb|b..."},
    /* Among equal holes it uses the oldest one, and its low part. */
    {"cuda_async", ROOM, "a2 b1 c2 d3 -a -c e2",      "eeb.|.ddd"},
    {"cuda_async", ROOM, "a2 b1 c2 d3 -c -a e2",      "..be|eddd"},
    {"cuda_async", ROOM, "a2 b1 c2 d3 -a -c e1",      "e.b.|.ddd"},
    {"cuda_async", ROOM, "a3 b1 c2 d2 -a -c e2",      "...b|eedd"},
    {"cuda_async", ROOM, "a4@1/1 -a b4@2/2",          "bbbb"},
    /* A hole that has all of its memory comes before one that has not. */
    {"cuda_async", ROOM, "a4 b4 c4 d1 -a e5 -c f4",   "bbbb|ffff|deee|ee.."},
    {"cuda_async", ROOM, "a4 b4 c8 d1 -a e8 -c f4",
     "bbbb|ffff|....|deee|eeee|e..."},
    /* The highest pages are remapped first, whatever hole they are in. */
    {"cuda_async", ROOM, "a8 b4 c4 d4 e4 f4 -a -c -e g9",
     "....|bbbb|dddd|ffff|gggg|gggg|g..."},
    {"cuda_async", ROOM, "a4 b4 c4 d4 e4 f4 -a -c -e g5",
     "....|bbbb|dddd|ffff|gggg|g..."},
    {"cuda_async", ROOM, "a8 b4 c8 d4 -a -c e9",
     "....|bbbb|dddd|eeee|eeee|e..."},
    {"cuda_async", ROOM, "a4 b4 c8 d4 -a -c e9",      "bbbb|dddd|eeee|eeee|e..."},
    /* Memory that is already mapped at the block's own address stays there. */
    {"cuda_async", ROOM, "a4 b4 c4 -a ! -b e8", "eeee|eeee|cccc"},
    /* A device that is full: nothing is remapped in vain. */
    {"cuda_async", 12,   "a4 b4 c4 -b d5",            "aaaa|....|cccc"},
    {"cuda_async", 16,   "a4 b4 c4 -b d5",            "aaaa|cccc|dddd|d..."},
    {"cuda_async", 3,    "a1",                        ""},
    /* Holes of other streams are used too, if `internal' allows it. */
    {"cuda_async:opportunistic=no", 4, "a4@0 -a b4@1", "bbbb"},
    {"cuda_async:opportunistic=no,internal=no", 4, "a4@0 -a b4@1", "...."},
    {"cuda_async:opportunistic=no", 8, "a4@0 b4@1 -a -b c8@2", "cccc|cccc"},
    {"cuda_async:opportunistic=no,internal=no", 4, "a4@0 -a@1 b4@1", "bbbb"},
    {"cuda_async:opportunistic=no,internal=no", 4, "a4@0 -a@1 b4@0", "...."},
    /* A stream's own holes come first, also if a common one is tighter. */
    {"cuda_async", ROOM, "a2 b2 c2 d2 -a ! -c e2",    "..bb|eedd"},
    {"cuda_async", ROOM, "a2 b2 c3 d1 -a ! -c e2",    "..bb|ee.d"},
    {"cuda_async:opportunistic=no", ROOM, "a2 b2 c3 d1 -a ! -c e2", "..bb|ee.d"},
    /* Common holes with memory come before those of other streams. */
    {"cuda_async", ROOM, "a2@1 b2@1 c3@2 d1@2 -c ! -a e2@3", "..bb|ee.d"},
    {"cuda_async", ROOM, "a4@1 b4@1 -a c2@2 d4@2",    "cc..|bbbb|dddd"},
    /* Of equal holes of two other streams, the older one. */
    {"cuda_async", ROOM, "a4@1 b4@2 c1@0 -a -b d4@3", "dddd|....|c..."},
    {"cuda_async", ROOM, "a4@1 b4@2 c1@0 -b -a d4@3", "....|dddd|c..."},
    /* Holes merge across streams and with common ones only if no hole fits. */
    {"cuda_async", ROOM, "a2 b2 c4 -a ! -b d4",       "dddd|cccc"},
    {"cuda_async", ROOM, "a2 b2 c4 -a ! -b d2 e2",    "eedd|cccc"},
    {"cuda_async", ROOM, "a2 b2 c1 d3 e3 f1 -a ! -b -e g2 h3", "..gg|cddd|hhhf"},
    /* Then they become common, the newest first; at a synchronization, the
     * oldest first. */
    {"cuda_async", ROOM, "a2 b1 c2 d3 -a -c e3 f2",   "..bf|fddd|eee."},
    {"cuda_async", ROOM, "a2 b1 c2 d3 -a -c ! f2",    "ffb.|.ddd"},
    /* Work that is not done: no merge, no remap, no other stream. */
    {"cuda_async:run_ahead=1000000", ROOM, "a2 b2 c4 -a ! -b d4", "....|cccc|dddd"},
    {"cuda_async:run_ahead=1000000", ROOM, "a2 b2 c4 -a -b d4", "dddd|cccc"},
    {"cuda_async", ROOM, "a4 b4 -a c8",               "bbbb|cccc|cccc"},
    {"cuda_async:run_ahead=1000000", ROOM, "a4 b4 -a c8", "....|bbbb|cccc|cccc"},
    {"cuda_async:run_ahead=1", ROOM, "a4@0 -a b4@1",  "....|bbbb"},
    {"cuda_async:run_ahead=1", ROOM, "a4@0 b4@0 -a c4@0 -b d4@0 e4@1",
     "cccc|dddd|eeee"},
    {"cuda_async:run_ahead=1", ROOM, "a4@0 b4@0 -a -b c4@2 d4@1", "dddd|....|cccc"},
    {"cuda_async:run_ahead=1", ROOM, "a2 b2 c4 d4 -a ! -b -d e4 f4", "ffff|cccc|eeee"},
    {"cuda_async:run_ahead=2", ROOM, "a2 b2 c4 d4 -a ! -b -d e4 f4",
     "....|cccc|eeee|ffff"},
    /* The merged hole is done when its youngest part is. */
    {"cuda_async:run_ahead=1", ROOM, "a4@0 b4@0 c1@2 -a d1@2 -b e4@1",
     "....|....|cdee|ee.."},
    /* A tighter hole whose work is not done is passed over. */
    {"cuda_async:run_ahead=1", ROOM, "a4@0 b4@0 c3@0 d1@0 -a e1@2 -c f3@1",
     "fff.|bbbb|...d|e..."},
    /* Full: a request is tried again after its stream has become idle and
     * the pool is trimmed; the pages of other streams stay. */
    {"cuda_async:run_ahead=9,internal=no", 8, "a4 -a b8", "...."},
    {"cuda_async:run_ahead=9,internal=no,retry=yes", 8, "a4 -a b8", "bbbb|bbbb"},
    {"cuda_async:run_ahead=9,internal=no,retry=yes", 8, "a4@1 -a b8", "...."},
    {"cuda_async:run_ahead=9,internal=no,retry=yes", 8, "a4@1 b4 -a -b c8", "...."},
    {"cuda_async:retry=yes", 8, "a4 b4 -a c8",        "bbbb"},
    /* Trim: whole pages, whosever. */
    {"cuda_async", ROOM, "a4 b4 -a !",                "bbbb"},
    {"cuda_async", ROOM, "a2 b4 -b !",                "aa.."},
    {"cuda_async", ROOM, "a4 b2 -a -b !",             ""},
    {"cuda_async:opportunistic=no", ROOM, "a2@1 b2@2 c1 -a -b !", "c..."},
    {"cuda_async:threshold=64MiB", ROOM, "a4 b4 -b !", "aaaa"},
    /* Every so many requests: down to the threshold, the highest pages. */
    {"cuda_async:threshold=4MiB,sync=4", ROOM, "a4 b4 c4 d4 -a -b -c -d e4",
     "eeee|...."},
    {"cuda_async:threshold=4097KiB,sync=3", ROOM, "a4 b4 c4 -a -b -c d4", "dddd|...."},
    {"cuda_async:sync=2", ROOM, "a4 b8 -b c4",        "aaaa|cccc"},
    {"cuda_async:sync=3", ROOM, "a4 b8 -b c4",        "aaaa|cccc|...."},
    {"cuda_async:sync=2", ROOM, "a4 b8 -b c8 -c d4",  "aaaa|dddd|...."},
    {"cuda_async:sync=2", ROOM, "a4 b8 -b c4 d8 -d e4", "aaaa|cccc|eeee"},
    /* No more address space than the span. */
    {"cuda_async:span=4MiB", ROOM, "a9",              ""},
    {"cuda_async:span=4MiB", ROOM, "a8 b1 -a c2 !",   "cc.."},
    /* clang-format on */
};

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, PAGES);
}

/* A block has 512 bytes, and the limit counts the byte that was requested. */
static void the_limit_does_not_count_rounding(void **state)
{
    static const struct picture picture = {"cuda_async", ROOM, "", ""};
    const struct frag_request one = {.size = 1, .frees_at = FRAG_NEVER};
    struct frag_block blocks[3];
    struct canvas c;

    (void)state;
    canvas_open(&c, &picture, UNIT, PAGES);
    c.mem.base.limit = 2;
    for (int i = 0; i < 2; i++)
        assert_int_equal(c.heap.policy->alloc(&c.heap, &one, &blocks[i]),
                         FRAG_OK);
    assert_int_equal(blocks[1].size, 512);
    assert_int_equal(c.heap.policy->alloc(&c.heap, &one, &blocks[2]), FRAG_OOM);
    c.heap.policy->free(&c.heap, &blocks[0]);
    assert_int_equal(c.heap.policy->alloc(&c.heap, &one, &blocks[2]), FRAG_OK);
    canvas_close(&c);
}

/* The limit of the process counts requested bytes: the pool's page of 4 units
 * is more than it admits, and stays so. */
static void the_limit_counts_what_live_blocks_requested(void **state)
{
    static const struct picture picture = {"cuda_async", ROOM, "", ""};
    struct canvas c;

    (void)state;
    canvas_open(&c, &picture, UNIT, PAGES);
    c.mem.base.limit = 3 * UNIT;
    canvas_play(&c, "a2 b1 c1");
    assert_true(c.is_live[0] && c.is_live[1] && !c.is_live[2]);
    canvas_play(&c, "-a d2");
    assert_true(c.is_live[3]);
    assert_int_equal(frag_arena_used(c.arena), 4 * UNIT);
    canvas_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_512_bytes_apart_as_on_an_h200),
        cmocka_unit_test(the_limit_does_not_count_rounding),
        cmocka_unit_test(the_limit_counts_what_live_blocks_requested),
    };

    return run_answers() + cmocka_run_group_tests(tests, NULL, NULL) +
           run_pictures("cuda_async", pictures,
                        sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn);
}
