/* test_damaged_tiles.c - tests that tiles_check reports damaged tiles, and that
 * the checks of the policies with tiles do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policies/mechanism/backing.h"
#include "policies/mechanism/tiles.h"
#include "tests/support/canvas.h"
#include "tests/support/damage.h"

enum { ROOM = 1 << 16 }; /* units: 32 MiB */

static struct frag_heap heap;
static struct free_set holes;
static struct tiles tiles;

static const char *check(void)
{
    struct met met = {.most = SIZE_MAX};

    return tiles_check(&tiles, &met);
}

/* Two segments, the newer one with a block of 2 MiB and a free tile. */
static struct tile *open_tiles(bool by_age)
{
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED};
    struct tile *tile;

    heap.mem = frag_arena_open(&opts);
    assert_non_null(heap.mem);
    memset(&tiles, 0, sizeof(tiles));
    memset(&holes, 0, sizeof(holes));
    tiles.by_age = by_age;
    tiles_init(&tiles);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tiles_grow(&heap, &tiles, &holes, 8 * FRAG_MIB, &tile),
                         FRAG_OK);
    tiles_allocate(&tiles, tile, 2 * FRAG_MIB);
    assert_null(check());
    return tile;
}

static void close_tiles(void)
{
    tiles_fini(&heap, &tiles);
    frag_arena_close(heap.mem);
}

static void a_segment_that_is_not_tiled_is_found(void **state)
{
    struct tile *a, *rest, *ends;

    (void)state;
    a = open_tiles(false);
    rest = a->next;
    ends = rest->next;
    DAMAGE(rest->prev, rest, check(), "a tile does not know the one below it");
    DAMAGE(rest->segment, NULL, check(), "a tile does not know its segment");
    DAMAGE(a->node.size, FRAG_MIB, check(),
           "a tile does not begin where the one below it ends");
    DAMAGE(a->node.size, 0, check(),
           "a tile is empty or reaches beyond its segment");
    DAMAGE(rest->node.size, 7 * FRAG_MIB, check(),
           "a tile is empty or reaches beyond its segment");
    DAMAGE(rest->node.size, FRAG_MIB, check(),
           "the tiles of a segment do not fill it");
    DAMAGE(a->used, false, check(), "two neighbours are both free");
    DAMAGE(ends->used, false, check(), "the ends of a segment are free");
    DAMAGE(ends->prev, a, check(), "a segment does not know its last tile");
    close_tiles();
}

static void segments_that_are_out_of_order_are_found(void **state)
{
    (void)state;
    for (int by_age = 0; by_age < 2; by_age++) {
        struct tiled *s = open_tiles(by_age)->segment;

        DAMAGE(s->next->prev, NULL, check(),
               "a segment does not know the newer one");
        DAMAGE(s->next->place, s->next->place + FRAG_MIB, check(),
               by_age ? "the places of segments are not in the order of their "
                        "age"
                      : "a segment's place is not its address");
        DAMAGE(tiles.held, 0, check(),
               "`held` is not the bytes of all segments");
        DAMAGE(tiles.nodes.count, tiles.nodes.count + 1, check(),
               "the free list has not `count` records");
        close_tiles();
    }
}

static void what_is_met_is_the_free_tiles(void **state)
{
    struct met met = {.most = SIZE_MAX}, kept = {.most = 2};
    struct tile *a;

    (void)state;
    a = open_tiles(false);
    assert_null(tiles_check(&tiles, &met));
    assert_null(free_set_check(&holes, &holes, &kept));
    assert_true(met_are_equal(&met, &kept));
    free_set_remove(&holes, &a->next->node);
    kept = (struct met){.most = 2};
    assert_null(free_set_check(&holes, &holes, &kept));
    assert_false(met_are_equal(&met, &kept));
    free_set_insert(&holes, &a->node);
    kept = (struct met){.most = 2};
    assert_null(free_set_check(&holes, &holes, &kept));
    assert_int_equal(kept.count, met.count);
    assert_false(met_are_equal(&met, &kept));
    close_tiles();
}

/* A used tile between used ones is free, and in no set. */
static void a_policy_whose_set_lacks_a_tile_is_found(void **state)
{
    static const struct {
        const char *policy, *words;
    } rows[] = {
        {"bfc", "the set does not have the free tiles"},
        {"cupy", "the arenas do not have the free tiles of their segments"},
        {"expandable", "the sets are not the free tiles"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct picture p = {rows[i].policy, ROOM, "", NULL};
        struct canvas c;
        struct tile *b;

        canvas_open(&c, &p, FRAG_QUANTUM, NULL);
        canvas_play(&c, "a1 b1 c1");
        b = c.live[1].node;
        DAMAGE(b->used, false, c.heap.policy->check(&c.heap), rows[i].words);
        DAMAGE(b->next, b, c.heap.policy->check(&c.heap),
               "a tile does not know the one below it");
        canvas_close(&c);
    }
}

/* The memory of a block is missing in the records of its range. */
static void a_block_without_memory_is_found(void **state)
{
    const struct picture p = {"expandable", ROOM, "", NULL};
    struct canvas c;
    struct tiled *segment;
    struct backed *range;

    (void)state;
    canvas_open(&c, &p, FRAG_QUANTUM, NULL);
    canvas_play(&c, "a1 b1");
    segment = ((struct tile *)c.live[1].node)->segment;
    range = segment->user;
    DAMAGE(range->pages[0].phys, 0, c.heap.policy->check(&c.heap),
           "a block has no memory");
    DAMAGE(range->addr, range->addr - 1, c.heap.policy->check(&c.heap),
           "a range is not at its address");
    canvas_close(&c);
}

static void give_twice(void)
{
    struct tile *t = open_tiles(false);

    tiles_free(&tiles, t);
    tiles_free(&tiles, t);
}

static void take_twice(void)
{
    tiles_allocate(&tiles, open_tiles(false), FRAG_MIB);
}

static void take_too_much(void)
{
    tiles_allocate(&tiles, open_tiles(false)->next, 7 * FRAG_MIB);
}

static void return_a_used_one(void)
{
    tiles_return(&heap, &tiles, open_tiles(false)->segment);
}

static void a_call_that_breaks_the_contract_is_stopped(void **state)
{
    (void)state;
    expect_abort(give_twice);
    expect_abort(take_twice);
    expect_abort(take_too_much);
    expect_abort(return_a_used_one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_that_is_not_tiled_is_found),
        cmocka_unit_test(segments_that_are_out_of_order_are_found),
        cmocka_unit_test(what_is_met_is_the_free_tiles),
        cmocka_unit_test(a_call_that_breaks_the_contract_is_stopped),
        cmocka_unit_test(a_policy_whose_set_lacks_a_tile_is_found),
        cmocka_unit_test(a_block_without_memory_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
