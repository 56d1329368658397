/* half_fit.c - Half-Fit: one free list per power of two, no search.
 *
 * A free block of n quanta is in the list of the largest power of two that is
 * at most n. A request uses the first list from the smallest power of two that
 * is at least its size: every block there is large enough, so no list is
 * searched. A block in the next lower list may be large enough too, but is
 * skipped. Ogasawara calls this incomplete memory use; it is the price of
 * constant time. The low part of the block is allocated in whole quanta, the
 * rest goes to the list of its size, and a freed block is coalesced at once.
 * Within a list, the block that was freed, split or coalesced last is used
 * first. A freed block serves any stream.
 *
 * One step is added. The heap of the paper has a fixed size and refuses the
 * request; here the next step would be a call to the device. Therefore the
 * skipped list is searched first, and its first block that is large enough is
 * used. Only if there is none, a new segment is allocated; see
 * mechanism/segments.h.
 *
 * Source: Ogasawara, "An Algorithm with Constant Execution Time for Dynamic
 * Storage Allocation", RTCSA 1995.
 */
#include "policies/mechanism/bins.h"

static enum frag_err half_fit_alloc(struct frag_heap *heap,
                                    const struct frag_request *req,
                                    struct frag_block *out)
{
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);

    return fit_grant(heap, bins_fit_choose(heap->state, size), size, out,
                     &bins_rule);
}

static void half_fit_free(struct frag_heap *heap,
                          const struct frag_block *block)
{
    fit_return(heap->state, block->node, &bins_rule);
}

static enum frag_err init(struct frag_heap *heap)
{
    struct bins_fit *h = heap->state;

    bins_init(&h->bins, CLASSES_LEVELS, 0);
    return fit_init(heap, &bins_rule);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct bins_fit, fit.segment),
    {.name = NULL},
};

const struct frag_policy frag_policy_half_fit = {
    .name = "half_fit",
    .summary = "a free list per power of two whose first block always fits",
    .source = "Ogasawara, An Algorithm with Constant Execution Time for "
              "Dynamic Storage Allocation, RTCSA 1995",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct bins_fit),
    .params = params,
    .init = init,
    .fini = fit_fini,
    .alloc = half_fit_alloc,
    .free = half_fit_free,
    .trim = fit_trim,
    .check = fit_check,
};
