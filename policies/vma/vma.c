/* vma.c - Vulkan Memory Allocator: TLSF in blocks of 256 MiB.
 *
 * Requests are rounded up to 256 bytes, as drivers' memory requirements are.
 * One of more than half a block gets memory of its own from the device, and the
 * blocks only where that fails. All others are tried in the blocks, one after
 * the other, then in a new block, then get memory of their own.
 *
 * In a block (vma_block.h), by strategy:
 *   default     the first of the next larger list in use; the rest at the
 *               block's end; the first of the own list that is large enough
 *   min_time    likewise
 *   min_memory  the first of the own list (or the next in use, if that is
 *               empty) that is large enough; the rest; the next larger list
 *   min_offset  the lowest piece that is large enough; the rest
 * The piece is always cut to size, its low part granted. Within a list the last
 * freed comes first. Streams and pools are not told apart.
 *
 * Blocks are tried in an order that prefers those with little free (min_time:
 * backwards): after each alloc and free the first two neighbours that are not
 * in the order of free bytes are swapped, and no more.
 *
 * A new block has the preferred size, halved up to three times while the half
 * is larger than every block there is and at least twice the request. If the
 * device refuses, it is halved on, to an eighth of the preferred size at the
 * least and the request. The preferred size is `block`, an eighth of the device
 * if that has no more than `small_device`. Blocks stay within `budget`; once
 * that is used up, requests get memory of their own.
 *
 * Of the blocks that become empty one is kept: a second one goes at once, as
 * does any when the budget is used up; and when a free finds an empty block in
 * the last place and does not empty its own, that goes. There is no trim.
 * Memory that the device refuses to take back is offered again before the next
 * is taken.
 *
 * Source: GPUOpen-LibrariesAndSDKs/VulkanMemoryAllocator at e386068,
 * include/vk_mem_alloc.h: VmaBlockMetadata_TLSF, VmaBlockVector,
 * VmaAllocator_T::AllocateMemoryOfType. Budget as without
 * VK_EXT_memory_budget. Not modelled: memory types, the buffer-image
 * granularity, custom pools, the limit on the number of allocations (none on
 * current NVIDIA drivers), defragmentation.
 */
#include "policies/mechanism/segments.h"
#include "policies/vma/block.h"
#include "traces/grow.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = 256, MAX_HALVINGS = 3 };

struct vma {
    frag_size block, small_device; /* the parameters */
    double budget;
    uint32_t strategy;
    frag_size preferred;       /* bytes of a block */
    frag_size usable;          /* the budget, in bytes */
    frag_size held;            /* bytes taken from the device */
    struct vma_block **blocks; /* in the order they are tried */
    size_t count, empties;
    uint64_t room;
    struct hole *own, *refused; /* memory of their own, live and not */
    struct nodes nodes;         /* of pieces */
};

static enum frag_err init(struct frag_heap *heap)
{
    struct vma *p = heap->state;
    const frag_size total = frag_backend_total(heap->mem);

    p->preferred =
        frag_round_up(total <= p->small_device ? total / 8 : p->block,
                      (frag_size)UNIT << MAX_HALVINGS);
    p->usable = (frag_size)((double)total * p->budget);
    p->nodes.size = sizeof(struct vma_piece);
    return FRAG_OK;
}

/* ---- memory of its own ---- */

/* Returns a piece of no list to the device. */
static void return_own(struct frag_heap *heap, struct vma_piece *piece)
{
    struct vma *p = heap->state;

    if (heap->mem->ops->segment_free(heap->mem, piece->hole.node.addr,
                                     piece->hole.node.size) != FRAG_OK) {
        vma_push(&p->refused, &piece->hole);
        return;
    }
    p->held -= piece->hole.node.size;
    nodes_put(&p->nodes, piece);
}

static void offer_again(struct frag_heap *heap)
{
    struct vma *p = heap->state;
    struct hole *list = p->refused;

    p->refused = NULL;
    while (list) {
        struct hole *first = list;

        vma_drop(&list, first);
        return_own(heap, (struct vma_piece *)first);
    }
}

