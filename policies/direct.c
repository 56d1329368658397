/* direct.c - every request is a call to the device: the baseline.
 *
 * A segment for each block, returned when it is freed. Nothing is kept, so
 * nothing is free but unusable; the price is a device call per event. What
 * PyTorch does under PYTORCH_NO_CUDA_MEMORY_CACHING=1. There is no choice and
 * therefore no tie.
 *
 * A segment that the device refuses to take back is kept aside; trim, and a
 * request that finds the device full, offer it again.
 */
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/segments.h"

struct direct_piece {
    struct direct_piece *prev,
        *next; /* in the list of live or of refused pieces */
    frag_addr addr;
    frag_size size;
};

struct direct {
    struct nodes nodes;
    struct direct_piece *live, *refused;
};

static enum frag_err init(struct frag_heap *heap)
{
    struct direct *d = heap->state;

    d->nodes.size = sizeof(struct direct_piece);
    return FRAG_OK;
}

static void push(struct direct_piece **list, struct direct_piece *piece)
{
    piece->prev = NULL;
    piece->next = *list;
    if (*list)
        (*list)->prev = piece;
    *list = piece;
}

static void drop(struct direct_piece **list, struct direct_piece *piece)
{
    if (piece->prev)
        piece->prev->next = piece->next;
    else
        *list = piece->next;
    if (piece->next)
        piece->next->prev = piece->prev;
}

/* Returns a piece of no list to the device. */
static bool give_back(struct frag_heap *heap, struct direct_piece *piece)
{
    struct direct *d = heap->state;

    if (heap->mem->ops->segment_free(heap->mem, piece->addr, piece->size) !=
        FRAG_OK) {
        push(&d->refused, piece);
        return false;
    }
    nodes_give(&d->nodes, piece);
    return true;
}

static bool offer_again(struct frag_heap *heap)
{
    struct direct *d = heap->state;
    struct direct_piece *list = d->refused;
    bool any = false;

    d->refused = NULL;
    while (list) {
        struct direct_piece *piece = list;

        list = piece->next;
        any = give_back(heap, piece) || any;
    }
    return any;
}

static enum frag_err direct_alloc(struct frag_heap *heap,
                                  const struct frag_request *req,
                                  struct frag_block *out)
{
    struct direct *d = heap->state;
    const frag_size size = whole_quanta(req->size);
    struct direct_piece *piece;
    frag_addr addr;

    FRAG_TRY(nodes_reserve(&d->nodes, 1));
    FRAG_TRY(segment_take(heap, size, offer_again, &addr));
    piece = nodes_take(&d->nodes);
    *piece = (struct direct_piece){.addr = addr, .size = size};
    push(&d->live, piece);
    *out = (struct frag_block){addr, size, piece};
    return FRAG_OK;
}

static void direct_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct direct *d = heap->state;

    drop(&d->live, block->node);
    give_back(heap, block->node);
}

static void direct_trim(struct frag_heap *heap)
{
    offer_again(heap);
}

static void fini(struct frag_heap *heap)
{
    struct direct *d = heap->state;

    while (d->live) {
        const struct frag_block block = {.node = d->live};

        direct_free(heap, &block);
    }
    offer_again(heap);
    nodes_release(&d->nodes);
}

const struct frag_policy frag_policy_direct = {
    .name = "direct",
    .summary = "one device allocation per request, no cache",
    .source = "PyTorch under PYTORCH_NO_CUDA_MEMORY_CACHING=1",
    .state_size = sizeof(struct direct),
    .init = init,
    .fini = fini,
    .alloc = direct_alloc,
    .free = direct_free,
    .trim = direct_trim,
};
