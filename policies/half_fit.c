/* half_fit.c - a list per power of two, the first block of a safe one.
 *
 * A free block of n quanta is in the list of the largest power of two that is
 * at most n; a request searches from the smallest that is at least its size,
 * where every block is large enough, so that no list is walked. A block that
 * would fit but is in the list below is passed over: Ogasawara's incomplete
 * memory use, the price of constant time. The low part is granted in whole
 * quanta, the rest goes to the list of its size, and a freed block is coalesced
 * at once. Of blocks of one list the last one that was freed, split or
 * coalesced is taken. A freed block serves any stream.
 *
 * One thing is added. The paper's heap is fixed and refuses; here the next step
 * would be a call to the device, so the list that was passed over is searched
 * first, and the first block that is large enough taken. Only then a new
 * segment is; see mechanism/segments.h.
 *
 * Source: Ogasawara, "An Algorithm with Constant Execution Time for Dynamic
 * Storage Allocation", RTCSA 1995.
 */
#include "policies/mechanism/bins.h"

static enum frag_err half_fit_alloc(struct frag_heap *heap,
                                    const struct frag_request *req,
                                    struct frag_block *out)
{
    const frag_size size = whole_quanta(req->size);

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
    .summary = "a list per power of two, the first block of a safe one",
    .source = "Ogasawara, An Algorithm with Constant Execution Time for "
              "Dynamic Storage Allocation, RTCSA 1995",
    .state_size = sizeof(struct bins_fit),
    .params = params,
    .init = init,
    .fini = fit_fini,
    .alloc = half_fit_alloc,
    .free = half_fit_free,
    .trim = fit_trim,
};