static enum frag_err take_own(struct frag_heap *heap, frag_size size,
                              struct vma_piece **out)
{
    struct vma *p = heap->state;
    struct vma_piece *piece;
    frag_addr addr;

    FRAG_TRY(heap->mem->ops->segment_alloc(heap->mem, size, &addr));
    p->held += size;
    piece = nodes_take(&p->nodes);
    *piece = (struct vma_piece){.hole.node = {.addr = addr, .size = size}};
    vma_push(&p->own, &piece->hole);
    *out = piece;
    return FRAG_OK;
}

/* ---- blocks ---- */

static void sort_a_little(struct vma *p)
{
    for (size_t i = 1; i < p->count; i++) {
        struct vma_block *before = p->blocks[i - 1];

        if (before->free > p->blocks[i]->free) {
            p->blocks[i - 1] = p->blocks[i];
            p->blocks[i] = before;
            return;
        }
    }
}

static bool take_from(struct vma *p, struct vma_block *b, frag_size size,
                      struct vma_piece **out)
{
    struct vma_piece *piece = vma_block_find(b, size);

    if (!piece)
        return false;
    p->empties -= vma_block_is_empty(b);
    vma_block_take(b, &p->nodes, piece, size);
    sort_a_little(p);
    *out = piece;
    return true;
}

static bool take_from_any(struct vma *p, frag_size size, struct vma_piece **out)
{
    const bool backwards = p->strategy == VMA_MIN_TIME;

    for (size_t i = 0; i < p->count; i++)
        if (take_from(p, p->blocks[backwards ? p->count - 1 - i : i], size,
                      out))
            return true;
    return false;
}

static frag_size unused_budget(const struct vma *p)
{
    return p->held < p->usable ? p->usable - p->held : 0;
}

/* A new block in the last place, empty. */
static enum frag_err create(struct frag_heap *heap, frag_size bytes)
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
    p->held += bytes;
    p->empties++;
    return FRAG_OK;
}

static frag_size largest_block(const struct vma *p)
{
    frag_size largest = 0;

    for (size_t i = 0; i < p->count; i++)
        if (p->blocks[i]->size > largest)
            largest = p->blocks[i]->size;
    return largest;
}

static enum frag_err add_block(struct frag_heap *heap, frag_size size)
{
    struct vma *p = heap->state;
    const frag_size largest = largest_block(p);
    frag_size bytes = p->preferred;
    unsigned halvings = 0;
    enum frag_err err;

    if (size > unused_budget(p))
        return FRAG_OOM;
    if (!GROW(p->blocks, p->room, p->count + 1))
        return FRAG_NOMEM;
    for (; halvings < MAX_HALVINGS && bytes / 2 > largest && bytes / 4 >= size;
         halvings++)
        bytes /= 2;
    err = create(heap, bytes);
    for (; err == FRAG_OOM && halvings < MAX_HALVINGS && bytes / 2 >= size;
         halvings++) {
        bytes /= 2;
        err = create(heap, bytes);
    }
    return err;
}

static enum frag_err take_shared(struct frag_heap *heap, frag_size size,
                                 struct vma_piece **out)
{
    struct vma *p = heap->state;

    if (size > p->preferred)
        return FRAG_OOM;
    if (take_from_any(p, size, out))
        return FRAG_OK;
    FRAG_TRY(add_block(heap, size));
    take_from(p, p->blocks[p->count - 1], size, out);
    return FRAG_OK;
}

/* Returns an empty block; one that the device refuses stays in its place. */
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
    nodes_put(&p->nodes, b->rest);
    free(b);
}

static void give_shared(struct frag_heap *heap, struct vma_piece *piece)
{
    struct vma *p = heap->state;
    struct vma_block *b = piece->block;
    const bool is_spare = p->empties > 0, is_over = p->held >= p->usable;
    size_t at = p->count - 1;

    vma_block_give(b, &p->nodes, piece);
    if (vma_block_is_empty(b)) {
        p->empties++;
        while (p->blocks[at] != b)
            at--;
        if (is_spare || is_over)
            return_block(heap, at);
    } else if (is_spare && vma_block_is_empty(p->blocks[at])) {
        return_block(heap, at);
    }
    sort_a_little(p);
}

