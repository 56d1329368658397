/* test_rmm.c - tests the policies of RAPIDS RMM against the rules of their
 * source, on logs made by hand. The expected memory was derived from RMM 26.08
 * (5d50a37), not from fragsim's code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/arena/arena.h"
#include "sim/experiments/contract/faulty.h"
#include "sim/experiments/contract/traffic.h"

/* ---- pictures ---- */

/* A log and the memory it must leave behind, one character per 256 bytes: a
 * letter for its owner, a dot for free, a bar between segments. "a4" allocates
 * 4 units as a on stream 0, "a4@1" on stream 1; "-a" frees them there, "-a@2"
 * on stream 2. The device has
 * `room` units; what is refused is not drawn. The second segment lies above the
 * first, the third below both. */
enum { UNIT = 256, ROOM = 256 };

struct picture {
    const char *policy, *params;
    unsigned room;
    const char *log, *memory;
};

static const struct picture pictures[] = {
/* clang-format off */
#define POOL(params, room, log, memory) {"rmm_pool", params, room, log, memory}
    /* Growth without a maximum: the request, or as much as the pool has. */
    POOL("", ROOM, "a3 b2",       "aaa|bb."),     /* 3; max(2, 3) */
    POOL("", ROOM, "a3 b4",       "aaa|bbbb"),    /* 3; max(4, 3) */
    POOL("", ROOM, "a3 b2 c4",    "cccc..|aaa|bb."), /* max(4, 3 + 3) */
    /* Refused, half as much, down to the request. */
    POOL("", 12, "a8 b2",         "aaaaaaaa|bb.."), /* 8 no, 4 */
    POOL("", 11, "a7 b1",         "aaaaaaa|b..."),  /* 7 no, 3.5 */
    POOL("", 10, "a8 b2",         "aaaaaaaa|bb"),   /* 8, 4 no, 2 */
    POOL("", 10, "a8 b3",         "aaaaaaaa"),      /* 8, 4, 3 no */
    POOL("", 10, "a8 b3 c2",      "aaaaaaaa|cc"),
    /* With a maximum of 20: half of the remaining memory. */
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1",       "a..."),
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1 b4",    "a...|bbbb...."), /* max(4, 16 / 2) */
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1 b9",    "a...|bbbbbbbbb"), /* max(9, 8) */
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1 b4 c5", "ccccc|a...|bbbb...."), /* max(5, 8 / 2) */
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1 b4 c8", "cccccccc|a...|bbbb...."), /* all that is left */
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1 b4 c9", "a...|bbbb...."), /* one too many */
    POOL("initial=1KiB,maximum=5KiB", 10,   "a1 b4",    "a...|bbbb"), /* 8 no, 4 */
    POOL("maximum=1280", ROOM, "a1",                    "a.."), /* 5 / 2 */
    /* At the maximum, segments without live blocks go, the lowest first. */
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1 b9 -a -b c12",  "cccccccccccc"),
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1 b9 -b c10", "cccccccccc|a..."),
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1 b9 -a c10", "cccccccccc|bbbbbbbbb"),
    POOL("initial=1KiB,maximum=5KiB", ROOM, "a1 b9 -b c21", "a...|........."),
    POOL("initial=1KiB,maximum=5KiB,reclaim=no", ROOM, "a1 b9 -a -b c12", "....|........."),
    POOL("initial=3KiB,maximum=3KiB", ROOM, "a12 b1",   "aaaaaaaaaaaa"),
    /* An initial pool that cannot be had. */
    POOL("initial=3KiB", 11, "a1",                      ""),
    /* The tightest, of equals the lowest, its low part. */
    POOL("initial=3KiB", ROOM, "a4 b1 c2 d5 -a -c e2",      "....beeddddd"),
    POOL("initial=3KiB", ROOM, "a4 b1 c3 d4 -a -c e2",      "....bee.dddd"),
    POOL("initial=3KiB", ROOM, "a2 b1 c2 d1 e2 f4 -e -c -a g1", "g.b..d..ffff"),
    POOL("initial=3KiB", ROOM, "a2 b1 c2 d1 e2 f4 -a -c -e g2", "ggb..d..ffff"),
    /* Coalescing: up, down, both, never across segments. */
    POOL("initial=3KiB", ROOM, "a4 b4 c4 -b -a d8",         "ddddddddcccc"),
    POOL("initial=3KiB", ROOM, "a4 b4 c4 -a -b d8",         "ddddddddcccc"),
    POOL("initial=3KiB", ROOM, "a4 b4 c4 -a -c -b d12",     "dddddddddddd"),
    POOL("initial=1KiB", ROOM, "a4 b4 -a -b c8",            "cccccccc|....|...."),
    /* The initial pool is stream 0's; a block goes to the stream it was on. */
    POOL("initial=1KiB", ROOM, "a1@1 -a b2@1",              ".bb."),
    POOL("initial=3KiB", ROOM, "a4 b1 c3@1 -c d4",          "aaaab...dddd"),
    POOL("initial=3KiB", ROOM, "a4 b1 c3@1 -c d1@1",        "aaaabd......"),
    /* The stream's own block first, though another stream's block is
     * tighter. */
    POOL("initial=3KiB", ROOM, "a4 b1 c3@1 d4 -c -d e3",    "aaaab...eee."),
    /* Then the others in turn, though a later one's is tighter; the rest stays
     * where it was. */
    POOL("initial=3KiB", ROOM, "a4 b1 c3@1 -c d3@2",        "aaaab...ddd."),
    POOL("initial=3KiB", ROOM, "a4 b1 c3@1 -c d3@2 -d e4",  "aaaabeeee..."), /* merged below */
    POOL("initial=3KiB", ROOM, "a4 b1 c3@1 -c d3@2 e1@1",   "aaaabe..ddd."),
    POOL("initial=3KiB", ROOM, "a4 b1 c3@1 -c d3@2 e1",     "aaaab...ddde"),
    /* Lists are merged only if no other one serves, and then coalesce. */
    POOL("initial=3KiB", ROOM, "a4 b1 c3@1 -c d7",          "aaaabddddddd"),
    POOL("initial=3KiB", ROOM, "a4 b1 c3@1 -c d6 e1",       "aaaabdddddde"),
    POOL("initial=1KiB", ROOM, "a2 b2@1 -a -b c4@2",        "cccc"),
    /* One list after the other, until there is enough: 3's list [6, 9) stays
     * its own. */
    POOL("initial=3KiB", ROOM, "a3@1 b3@2 c3@3 d3 -a -b -c -d e6@1",    "eeeeee......"),
    POOL("initial=3KiB", ROOM, "a3@1 b3@2 c3@3 d3 -a -b -c -d e6@1 f2@1", "eeeeee...ff."),
    POOL("initial=3KiB", ROOM, "a3@1 b3@2 c3@3 d3 -a -b -c -d e6@1 f4@1", "eeeeeeffff.."),
    /* A block goes to the stream on which it is freed. */
    POOL("initial=1KiB", ROOM, "a2 -a@1 b2",                "..bb"),
    POOL("initial=1KiB", ROOM, "a2 -a@1 b2@1",              "bb.."),
    POOL("initial=1KiB", ROOM, "a2 -a@1 b3",                "bbb."),
    /* Merged blocks stay merged, even if they were not enough. */
    POOL("initial=1KiB", 4, "a2 b2@1 -a -b c5 d3@1",        "ddd."),
#undef POOL

#define BINS(room, log, memory) \
    {"rmm_binning", "smallest=512,largest=1KiB,blocks=2", room, log, memory}
    /* Bins of 2 and 4 units are stocked with 2 blocks each: the pool allocates
     * 4, then max(8, 4). The pool serves larger requests itself. */
    BINS(ROOM, "a1",               "aa..|........"),
    BINS(ROOM, "a2",               "aa..|........"),
    BINS(ROOM, "a3",               "....|aaaa...."),
    BINS(ROOM, "a4 b4",            "....|aaaabbbb"),
    BINS(ROOM, "a5",               "aaaaa.......|....|........"),
    BINS(ROOM, "a5 -a b6",         "bbbbbb......|....|........"),
    /* A queue: the block that was freed first is allocated first. */
    BINS(ROOM, "a1 -a b1",         "..bb|........"),
    BINS(ROOM, "a1 b1 -a -b c1",   "cc..|........"),
    BINS(ROOM, "a1 b1 -b -a c1",   "..cc|........"),
    BINS(ROOM, "a1 b1 -a -b c1 d1", "ccdd|........"),
    BINS(ROOM, "a1 b1 c1 d1 -a -b -c e1 f1 g1", "ggdd........|eeff|........"),
    /* An empty bin allocates 2 more blocks from the pool, whose rest is
     * free. */
    BINS(ROOM, "a1 b1 c1",         "cc..........|aabb|........"),
    BINS(ROOM, "a1 b1 c1 d8",      "cc..dddddddd|aabb|........"),
    BINS(12,   "a1 b1 c1",         "aabb|........"),
    /* The first stock is stream 0's; a block goes to the stream it was on. */
    BINS(ROOM, "a1@1",             "aa..|........"),
    BINS(ROOM, "a1@1 -a b1@1",     "bb..|........"),
    BINS(ROOM, "a1@1 -a b1",       "..bb|........"),
    BINS(ROOM, "a1@1 b1@2 -a -b c1@3", "cc..|........"),
    BINS(ROOM, "a1@2 b1@1 -a -b c1@3", "..cc|........"),
    BINS(ROOM, "a1 b1 c1@1 -a d1@1", "ccdd........|..bb|........"),
    /* A block goes to the stream on which it is freed, also one of the pool. */
    BINS(ROOM, "a1 -a@1 b1@1",     "bb..|........"),
    BINS(ROOM, "a1 -a@1 b1",       "..bb|........"),
    BINS(ROOM, "a5 -a@1 b5",       ".....bbbbb..|....|........"),
    BINS(ROOM, "a5 -a@1 b5@1",     "bbbbb.......|....|........"),
    /* Each request is refused until all bins are stocked. */
    BINS(4,    "a1 b1",            "...."),
#undef BINS

#define ARENA(log, memory) \
    {"rmm_arena", "size=6KiB,superblock=1KiB", ROOM, log, memory}
    /* 24 units, superblocks of at least 4, one or more per stream. */
    ARENA("a1 b2",                 "abb....................."),
    ARENA("a1 b1@1 c1",            "ac..b..................."),
    ARENA("a1 b4",                 "a...bbbb................"),
    /* The first superblock with room, its first hole, coalesced. */
    ARENA("a3 b4 -b c1",           "aaac...................."),
    ARENA("a1 b1 c2 -a -c d1",     "db......................"),
    ARENA("a1 b1 c1 d1 -a -b e2",  "eecd...................."),
    ARENA("a1 b1 c1 d1 -b -a e2",  "eecd...................."),
    ARENA("a1 b1 c1 d1 -a -c -b e3", "eeed...................."),
    /* More than a superblock is served by the global arena. */
    ARENA("a5 b1",                 "aaaaab.................."),
    ARENA("a4 -a b4",              "bbbb...................."),
    ARENA("a4 -a b4@1",            "....bbbb................"),
    ARENA("a1 b5",                 "a...bbbbb..............."),
    /* A free superblock of 6 is not split to 5, since less than 4 would remain.
     * The memory that remains inside goes to the next arena that needs it, and
     * the rest with it. */
    ARENA("a9 b9 c5 d1@1",         "aaaaaaaaabbbbbbbbbcccccd"),
    ARENA("a9 b9 c5 d1 -a -c e1",  ".........bbbbbbbbbe....d"),
    ARENA("a9 b9 c5 d1@1 -a -c e1", "e........bbbbbbbbb.....d"),
    ARENA("a21 b1@1",              "aaaaaaaaaaaaaaaaaaaaab.."),
    ARENA("a21 b1@1 -a c4@2",      "cccc.................b.."),
    ARENA("a20 b1@1 -a c1@2 d1@1", "c...................bd.."),
    /* The global arena coalesces free superblocks: up, down, both. */
    ARENA("a5 b5 -b c12",          "aaaaacccccccccccc......."),
    ARENA("a5 b5 c14 -a -b d10",   "ddddddddddcccccccccccccc"),
    ARENA("a5 b5 -a -b c10",       "cccccccccc.............."),
    ARENA("a5 b5 -a c6",           ".....bbbbbcccccc........"),
    /* A stream's superblock stays its own, though it is free. */
    ARENA("a1 -a b5",              "....bbbbb..............."),
    ARENA("a1 -a b1@1",            "....b..................."),
    /* Before a request fails, all superblocks go back and coalesce. */
    ARENA("a1 -a b24",             "bbbbbbbbbbbbbbbbbbbbbbbb"),
    ARENA("a1 b1@1 -b c20",        "a...cccccccccccccccccccc"),
    ARENA("a1 b21",                "a......................."),
    /* A superblock in use is passed on with its live blocks. */
    ARENA("a1 b21 c1@1",           "ac......................"),
    ARENA("a1 b21 c1@1 -a d1",     ".c..d..................."),
    ARENA("a17 b1 c9 d5",          "aaaaaaaaaaaaaaaaabddddd."),
    /* Too little for a superblock. */
    {"rmm_arena", "size=768,superblock=1KiB", ROOM, "a1", ""},
    {"rmm_arena", "size=6KiB,superblock=1KiB", 23, "a1", ""},
#undef ARENA
    /* clang-format on */
};

