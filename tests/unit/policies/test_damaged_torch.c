/* test_damaged_torch.c - tests that torch_check reports damage in the state of
 * the torch policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policies/torch/torch_state.h"
#include "tests/support/canvas.h"
#include "tests/support/damage.h"

enum { UNIT = 512 };

static struct canvas canvas;
static struct torch *torch;

static void open_torch(const char *policy, const char *script)
{
    const struct picture p = {policy, 1 << 20, script, NULL};

    canvas_open(&canvas, &p, UNIT, NULL);
    canvas_play(&canvas, script);
    torch = canvas.heap.state;
}

static struct torch_block *block_of(char who)
{
    return canvas.live[who - 'a'].node;
}

static const char *check(void)
{
    return torch_check(&canvas.heap);
}

/* A bit has no type to keep its value in: it is turned over. */
#define DAMAGE_BIT(bit, words)        \
    do {                              \
        const char *found_;           \
                                      \
        (bit) = !(bit);               \
        found_ = check();             \
        (bit) = !(bit);               \
        expect_text(found_, (words)); \
        assert_null(check());         \
    } while (0)

static void a_segment_that_is_not_tiled_is_found(void **state)
{
    struct torch_block *a, *b, *c;

    (void)state;
    open_torch("torch", "a2 b1 c3 d1 -c");
    a = block_of('a');
    b = block_of('b');
    c = b->next;
    DAMAGE(c->prev, a, check(), "a block does not know the one below it");
    DAMAGE(b->node.size, 2 * UNIT, check(),
           "a block does not begin where the one below it ends");
    DAMAGE(b->node.addr, b->node.addr + UNIT, check(),
           "a block does not begin where the one below it ends");
    DAMAGE(b->next, b, check(), "a block does not know the one below it");
    DAMAGE(b->space, 7, check(),
           "two blocks of one segment are not of one kind");
    DAMAGE(a->space, 7, check(), "a block is of a space that is not there");
    DAMAGE_BIT(b->expandable, "two blocks of one segment are not of one kind");
    DAMAGE(b->use, TORCH_HOLE, check(),
           "address space without memory is not expandable");
    DAMAGE(b->use, TORCH_FREE, check(),
           "two free neighbours are both mapped or both unmapped");
    DAMAGE(torch->reserved, 0, check(),
           "`reserved` is not the bytes of segments and mapped pages");
    canvas_close(&canvas);
}

static void blocks_that_are_counted_wrong_are_found(void **state)
{
    (void)state;
    open_torch("torch", "a2 b1 c3 d1 -c");
    DAMAGE(torch->record_count, torch->record_count + 1, check(),
           "a block is in no segment");
    DAMAGE(torch->record_count, torch->record_count - 1, check(),
           "segments have more blocks than there are");
    DAMAGE(torch->spare_count, torch->spare_count + 1, check(),
           "there are fewer spare blocks than known");
    DAMAGE(torch->spare_count, torch->spare_count - 1, check(),
           "there are more spare blocks than known");
    DAMAGE(torch->spaces[0]->index, 1, check(),
           "a space does not know its index");
    canvas_close(&canvas);
}

static void a_free_set_that_is_not_the_free_blocks_is_found(void **state)
{
    struct torch_block *b, *c;

    (void)state;
    open_torch("torch", "a2@1 b1 c3 d1 e1 -c");
    b = block_of('b');
    c = b->next;
    DAMAGE(c->use, TORCH_USED, check(),
           "a free set has more nodes than are free");
    DAMAGE(block_of('e')->use, TORCH_FREE, check(),
           "two free neighbours are both mapped or both unmapped");
    free_set_remove(&torch->spaces[c->space]->free, &c->node);
    expect_text(check(),
                "the free sets are not the free blocks of their spaces");
    free_set_insert(&torch->spaces[!c->space]->free, &c->node);
    expect_text(check(),
                "the free sets are not the free blocks of their spaces");
    free_set_remove(&torch->spaces[!c->space]->free, &c->node);
    free_set_insert(&torch->spaces[c->space]->free, &c->node);
    assert_null(check());
    canvas_close(&canvas);
}

/* Pages of 2 MiB: one is mapped, the rest of the reservation is a hole. */
static void an_expandable_segment_that_is_not_right_is_found(void **state)
{
    struct torch_reservation *r;
    struct torch_space *space;
    struct torch_block *a;

    (void)state;
    open_torch("torch:expandable_segments:True", "a2 b1 c2 -b");
    a = block_of('a');
    space = torch->spaces[a->space];
    r = space->reservations;
    DAMAGE(r->pages.page[0], 0, check(),
           "the pages of a block are not those that have memory");
    assert_int_equal(phys_reserve(&r->pages, 4), FRAG_OK);
    DAMAGE(r->pages.page[3], 1, check(),
           "the pages of a block are not those that have memory");
    DAMAGE(r->size, r->size - UNIT, check(),
           "the blocks of a reservation do not fill it");
    DAMAGE(space->reservations, NULL, check(),
           "the blocks of a reservation do not fill it");
    DAMAGE(space->holes, NULL, check(),
           "the lists of holes are not the unmapped blocks of their spaces");
    DAMAGE(space->holes->right, space->holes, check(),
           "the holes of a space are not in the order of addresses");
    DAMAGE(r->page, 2 * r->page, check(), "a hole is not whole pages");
    canvas_close(&canvas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_that_is_not_tiled_is_found),
        cmocka_unit_test(blocks_that_are_counted_wrong_are_found),
        cmocka_unit_test(a_free_set_that_is_not_the_free_blocks_is_found),
        cmocka_unit_test(an_expandable_segment_that_is_not_right_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
