/* vma.c - the vma policy: Vulkan Memory Allocator (VMA), with TLSF in blocks of
 * 256 MiB.
 *
 * Requests are rounded up to 256 bytes, as the memory requirements of drivers
 * are. A request of more than half a block gets dedicated memory, which is a
 * segment of its own; only if the device refuses that, it is tried in the
 * blocks. Every other request is tried in the existing blocks, one after
 * another, then in a new block, then as dedicated memory.
 *
 * Inside a block (block.h) the strategy selects the first that exists of:
 *   - default and min_time: the first chunk of the next larger list with
 *     chunks; the rest at the block's end; the first chunk of the request's own
 *     list that is large enough;
 *   - min_memory: the first chunk that is large enough in the own list (or in
 *     the next list with chunks, if the own one is empty); the rest; the first
 *     chunk of the next larger list with chunks;
 *   - min_offset: the lowest chunk that is large enough; the rest.
 * The chunk is always split to the request's size, and the block of the request
 * is its low part. In a list the chunk that was inserted last comes first. The
 * policy ignores streams and pools.
 *
 * The order in which blocks are tried prefers blocks with little free memory;
 * min_time tries them in the reverse order. After each alloc and free, the
 * first two neighbours that are not in the order of free bytes are swapped;
 * nothing else is sorted.
 *
 * A new block has the preferred size. This size is halved up to three times
 * while the half is larger than every existing block and at least twice the
 * request. If the device refuses, the size is halved further, down to an eighth
 * of the preferred size, but not below the request. The preferred size is the
 * parameter `block`, or an eighth of the device if the device has at most
 * `small_device` bytes. Blocks stay within `budget`; when the budget is used
 * up, requests get dedicated memory.
 *
 * The policy keeps at most one empty block. If a free empties a second block,
 * or empties a block while the budget is used up, that block is returned to the
 * device at once. If a free does not empty its own block, and an empty block is
 * in the last place, that block is returned. There is no trim. If the device
 * refuses to accept dedicated memory back, the policy tries again before the
 * next allocation. An empty block that the device refuses stays in its place.
 *
 * Source: GPUOpen-LibrariesAndSDKs/VulkanMemoryAllocator at e386068,
 * include/vk_mem_alloc.h: VmaBlockMetadata_TLSF, VmaBlockVector,
 * VmaAllocator_T::AllocateMemoryOfType. The budget is that of VMA without
 * VK_EXT_memory_budget. Not modelled: memory types, the buffer-image
 * granularity, custom pools, the limit on the number of allocations (current
 * NVIDIA drivers have none), defragmentation.
 */
#include "policies/mechanism/segments.h"
#include "policies/vma/block.h"
#include "policies/vma/vma_order.h"
#include "traces/grow.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = 256, MAX_HALVINGS = 3 };

struct vma {
    frag_size block, small_device; /* parameters, as the two below */
    double budget;
    uint32_t strategy;
    frag_size preferred;              /* preferred size of a block, in bytes */
    frag_size usable;                 /* the budget, in bytes */
    frag_size held;                   /* bytes allocated from the device */
    struct vma_block **blocks;        /* in the order in which they are tried */
    size_t count, empties;            /* blocks; empty blocks */
    uint64_t room;                    /* allocated entries of `blocks` */
    struct vma_order order;           /* of `blocks` */
    struct hole *dedicated, *refused; /* dedicated memory: live; freed, but
                                    refused by the device */
    struct nodes nodes;               /* of chunks */
};

static enum frag_err init(struct frag_heap *heap)
{
    struct vma *p = heap->state;
    const frag_size total = frag_backend_total(heap->mem);

    p->preferred =
        frag_round_up(total <= p->small_device ? total / 8 : p->block,
                      (frag_size)UNIT << MAX_HALVINGS);
    p->usable = (frag_size)((double)total * p->budget);
    p->nodes.size = sizeof(struct vma_chunk);
    return FRAG_OK;
}

/* ---- dedicated memory ---- */

/* Returns dedicated memory, which is in no list, to the device. If the device
 * refuses, the memory is in `refused`. */
