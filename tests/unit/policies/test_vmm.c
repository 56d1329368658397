/* test_vmm.c - tests policies with virtual memory: pictures of each rule and
 * tie-break, and the contents of live blocks while pages are mapped, unmapped
 * and remapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policies/remap/gather.h"
#include "sim/experiments/contract/traffic.h"
#include "tests/support/canvas.h"
#include "tests/support/shadow_backend.h"

enum { ROOM = 64 };

/* A granule of the arena is four units. */
static const frag_size UNIT = 512 * FRAG_KIB;

/* Each page is a segment of the drawing. */
static const struct picture pictures[] = {
    /* clang-format off */
    /* The tightest hole, of equals the lowest; a new page continues a block. */
    {"expandable:largest=2MiB", ROOM, "a3 b2",                  "aaab|b..."},
    {"expandable:largest=2MiB", ROOM, "a3 b1 c2 d2 -a -c e2",   "...b|eedd"},
    {"expandable:largest=2MiB", ROOM, "a2 b1 c2 d3 -c -a e2",   "eeb.|.ddd"},
    {"expandable:largest=2MiB", ROOM, "a4 b4 -a c2",            "cc..|bbbb"},
    /* In that hole, the low end. */
    {"expandable:largest=2MiB", ROOM, "a1 b11 -b d4",           "addd|d...|...."},
    {"expandable:largest=2MiB", ROOM, "a3 b11 c2 -b d2",        "aaad|d...|....|..cc"},
    /* A stream's and a pool's memory serves no other. */
    {"expandable:largest=2MiB", ROOM, "a4@1 b4@2 -a c4@2",      "....|bbbb|cccc"},
    {"expandable:largest=2MiB", ROOM, "a4@1/1 b4@1/2 -a c4@1/2", "....|bbbb|cccc"},
    {"expandable:largest=2MiB", ROOM, "a4@1 b4@2 -a c4@1",      "cccc|bbbb"},
    /* Trim unmaps whole free pages; the addresses are one hole as before. */
    {"expandable:largest=2MiB", ROOM, "a4 b4 c4 -b !",          "aaaa|cccc"},
    {"expandable:largest=2MiB", ROOM, "a4 b4 c4 -b ! d4",       "aaaa|dddd|cccc"},
    {"expandable:largest=2MiB", ROOM, "a4 b4 c4 -b ! d8",       "aaaa|cccc|dddd|dddd"},
    {"expandable:largest=2MiB", ROOM, "a6 b8 c5 d5 -b !",       "aaaa|aa..|..cc|cccd|dddd"},
    {"expandable:largest=2MiB", ROOM, "a6 b8 c5 d5 -b ! e5",    "aaaa|aaee|eee.|..cc|cccd|dddd"},
    {"expandable:largest=2MiB", ROOM, "a6 b8 c5 d5 -b ! e7",    "aaaa|aaee|eeee|e.cc|cccd|dddd"},
    {"expandable:largest=2MiB", ROOM, "a6 b8 c5 d5 -b ! e8",    "aaaa|aaee|eeee|eecc|cccd|dddd"},
    {"expandable:largest=2MiB", ROOM, "a6 b8 c5 d5 -b ! e9",    "aaaa|aa..|..cc|cccd|dddd|eeee|eeee|e..."},
    /* A hole without memory serves like any other. */
    {"expandable:largest=2MiB", ROOM, "a7 b8 c1 -b ! e5",       "aaaa|aaae|eeee|...c"},
    {"expandable:largest=2MiB", ROOM, "a5 b8 c3 -b ! e5",       "aaaa|aeee|ee..|.ccc"},
    {"expandable:largest=2MiB", ROOM, "a5 b8 c3 -b ! e4",       "aaaa|aeee|e...|.ccc"},
    /* A device that refuses gets the free pages of all regions back. */
    {"expandable:largest=2MiB", 12,   "a4@1 -a b12@2",          "bbbb|bbbb|bbbb"},
    {"expandable:largest=2MiB", 12,   "a4 b8 -a c4@1",          "bbbb|bbbb|cccc"},
    {"expandable:largest=2MiB", 12,   "a2 b12",                 "aa.."},
    {"expandable:page=4MiB,largest=4MiB", ROOM, "a1 b9",        "abbbbbbb|bb......"},

    /* Whole pages, and any free page for any block. */
    {"paged", ROOM, "a3 b1 c5",                    "aaaa|bbbb|cccc|cccc"},
    {"paged:page=4MiB", ROOM, "a1 b9",             "aaaaaaaa|bbbbbbbb|bbbbbbbb"},
    {"paged:page=3MiB", ROOM, "a1",                "aaaaaaaa"},
    {"paged", ROOM, "a4 b4 -a c1",                 "cccc|bbbb"},
    {"paged", 12,   "a3 b4 c4 -a -c d8",           "bbbb|dddd|dddd"},
    {"paged", 16,   "a4 b4 c4 d4 -a -c e8",        "bbbb|dddd|eeee|eeee"},
    {"paged", ROOM, "a4@1 -a b4@2",                "bbbb"},
    {"paged", ROOM, "a4 b4 -a !",                  "bbbb"},
    {"paged", 8,    "a4 b8",                       "aaaa"},

    /* Exact; a larger primitive block, split; free neighbours are merged. The
     * addresses of a stitched block show the memory a second time. */
    {"stitch", ROOM, "a4 b8 -b c8",                "aaaa|cccc|cccc"},
    {"stitch", ROOM, "a8 b4 -a c4 d4",             "cccc|dddd|bbbb"},
    {"stitch", ROOM, "a8 b4 -a c4 -c d8",          "dddd|dddd|bbbb"},
    {"stitch", ROOM, "a4 b4 -a -b c8",             "....|....|cccc|cccc"},
    {"stitch:fragment=512", ROOM, "a4 b4 c4 -a -c d8", "....|bbbb|....|dddd|dddd"},
    {"stitch:fragment=512", 12, "a4 b4 c4 -a -c d8", "....|bbbb|....|dddd|dddd"},
    {"stitch:fragment=4MiB", ROOM, "a4 b4 c4 -a -c d8", "....|bbbb|....|dddd|dddd"},
    /* A free stitched block serves again: exact before a split, and larger. */
    {"stitch:fragment=512", 12, "a4 b4 c4 -a -c d8 -d e8", "....|bbbb|....|eeee|eeee"},
    {"stitch:fragment=512", 12, "a4 b4 c4 -a -c d8 -d e4", "eeee|bbbb|....|....|...."},
    {"stitch:fragment=512", 12, "a4 b4 c4 -a -c d8 -d !", "bbbb"},
    /* Missing memory is created and stitched to it. */
    {"stitch:fragment=512", 12, "a4 b4 -a c8",     "....|bbbb|....|cccc|cccc"},
    {"stitch:fragment=512", 8, "a4 b4 -a c8",      "bbbb"},
    {"stitch:fragment=512,pool=0", 12, "a4 b4 c4 -a -c d8 -d -b e12", "....|....|....|eeee|eeee|eeee"},
    {"stitch", 8, "a8 -a b4 -b c8",                "cccc|cccc"},
    {"stitch:segment=2MiB", 4, "a4 -a b2@1", "bb.."},

    /* Free pages from anywhere before new ones, where fewest are missing. */
    {"remap", ROOM, "a3 b2",                       "aaab|b..."},
    {"remap", ROOM, "a3 b11 c2 -b d2",             "aaa.|....|....|ddcc"},
    {"remap", ROOM, "a4 b4 c4 -a -c d8",           "bbbb|dddd|dddd"},
    {"remap", ROOM, "a4 b4 c4 d4 -a -c e8",        "bbbb|dddd|eeee|eeee"},
    {"remap", ROOM, "a4 b4 -a c9",                 "bbbb|cccc|cccc|c..."},
    /* The tightest hole that has all pages; otherwise the largest, and among
     * equals the highest; its highest pages. */
    {"remap", ROOM, "a12 b4 c10 -a -c d14",        "....|....|bbbb|dddd|dddd|dddd|dd.."},
    {"remap", ROOM, "a8 b4 c4 d4 e10 -a -c -e f13", "....|....|bbbb|dddd|ffff|ffff|ffff|f..."},
    {"remap", ROOM, "a4 b4 c4 d4 e10 -a -c -e f13", "bbbb|....|dddd|ffff|ffff|ffff|f..."},
    {"remap", ROOM, "a8 b4 c4 d4 -a -c e9",        "bbbb|dddd|eeee|eeee|e..."},
    {"remap", ROOM, "a4@1 b4 -a c8@2",             "bbbb|cccc|cccc"},
    /* No more than the budget, unless the device is full. */
    {"remap:budget=0", ROOM, "a4 b4 -a c8",        "....|bbbb|cccc|cccc"},
    {"remap:budget=0", 12,   "a4 b4 -a c8",        "bbbb|cccc|cccc"},
    {"remap:budget=1", ROOM, "a4 b4 c4 d4 -a -c e8", "bbbb|....|dddd|eeee|eeee"},
    {"remap", 12,   "a4 b4 c4 -b d5",              "aaaa|cccc"},
    {"remap", ROOM, "a4 b6 -a !",                  "bbbb|bb.."},
    {"remap", ROOM, "a4 b6 -a ! c6",               "bbbb|bbcc|cccc"},
    {"remap:page=4MiB", ROOM, "a8 b8 -a c16",      "bbbbbbbb|cccccccc|cccccccc"},
    /* Without page sharing two halves of pages are no page. */
    {"remap:slack=1", 12, "a2 b2 c2 d2 -b -c e6",  "aa..|..dd"},
    /* A new block shares pages: its head, its tail, both, and with no page between.
     * Of two ends that would do it takes the one that leaves less. */
    {"remap", ROOM, "a3 b3 c2 -b d5",      "aaa.|..cc|...d|dddd"},
    {"remap", ROOM, "a1 b4 c3 -b d5",      "a...|.ccc|dddd|d..."},
    {"remap", ROOM, "a2 b2 x4 -b d5",      "aa..|xxxx|...d|dddd"},
    {"remap", ROOM, "a2 b2 c2 d2 -b -c e7", "aa..|..dd|..ee|eeee|e..."},
    {"remap", 12,   "a2 b2 x4 c2 d2 -b -c e4", "aa..|xxxx|..dd|..ee|ee.."},
    {"remap", ROOM, "a2 b2 x4 c2 d2 -b -c e3", "aa..|xxxx|..dd|..ee|e..."},
    /* So do the two ends of one hole, around a page from elsewhere. */
    {"remap", ROOM, "a3 b2 c3 x4 y4 -b -x d6", "aaa.|.ccc|yyyy|...d|dddd|d..."},
    /* Its bytes in the hosts are drawn as free; they are not. */
    {"remap", ROOM, "a2 b2 x4 c2 d2 -b -c e4 f1", "aa..|xxxx|..dd|f...|..ee|ee.."},
    {"remap", ROOM, "a2 b2 x4 c2 d2 -b -c e3 f1", "aa..|xxxx|.fdd|..ee|e..."},
    /* When it dies they are, and its addresses go. */
    {"remap", ROOM, "a2 b2 x4 c2 d2 -b -c e4 -e f2 g2", "aaff|xxxx|ggdd|....|...."},
    {"remap", ROOM, "a2 b2 x4 c2 d2 -b -c e4 -e !", "aa..|xxxx|..dd"},
    {"remap", ROOM, "a2 b2 x4 c2 d2 -b -c e4 -a -d !", "....|xxxx|....|..ee|ee.."},
    /* Not below the slack, nor beyond the budget while the device has memory. */
    {"remap:slack=0.5", ROOM, "a2 b2 x4 c2 d2 -b -c e4", "aa..|xxxx|..dd|eeee"},
    {"remap:budget=1", ROOM, "a2 b2 x4 c2 d2 -b -c e4", "aa..|xxxx|..dd|eeee"},
    {"remap:budget=0", 12, "a2 b2 x4 c2 d2 -b -c e4", "aa..|xxxx|..dd|..ee|ee.."},
    /* Not where whole pages are free. */
    {"remap", ROOM, "a2 b2 x4 c2 d2 y4 -b -c -y e4", "aa..|xxxx|..dd|eeee"},
    /* clang-format on */
};

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, NULL);
}

