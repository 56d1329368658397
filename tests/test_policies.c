/* Policies one by one: pictures of each rule and tie-break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "policies/policy.h"
#include "sim/arena.h"
#include "tests/faulty.h"

/* ---- pictures ---- */

/* A script of allocations and frees, and the memory it must leave behind: one
 * character per unit, a letter for its owner, a dot for free, a bar between
 * segments. "a4" allocates 4 units as a, "a4@1" on stream 1; "-a" frees them;
 * "!" trims. Segments have 12 units unless the policy says otherwise, larger
 * ones come in granules of 4, and the device has `room` units. What the device
 * has no room for is not drawn. The hostile arena puts the second segment above
 * the first, the third below both, the fourth above all, and so on.
 */
enum { UNIT = 512, ROOM = 64 };

static const struct picture {
    const char *policy;
    unsigned room;
    const char *script, *memory;
} pictures[] = {
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
    /* What a full segment has left is cut, the largest class first. */
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

struct canvas {
    struct faulty mem;
    struct frag_backend *arena;
    struct frag_heap heap;
    struct frag_block live[26];
    bool is_live[26];
};

/* Opens "name" or "name:params" with segments of 12 units. */
static void open_heap(struct canvas *c, const char *spec)
{
    char name[32], params[128];
    const size_t length = strcspn(spec, ":");
    const struct frag_policy *policy;
    struct frag_error e;

    snprintf(name, sizeof(name), "%.*s", (int)length, spec);
    policy = frag_policy_find(name);
    assert_non_null(policy);
    snprintf(params, sizeof(params), "%s%s%s",
             policy->params ? "segment=6KiB" : "",
             policy->params && spec[length] ? "," : "",
             spec[length] ? spec + length + 1 : "");
    assert_int_equal(frag_heap_open(&c->heap, policy, &c->mem.base, params, &e),
                     FRAG_OK);
}

static void open_canvas(struct canvas *c, const struct picture *p)
{
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                            .rule = FRAG_RULE_HOSTILE};

    memset(c, 0, sizeof(*c));
    c->arena = frag_arena_open(&opts);
    assert_non_null(c->arena);
    faulty_init(&c->mem, c->arena);
    c->mem.base.granularity = 4 * UNIT;
    c->mem.limit = p->room * UNIT;
    open_heap(c, p->policy);
}

static void close_canvas(struct canvas *c)
{
    frag_heap_close(&c->heap);
    assert_int_equal(c->mem.used, 0);
    assert_int_equal(frag_arena_used(c->arena), 0);
    frag_arena_close(c->arena);
}

/* One word of a script. */
static void act(struct canvas *c, const char *word)
{
    const int who = (word[0] == '-' ? word[1] : word[0]) - 'a';
    struct frag_request req = {.frees_at = FRAG_NEVER, .owner = (uint32_t)who};
    char *end;

    if (word[0] == '!') {
        c->heap.policy->trim(&c->heap);
    } else if (word[0] == '-') {
        assert_true(c->is_live[who]);
        c->heap.policy->free(&c->heap, &c->live[who]);
        c->is_live[who] = false;
    } else {
        enum frag_err err;

        req.size = strtoull(word + 1, &end, 10) * UNIT;
        if (*end == '@')
            req.stream = (frag_stream)atoi(end + 1);
        err = c->heap.policy->alloc(&c->heap, &req, &c->live[who]);
        assert_true(err == FRAG_OK || err == FRAG_OOM);
        c->is_live[who] = err == FRAG_OK;
    }
}

/* The next segment above addr, or NULL. */
static const struct held *segment_from(const struct faulty *f, frag_addr addr)
{
    const struct held *best = NULL;

    for (size_t i = 0; i < f->count; i++)
        if (f->held[i].addr >= addr && (!best || f->held[i].addr < best->addr))
            best = &f->held[i];
    return best;
}

static char owner_of(const struct canvas *c, frag_addr addr)
{
    for (int i = 0; i < 26; i++)
        if (c->is_live[i] && addr >= c->live[i].addr &&
            addr < c->live[i].addr + c->live[i].size)
            return (char)('a' + i);
    return '.';
}

static void draw(const struct canvas *c, char *text)
{
    const struct held *s = segment_from(&c->mem, 0);

    while (s) {
        for (frag_size at = 0; at < s->size; at += UNIT)
            *text++ = owner_of(c, s->addr + at);
        s = segment_from(&c->mem, s->addr + s->size);
        if (s)
            *text++ = '|';
    }
    *text = '\0';
}

static void memory_is_as_drawn(void **state)
{
    const struct picture *p = *state;
    char memory[1024];
    struct canvas c;

    open_canvas(&c, p);
    for (const char *word = p->script; *word; word += strspn(word, " ")) {
        act(&c, word);
        word += strcspn(word, " ");
    }
    draw(&c, memory);
    assert_string_equal(memory, p->memory);
    close_canvas(&c);
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
        struct canvas c;

        open_canvas(&c, &huge);
        frag_heap_close(&c.heap);
        snprintf(spec, sizeof(spec), "size_class:subdivisions=%u",
                 (unsigned)cuts[i]);
        open_heap(&c, spec);
        c.mem.limit = FRAG_UNLIMITED;
        for (frag_size size = 1; size < 64 * FRAG_MIB; size += size / 7 + 1) {
            struct frag_request req = {.size = size};
            struct frag_block b;

            assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &b), FRAG_OK);
            assert_int_equal(b.size, naive_class(size, cuts[i]));
            c.heap.policy->free(&c.heap, &b);
            c.heap.policy->trim(&c.heap);
        }
        close_canvas(&c);
    }
}

enum { PICTURES = sizeof(pictures) / sizeof(*pictures) };

static int run_pictures(void)
{
    static char names[PICTURES][96];
    static struct CMUnitTest tests[PICTURES];

    for (size_t i = 0; i < PICTURES; i++) {
        const void *row = &pictures[i];

        snprintf(names[i], sizeof(names[i]), "%s, room %u: %s",
                 pictures[i].policy, pictures[i].room, pictures[i].script);
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = memory_is_as_drawn};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    return cmocka_run_group_tests_name("pictures", tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_powers_of_two_cut_into_equal_parts),
    };

    return run_pictures() + cmocka_run_group_tests(tests, NULL, NULL);
}