static void return_dedicated(struct frag_heap *heap, struct vma_chunk *chunk)
{
    struct vma *p = heap->state;

    if (heap->mem->ops->segment_free(heap->mem, chunk->hole.node.addr,
                                     chunk->hole.node.size) != FRAG_OK) {
        vma_push(&p->refused, &chunk->hole);
        return;
    }
    p->held -= chunk->hole.node.size;
    nodes_put(&p->nodes, chunk);
}

/* Tries again to return the memory that the device refused. */
static void retry_returns(struct frag_heap *heap)
{
    struct vma *p = heap->state;
    struct hole *list = p->refused;

    p->refused = NULL;
    while (list) {
        struct hole *first = list;

        vma_drop(&list, first);
        return_dedicated(heap, (struct vma_chunk *)first);
    }
}

static enum frag_err alloc_dedicated(struct frag_heap *heap, frag_size size,
                                     struct vma_chunk **out)
{
    struct vma *p = heap->state;
    struct vma_chunk *chunk;
    frag_addr addr;

    FRAG_TRY(heap->mem->ops->segment_alloc(heap->mem, size, &addr));
    p->held += size;
    chunk = nodes_take(&p->nodes);
    *chunk = (struct vma_chunk){.hole.node = {.addr = addr, .size = size}};
    vma_push(&p->dedicated, &chunk->hole);
    *out = chunk;
    return FRAG_OK;
}

/* ---- blocks ---- */

static bool falls(const struct vma *p, size_t at)
{
    return at > 0 && p->blocks[at - 1]->free > p->blocks[at]->free;
}

/* Updates the order after a change in the block at a place. */
static void update_place(struct vma *p, size_t at)
{
    vma_order_set(&p->order, at, p->blocks[at]->most);
    vma_order_mark(&p->order, at, falls(p, at));
    if (at + 1 < p->count)
        vma_order_mark(&p->order, at + 1, falls(p, at + 1));
}

/* Updates it after other blocks have come to the places from ... to - 1. */
static void place_blocks(struct vma *p, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        p->blocks[i]->place = i;
        update_place(p, i);
    }
}

/* Swaps the first two neighbours that are not in the order of free bytes. */
static void sort_one_step(struct vma *p)
{
    const size_t at = vma_order_falls(&p->order);
    struct vma_block *b;

    if (at == VMA_NOWHERE)
        return;
    b = p->blocks[at];
    p->blocks[at] = p->blocks[at - 1];
    p->blocks[at - 1] = b;
    place_blocks(p, at - 1, at + 1);
}

/* Allocates from one block; false if it has no chunk that is large enough. */
static bool alloc_from(struct vma *p, struct vma_block *b, frag_size size,
                       struct vma_chunk **out)
{
    struct vma_chunk *chunk = vma_block_find(b, size);

    if (!chunk) {
        b->most = size - 1;
        update_place(p, b->place);
        return false;
    }
    p->empties -= vma_block_is_empty(b);
    vma_block_alloc(b, &p->nodes, chunk, size);
    update_place(p, b->place);
    sort_one_step(p);
    *out = chunk;
    return true;
}

static bool alloc_from_any(struct vma *p, frag_size size,
                           struct vma_chunk **out)
{
    const bool backwards = p->strategy == VMA_MIN_TIME;

    for (;;) {
        const size_t at = backwards ? vma_order_last(&p->order, size)
                                    : vma_order_first(&p->order, size);

        if (at == VMA_NOWHERE)
            return false;
        if (alloc_from(p, p->blocks[at], size, out))
            return true;
    }
}

static frag_size unused_budget(const struct vma *p)
{
    return p->held < p->usable ? p->usable - p->held : 0;
}

/* Creates an empty block in the last place. OOM also if it exceeds the budget.
 */
static enum frag_err create_block(struct frag_heap *heap, frag_size bytes)
{
    struct vma *p = heap->state;
    struct vma_block *b;
    frag_addr addr;
    enum frag_err err;