struct canvas {
    struct faulty mem;
    struct frag_backend *arena;
    struct frag_heap heap;
    struct frag_block live[26];
    bool is_live[26];
};

static void open_canvas(struct canvas *c, const struct picture *p)
{
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                            .rule = FRAG_RULE_HOSTILE};
    struct frag_error e;

    memset(c, 0, sizeof(*c));
    c->arena = frag_arena_open(&opts);
    assert_non_null(c->arena);
    faulty_init(&c->mem, c->arena);
    c->mem.limit = (frag_size)p->room * UNIT;
    assert_int_equal(frag_heap_open(&c->heap, frag_policy_find(p->policy),
                                    &c->mem.base, p->params, &e),
                     FRAG_OK);
}

static void close_canvas(struct canvas *c)
{
    frag_heap_close(&c->heap);
    assert_int_equal(c->mem.used, 0);
    assert_int_equal(frag_arena_used(c->arena), 0);
    frag_arena_close(c->arena);
}

/* One word of a log. */
static void act(struct canvas *c, const char *word)
{
    const int who = (word[0] == '-' ? word[1] : word[0]) - 'a';
    struct frag_request req = {.frees_at = FRAG_NEVER, .owner = (uint32_t)who};
    enum frag_err err;
    char *end;

    if (word[0] == '-') {
        assert_true(c->is_live[who]);
        if (word[2] == '@' && c->heap.policy->hear)
            assert_int_equal(c->heap.policy->hear(
                                 &c->heap,
                                 &(struct frag_heard){
                                     .block = &c->live[who],
                                     .stream = (frag_stream)atoi(word + 3)}),
                             FRAG_OK);
        c->heap.policy->free(&c->heap, &c->live[who]);
        c->is_live[who] = false;
        return;
    }
    req.size = strtoull(word + 1, &end, 10) * UNIT;
    if (*end == '@')
        req.stream = (frag_stream)atoi(end + 1);
    err = c->heap.policy->alloc(&c->heap, &req, &c->live[who]);
    assert_true(err == FRAG_OK || err == FRAG_OOM);
    c->is_live[who] = err == FRAG_OK;
}

