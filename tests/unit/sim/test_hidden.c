/* test_hidden.c - tests hidden memory (sim/arena/hidden.h): each action is
 * learned from the addresses that prove it, and an arena that applies the steps
 * chooses these addresses by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/arena/arena.h"
#include "sim/arena/hidden.h"

#define MIB FRAG_MIB

/* The chunk of the context, in the recorded process. */
#define BASE ((frag_addr)0x7f0000000000)

enum { ROWS = 8 };

/* A segment, in MiB relative to the chunk of the context; a negative size frees
 * the segment at that place. */
struct row {
    int64_t at, size;
};

struct step {
    enum frag_hidden_action action;
    int64_t at, size; /* MiB */
};

/* What a process did, and what must be learned of it. */
static const struct picture {
    const char *name;
    struct row rows[ROWS];
    struct step steps[ROWS];
    uint64_t predicted, unexplained;
} pictures[] = {
    /* clang-format off */
    {"nothing is hidden", {{8, 20}, {-66, 2}, {-512, 16}, {-544, 20}},
     {{0}}, 4, 0},
    {"a library took the beginning of a free range",
     {{8, 20}, {-66, 2}, {-512, 16}, {-492, 2}},
     {{FRAG_HIDDEN_TAKE, -496, 4}}, 3, 0},
    {"a free range was too small, so part of it was taken",
     {{8, 4}, {-512, 20}},
     {{FRAG_HIDDEN_TAKE, 12, 2}}, 1, 0},
    {"a library has the chunk above",
     {{8, 20}, {-512, 24}, {-640, 32}},
     {{FRAG_HIDDEN_TAKE, -608, 96}}, 2, 0},
    {"a library began the chunk",
     {{8, 20}, {-66, 2}, {-506, 2}},
     {{FRAG_HIDDEN_TAKE, -512, 6}}, 2, 0},
    {"the local memory grew, and the segment is in the old one",
     {{8, 20}, {-66, 2}, {-480, 20}, {-460, 32}},
     {{FRAG_HIDDEN_GROW, 0, 0}}, 3, 0},
    {"the local memory grew and its chunk was empty",
     {{8, 20}, {-128, 64}},
     {{FRAG_HIDDEN_GROW, 0, 0}}, 1, 0},
    {"the host unmapped addresses above the context",
     {{8, 20}, {160, 32}, {-512, 32}},
     {{FRAG_HIDDEN_OPEN, 128, 64}}, 2, 0},
    {"a take was returned",
     {{8, 20}, {-66, 2}, {-512, 16}, {-492, 2}, {-496, 2}},
     {{FRAG_HIDDEN_TAKE, -496, 4}, {FRAG_HIDDEN_RETURN, -496, 4},
      {FRAG_HIDDEN_TAKE, -494, 2}}, 3, 0},
    {"a freed segment is free again",
     {{8, 20}, {-512, 32}, {-512, -32}, {-512, 64 - 32}},
     {{0}}, 3, 0},
    {"two segments at one address explain nothing",
     {{8, 20}, {8, 20}}, {{0}}, 1, 1},
    {"an address beyond the end of all addresses explains nothing",
     {{8, 20}, {1 << 26, 32}}, {{0}}, 1, 1},
    /* clang-format on */
};

static uint64_t list(const struct picture *p, struct frag_hidden_segment *out)
{
    uint64_t n = 0;

    for (; n < ROWS && p->rows[n].size; n++) {
        const struct row *r = &p->rows[n];

        out[n] = (struct frag_hidden_segment){
            .event = 10 * n,
            .addr = BASE + (frag_addr)(r->at * (int64_t)MIB),
            .size = (frag_size)llabs(r->size) * MIB,
            .is_free = r->size < 0,
        };
    }
    return n;
}

static void learn(const struct picture *p, struct frag_hidden *h)
{
    struct frag_hidden_segment rows[ROWS];

    assert_int_equal(frag_hidden_learn(rows, list(p, rows), h), FRAG_OK);
}

static void each_action_is_learned(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pictures) / sizeof(*pictures); i++) {
        const struct picture *p = &pictures[i];
        struct frag_hidden h;
        uint64_t n = 0;

        learn(p, &h);
        for (; n < h.count && n < ROWS; n++) {
            const struct step *want = &p->steps[n];

            if (h.steps[n].action != want->action ||
                h.steps[n].at != want->at * (int64_t)MIB ||
                h.steps[n].size != (frag_size)want->size * MIB)
                fail_msg("%s: step %u is %d of %lld MiB at %lld", p->name,
                         (unsigned)n, (int)h.steps[n].action,
                         (long long)(h.steps[n].size / MIB),
                         (long long)(h.steps[n].at / (int64_t)MIB));
        }
        if ((n < ROWS && (p->steps[n].size || p->steps[n].action)) ||
            h.predicted != p->predicted || h.unexplained != p->unexplained)
            fail_msg("%s: %u steps, %u predicted, %u unexplained", p->name,
                     (unsigned)h.count, (unsigned)h.predicted,
                     (unsigned)h.unexplained);
        frag_hidden_free(&h);
    }
}

