/* paged.c - the paged policy: every block is whole pages, and any free page
 * serves any block.
 *
 * A request is rounded up to whole pages, so there is no external
 * fragmentation; the only waste is the end of each block's last page. Address
 * space is reserved in large spans, and a block's pages are contiguous in it.
 * The pages of a freed block stay mapped until another block needs them
 * elsewhere; gather.h has the rules and defines to gather. A freed block serves
 * any stream.
 *
 * Source: pages of fixed size as in PagedAttention, Kwon et al., SOSP 2023;
 * contiguous virtual addresses and late reclaiming as in vAttention, Prabhu et
 * al., ASPLOS 2025. Both serve the caches of a model only; the use for all
 * requests is ours.
 */
#include "policies/remap/gather.h"

#include <stddef.h>

static enum frag_err init(struct frag_heap *heap)
{
    ((struct gather *)heap->state)->budget = UINT64_MAX;
    return gather_init(heap);
}

static enum frag_err alloc(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out)
{
    const struct gather *g = heap->state;

    return gather_alloc(heap, req,
                        frag_round_up(req->size, g->pages.stock.page), out);
}

static const struct frag_param params[] = {
    PAGE_PARAM(struct gather, page),
    SPAN_PARAM(struct gather, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_paged = {
    .name = "paged",
    .summary = "blocks of whole pages; any free page serves any block",
    .source = "PagedAttention, SOSP 2023; vAttention, ASPLOS 2025",
    .needs = FRAG_NEEDS_VMM,
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct gather),
    .params = params,
    .init = init,
    .fini = gather_fini,
    .alloc = alloc,
    .free = gather_free,
    .free_requested = gather_free_requested,
    .trim = gather_trim,
    .check = gather_check,
};