/* ---- under a running program ---- */

static const struct traffic *at_work;
static bool has_waited; /* in this step */

static void unmap_at_work(frag_addr addr, frag_size size)
{
    for (size_t i = 0; i < MAX_LIVE; i++) {
        const struct frag_block *b = &at_work->live[i].block;

        if (at_work->live[i].is_live && b->addr < addr + size &&
            addr < b->addr + b->size)
            fail_msg("block %zu is unmapped while it lives", i);
    }
    if (!has_waited)
        fail_msg("what queued work may still use is unmapped");
}

/* The shadow while a program runs. */
static enum frag_err serve_at_work(struct frag_relay *relay,
                                   struct frag_relayed *c)
{
    if (c->call == FRAG_DRIVER_SYNCHRONIZE)
        has_waited = true;
    else if (c->call == FRAG_DRIVER_UNMAP)
        unmap_at_work(c->at, c->size);
    else if (c->call == FRAG_DRIVER_COPY)
        fail_msg("memory is copied while a program is at work");
    return shadow_serve(relay, c);
}

/* ---- contents ---- */

static const char *const subjects[][2] = {
    {"expandable", NULL},
    {"expandable", "largest=16MiB,span=96MiB"},
    {"paged", NULL},
    {"stitch", "fragment=512"},
    {"stitch", "fragment=512,reuse=1,pool=64MiB"},
    {"remap", NULL},
    {"remap", "budget=1"},
    {"remap", "slack=0"},
    {"remap", "slack=0,budget=4"},
    {"remap", "slack=0"},
    {"remap", "span=96MiB"},
    {"compact", NULL},
    {"compact", "threshold=0"},
    {"compact", "threshold=1"},
};