/* Serves the segments of the picture and compares their places. */
static void repeat(const struct picture *p, struct frag_backend *mem)
{
    const frag_size whole = frag_arena_used(mem);
    frag_addr held[ROWS] = {0}, base = 0;

    for (uint64_t i = 0; i < ROWS && p->rows[i].size; i++) {
        const struct row *r = &p->rows[i];
        const frag_size size = (frag_size)llabs(r->size) * MIB;

        assert_int_equal(frag_arena_event(mem, 10 * i), FRAG_OK);
        if (r->size < 0) {
            for (uint64_t k = 0; k < i; k++)
                if (p->rows[k].at == r->at)
                    assert_int_equal(mem->ops->segment_free(mem, held[k], size),
                                     FRAG_OK);
            continue;
        }
        assert_int_equal(mem->ops->segment_alloc(mem, size, &held[i]), FRAG_OK);
        base = i ? base : held[0] - (frag_addr)(r->at * (int64_t)MIB);
        if ((int64_t)(held[i] - base) != r->at * (int64_t)MIB)
            fail_msg("%s: segment %u at %lld MiB", p->name, (unsigned)i,
                     (long long)((int64_t)(held[i] - base) / (int64_t)MIB));
    }
    assert_true(frag_arena_used(mem) > whole);
}

static void the_steps_lead_to_the_same_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pictures) / sizeof(*pictures); i++) {
        struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                          .rule = FRAG_RULE_DRIVER};
        struct frag_hidden h;
        struct frag_backend *mem;

        if (pictures[i].unexplained)
            continue;
        learn(&pictures[i], &h);
        opts.hidden = &h;
        mem = frag_arena_open(&opts);
        assert_non_null(mem);
        repeat(&pictures[i], mem);
        frag_arena_close(mem);
        frag_hidden_free(&h);
    }
}

/* Hidden memory is not the allocator's: it uses no capacity. */
static void hidden_memory_is_not_charged(void **state)
{
    struct frag_hidden_step steps[] = {
        {0, FRAG_HIDDEN_TAKE, -(int64_t)(1024 * MIB), 512 * MIB},
        {0, FRAG_HIDDEN_TAKE, 0, 512 * MIB}, /* in use: goes elsewhere */
        {1, FRAG_HIDDEN_RETURN, -(int64_t)(1024 * MIB), 512 * MIB},
        {1, FRAG_HIDDEN_RETURN, 77, 512 * MIB}, /* not there */
    };
    const struct frag_hidden h = {.steps = steps, .count = 4};
    const struct frag_arena_options opts = {
        .capacity = 20 * MIB, .rule = FRAG_RULE_DRIVER, .hidden = &h};
    struct frag_backend *mem = frag_arena_open(&opts);
    frag_addr at = 0;

    (void)state;
    assert_non_null(mem);
    assert_int_equal(frag_arena_event(mem, 0), FRAG_OK);
    assert_int_equal(frag_arena_used(mem), 0);
    assert_int_equal(frag_arena_event(mem, 1), FRAG_OK);
    assert_int_equal(frag_arena_used(mem), 0);
    assert_int_equal(mem->ops->segment_alloc(mem, 20 * MIB, &at), FRAG_OK);
    assert_int_equal(mem->ops->segment_alloc(mem, 2 * MIB, &at), FRAG_OOM);
    frag_arena_close(mem);
}

/* A damaged recording has any address and any size. */
static void absurd_segments_explain_nothing(void **state)
{
    const struct frag_hidden_segment rows[] = {
        {.addr = BASE + 8 * MIB, .size = 20 * MIB},
        {.addr = UINT64_MAX - 2 * MIB + 1, .size = 2 * MIB},
        {.addr = 0, .size = 2 * MIB},
        {.addr = BASE, .size = UINT64_MAX - 2 * MIB + 1},
        {.addr = BASE - 512 * MIB, .size = 0},
        {.addr = 0, .size = 2 * MIB, .is_free = true},
    };
    struct frag_hidden h;

    (void)state;
    assert_int_equal(frag_hidden_learn(rows, 6, &h), FRAG_OK);
    assert_int_equal(h.segments, 3);
    assert_int_equal(h.unexplained, 2);
    assert_int_equal(h.count, 0);
    frag_hidden_free(&h);
}

/* A size that is no multiple of 2 MiB shares its memory with others. */
static void small_segments_are_ignored(void **state)
{
    const struct frag_hidden_segment rows[] = {
        {.addr = BASE + 5, .size = 512},
        {.addr = BASE + 8 * MIB, .size = 20 * MIB},
        {.addr = BASE + 77, .size = 512, .is_free = true},
        {.addr = BASE + 77 * MIB, .size = 2 * MIB, .is_free = true},
    };
    struct frag_hidden h;

    (void)state;
    assert_int_equal(frag_hidden_learn(rows, 4, &h), FRAG_OK);
    assert_int_equal(h.segments, 1);
    assert_int_equal(h.predicted, 1);
    assert_int_equal(h.count, 0);
    frag_hidden_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_action_is_learned),
        cmocka_unit_test(the_steps_lead_to_the_same_addresses),
        cmocka_unit_test(hidden_memory_is_not_charged),
        cmocka_unit_test(absurd_segments_explain_nothing),
        cmocka_unit_test(small_segments_are_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
