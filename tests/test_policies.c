/* Policies one by one: pictures of each rule and tie-break, parameters, and
 * what the registry promises.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
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

/* ---- parameters ---- */

struct knobs {
    frag_size size;
    uint64_t number;
    double ratio;
    uint32_t choice;
    bool on;
};

static const struct frag_param knob_rows[] = {
    {"size", FRAG_PARAM_SIZE, offsetof(struct knobs, size), "20MiB", NULL, 512,
     0x1p64, "bytes"},
    {"number", FRAG_PARAM_NUMBER, offsetof(struct knobs, number), "7", NULL, 1,
     9, "things"},
    {"ratio", FRAG_PARAM_RATIO, offsetof(struct knobs, ratio), "0.8", NULL, 0,
     1, "a part"},
    {"choice", FRAG_PARAM_CHOICE, offsetof(struct knobs, choice), "low",
     "low|high|any", 0, 0, "which"},
    {"on", FRAG_PARAM_SWITCH, offsetof(struct knobs, on), "no", NULL, 0, 0,
     "whether"},
    {.name = NULL},
};

static const struct frag_policy knobs_policy = {
    .name = "knobs",
    .state_size = sizeof(struct knobs),
    .params = knob_rows,
};

static void parameters_read_back_as_they_were_given(void **state)
{
    static const struct {
        const char *params, *resolved;
    } rows[] = {
        {NULL, "size=20MiB,number=7,ratio=0.8,choice=low,on=no"},
        {"", "size=20MiB,number=7,ratio=0.8,choice=low,on=no"},
        {"size=1536", "size=1536,number=7,ratio=0.8,choice=low,on=no"},
        {"size=1.5KiB", "size=1536,number=7,ratio=0.8,choice=low,on=no"},
        {"size=2048GiB", "size=2TiB,number=7,ratio=0.8,choice=low,on=no"},
        {"size=inf", "size=inf,number=7,ratio=0.8,choice=low,on=no"},
        {"on=yes,choice=any",
         "size=20MiB,number=7,ratio=0.8,choice=any,on=yes"},
        {"choice=high", "size=20MiB,number=7,ratio=0.8,choice=high,on=no"},
        {"ratio=0.123456789012345,number=9",
         "size=20MiB,number=9,ratio=0.123456789012345,choice=low,on=no"},
        {"ratio=1,number=1", "size=20MiB,number=1,ratio=1,choice=low,on=no"},
        {"number=2,number=3", "size=20MiB,number=3,ratio=0.8,choice=low,on=no"},
        {"size=512,", "size=512,number=7,ratio=0.8,choice=low,on=no"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[256];
        struct frag_error e;

        assert_int_equal(frag_policy_resolve(&knobs_policy, rows[i].params,
                                             text, sizeof(text), &e),
                         FRAG_OK);
        assert_string_equal(text, rows[i].resolved);
    }
}

static void a_wrong_parameter_is_answered_with_what_is_right(void **state)
{
    static const struct {
        const char *params, *words;
    } rows[] = {
        {"sice=1", "knobs: no parameter sice: it takes size, number, ratio, "
                   "choice, on"},
        {"size=511", "knobs: size=511 is out of range, 512 to inf"},
        {"size=big", "knobs: size=big: expected a size such as 20MiB"},
        {"size=", "knobs: size=: expected a size such as 20MiB"},
        {"size=-1", "knobs: size=-1: expected a size such as 20MiB"},
        {"number=0", "knobs: number=0 is out of range, 1 to 9"},
        {"number=10", "knobs: number=10 is out of range, 1 to 9"},
        {"number=1x", "knobs: number=1x: expected a whole number"},
        {"number=-1", "knobs: number=-1: expected a whole number"},
        {"number=", "knobs: number=: expected a whole number"},
        {"ratio=1.01", "knobs: ratio=1.01 is out of range, 0 to 1"},
        {"ratio=-0.5", "knobs: ratio=-0.5 is out of range, 0 to 1"},
        {"ratio=nan", "knobs: ratio=nan: expected a number"},
        {"ratio=0.5x", "knobs: ratio=0.5x: expected a number"},
        {"choice=lo", "knobs: choice=lo: expected one of low|high|any"},
        {"choice=lower", "knobs: choice=lower: expected one of low|high|any"},
        {"choice=", "knobs: choice=: expected one of low|high|any"},
        {"choice=low|high",
         "knobs: choice=low|high: expected one of low|high|any"},
        {"on=maybe", "knobs: on=maybe: expected yes or no"},
        {"size", "knobs: expected key=value in \"size\""},
        {"size=1KiB,,on=yes", "knobs: expected key=value in \"\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_error e;

        assert_int_equal(
            frag_policy_resolve(&knobs_policy, rows[i].params, NULL, 0, &e),
            FRAG_INVALID);
        assert_string_equal(e.text, rows[i].words);
    }
}

static void a_policy_without_parameters_says_so(void **state)
{
    struct frag_error e;

    (void)state;
    assert_int_equal(frag_policy_resolve(frag_policy_find("direct"),
                                         "segment=1MiB", NULL, 0, &e),
                     FRAG_INVALID);
    assert_string_equal(e.text, "direct: no parameter segment: it takes none");
}

static void a_long_parameter_is_refused_not_cut(void **state)
{
    char params[1024];
    struct frag_error e;

    (void)state;
    memset(params, '1', sizeof(params));
    memcpy(params, "number=", 7);
    params[sizeof(params) - 1] = '\0';
    assert_int_equal(frag_policy_resolve(&knobs_policy, params, NULL, 0, &e),
                     FRAG_INVALID);
}

static void resolved_text_is_cut_to_its_room(void **state)
{
    char text[8] = "#######";
    struct frag_error e;

    (void)state;
    assert_int_equal(frag_policy_resolve(&knobs_policy, NULL, text, 5, &e),
                     FRAG_OK);
    assert_string_equal(text, "size");
    assert_int_equal(text[5], '#');
}

/* ---- the registry ---- */

static void every_policy_resolves_its_defaults_to_themselves(void **state)
{
    (void)state;
    for (size_t i = 0; frag_policies[i]; i++) {
        char first[512], second[512];
        struct frag_error e;

        assert_int_equal(frag_policy_resolve(frag_policies[i], NULL, first,
                                             sizeof(first), &e),
                         FRAG_OK);
        assert_int_equal(frag_policy_resolve(frag_policies[i], first, second,
                                             sizeof(second), &e),
                         FRAG_OK);
        assert_string_equal(first, second);
        assert_ptr_equal(frag_policy_find(frag_policies[i]->name),
                         frag_policies[i]);
        assert_non_null(frag_policies[i]->summary);
        assert_non_null(frag_policies[i]->source);
    }
    assert_null(frag_policy_find("nobody"));
}

/* Whether the file defines the policy of its name. */
static bool defines_policy(const char *folder, const char *file)
{
    char path[1024], line[256], wanted[128];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    snprintf(wanted, sizeof(wanted), "const struct frag_policy frag_policy_");
    f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        found = found || !strncmp(line, wanted, strlen(wanted));
    fclose(f);
    return found;
}

static void every_file_that_defines_a_policy_is_registered(void **state)
{
    const char *folder = FRAG_SOURCE_DIR "/policies";
    DIR *dir = opendir(folder);
    size_t registered = 0, defined = 0;

    (void)state;
    assert_non_null(dir);
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        char name[256];
        const char *dot = strrchr(d->d_name, '.');

        if (!dot || strcmp(dot, ".c") || !defines_policy(folder, d->d_name))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(dot - d->d_name), d->d_name);
        assert_non_null(frag_policy_find(name));
        defined++;
    }
    closedir(dir);
    while (frag_policies[registered])
        registered++;
    assert_int_equal(defined, registered);
}