/* The next segment at or above addr, or NULL. */
static const struct faulty_memory *segment_from(const struct faulty *f,
                                                frag_addr addr)
{
    const struct faulty_memory *best = NULL;

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
    const struct faulty_memory *s = segment_from(&c->mem, 0);

    while (s) {
        for (frag_size at = 0; at < s->size; at += UNIT)
            *text++ = owner_of(c, s->addr + at);
        s = segment_from(&c->mem, s->addr + s->size);
        if (s)
            *text++ = '|';
    }
    *text = '\0';
}

static void memory_is_as_the_source_has_it(void **state)
{
    const struct picture *p = *state;
    char memory[1024];
    struct canvas c;

    open_canvas(&c, p);
    for (const char *word = p->log; *word; word += strspn(word, " ")) {
        act(&c, word);
        word += strcspn(word, " ");
    }
    draw(&c, memory);
    assert_string_equal(memory, p->memory);
    close_canvas(&c);
}

enum { PICTURES = sizeof(pictures) / sizeof(*pictures) };

static int run_pictures(void)
{
    static char names[PICTURES][160];
    static struct CMUnitTest tests[PICTURES];

    for (size_t i = 0; i < PICTURES; i++) {
        const void *row = &pictures[i];

        snprintf(names[i], sizeof(names[i]), "%s:%s, room %u: %s",
                 pictures[i].policy, pictures[i].params, pictures[i].room,
                 pictures[i].log);
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = memory_is_as_the_source_has_it};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    return cmocka_run_group_tests_name("pictures", tests, NULL, NULL);
}

