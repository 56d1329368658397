/* paged.c - every block is whole pages, and any free page serves any block.
 *
 * A request is rounded up to pages, so that there is no external waste: what is
 * lost is the end of each block's last page. Address space is reserved
 * generously, and a block's pages lie in a row in it. A freed block's pages
 * stay mapped until another block needs them elsewhere; mechanism/gather.h has
 * the rule. A freed block serves any stream.
 *
 * Source: fixed pages as PagedAttention, Kwon et al., SOSP 2023; in a row in
 * virtual addresses and reclaimed late, as vAttention, Prabhu et al., ASPLOS
 * 2025. Both serve the caches of a model only; that any request takes pages is
 * ours.
 */
#include "policies/mechanism/gather.h"

#include <stddef.h>

struct paged {
    struct pages pages;
    frag_size page, span; /* the parameters */
};

static enum frag_err init(struct frag_heap *heap)
{
    struct paged *s = heap->state;

    pages_init(&s->pages, heap->mem, s->page, s->span);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    pages_fini(heap, &((struct paged *)heap->state)->pages);
}

static enum frag_err alloc(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out)
{
    struct paged *s = heap->state;

    return gather_alloc(heap, &s->pages,
                        frag_round_up(req->size, s->pages.unit), UINT64_MAX,
                        out);
}

static void free_block(struct frag_heap *heap, const struct frag_block *block)
{
    (void)heap;
    pages_free(block->node);
}

static void free_requested(struct frag_heap *heap,
                           const struct frag_block *block)
{
    (void)heap;
    pages_pend(block->node);
}

static void trim(struct frag_heap *heap)
{
    gather_trim(heap, &((struct paged *)heap->state)->pages);
}

static const struct frag_param params[] = {
    PAGE_PARAM(struct paged, page),
    SPAN_PARAM(struct paged, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_paged = {
    .name = "paged",
    .summary = "blocks of whole pages; any free page serves any block",
    .source = "PagedAttention, SOSP 2023; vAttention, ASPLOS 2025",
    .needs = FRAG_NEEDS_VMM,
    .state_size = sizeof(struct paged),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = alloc,
    .free = free_block,
    .free_requested = free_requested,
    .trim = trim,
};
