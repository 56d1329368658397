/* test_bfc.c - tests the policy bfc: pictures of each rule of its source, with
 * numbers derived by hand, and random traffic compared with a model that has
 * the source's 21 bins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/experiments/contract/traffic.h"
#include "tests/support/canvas.h"

/* Units of 256 bytes: the first region has 12. */
enum { UNIT = 256, ROOM = 256 };

static const char REGIONS[] = "region=3KiB";

static const struct picture pictures[] = {
    /* clang-format off */
    /* A hole of 12 is cut for 4. Then a hole of 8 is cut for 4, twice which it
     * is, and granted whole for 5. */
    {"bfc", ROOM, "a4",                     "aaaa........"},
    {"bfc", ROOM, "a4 b4",                  "aaaabbbb...."},
    {"bfc", ROOM, "a4 b5",                  "aaaabbbbbbbb"},
    {"bfc", ROOM, "a1 b1 c2",               "abcc........"},
    /* Or it is split if 2 units (512 B) or more remain and `split' allows
     * it. */
    {"bfc:split=512", ROOM, "a4 b6",        "aaaabbbbbb.."},
    {"bfc:split=512", ROOM, "a4 b7",        "aaaabbbbbbbb"},
    /* 1/16 of 8 KiB is 512 B. */
    {"bfc:limit=8KiB,fragmentation=0.0625", ROOM, "a4 b6", "aaaabbbbbb.."},
    {"bfc:limit=8KiB,fragmentation=0.0625", ROOM, "a4 b7", "aaaabbbbbbbb"},
    /* A block that was allocated whole is freed whole. */
    {"bfc", ROOM, "a4 b5 -b c4",            "aaaacccc...."},

    /* The tightest hole; of equals the lowest; its low part. */
    {"bfc", ROOM, "a4 b1 c2 d5 -a -c e2",   "....beeddddd"},
    {"bfc", ROOM, "a2 b1 c4 d5 -a -c e2",   "eeb....ddddd"},
    {"bfc", ROOM, "a4 b1 c2 d5 -a -c e1",   "....be.ddddd"},
    {"bfc", ROOM, "a2 b1 c2 d1 e2 f4 -a -e -c g2", "ggb..d..ffff"},
    {"bfc", ROOM, "a2 b1 c2 d1 e2 f4 -e -c -a g2", "ggb..d..ffff"},
    {"bfc", ROOM, "a12@1 -a b12@2/1",       "bbbbbbbbbbbb"},

    /* Coalescing: up, down, both, never across regions. */
    {"bfc", ROOM, "a4 b4 c4 -a -b d8",      "ddddddddcccc"},
    {"bfc", ROOM, "a4 b4 c4 -b -a d8",      "ddddddddcccc"},
    {"bfc", ROOM, "a4 b4 c4 -a -c -b d12",  "dddddddddddd"},
    {"bfc:gc=no", 36, "a12 b24 -a -b c25",  "............|........................"},

    /* Regions of 12, 24 and 48. */
    {"bfc", ROOM, "a12 b12",                "aaaaaaaaaaaa|bbbbbbbbbbbb............"},
    {"bfc", ROOM, "a12 b24 c1",
     "c...............................................|aaaaaaaaaaaa|"
     "bbbbbbbbbbbbbbbbbbbbbbbb"},
    /* The region size doubles for a larger request, and not a second time: 12
     * grows to 24 for a and stays 24 for b. */
    {"bfc", ROOM, "a20 b20",
     "aaaaaaaaaaaaaaaaaaaaaaaa|bbbbbbbbbbbbbbbbbbbbbbbb"},
    /* After 12 comes 24, doubled to 48 for b; so has c's. */
    {"bfc", ROOM, "a12 b40 c20",
     "cccccccccccccccccccc............................|aaaaaaaaaaaa|"
     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},
    /* A limit of 36 is 12 and 24; one of 32 leaves 20 for the second. */
    {"bfc:limit=9KiB", ROOM, "a12 b12 c12 d1", "aaaaaaaaaaaa|bbbbbbbbbbbbcccccccccccc"},
    {"bfc:limit=8KiB", ROOM, "a12 b12",     "aaaaaaaaaaaa|bbbbbbbbbbbbbbbbbbbb"},
    {"bfc:limit=8KiB", ROOM, "a12 b21",     "aaaaaaaaaaaa"},
    {"bfc:limit=8383", ROOM, "a12 b20",     "aaaaaaaaaaaa|bbbbbbbbbbbbbbbbbbbb"},
    {"bfc:limit=2KiB", ROOM, "a1",          "a......."},
    /* The device has 20 left for 24 (6144 B). 0.9 of it is 5529 B, rounded up
     * 22 units; 0.9 of those 5068 B, 20 units. */
    {"bfc", 32,   "a12 b12",                "aaaaaaaaaaaa|bbbbbbbbbbbbbbbbbbbb"},
    /* 19 left: 0.9 of 20 units is 18. */
    {"bfc", 31,   "a12 b12",                "aaaaaaaaaaaa|bbbbbbbbbbbbbbbbbb"},
    /* On through 17, 16, 15, 14, 13 to the request, and no further. */
    {"bfc", 24,   "a12 b12",                "aaaaaaaaaaaa|bbbbbbbbbbbb"},
    {"bfc", 23,   "a12 b12",                "aaaaaaaaaaaa"},
    /* Below ten units 0.9 rounds back up: one unit less each time. */
    {"bfc", 15,   "a12 b1",                 "aaaaaaaaaaaa|b.."},
    {"bfc", 12,   "a12 b1",                 "aaaaaaaaaaaa"},
    /* A size that was reached by doubling in vain is kept: b's 48 comes down to
     * 44, 40 and no further than 37, c's to the 36 that are left. */
    {"bfc", 48,   "a12 b37 c12",
     "aaaaaaaaaaaa|cccccccccccc........................"},

    /* Wholly free regions go before a request fails: 4 left and 12 returned
     * are the 16 that 24, 22, 20, 18, 17 come down to. */
    {"bfc", 16,   "a12 -a b13",             "bbbbbbbbbbbbbbbb"},
    {"bfc:gc=no", 16, "a12 -a b13",         "............"},
    {"bfc", 36,   "a12 b1 -a c30",          "b......................."},
    {"bfc:limit=4KiB", ROOM, "a12 -a b13",  "bbbbbbbbbbbbbbbb"},
    /* But not if the limit shows that it cannot help. */
    {"bfc:limit=4KiB", ROOM, "a12 -a b17",  "............"},
    {"bfc:limit=4KiB", ROOM, "a1 b13",      "a..........."},

    /* All at once, 32 units, and the same rules inside. */
    {"bfc:limit=8KiB,preallocate=yes", ROOM, "a1 b16",
     "abbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},
    {"bfc:limit=8KiB,preallocate=yes", ROOM, "a32 b1",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
    /* clang-format on */
};

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, REGIONS);
}