/* ---- sizes ---- */

static frag_size granted(const char *policy, const char *params, frag_size size)
{
    const struct picture p = {policy, params, 1 << 24, "", ""};
    const struct frag_request req = {.size = size};
    struct frag_block b;
    struct canvas c;

    open_canvas(&c, &p);
    assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &b), FRAG_OK);
    close_canvas(&c);
    return b.size;
}

static void sizes_are_rounded_up_to_256(void **state)
{
    static const frag_size rows[][2] = {
        {1, 256}, {256, 256}, {257, 512}, {5000000, 5000192}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(granted("rmm_pool", "", rows[i][0]), rows[i][1]);
        assert_int_equal(granted("rmm_arena", "size=64MiB", rows[i][0]),
                         rows[i][1]);
    }
}

static void bins_are_powers_of_two_from_256_kib_to_4_mib(void **state)
{
    static const frag_size rows[][2] = {
        {1, 256 * FRAG_KIB},
        {256 * FRAG_KIB, 256 * FRAG_KIB},
        {256 * FRAG_KIB + 1, 512 * FRAG_KIB},
        {FRAG_MIB - 1, FRAG_MIB},
        {2 * FRAG_MIB + 1, 4 * FRAG_MIB},
        {4 * FRAG_MIB, 4 * FRAG_MIB},
        {4 * FRAG_MIB + 1, 4 * FRAG_MIB + 256},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(granted("rmm_binning", "", rows[i][0]), rows[i][1]);
}

static frag_size taken(frag_size capacity, frag_size total, const char *params)
{
    const struct picture p = {"rmm_arena", params, 1 << 24, "", ""};
    const struct frag_request req = {.size = 1};
    frag_size used;
    struct frag_block b;
    struct canvas c;

    open_canvas(&c, &p);
    c.mem.base.capacity = capacity;
    c.mem.base.total = total;
    assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &b), FRAG_OK);
    used = c.mem.used;
    close_canvas(&c);
    return used;
}

