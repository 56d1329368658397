/* test_damaged_fit.c - tests that fit_check reports damage in the state of the
 * fit policies, and that the checks of their sets of holes do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policies/mechanism/bins.h"
#include "tests/support/canvas.h"
#include "tests/support/damage.h"

enum { UNIT = 512 };

static struct canvas canvas;

/* Plays a script; units are quanta, segments have 32. */
static void open_fit(const char *policy, const char *script)
{
    const struct picture p = {policy, 64, script, NULL};

    canvas_open(&canvas, &p, UNIT, "segment=16KiB");
    canvas_play(&canvas, script);
    assert_null(fit_check(&canvas.heap));
}

static struct block *block_of(char who)
{
    return canvas.live[who - 'a'].node;
}

static const char *check(void)
{
    return fit_check(&canvas.heap);
}

static void a_segment_that_is_not_tiled_is_found(void **state)
{
    struct block *a, *b, *rest, *ends;

    (void)state;
    open_fit("first_fit", "a2 b1 c3 d1 -a -c");
    b = block_of('b');
    a = b->prev;
    rest = block_of('d')->next;
    ends = rest->next;
    DAMAGE(b->prev, b, check(), "a block does not know the one below it");
    DAMAGE(b->hole.node.addr, b->hole.node.addr + UNIT, check(),
           "a block does not begin where the one below it ends");
    DAMAGE(a->hole.node.size, 3 * UNIT, check(),
           "a block does not begin where the one below it ends");
    DAMAGE(b->hole.node.size, 0, check(),
           "a block is empty or reaches beyond its segment");
    DAMAGE(rest->hole.node.size, rest->hole.node.size + UNIT, check(),
           "a block is empty or reaches beyond its segment");
    DAMAGE(rest->hole.node.size, rest->hole.node.size - UNIT, check(),
           "the blocks of a segment do not fill it");
    DAMAGE(b->hole.node.left, NULL, check(), "two neighbours are both free");
    DAMAGE(ends->prev, b, check(), "a segment does not know its last block");
    DAMAGE(ends->hole.node.left, NULL, check(),
           "the ends of a segment are free");
    canvas_close(&canvas);
}

static void holes_that_are_not_the_free_blocks_are_found(void **state)
{
    struct address_fit *fit;
    struct block *used;

    (void)state;
    open_fit("first_fit", "a2 b1 c3 d1 e1 f1 -a -c");
    fit = canvas.heap.state;
    used = block_of('e');
    DAMAGE(used->hole.node.left, NULL, check(),
           "the holes that the rule keeps are not the free blocks");
    used = block_of('b')->prev;
    DAMAGE(used->hole.node.left, &used->hole.node, check(),
           "a tree has more holes than are free");
    DAMAGE(fit->holes, NULL, check(),
           "the holes that the rule keeps are not the free blocks");
    DAMAGE(fit->fit.nodes.count, fit->fit.nodes.count + 1, check(),
           "the free list has not `count` records");
    DAMAGE(fit->fit.nodes.count, fit->fit.nodes.count - 1, check(),
           "the free list has not `count` records");
    canvas_close(&canvas);
}

/* ---- a tree by address ---- */

static struct hole holes[3];

static const char *check_holes(struct hole *tree)
{
    struct met met = {.most = 3};

    return holes_check(tree, NULL, &met);
}

static void a_tree_that_is_not_in_order_is_found(void **state)
{
    struct hole *root = NULL;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        holes[i].at = 10 * UNIT * i;
        holes[i].size = UNIT * (i + 1);
        holes_insert(&root, &holes[i]);
    }
    DAMAGE(root->widest, 4 * UNIT, check_holes(root),
           "a hole does not know the largest size below it");
    DAMAGE(holes[0].at, 15 * UNIT, check_holes(root),
           "holes are not in the order of addresses, or overlap");
    DAMAGE(holes[1].at, 18 * UNIT + 1, check_holes(root),
           "holes are not in the order of addresses, or overlap");
}

/* One of two holes must be above the other: the reverse order is a fault. */
static void a_tree_of_the_wrong_shape_is_found(void **state)
{
    unsigned faults = 0;

    (void)state;
    for (int top = 0; top < 2; top++) {
        struct hole *root = &holes[top], *child = &holes[!top];
        const char *fault;

        memset(holes, 0, sizeof(holes));
        holes[1].at = UNIT;
        holes[1].rank = 1;
        *(top ? &root->low : &root->high) = child;
        fault = check_holes(root);
        if (fault)
            expect_text(fault, "a hole has a higher rank than its parent");
        faults += fault != NULL;
    }
    assert_int_equal(faults, 1);
}

/* ---- lists by size ---- */

static void a_list_that_is_broken_is_found(void **state)
{
    struct bins *bins;
    struct hole *a;
    uint32_t list;

    (void)state;
    open_fit("tlsf:second_levels=1", "a2 b1 c2 d1 -a -c");
    bins = &((struct bins_fit *)canvas.heap.state)->bins;
    a = &block_of('b')->prev->hole;
    list = a->list;
    DAMAGE(a->list, list + 1, check(), "a hole does not know its list");
    DAMAGE(a->node.left, NULL, check(),
           "a hole of a list does not know its neighbour");
    DAMAGE(bins->used[0], bins->used[0] & ~((uint64_t)1 << list), check(),
           "the bitmap does not match the lists in use");
    DAMAGE(bins->used[0], bins->used[0] | (uint64_t)1 << (list + 1), check(),
           "the bitmap does not match the lists in use");
    DAMAGE(bins->words, 0, check(),
           "the summary does not match the words in use");
    bins_remove(bins, a);
    expect_text(check(),
                "the holes that the rule keeps are not the free blocks");
    bins_push(bins, a, list + 1);
    expect_text(check(), "a hole is not in the list of its size");
    bins_remove(bins, a);
    bins_push(bins, a, list - 1);
    expect_text(check(), "a hole is not in the list of its size");
    canvas_close(&canvas);
}

static void free_twice(void)
{
    open_fit("first_fit", "a2 b1 c3 -b");
    canvas.heap.policy->free(&canvas.heap, &canvas.live[1]);
}

static void ask_for_nothing(void)
{
    open_fit("first_fit", "a0");
}

static void a_call_that_breaks_the_contract_is_stopped(void **state)
{
    (void)state;
    expect_abort(free_twice);
    expect_abort(ask_for_nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_that_is_not_tiled_is_found),
        cmocka_unit_test(holes_that_are_not_the_free_blocks_are_found),
        cmocka_unit_test(a_tree_that_is_not_in_order_is_found),
        cmocka_unit_test(a_tree_of_the_wrong_shape_is_found),
        cmocka_unit_test(a_call_that_breaks_the_contract_is_stopped),
        cmocka_unit_test(a_list_that_is_broken_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