    if (bytes > unused_budget(p))
        return FRAG_OOM;
    b = malloc(vma_block_bytes(bytes));
    if (!b)
        return FRAG_NOMEM;
    err = heap->mem->ops->segment_alloc(heap->mem, bytes, &addr);
    if (err != FRAG_OK) {
        free(b);
        return err;
    }
    vma_block_init(b, &p->nodes, addr, bytes, (enum vma_strategy)p->strategy);
    p->blocks[p->count++] = b;
    place_blocks(p, p->count - 1, p->count);
    p->held += bytes;
    p->empties++;
    return FRAG_OK;
}

/* The size of the largest block, or of one of at least `enough` bytes. */
static frag_size largest_block(const struct vma *p, frag_size enough)
{
    frag_size largest = 0;

    for (size_t i = 0; i < p->count && largest < enough; i++)
        if (p->blocks[i]->size > largest)
            largest = p->blocks[i]->size;
    return largest;
}

/* Creates a block for a request of `size` bytes, with the size rule above. */
static enum frag_err add_block(struct frag_heap *heap, frag_size size)
{
    struct vma *p = heap->state;
    frag_size bytes = p->preferred;
    const frag_size largest = largest_block(p, bytes / 2);
    unsigned halvings = 0;
    enum frag_err err;

    if (size > unused_budget(p))
        return FRAG_OOM;
    if (!GROW(p->blocks, p->room, p->count + 1))
        return FRAG_NOMEM;
    FRAG_TRY(vma_order_reserve(&p->order, p->count + 1));
    for (; halvings < MAX_HALVINGS && bytes / 2 > largest && bytes / 4 >= size;
         halvings++)
        bytes /= 2;
    err = create_block(heap, bytes);
    for (; err == FRAG_OOM && halvings < MAX_HALVINGS && bytes / 2 >= size;
         halvings++) {
        bytes /= 2;
        err = create_block(heap, bytes);
    }
    return err;
}

static enum frag_err alloc_shared(struct frag_heap *heap, frag_size size,
                                  struct vma_chunk **out)
{
    struct vma *p = heap->state;

    if (size > p->preferred)
        return FRAG_OOM;
    if (alloc_from_any(p, size, out))
        return FRAG_OK;
    FRAG_TRY(add_block(heap, size));
    alloc_from(p, p->blocks[p->count - 1], size, out);
    return FRAG_OK;
}

/* Returns an empty block to the device; if the device refuses, the block stays
 * in its place. */
static void return_block(struct frag_heap *heap, size_t at)
{
    struct vma *p = heap->state;
    struct vma_block *b = p->blocks[at];

    if (heap->mem->ops->segment_free(heap->mem, b->addr, b->size) != FRAG_OK)
        return;
    p->held -= b->size;
    p->empties--;
    p->count--;
    memmove(&p->blocks[at], &p->blocks[at + 1],
            (p->count - at) * sizeof(struct vma_block *));
    place_blocks(p, at, p->count);
    vma_order_set(&p->order, p->count, 0);
    vma_order_mark(&p->order, p->count, false);
    nodes_put(&p->nodes, b->rest);
    free(b);
}

static void free_shared(struct frag_heap *heap, struct vma_chunk *chunk)
{
    struct vma *p = heap->state;
    struct vma_block *b = chunk->block;
    const bool is_spare = p->empties > 0, is_over = p->held >= p->usable;
    const size_t last = p->count - 1;

    vma_block_free(b, &p->nodes, chunk);
    update_place(p, b->place);
    if (vma_block_is_empty(b)) {
        p->empties++;
        if (is_spare || is_over)
            return_block(heap, b->place);
    } else if (is_spare && vma_block_is_empty(p->blocks[last])) {
        return_block(heap, last);
    }
    sort_one_step(p);
}

/* ---- the policy ---- */

static enum frag_err alloc_memory(struct frag_heap *heap, frag_size size,
                                  struct vma_chunk **out)
{
    const struct vma *p = heap->state;
    const bool is_large = size > p->preferred / 2;
    enum frag_err err = FRAG_OOM;