static void arenas_take_half_of_the_device_unless_told(void **state)
{
    (void)state;
    assert_int_equal(taken(FRAG_GIB, FRAG_GIB, ""), FRAG_GIB / 2);
    assert_int_equal(taken(FRAG_UNLIMITED, FRAG_GIB, ""), FRAG_GIB / 2);
    assert_int_equal(taken(FRAG_GIB / 4, FRAG_GIB, ""), FRAG_GIB / 8);
    assert_int_equal(taken(FRAG_GIB, FRAG_GIB, "fraction=0.25"), FRAG_GIB / 4);
    assert_int_equal(taken(FRAG_GIB, FRAG_GIB, "size=3MiB"), 3 * FRAG_MIB);
    assert_int_equal(taken(FRAG_GIB + 100, FRAG_GIB + 100, "fraction=1"),
                     FRAG_GIB);
    assert_int_equal(taken(FRAG_GIB, FRAG_GIB, "size=1048700"), FRAG_MIB);
}

static void parameters_that_contradict_are_named(void **state)
{
    static const struct {
        const char *policy, *params, *words;
    } rows[] = {
        {"rmm_pool", "initial=2KiB,maximum=1KiB",
         "rmm_pool: initial=2KiB is more than maximum=1KiB: lower initial or "
         "raise maximum"},
        {"rmm_binning", "maximum=1GiB,initial=2GiB",
         "rmm_binning: initial=2GiB is more than maximum=1GiB: lower initial "
         "or raise maximum"},
        {"rmm_binning", "smallest=1GiB",
         "rmm_binning: smallest=1GiB is more than largest=4MiB: lower smallest "
         "or raise largest"},
        {"rmm_binning", "largest=262143",
         "rmm_binning: smallest=256KiB is more than largest=262143: lower "
         "smallest or raise largest"},
    };
    struct frag_backend *arena =
        frag_arena_open(&(struct frag_arena_options){.capacity = FRAG_GIB});

    (void)state;
    assert_non_null(arena);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_heap heap;
        struct frag_error e;

        assert_int_equal(frag_heap_open(&heap, frag_policy_find(rows[i].policy),
                                        arena, rows[i].params, &e),
                         FRAG_INVALID);
        assert_string_equal(e.text, rows[i].words);
    }
    frag_arena_close(arena);
}

