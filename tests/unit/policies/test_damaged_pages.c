/* test_damaged_pages.c - tests that pages_check reports damaged pages, and that
 * the checks of the policies with pages do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policies/remap/gather.h"
#include "tests/support/canvas.h"
#include "tests/support/damage.h"

/* A page is four units. */
static const frag_size UNIT = 512 * FRAG_KIB;

static struct canvas canvas;

static void open_pages(const char *policy, unsigned room, const char *script)
{
    const struct picture p = {policy, room, script, NULL};

    canvas_open(&canvas, &p, UNIT, NULL);
    canvas_play(&canvas, script);
}

static struct page_tile *tile_of(char who)
{
    return canvas.live[who - 'a'].node;
}

static struct pages *pages(void)
{
    return &((struct gather *)canvas.heap.state)->pages;
}

static const char *check(void)
{
    return gather_check(&canvas.heap);
}

static void a_span_that_is_not_tiled_is_found(void **state)
{
    struct page_tile *a, *b, *ends;

    (void)state;
    open_pages("remap", 64, "a4 b6");
    a = tile_of('a');
    b = tile_of('b');
    ends = &a->span->ends;
    DAMAGE(b->prev, b, check(), "a tile does not know the one below it");
    DAMAGE(b->span, NULL, check(), "a tile does not know its span");
    DAMAGE(a->node.size, 3 * UNIT, check(),
           "a tile does not begin where the one below it ends");
    DAMAGE(a->node.size, 0, check(),
           "a tile is empty or reaches beyond its span");
    DAMAGE(ends->prev->node.size, ends->prev->node.size + 1, check(),
           "a tile is empty or reaches beyond its span");
    DAMAGE(ends->prev->node.size, ends->prev->node.size - 4 * UNIT, check(),
           "the tiles of a span do not fill it");
    DAMAGE(ends->prev, a, check(), "a span does not know its last tile");
    DAMAGE(ends->is_end, false, check(), "the ends of a span are free");
    DAMAGE(a->span->home, NULL, check(), "a span does not know its home");
    canvas_close(&canvas);
}

static void a_tile_whose_memory_is_not_right_is_found(void **state)
{
    struct page_tile *b, *held;
    struct page_span *s;

    (void)state;
    open_pages("remap", 64, "a4 b4 c4 d6");
    b = tile_of('b');
    s = b->span;
    held = tile_of('d')->next;
    DAMAGE(b->state, TILE_BARE, check(), "a bare page has memory");
    DAMAGE(tile_of('d')->state, TILE_BARE, check(),
           "a bare tile is not whole pages");
    DAMAGE(tile_of('d')->state, TILE_HELD, check(),
           "two neighbours are both held, both bare or both lost");
    DAMAGE(s->phys.page[1], 0, check(),
           "a page without memory is used or held");
    DAMAGE(s->phys.page[1], FRAG_GUEST, check(),
           "a guest page has more than used and lost tiles");
    assert_int_equal(phys_reserve(&s->phys, 101), FRAG_OK);
    DAMAGE(s->phys.page[100], 1, check(), "a bare page has memory");
    DAMAGE(held->state, TILE_LOST, check(),
           "a lost or lent tile is not in a guest page");
    DAMAGE(b->state, TILE_HELD, check(), "the held set is not the held tiles");
    canvas_close(&canvas);
}