static void check_contents(struct traffic *t, struct shadow *s,
                           const unsigned char *value, const char *name)
{
    for (size_t i = 0; i < MAX_LIVE; i++)
        if (t->live[i].is_live && !shadow_has(s, &t->live[i].block, value[i]))
            fail_msg("%s: block %zu has lost its contents", name, i);
}

/* Unless the policy moves blocks, no live memory is unmapped even for a moment,
 * and none before a wait for the device. */
static void follow_contents(const struct frag_policy *policy,
                            const char *params, uint64_t seed)
{
    static struct script script;
    static struct traffic t;
    static struct shadow s;
    const struct traffic_options opts = {.capacity = 64 * FRAG_MIB, .scale = 1};
    unsigned char value[MAX_LIVE] = {0};

    script_make(&script, seed, 400, 0);
    assert_int_equal(traffic_open(&t, policy, params, &opts), FRAG_OK);
    shadow_open(&s, t.arena);
    at_work = &t;
    if (!(policy->needs & FRAG_NEEDS_MOVES))
        s.relay.serve = serve_at_work;
    t.mem.relay.under = &s.base;
    for (size_t i = 0; i < script.count; i++) {
        const struct step *step = &script.steps[i];
        const bool was_live = t.live[step->id].is_live;
        const char *fault;
        enum frag_err err;

        has_waited = false;
        err = traffic_step(&t, step);
        assert_true(err == FRAG_OK || err == FRAG_OOM);
        if (step->kind == STEP_ALLOC && err == FRAG_OK && !was_live) {
            value[step->id] = (unsigned char)(1 + i % 255);
            shadow_write(&s, &t.live[step->id].block, value[step->id]);
        }
        check_contents(&t, &s, value, policy->name);
        fault = t.heap.policy->check ? t.heap.policy->check(&t.heap) : NULL;
        if (fault)
            fail_msg("%s: %s (step %zu)", policy->name, fault, i);
    }
    assert_true(t.ooms > 0);
    has_waited = true; /* nothing is queued at the end */
    assert_null(traffic_close(&t));
    shadow_close(&s);
}

static void live_blocks_keep_their_contents(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(subjects) / sizeof(*subjects); i++)
        for (uint64_t seed = 1; seed <= (FRAG_SANITIZED ? 1 : 3); seed++)
            follow_contents(frag_policy_find(subjects[i][0]), subjects[i][1],
                            seed * 100 + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_blocks_keep_their_contents),
    };

    return run_pictures("pictures", pictures,
                        sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn) +
           cmocka_run_group_tests_name("contents", tests, NULL, NULL);
}