/* ---- the pool against lists that are scanned ---- */

enum { MODEL_BLOCKS = 1024, MODEL_STREAMS = 4, MODEL_STEPS = 6000 };

struct model_block {
    frag_addr addr;
    frag_size size;
    bool is_head;
};

/* Lists in the order of addresses, as arrays. */
struct model {
    frag_size held;
    size_t head_count;
    struct model_block heads[MODEL_BLOCKS];
    size_t count[MODEL_STREAMS];
    struct model_block lists[MODEL_STREAMS][MODEL_BLOCKS];
};

static bool model_joins(const struct model_block *a,
                        const struct model_block *b)
{
    return a->addr + a->size == b->addr && !b->is_head;
}

static void model_erase(struct model *m, int stream, size_t at)
{
    struct model_block *list = m->lists[stream];

    memmove(list + at, list + at + 1,
            (--m->count[stream] - at) * sizeof(*list));
}

static void model_insert(struct model *m, int stream, struct model_block b)
{
    struct model_block *list = m->lists[stream];
    size_t at = 0;

    while (at < m->count[stream] && list[at].addr < b.addr)
        at++;
    memmove(list + at + 1, list + at,
            (m->count[stream]++ - at) * sizeof(*list));
    list[at] = b;
    if (at + 1 < m->count[stream] && model_joins(&list[at], &list[at + 1])) {
        list[at].size += list[at + 1].size;
        model_erase(m, stream, at + 1);
    }
    if (at > 0 && model_joins(&list[at - 1], &list[at])) {
        list[at - 1].size += list[at].size;
        model_erase(m, stream, at);
    }
}

