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
#include "policies/mechanism/segments.h"

struct direct_block {
    struct direct_block *prev, *next; /* in the list of live or of refused
                                         blocks */
    frag_addr addr;
    frag_size size;
};

struct direct {
    struct nodes nodes;
    struct direct_block *live, *refused;
};

static enum frag_err init(struct frag_heap *heap)
{
    struct direct *d = heap->state;

    d->nodes.size = sizeof(struct direct_block);
    return FRAG_OK;
}

static void push(struct direct_block **list, struct direct_block *b)
{
    b->prev = NULL;
    b->next = *list;
    if (*list)
        (*list)->prev = b;
    *list = b;
}

static void drop(struct direct_block **list, struct direct_block *b)
{
    if (b->prev)
        b->prev->next = b->next;
    else
        *list = b->next;
    if (b->next)
        b->next->prev = b->prev;
}

/* Returns the segment of a block that is in no list. If the device refuses, the
 * block goes to the list of refused ones, and the result is false. */
static bool return_segment(struct frag_heap *heap, struct direct_block *b)
{
    struct direct *d = heap->state;

    if (heap->mem->ops->segment_free(heap->mem, b->addr, b->size) != FRAG_OK) {
        push(&d->refused, b);
        return false;
    }
    nodes_put(&d->nodes, b);
    return true;
}

/* Tries to free the refused segments again; true if any was freed. */
static bool retry_refused(struct frag_heap *heap)
{
    struct direct *d = heap->state;
    struct direct_block *list = d->refused;
    bool any = false;

    d->refused = NULL;
    while (list) {
        struct direct_block *b = list;

        list = b->next;
        any = return_segment(heap, b) || any;
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
    push(&d->live, b);
    *out = (struct frag_block){addr, size, b};
    return FRAG_OK;
}

static void direct_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct direct *d = heap->state;

    drop(&d->live, block->node);
    return_segment(heap, block->node);
}

static void direct_trim(struct frag_heap *heap)
{
    retry_refused(heap);
}

static void fini(struct frag_heap *heap)
{
    struct direct *d = heap->state;

    while (d->live) {
        const struct frag_block block = {.node = d->live};

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