    if (is_large)
        err = alloc_dedicated(heap, size, out);
    if (err == FRAG_OOM)
        err = alloc_shared(heap, size, out);
    if (err == FRAG_OOM && !is_large)
        err = alloc_dedicated(heap, size, out);
    return err;
}

static enum frag_err vma_alloc(struct frag_heap *heap,
                               const struct frag_request *req,
                               struct frag_block *out)
{
    struct vma *p = heap->state;
    const frag_size size = (req->size + UNIT - 1) & ~((frag_size)UNIT - 1);
    struct vma_chunk *chunk;

    FRAG_TRY(nodes_reserve(&p->nodes, 2));
    if (p->refused)
        retry_returns(heap);
    FRAG_TRY(alloc_memory(heap, size, &chunk));
    *out = (struct frag_block){chunk->hole.node.addr, size, chunk};
    return FRAG_OK;
}

static void vma_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct vma *p = heap->state;
    struct vma_chunk *chunk = block->node;

    if (chunk->block) {
        free_shared(heap, chunk);
        return;
    }
    vma_drop(&p->dedicated, &chunk->hole);
    return_dedicated(heap, chunk);
}

static void fini(struct frag_heap *heap)
{
    struct vma *p = heap->state;

    while (p->dedicated) {
        struct hole *first = p->dedicated;

        vma_drop(&p->dedicated, first);
        return_dedicated(heap, (struct vma_chunk *)first);
    }
    retry_returns(heap);
    for (size_t i = 0; i < p->count; i++) {
        struct vma_block *b = p->blocks[i];

        heap->mem->ops->segment_free(heap->mem, b->addr, b->size);
        free(b);
    }
    free(p->blocks);
    vma_order_fini(&p->order);
    nodes_release(&p->nodes);
}

static bool is_placed(const struct vma *p, size_t at)
{
    return p->blocks[at]->place == at &&
           p->order.most[p->order.width + at] == p->blocks[at]->most &&
           vma_order_is_marked(&p->order, at) == falls(p, at);
}

const char *vma_check(const struct frag_heap *heap)
{
    const struct vma *p = heap->state;
    frag_size held = 0;
    size_t empties = 0;

    for (size_t i = 0; i < p->count; i++) {
        CHECK_ALL(vma_block_check(p->blocks[i]));
        CHECK(is_placed(p, i), "the order of blocks is not up to date");
        held += p->blocks[i]->size;
        empties += vma_block_is_empty(p->blocks[i]);
    }
    for (const struct hole *h = p->dedicated; h; h = h->equal[1])
        held += h->node.size;
    for (const struct hole *h = p->refused; h; h = h->equal[1])
        held += h->node.size;
    CHECK(held == p->held, "`held` is not the bytes taken from the device");
    CHECK(empties == p->empties, "`empties` is not the number of empty blocks");
    return nodes_check(&p->nodes);
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(SIZE, "block", struct vma, block, "256MiB", 2048, 0x1p40,
                     "preferred size of a block in bytes, rounded up to 2 KiB"),
    FRAG_RANGE_PARAM(SIZE, "small_device", struct vma, small_device, "1GiB", 0,
                     0x1p40,
                     "on a device of at most this many bytes, the preferred "
                     "size is an eighth of the device"),
    FRAG_RANGE_PARAM(RATIO, "budget", struct vma, budget, "0.8", 0, 1,
                     "fraction of the device's memory that blocks may use"),
    FRAG_CHOICE_PARAM("strategy", struct vma, strategy, "default",
                      "default|min_memory|min_time|min_offset",
                      "how the free memory of a block is searched"),
    {.name = NULL},
};

const struct frag_policy frag_policy_vma = {
    .name = "vma",
    .summary = "Vulkan Memory Allocator: TLSF in blocks, dedicated memory for "
               "large requests",
    .source = "GPUOpen VulkanMemoryAllocator e386068, include/vk_mem_alloc.h",
    .quantum = UNIT,
    .state_size = sizeof(struct vma),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = vma_alloc,
    .free = vma_free,
    .check = vma_check,
};
