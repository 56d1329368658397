/* test_damaged_pools.c - tests that the checks of cuda_async and RMM's
 * pool report damaged states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policies/cuda_async/async_state.h"
#include "policies/rmm/stream_pool.h"
#include "tests/support/canvas.h"
#include "tests/support/damage.h"

static struct canvas canvas;

static void open_pool(const char *policy, frag_size unit, const char *script)
{
    const struct picture p = {policy, 1 << 10, script, NULL};

    canvas_open(&canvas, &p, unit, NULL);
    canvas_play(&canvas, script);
}

static void *node_of(char who)
{
    return canvas.live[who - 'a'].node;
}

/* ---- cuda_async ---- */

static const char *check_async(void)
{
    return cuda_async_check(&canvas.heap);
}

static void blocks_of_cuda_async_that_are_not_right_are_found(void **state)
{
    struct cuda_async *p;
    struct async_block *a, *b;

    (void)state;
    open_pool("cuda_async:page=2MiB,opportunistic=no", FRAG_MIB / 2,
              "a5 b1 c2 -a");
    p = canvas.heap.state;
    b = node_of('b');
    a = b->below;
    DAMAGE(a->above, NULL, check_async(),
           "a block does not know the one above it");
    DAMAGE(b->node.size, 0, check_async(), "a block is empty");
    DAMAGE(b->node.size, FRAG_MIB, check_async(),
           "a block does not end where the one above it begins");
    DAMAGE(b->below, NULL, check_async(),
           "the blocks do not fill the address space");
    b->is_backed = true; /* has no meaning while the block is used */
    DAMAGE(b->home, (struct async_holes *)p->streams.first, check_async(),
           "two free neighbours are in the same holes");
    DAMAGE(p->phys.page[1], 0, check_async(), "a used block has no memory");
    DAMAGE(p->phys.page[0], 0, check_async(),
           "a hole is in the wrong set for its memory");
    DAMAGE(a->is_backed, !a->is_backed, check_async(),
           "a hole is in the wrong set for its memory");
    DAMAGE(p->stock.count, 1, check_async(),
           "`count` is not the pages that are mapped or spare");
    DAMAGE(a->home, &p->common, check_async(),
           "the holes are not the free blocks");
    DAMAGE(p->nodes.count, 0, check_async(),
           "the free list has not `count` records");
    canvas_close(&canvas);
}

static void ages_of_cuda_async_that_are_not_right_are_found(void **state)
{
    struct cuda_async *p;
    struct async_holes *holes;
    struct async_block *a, *c;

    (void)state;
    open_pool("cuda_async:page=2MiB", FRAG_MIB / 2, "a2 b1 c1 d1 -a -c");
    p = canvas.heap.state;
    a = p->oldest;
    c = p->newest;
    DAMAGE(c->older, NULL, check_async(),
           "the list of the streams' holes is not linked");
    DAMAGE(a->node.addr, 1000, check_async(),
           "the streams' holes are not in the order of their ages");
    DAMAGE(p->newest, a, check_async(),
           "the newest hole is not the last of the list");
    a->newer = NULL;
    p->newest = a;
    assert_string_equal(check_async(), "the list has not all holes of streams");
    a->newer = c;
    p->newest = c;
    holes = (struct async_holes *)p->streams.first;
    holes->partial.only = &a->node;
    assert_string_equal(check_async(), "a stream's hole has no memory");
    holes->partial.only = NULL;
    canvas_close(&canvas);
}

/* ---- RMM's pool ---- */

static const char *check_pool(void)
{
    return stream_pool_check(&canvas.heap);
}

static void blocks_of_a_pool_that_are_not_right_are_found(void **state)
{
    struct free_set *list;
    struct stream_pool *p;
    struct free_node *b;

    (void)state;
    open_pool("rmm_pool:initial=8KiB", 256, "a5 b1@1 c2 -a");
    p = canvas.heap.state;
    b = node_of('b');
    list = p->lists[0];
    DAMAGE(b->addr, b->addr + 256, check_pool(),
           "a block does not begin where the one below it ends");
    DAMAGE(b->size, 0, check_pool(),
           "a block is empty or reaches beyond its segment");
    DAMAGE(p->lists[1], NULL, check_pool(),
           "a block is of a stream without a list");
    DAMAGE(p->held, 0, check_pool(), "`held` is not the bytes of all segments");
    DAMAGE(p->filled[0], p->filled[0] ^ 2, check_pool(),
           "`filled` is not the streams with a free block");
    DAMAGE(p->nodes.count, 0, check_pool(),
           "the free list has not `count` records");
    p->lists[0] = p->lists[1];
    p->lists[1] = list;
    expect_text(check_pool(),
                "the lists are not the free blocks of their streams");
    p->lists[1] = p->lists[0];
    p->lists[0] = list;
    assert_null(check_pool());
    canvas_close(&canvas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_cuda_async_that_are_not_right_are_found),
        cmocka_unit_test(ages_of_cuda_async_that_are_not_right_are_found),
        cmocka_unit_test(blocks_of_a_pool_that_are_not_right_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
