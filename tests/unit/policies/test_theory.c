/* test_theory.c - tests bounds that are proved for every allocator, or for one.
 *
 * Sizes are powers of two from 1 to n words, at most M words are live. Robson
 * proved (JACM 18(3), 1971; JACM 21(3), 1974) that an allocator which does not
 * move blocks needs at least
 *
 *     M (log2(n) / 2 + 1) - n + 1
 *
 * words of addresses for some program, which reacts to the places of the
 * blocks. Here this program drives every policy that keeps to one segment. His
 * later paper (The Computer Journal 20(3), 1977) shows that first fit never
 * needs much more than M log2(n), and that best fit can be driven to about M n.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "sim/arena/arena.h"
#include "sim/experiments/contract/traffic.h"
#include "tests/support/subjects.h"

enum {
    WORD = 512,
    LIVE = 1024, /* M */
    LOG = 8,
    LARGEST = 1 << LOG, /* n */
    LOWER_BOUND = LIVE * (LOG + 2) / 2 - LARGEST + 1,
    FIRST_FIT_BOUND = LIVE * (LOG + 1),
    SEGMENT_WORDS = 1 << 21,
};

struct object {
    struct frag_block block;
    frag_size size; /* requested; 0: not live */
};

/* A policy on a device, and the addresses that its blocks ever had. */
struct game {
    struct frag_backend *arena;
    struct faulty mem;
    struct frag_heap heap;
    frag_size word; /* bytes */
    frag_addr low, high;
    frag_size live; /* bytes requested and not freed */
    struct object objects[LIVE];
};

static void moved(void *user, uint32_t owner, const struct frag_block *block)
{
    struct game *g = user;

    g->objects[owner].block = *block;
}

static void open_game(struct game *g, const struct frag_policy *policy,
                      const char *params)
{
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                            .rule = FRAG_RULE_HOSTILE};
    struct frag_error e;

    memset(g, 0, sizeof(*g));
    g->arena = frag_arena_open(&opts);
    assert_non_null(g->arena);
    faulty_init(&g->mem, g->arena);
    g->word = WORD;
    if (frag_heap_open(&g->heap, policy, &g->mem.base, params, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    g->heap.moved = moved;
    g->heap.user = g;
    g->low = UINT64_MAX;
}

static void close_game(struct game *g)
{
    frag_heap_close(&g->heap);
    assert_int_equal(g->mem.used, 0);
    frag_arena_close(g->arena);
}

static struct object *make(struct game *g, frag_size size)
{
    struct frag_request req = {.size = size, .frees_at = FRAG_NEVER};
    struct object *o = g->objects;

    while (o->size)
        o++;
    req.owner = (uint32_t)(o - g->objects);
    if (g->heap.policy->alloc(&g->heap, &req, &o->block) != FRAG_OK)
        return NULL;
    o->size = size;
    g->live += size;
    if (o->block.addr < g->low)
        g->low = o->block.addr;
    if (o->block.addr + o->block.size > g->high)
        g->high = o->block.addr + o->block.size;
    return o;
}

static void end(struct game *g, struct object *o)
{
    g->heap.policy->free(&g->heap, &o->block);
    g->live -= o->size;
    o->size = 0;
}

/* ---- Robson's program ---- */

/* Whether the object lies on a word that is `at` modulo `step`. */
static bool occupies(const struct game *g, const struct object *o, uint64_t at,
                     uint64_t step)
{
    return (at - o->block.addr / g->word) % step < o->size / g->word;
}

/* The words that stay pinned if the objects on those words are kept, minus the
 * words that they use. */
static uint64_t gain(const struct game *g, uint64_t at, uint64_t step)
{
    uint64_t sum = 0;

    for (const struct object *o = g->objects; o < g->objects + LIVE; o++)
        if (occupies(g, o, at, step))
            sum += step - o->size / g->word;
    return sum;
}

/* Allocates as many objects of `size` words as M allows. Returns false if the
 * policy refused. */
static bool fill(struct game *g, uint64_t size)
{
    while (g->live + size * g->word <= (frag_size)LIVE * g->word)
        if (!make(g, size * g->word))
            return false;
    return true;
}

static bool robson(struct game *g)
{
    uint64_t at = 0;

    if (!fill(g, 1))
        return false;
    for (uint64_t step = 2; step <= LARGEST; step *= 2) {
        if (gain(g, at + step / 2, step) > gain(g, at, step))
            at += step / 2;
        for (struct object *o = g->objects; o < g->objects + LIVE; o++)
            if (o->size && !occupies(g, o, at, step))
                end(g, o);
        if (!fill(g, step))
            return false;
    }
    return true;
}

/* ---- who is bound ---- */

static bool has_segment(const struct frag_policy *policy)
{
    for (const struct frag_param *p = policy->params; p && p->name; p++)
        if (!strcmp(p->name, "segment"))
            return true;
    return false;
}

/* Whether the policy allocates one segment only and never moves a block, by
 * copy or by map. */
static bool is_bound(const struct frag_policy *policy)
{
    return !policy->needs && has_segment(policy);
}

static void open_in_one_segment(struct game *g,
                                const struct frag_policy *policy,
                                const char *params)
{
    char text[128];

    snprintf(text, sizeof(text), "segment=%u%s%s",
             (unsigned)SEGMENT_WORDS * WORD, params ? "," : "",
             params ? params : "");
    open_game(g, policy, text);
}

/* Words from the lowest to the highest address that a block ever had. */
static uint64_t words_used(const struct game *g)
{
    return (g->high - g->low) / WORD;
}

static void robson_drives_it_to_his_bound(void **state)
{
    static struct game g;
    const struct subject *s = *state;

    if (!is_bound(s->policy))
        skip();
    open_in_one_segment(&g, s->policy, s->params);
    assert_true(robson(&g));
    print_message("%llu words, the bound is %d\n",
                  (unsigned long long)words_used(&g), LOWER_BOUND);
    assert_int_equal(g.mem.count, 1);
    assert_true(words_used(&g) >= LOWER_BOUND);
    close_game(&g);
}

/* Twice M words are enough, well below the bound; the words are at least as
 * large as the device's units of mapping and allocation. */
static void robson_does_not_hurt_who_moves(void **state)
{
    static struct game g;
    const struct subject *s = *state;

    if (!(s->policy->needs & FRAG_NEEDS_MOVES))
        skip();
    open_game(&g, s->policy, s->params);
    g.word = 2 * FRAG_MIB;
    g.mem.limit = 2 * LIVE * g.word;
    assert_true(robson(&g));
    close_game(&g);
}

/* ---- equal sizes ---- */

enum { EQUALS = 96, CHURN = 3000 };

/* The memory of `EQUALS` new blocks of one size is enough for them forever. */
static void churn(struct game *g, frag_size size)
{
    uint64_t rng = size;

    for (size_t i = 0; i < EQUALS; i++)
        assert_non_null(make(g, size));
    g->mem.limit = g->mem.used;
    for (size_t i = 0; i < CHURN; i++) {
        const uint64_t dice = random_next(&rng);
        struct object *o = &g->objects[dice % EQUALS];

        if (o->size)
            end(g, o);
        else if (g->live < EQUALS * size && !make(g, size))
            fail_msg("blocks of %llu bytes: there are holes and none is used",
                     (unsigned long long)size);
    }
}

static void equal_sizes_leave_no_external_waste(void **state)
{
    static const frag_size sizes[] = {WORD, 700, 96 * FRAG_KIB, 3 * FRAG_MIB};
    static struct game g;
    const struct subject *s = *state;

    if (s->policy->needs & FRAG_NEEDS_FUTURE)
        skip();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        open_game(&g, s->policy, s->params);
        churn(&g, sizes[i]);
        close_game(&g);
    }
}