/* 0 if the stream has none. */
static frag_addr model_take(struct model *m, int from, frag_size size)
{
    const struct model_block *list = m->lists[from];
    size_t best = SIZE_MAX;
    struct model_block b;

    for (size_t i = 0; i < m->count[from]; i++)
        if (list[i].size >= size &&
            (best == SIZE_MAX || list[i].size < list[best].size))
            best = i;
    if (best == SIZE_MAX)
        return 0;
    b = list[best];
    model_erase(m, from, best);
    if (b.size > size)
        model_insert(m, from,
                     (struct model_block){b.addr + size, b.size - size, false});
    return b.addr;
}

static frag_addr model_alloc(struct model *m, int stream, frag_size size)
{
    frag_addr addr = model_take(m, stream, size);

    for (int i = 0; !addr && i < MODEL_STREAMS; i++)
        if (i != stream)
            addr = model_take(m, i, size);
    for (int i = 0; !addr && i < MODEL_STREAMS; i++) {
        if (i == stream)
            continue;
        for (size_t k = 0; k < m->count[i]; k++)
            model_insert(m, stream, m->lists[i][k]);
        m->count[i] = 0;
        addr = model_take(m, stream, size);
    }
    return addr;
}

/* The pool took a segment: its size is checked, its address learned. */
static void model_grow(struct model *m, int stream, frag_size size,
                       const struct faulty_memory *h)
{
    assert_int_equal(h->size, size > m->held ? size : m->held);
    m->held += h->size;
    m->heads[m->head_count++] = (struct model_block){h->addr, h->size, true};
    model_insert(m, stream, m->heads[m->head_count - 1]);
}

static bool model_is_head(const struct model *m, frag_addr addr)
{
    for (size_t i = 0; i < m->head_count; i++)
        if (m->heads[i].addr == addr)
            return true;
    return false;
}

static void the_pool_takes_the_block_that_a_scan_of_its_lists_finds(void **s)
{
    static struct model m;
    static struct traffic t;
    static int streams[MAX_LIVE];
    const struct traffic_options opts = {.scale = 1};
    uint64_t rng = 7;

    (void)s;
    memset(&m, 0, sizeof(m));
    assert_int_equal(traffic_open(&t, frag_policy_find("rmm_pool"), "", &opts),
                     FRAG_OK);
    for (int i = 0; i < MODEL_STEPS; i++) {
        const uint64_t dice = random_next(&rng);
        struct step step = {.kind = STEP_FREE,
                            .id = (uint32_t)(dice % MAX_LIVE)};
        struct live *l = &t.live[step.id];
        frag_addr wanted;

        if (l->is_live) {
            model_insert(
                &m, streams[step.id],
                (struct model_block){l->block.addr, l->block.size,
                                     model_is_head(&m, l->block.addr)});
            traffic_step(&t, &step);
            continue;
        }
        step.kind = STEP_ALLOC;
        step.stream = (frag_stream)((dice >> 20) % MODEL_STREAMS);
        step.size = (1 + (dice >> 32) % (dice & 256 ? 40 : 6)) * UNIT;
        streams[step.id] = (int)step.stream;
        wanted = model_alloc(&m, (int)step.stream, step.size);
        assert_int_equal(traffic_step(&t, &step), FRAG_OK);
        if (!wanted) {
            model_grow(&m, (int)step.stream, step.size,
                       &t.mem.held[t.mem.count - 1]);
            wanted = model_take(&m, (int)step.stream, step.size);
        }
        if (l->block.addr != wanted)
            fail_msg("step %d: not the block that a scan finds", i);
    }
    assert_null(traffic_close(&t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_rounded_up_to_256),
        cmocka_unit_test(bins_are_powers_of_two_from_256_kib_to_4_mib),
        cmocka_unit_test(arenas_take_half_of_the_device_unless_told),
        cmocka_unit_test(parameters_that_contradict_are_named),
        cmocka_unit_test(
            the_pool_takes_the_block_that_a_scan_of_its_lists_finds),
    };

    return run_pictures() + cmocka_run_group_tests(tests, NULL, NULL);
}
