/* test_damaged_pools.c - tests that the checks of vma, cuda_async and RMM's
 * pool report damaged states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policies/cuda_async/async_state.h"
#include "policies/rmm/stream_pool.h"
#include "policies/vma/block.h"
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

/* ---- vma ---- */

static const char *check_vma(void)
{
    return vma_check(&canvas.heap);
}

static void a_block_of_vma_that_is_not_tiled_is_found(void **state)
{
    struct vma_chunk *a, *b;
    struct vma_block *block;

    (void)state;
    open_pool("vma:block=16KiB", 256, "a5 b1 c2 -a");
    b = node_of('b');
    a = b->below;
    block = b->block;
    DAMAGE(a->above, NULL, check_vma(),
           "a chunk does not know the one above it");
    DAMAGE(b->block, NULL, check_vma(), "a chunk does not know its block");
    DAMAGE(b->hole.node.size, 0, check_vma(), "a chunk is empty");
    DAMAGE(b->hole.node.size, 512, check_vma(),
           "a chunk does not end where the one above it begins");
    DAMAGE(b->below, NULL, check_vma(), "the chunks of a block do not fill it");
    DAMAGE(b->hole.node.left, NULL, check_vma(),
           "two neighbours are both free");
    DAMAGE(block->rest->hole.node.left, &block->rest->hole.node, check_vma(),
           "the rest of a block is used");
    DAMAGE(block->free, 0, check_vma(),
           "`free` is not the bytes of the free chunks");
    canvas_close(&canvas);
}

/* A block of 16 KiB has 6 octaves and a list: a chunk of 5 units is in octave
 * 3, part 8. */
static void the_lists_of_vma_that_are_not_right_are_found(void **state)
{
    enum { OCTAVE = 3, LIST = OCTAVE * VMA_PARTS + 8 };
    struct vma_block *block;
    struct vma_chunk *a;

    (void)state;
    open_pool("vma:block=16KiB", 256, "a5 b1 c2 -a");
    a = ((struct vma_chunk *)node_of('b'))->below;
    block = a->block;
    assert_ptr_equal(block->lists[LIST], &a->hole);
    DAMAGE(block->octaves, 0, check_vma(),
           "the bitmap does not say which octaves have chunks");
    DAMAGE(block->parts[OCTAVE], 1, check_vma(),
           "the bitmaps do not say which lists have chunks");
    DAMAGE(a->hole.equal[0], &a->hole, check_vma(),
           "a chunk does not know its neighbour");
    DAMAGE(a->hole.equal[1], &a->hole, check_vma(),
           "a list has more chunks than are free");
    for (int i = -1; i < 2; i += 2) {
        block->lists[LIST] = NULL;
        block->lists[LIST + i] = &a->hole;
        block->parts[OCTAVE] = (uint32_t)1 << (8 + i);
        expect_text(check_vma(), "a chunk is not in the list of its size");
        block->lists[LIST + i] = NULL;
        block->parts[OCTAVE] = (uint32_t)1 << 8;
        block->lists[LIST] = &a->hole;
    }
    block->lists[LIST] = NULL;
    block->octaves = block->parts[OCTAVE] = 0;
    expect_text(check_vma(),
                "what the lists and the tree have are not the free chunks");
    canvas_close(&canvas);
}

static void a_tree_of_vma_that_lacks_a_chunk_is_found(void **state)
{
    struct vma_block *block;

    (void)state;
    open_pool("vma:block=16KiB,strategy=min_offset", 256, "a5 b1 c2 -a");
    block = ((struct vma_chunk *)node_of('b'))->block;
    DAMAGE(block->holes, NULL, check_vma(),
           "what the lists and the tree have are not the free chunks");
    canvas_close(&canvas);
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
        cmocka_unit_test(a_block_of_vma_that_is_not_tiled_is_found),
        cmocka_unit_test(the_lists_of_vma_that_are_not_right_are_found),
        cmocka_unit_test(a_tree_of_vma_that_lacks_a_chunk_is_found),
        cmocka_unit_test(blocks_of_cuda_async_that_are_not_right_are_found),
        cmocka_unit_test(ages_of_cuda_async_that_are_not_right_are_found),
        cmocka_unit_test(blocks_of_a_pool_that_are_not_right_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