/* ---- the policy ---- */

static enum frag_err take(struct frag_heap *heap, frag_size size,
                          struct vma_piece **out)
{
    const struct vma *p = heap->state;
    const bool is_large = size > p->preferred / 2;
    enum frag_err err = FRAG_OOM;

    if (is_large)
        err = take_own(heap, size, out);
    if (err == FRAG_OOM)
        err = take_shared(heap, size, out);
    if (err == FRAG_OOM && !is_large)
        err = take_own(heap, size, out);
    return err;
}

static enum frag_err vma_alloc(struct frag_heap *heap,
                               const struct frag_request *req,
                               struct frag_block *out)
{
    struct vma *p = heap->state;
    const frag_size size = (req->size + UNIT - 1) & ~((frag_size)UNIT - 1);
    struct vma_piece *piece;

    FRAG_TRY(nodes_reserve(&p->nodes, 2));
    if (p->refused)
        offer_again(heap);
    FRAG_TRY(take(heap, size, &piece));
    *out = (struct frag_block){piece->hole.node.addr, size, piece};
    return FRAG_OK;
}

static void vma_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct vma *p = heap->state;
    struct vma_piece *piece = block->node;

    if (piece->block) {
        give_shared(heap, piece);
        return;
    }
    vma_drop(&p->own, &piece->hole);
    return_own(heap, piece);
}

static void fini(struct frag_heap *heap)
{
    struct vma *p = heap->state;

    while (p->own) {
        struct hole *first = p->own;

        vma_drop(&p->own, first);
        return_own(heap, (struct vma_piece *)first);
    }
    offer_again(heap);
    for (size_t i = 0; i < p->count; i++) {
        struct vma_block *b = p->blocks[i];

        heap->mem->ops->segment_free(heap->mem, b->addr, b->size);
        free(b);
    }
    free(p->blocks);
    nodes_release(&p->nodes);
}

const char *vma_check(const struct frag_heap *heap)
{
    const struct vma *p = heap->state;
    frag_size held = 0;
    size_t empties = 0;

    for (size_t i = 0; i < p->count; i++) {
        CHECK_ALL(vma_block_check(p->blocks[i]));
        held += p->blocks[i]->size;
        empties += vma_block_is_empty(p->blocks[i]);
    }
    for (const struct hole *h = p->own; h; h = h->equal[1])
        held += h->node.size;
    for (const struct hole *h = p->refused; h; h = h->equal[1])
        held += h->node.size;
    CHECK(held == p->held, "`held` is not the bytes taken from the device");
    CHECK(empties == p->empties, "`empties` is not the number of empty blocks");
    return nodes_check(&p->nodes);
}

static const struct frag_param params[] = {
    {
        .name = "block",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct vma, block),
        .init = "256MiB",
        .min = 2048,
        .max = 0x1p40,
        .help = "preferred bytes of a block, rounded up to 2 KiB",
    },
    {
        .name = "small_device",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct vma, small_device),
        .init = "1GiB",
        .min = 0,
        .max = 0x1p40,
        .help = "a device of no more bytes has blocks of an eighth of it",
    },
    {
        .name = "budget",
        .kind = FRAG_PARAM_RATIO,
        .offset = offsetof(struct vma, budget),
        .init = "0.8",
        .min = 0,
        .max = 1,
        .help = "share of the device's memory that blocks stay within",
    },
    {
        .name = "strategy",
        .kind = FRAG_PARAM_CHOICE,
        .offset = offsetof(struct vma, strategy),
        .init = "default",
        .choices = "default|min_memory|min_time|min_offset",
        .help = "what a block is searched for",
    },
    {.name = NULL},
};

const struct frag_policy frag_policy_vma = {
    .name = "vma",
    .summary = "Vulkan Memory Allocator: TLSF in blocks, large ones apart",
    .source = "GPUOpen VulkanMemoryAllocator e386068, include/vk_mem_alloc.h",
    .state_size = sizeof(struct vma),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = vma_alloc,
    .free = vma_free,
};