static void a_fraction_is_one_of_the_devices_memory(void **state)
{
    static const struct picture none = {.policy = "bfc", .room = ROOM};
    static struct canvas c;
    char memory[256];

    (void)state;
    canvas_open(&c, &none, UNIT, NULL);
    frag_heap_close(&c.heap);
    c.mem.base.total = 64 * UNIT;
    canvas_heap(&c, "bfc:preallocate=yes,fraction=0.75", NULL);
    canvas_play(&c, "a16 b32 c1");
    canvas_draw(&c, memory);
    assert_string_equal(memory,
                        "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    canvas_close(&c);
}

static void sizes_are_whole_units_of_256_bytes(void **state)
{
    static const frag_size sizes[][2] = {
        {1, 256}, {256, 256}, {257, 512}, {100000, 100096}};
    static const struct picture none = {.policy = "bfc", .room = 65536};
    static struct canvas c;

    (void)state;
    canvas_open(&c, &none, UNIT, NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const struct frag_request req = {.size = sizes[i][0]};
        struct frag_block b;

        assert_int_equal(c.heap.policy->alloc(&c.heap, &req, &b), FRAG_OK);
        assert_int_equal(b.size, sizes[i][1]);
    }
    canvas_close(&c);
}

/* ---- the source's bins, taken at their word ---- */

enum { BINS = 21, CHUNKS = 4096 };

struct chunk {
    frag_addr addr;
    frag_size size;
    unsigned region;
    bool used;
};

struct model {
    size_t count, regions;
    frag_size next;
    struct chunk chunks[CHUNKS]; /* neighbours follow one another */
};

/* Bin k has the sizes from 256 << k, the last one all from there on. */
static unsigned bin_of(frag_size size)
{
    unsigned bin = 0;

    while (bin + 1 < BINS && size >= (frag_size)UNIT << (bin + 1))
        bin++;
    return bin;
}

/* The older region first, in a region the lower address. */
static bool is_before(const struct chunk *a, const struct chunk *b)
{
    return a->region != b->region ? a->region < b->region : a->addr < b->addr;
}

/* The first of a bin by size and address that is large enough; count if none
 * is. */
static size_t find_in(const struct model *m, unsigned bin, frag_size size)
{
    size_t best = m->count;

    for (size_t i = 0; i < m->count; i++) {
        const struct chunk *c = &m->chunks[i], *b = &m->chunks[best];

        if (c->used || c->size < size || bin_of(c->size) != bin)
            continue;
        if (best == m->count || c->size < b->size ||
            (c->size == b->size && is_before(c, b)))
            best = i;
    }
    return best;
}

static size_t find(const struct model *m, frag_size size)
{
    size_t at = m->count;

    for (unsigned bin = bin_of(size); bin < BINS && at == m->count; bin++)
        at = find_in(m, bin, size);
    return at;
}

static void put_in(struct model *m, size_t at, struct chunk c)
{
    assert_true(m->count < CHUNKS);
    memmove(&m->chunks[at + 1], &m->chunks[at],
            (m->count++ - at) * sizeof(*m->chunks));
    m->chunks[at] = c;
}

/* Merges a chunk with the one after it if both are free and of one region. */
static void join(struct model *m, size_t at)
{
    struct chunk *c = &m->chunks[at];

    if (at + 1 >= m->count || c[0].used || c[1].used ||
        c[0].region != c[1].region)
        return;
    c->size += c[1].size;
    memmove(&c[1], &c[2], (--m->count - at - 1) * sizeof(*c));
}

static void model_free(struct model *m, frag_addr addr)
{
    size_t at = 0;

    while (m->chunks[at].addr != addr)
        at++;
    m->chunks[at].used = false;
    join(m, at);
    if (at)
        join(m, at - 1);
}

static frag_size grown(struct model *m, frag_size size)
{
    const frag_size before = m->next;
    frag_size bytes;

    while (m->next < size)
        m->next *= 2;
    bytes = m->next;
    if (m->next == before)
        m->next *= 2;
    return bytes;
}

static void model_alloc(struct model *m, size_t at, frag_size size,
                        frag_size split)
{
    const struct chunk whole = m->chunks[at];

    m->chunks[at].used = true;
    if (whole.size < 2 * size && whole.size - size < split)
        return;
    m->chunks[at].size = size;
    put_in(m, at + 1,
           (struct chunk){whole.addr + size, whole.size - size, whole.region,
                          false});
}

static void it_does_what_21_bins_do(void **state)
{
    static struct model m;
    static struct traffic t;
    const struct traffic_options opts = {.scale = 1};
    uint64_t rng = 11;

    (void)state;
    m = (struct model){.next = 4096};
    assert_int_equal(traffic_open(&t, frag_policy_find("bfc"),
                                  "region=4KiB,split=8KiB", &opts),
                     FRAG_OK);
    for (int i = 0; i < 6000; i++) {
        const uint64_t dice = random_next(&rng);
        struct step step = {.kind = STEP_FREE,
                            .id = (uint32_t)(dice % MAX_LIVE)};
        struct live *l = &t.live[step.id];
        size_t at;

        if (l->is_live) {
            model_free(&m, l->block.addr);
            traffic_step(&t, &step);
            continue;
        }
        step.kind = STEP_ALLOC;
        step.size = 1 + (dice >> 32) % ((frag_size)1 << (8 + dice / 256 % 14));
        at = find(&m, frag_round_up(step.size, UNIT));
        assert_int_equal(traffic_step(&t, &step), FRAG_OK);
        if (at == m.count) {
            const frag_size bytes = grown(&m, frag_round_up(step.size, UNIT));
            const struct faulty_memory *h = &t.mem.held[t.mem.count - 1];

            assert_int_equal(h->size, bytes);
            put_in(
                &m, at,
                (struct chunk){h->addr, bytes, (unsigned)m.regions++, false});
        }
        model_alloc(&m, at, frag_round_up(step.size, UNIT), 8192);
        assert_int_equal(l->block.addr, m.chunks[at].addr);
        assert_int_equal(l->block.size, m.chunks[at].size);
    }
    assert_true(m.regions > 3);
    assert_null(traffic_close(&t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fraction_is_one_of_the_devices_memory),
        cmocka_unit_test(sizes_are_whole_units_of_256_bytes),
        cmocka_unit_test(it_does_what_21_bins_do),
    };

    return run_pictures("bfc", pictures, sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn) +
           cmocka_run_group_tests_name("bfc rules", tests, NULL, NULL);
}
