/* direct.c - one device allocation per request: the baseline without a cache.
 *
 * Each block is a segment of its own, which is returned when the block is
 * freed, as in PyTorch under PYTORCH_NO_CUDA_MEMORY_CACHING=1. No free memory
 * is held, so there is no external fragmentation; the cost is a device call for
 * each event. There is no choice, and therefore no tie.
 *
 * A segment that the device refuses to free is stored in a list. Trim, and a
 * request that finds the device full, try to free the listed segments again.
 */
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/ring.h"
#include "policies/mechanism/segments.h"

struct direct_block {
    struct ring link; /* of the live or of the refused blocks */
    frag_addr addr;
    frag_size size;
};

struct direct {
    struct nodes nodes;
    struct ring live, refused;
};

static enum frag_err init(struct frag_heap *heap)
{
    struct direct *d = heap->state;

    d->nodes.size = sizeof(struct direct_block);
    ring_init(&d->live);
    ring_init(&d->refused);
    return FRAG_OK;
}

/* Returns the segment of a block that is in no list. If the device refuses, the
 * block goes to the list of refused ones, and the result is false. */
static bool return_segment(struct frag_heap *heap, struct direct_block *b)
{
    struct direct *d = heap->state;

    if (heap->mem->ops->segment_free(heap->mem, b->addr, b->size) != FRAG_OK) {
        ring_push(&d->refused, &b->link);
        return false;
    }
    nodes_put(&d->nodes, b);
    return true;
}

/* Tries to free the refused segments again; true if any was freed. */
static bool retry_refused(struct frag_heap *heap)
{
    struct direct *d = heap->state;
    struct ring *b = d->refused.next, *next;
    bool any = false;

    for (; b != &d->refused; b = next) {
        next = b->next;
        ring_drop(b);
        any = return_segment(heap, (struct direct_block *)b) || any;
    }
    return any;
}

static enum frag_err direct_alloc(struct frag_heap *heap,
                                  const struct frag_request *req,
                                  struct frag_block *out)
{
    struct direct *d = heap->state;
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);
    struct direct_block *b;
    frag_addr addr;

    FRAG_TRY(nodes_reserve(&d->nodes, 1));
    FRAG_TRY(segment_take(heap, size, retry_refused, &addr));
    b = nodes_take(&d->nodes);
    *b = (struct direct_block){.addr = addr, .size = size};
    ring_push(&d->live, &b->link);
    *out = (struct frag_block){addr, size, b};
    return FRAG_OK;
}

static void direct_free(struct frag_heap *heap, const struct frag_block *block)
{
    ring_drop(block->node);
    return_segment(heap, block->node);
}

static void direct_trim(struct frag_heap *heap)
{
    retry_refused(heap);
}

static void fini(struct frag_heap *heap)
{
    struct direct *d = heap->state;

    while (!ring_is_empty(&d->live)) {
        const struct frag_block block = {.node = d->live.next};

        direct_free(heap, &block);
    }
    retry_refused(heap);
    nodes_release(&d->nodes);
}

const struct frag_policy frag_policy_direct = {
    .name = "direct",
    .summary = "one device allocation per request, no cache",
    .source = "PyTorch under PYTORCH_NO_CUDA_MEMORY_CACHING=1",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct direct),
    .init = init,
    .fini = fini,
    .alloc = direct_alloc,
    .free = direct_free,
    .trim = direct_trim,
    .unchecked = "each block is a segment, and it keeps no other state",
};