/* ---- first fit and best fit ---- */

static const struct frag_policy *named(const char *name)
{
    return frag_policy_find(name);
}

static void robson_drives_first_fit_no_further_than_proven(void **state)
{
    static struct game g;

    (void)state;
    open_in_one_segment(&g, named("first_fit"), NULL);
    assert_true(robson(&g));
    assert_true(words_used(&g) <= FIRST_FIT_BOUND);
    close_game(&g);
}

/* Pins single words at the ends of gaps that grow by a word each. What makes a
 * gap, a block of its size and a guard behind it, is larger than every gap
 * before it, so best fit takes it from the rest of the segment; when it is
 * freed a block one word smaller goes to its place, and a pin to the word that
 * is left, the tightest of all holes. */
static void pin_gaps(struct game *g)
{
    struct object *block = make(g, (frag_size)3 * WORD);

    for (frag_size size = 3; size < LARGEST; size++) {
        struct object *guard = make(g, (size + 1) * WORD);
        struct object *gap;

        end(g, block);
        gap = make(g, (size - 1) * WORD);
        make(g, WORD);
        end(g, gap);
        block = guard;
    }
}

static void pinned_gaps_drive_best_fit_beyond_first_fits_bound(void **state)
{
    static struct game g;

    (void)state;
    open_in_one_segment(&g, named("best_fit"), NULL);
    pin_gaps(&g);
    assert_true(words_used(&g) > LARGEST * (LARGEST - 2) / 2);
    assert_true(words_used(&g) > FIRST_FIT_BOUND);
    close_game(&g);
    open_in_one_segment(&g, named("first_fit"), NULL);
    pin_gaps(&g);
    assert_true(words_used(&g) <= FIRST_FIT_BOUND);
    close_game(&g);
}

static const struct setting settings[] = {
    {"tlsf", "second_levels=1"},
    {"size_class", "subdivisions=1"},
    {NULL, NULL},
};

static const struct property properties[] = {
    PROPERTY(robson_drives_it_to_his_bound),
    PROPERTY(robson_does_not_hurt_who_moves),
    PROPERTY(equal_sizes_leave_no_external_waste),
    {NULL, NULL},
};

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(robson_drives_first_fit_no_further_than_proven),
        cmocka_unit_test(pinned_gaps_drive_best_fit_beyond_first_fits_bound),
    };

    return cmocka_run_group_tests_name("fits", tests, NULL, NULL) +
           run_properties("theory", settings, properties);
}