static void counts_and_sets_that_are_not_right_are_found(void **state)
{
    struct pages *p;
    struct page_tile *a, *held;

    (void)state;
    open_pages("remap", 64, "a6");
    p = pages();
    a = tile_of('a');
    held = a->next;
    DAMAGE(p->bare, NULL, check(), "the bare list is not the bare tiles");
    DAMAGE(p->bare->below, p->bare, check(),
           "a tile does not know its neighbour in a list");
    DAMAGE(p->bare->above, p->bare, check(),
           "a list has more tiles than it should");
    DAMAGE(p->stock.count, p->stock.count + 1, check(),
           "`count` is not the pages that are mapped or spare");
    DAMAGE(p->stock.spare_pages, 1, check(),
           "`spare_pages` is not the pages of the spare chunks");
    DAMAGE(p->pending, 1, check(), "`pending` is not the pending blocks");
    DAMAGE(a->pending, true, check(), "`pending` is not the pending blocks");
    DAMAGE(a->is_loan, true, check(),
           "the loans are not the tiles that are lent");
    DAMAGE(p->nodes.count, p->nodes.count + 1, check(),
           "the free list has not `count` records");
    DAMAGE(held->part, a, check(),
           "a free tile has a piece or a loan, is one, or is pending");
    DAMAGE(a->part, held, check(), "a piece of a block is free");
    free_set_remove(&p->held, &held->node);
    expect_text(check(), "the held set is not the held tiles");
    free_set_insert(&p->held, &a->node);
    expect_text(check(), "the held set is not the held tiles");
    canvas_close(&canvas);
}

/* The tail of e lies in the page of d, and its head in that of a. */
static void a_loan_that_is_not_one_is_found(void **state)
{
    struct page_tile *tail, *d, *loan;

    (void)state;
    open_pages("remap", 12, "a2 b2 x4 c2 d2 -b -c e4");
    tail = tile_of('e');
    while (tail && tail->next->state != TILE_LOST)
        tail = tail->part;
    assert_non_null(tail);
    d = tile_of('d');
    loan = tail->loan;
    assert_non_null(loan);
    DAMAGE(loan->is_loan, false, check(),
           "the loan of a tile is not used as one");
    DAMAGE(loan->state, TILE_HELD, check(),
           "a free tile has a piece or a loan, is one, or is pending");
    DAMAGE(tail->loan, NULL, check(),
           "a guest page has more than used and lost tiles");
    DAMAGE(tail->next->state, TILE_HELD, check(),
           "a guest page has more than used and lost tiles");
    DAMAGE(d->is_loan, true, check(),
           "the loans are not the tiles that are lent");
    DAMAGE(d->loan, loan, check(),
           "a loan does not lie where its tile does in the page");
    DAMAGE(pages()->lost, NULL, check(), "the lost list is not the lost tiles");
    canvas_close(&canvas);
}

/* A used tile is marked as a loan without a lender. */
static void every_policy_of_pages_is_checked(void **state)
{
    static const char *const policies[] = {"paged", "remap", "compact",
                                           "stitch"};

    (void)state;
    for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
        open_pages(policies[i], 64, "a8");
        DAMAGE(tile_of('a')->is_loan, true,
               canvas.heap.policy->check(&canvas.heap),
               "the loans are not the tiles that are lent");
        canvas_close(&canvas);
    }
}

static void free_twice(void)
{
    open_pages("remap", 64, "a4 b4 c4 -b");
    pages_free(tile_of('b'));
}

static void retag_beyond(void)
{
    open_pages("remap", 64, "a4 b4");
    pages_retag(pages(), tile_of('a'), tile_of('a')->node.addr + UNIT, 4 * UNIT,
                TILE_HELD);
}

static void strip_what_is_used(void)
{
    open_pages("remap", 64, "a4 b4");
    pages_strip(&canvas.heap, pages(), tile_of('a'), 1);
}

static void a_call_that_breaks_the_contract_is_stopped(void **state)
{
    (void)state;
    expect_abort(free_twice);
    expect_abort(retag_beyond);
    expect_abort(strip_what_is_used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_that_is_not_tiled_is_found),
        cmocka_unit_test(a_tile_whose_memory_is_not_right_is_found),
        cmocka_unit_test(counts_and_sets_that_are_not_right_are_found),
        cmocka_unit_test(a_loan_that_is_not_one_is_found),
        cmocka_unit_test(a_call_that_breaks_the_contract_is_stopped),
        cmocka_unit_test(every_policy_of_pages_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