static const struct frag_policy maps_policy = {
    .name = "maps",
    .needs = FRAG_NEEDS_VMM,
};

static enum frag_err refuse(struct frag_heap *heap)
{
    (void)heap;
    return FRAG_DEVICE;
}

static const struct frag_policy refusing_policy = {
    .name = "refusing",
    .init = refuse,
};

static void a_heap_that_cannot_open_says_why_and_is_untouched(void **state)
{
    const struct frag_backend_ops plain = {.name = "plain"};
    struct frag_backend mem = {.ops = &plain};
    struct frag_heap heap = {.user = &mem};
    struct frag_error e;

    (void)state;
    assert_int_equal(frag_heap_open(&heap, &maps_policy, &mem, NULL, &e),
                     FRAG_UNSUPPORTED);
    assert_string_equal(e.text,
                        "maps needs virtual memory calls, which plain lacks");
    assert_int_equal(frag_heap_open(&heap, &refusing_policy, &mem, NULL, &e),
                     FRAG_DEVICE);
    assert_int_equal(frag_heap_open(&heap, &knobs_policy, &mem, "on=1", &e),
                     FRAG_INVALID);
    assert_null(heap.policy);
    assert_ptr_equal(heap.user, &mem);
}

static void a_state_starts_zeroed_with_its_parameters(void **state)
{
    struct frag_backend mem = {.ops = NULL};
    struct frag_heap heap;
    struct frag_error e;
    const struct knobs *knobs;

    (void)state;
    assert_int_equal(
        frag_heap_open(&heap, &knobs_policy, &mem, "choice=any,on=yes", &e),
        FRAG_OK);
    knobs = heap.state;
    assert_int_equal(knobs->size, 20 * FRAG_MIB);
    assert_int_equal(knobs->number, 7);
    assert_true(knobs->ratio > 0.79 && knobs->ratio < 0.81);
    assert_int_equal(knobs->choice, 2);
    assert_true(knobs->on);
    assert_null(heap.moved);
    assert_null(heap.user);
    frag_heap_close(&heap);
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
        cmocka_unit_test(parameters_read_back_as_they_were_given),
        cmocka_unit_test(a_wrong_parameter_is_answered_with_what_is_right),
        cmocka_unit_test(a_policy_without_parameters_says_so),
        cmocka_unit_test(a_long_parameter_is_refused_not_cut),
        cmocka_unit_test(resolved_text_is_cut_to_its_room),
        cmocka_unit_test(every_policy_resolves_its_defaults_to_themselves),
        cmocka_unit_test(every_file_that_defines_a_policy_is_registered),
        cmocka_unit_test(a_heap_that_cannot_open_says_why_and_is_untouched),
        cmocka_unit_test(a_state_starts_zeroed_with_its_parameters),
    };

    return run_pictures() + cmocka_run_group_tests(tests, NULL, NULL);
}
