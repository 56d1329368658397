/* test_holes.c - tests the tree of holes against an array that is searched from
 * one end. Its shape must not depend on the host addresses of its nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policies/mechanism/holes.h"

enum { SLOTS = 512, PITCH = 4096, STEPS = 20000 };

/* The hole of slot k starts at k * PITCH, or above by a part of its pitch, and
 * is kept in record place[k]. */
struct world {
    struct hole *tree;
    struct hole records[SLOTS];
    size_t place[SLOTS];
    bool in[SLOTS];
    uint64_t rng;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Records in the order of the slots, or in an order that is mixed up. */
static void start(struct world *w, bool is_mixed)
{
    uint64_t rng = 2463534242u;

    *w = (struct world){.rng = 88172645463325252u};
    for (size_t k = 0; k < SLOTS; k++)
        w->place[k] = k;
    for (size_t k = SLOTS - 1; is_mixed && k > 0; k--) {
        const size_t other = next_random(&rng) % (k + 1);
        const size_t place = w->place[k];

        w->place[k] = w->place[other];
        w->place[other] = place;
    }
}

static struct hole *hole_of(struct world *w, size_t slot)
{
    return &w->records[w->place[slot]];
}

/* Inserts, removes, or moves and resizes the hole of a slot. */
static void change(struct world *w)
{
    const size_t k = next_random(&w->rng) % SLOTS;
    const frag_addr addr = k * PITCH + next_random(&w->rng) % 4 * 512;
    const frag_size size = next_random(&w->rng) % 5 * 512;
    struct hole *hole = hole_of(w, k);

    if (w->in[k] && next_random(&w->rng) % 2) {
        holes_resize(&w->tree, hole, addr, size);
        return;
    }
    if (w->in[k]) {
        holes_remove(&w->tree, hole);
    } else {
        hole->node = (struct free_node){.addr = addr, .size = size};
        holes_insert(&w->tree, hole);
    }
    w->in[k] = !w->in[k];
}

static struct hole *expected(struct world *w, frag_size size, frag_addr from)
{
    for (size_t k = 0; k < SLOTS; k++) {
        struct hole *hole = hole_of(w, k);

        if (w->in[k] && hole->node.addr >= from && hole->node.size >= size)
            return hole;
    }
    return NULL;
}

static void finds_the_lowest_hole_that_fits(void **state)
{
    struct world w;

    (void)state;
    start(&w, false);
    for (int step = 0; step < STEPS; step++) {
        const frag_size size = 1 + next_random(&w.rng) % 2048;
        const frag_addr from = next_random(&w.rng) % (SLOTS * PITCH);

        change(&w);
        assert_ptr_equal(holes_lowest(w.tree, size, 0), expected(&w, size, 0));
        assert_ptr_equal(holes_lowest(w.tree, size, from),
                         expected(&w, size, from));
    }
}

/* Writes the depth of every hole, from the lowest to the highest. */
static size_t write_depths(const struct hole *tree, unsigned depth,
                           unsigned *out)
{
    size_t count;

    if (!tree)
        return 0;
    count = write_depths((const struct hole *)tree->node.left, depth + 1, out);
    out[count++] = depth;
    return count + write_depths((const struct hole *)tree->node.right,
                                depth + 1, out + count);
}

static void the_shape_does_not_depend_on_the_host(void **state)
{
    static struct world one, other;
    unsigned depths[SLOTS], others[SLOTS];
    size_t count;

    (void)state;
    start(&one, false);
    start(&other, true);
    for (int step = 0; step < STEPS; step++) {
        change(&one);
        change(&other);
        if (step % 100)
            continue;
        count = write_depths(one.tree, 0, depths);
        assert_int_equal(write_depths(other.tree, 0, others), count);
        for (size_t k = 0; k < count; k++)
            if (depths[k] != others[k])
                fail_msg("step %d: hole %zu is at depth %u in one tree and at "
                         "%u in the other",
                         step, k, depths[k], others[k]);
    }
}

static void insert(struct world *w, size_t slot)
{
    hole_of(w, slot)->node =
        (struct free_node){.addr = slot * PITCH, .size = 512};
    holes_insert(&w->tree, hole_of(w, slot));
}

static void the_shape_does_not_remember_what_was_removed(void **state)
{
    static struct world all, half;
    unsigned depths[SLOTS], others[SLOTS];

    (void)state;
    start(&all, false);
    start(&half, false);
    for (size_t k = 0; k < SLOTS; k++)
        insert(&all, k);
    for (size_t k = 1; k < SLOTS; k += 2)
        holes_remove(&all.tree, hole_of(&all, k));
    for (size_t k = SLOTS; k > 0; k -= 2)
        insert(&half, k - 2);
    assert_int_equal(write_depths(all.tree, 0, depths), SLOTS / 2);
    assert_int_equal(write_depths(half.tree, 0, others), SLOTS / 2);
    assert_memory_equal(depths, others, SLOTS / 2 * sizeof(*depths));
}

/* The expected depth of the deepest of 512 nodes is about 20. */
static void no_path_is_long(void **state)
{
    static struct world w;
    unsigned depths[SLOTS], deepest = 0;

    (void)state;
    start(&w, false);
    for (size_t k = 0; k < SLOTS; k++)
        insert(&w, k);
    assert_int_equal(write_depths(w.tree, 0, depths), SLOTS);
    for (size_t k = 0; k < SLOTS; k++)
        if (depths[k] > deepest)
            deepest = depths[k];
    assert_in_range(deepest, 9, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_lowest_hole_that_fits),
        cmocka_unit_test(the_shape_does_not_depend_on_the_host),
        cmocka_unit_test(the_shape_does_not_remember_what_was_removed),
        cmocka_unit_test(no_path_is_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
