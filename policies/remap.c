/* remap.c - holes are reclaimed by remapping pages under blocks that never
 * move.
 *
 * Blocks lie in reserved address space at a quantum's resolution, so that a
 * block's last page is also its neighbour's first; requests below a page fill
 * what others leave of theirs. Holes that are mapped are used as best fit does;
 * where none is large enough, free pages from anywhere are put together under
 * addresses where nothing lives. mechanism/gather.h has the rule, and
 * mechanism/pages.h the ties. `budget` bounds the pages that one request may
 * have remapped while the device still has memory; with 0 nothing is remapped
 * until the device is full. A freed block serves any stream.
 *
 * Source: ours. Its parts: PyTorch's expandable segments (pages under reserved
 * addresses) and GMLake, ASPLOS 2024 (free pages put together).
 */
#include "policies/mechanism/gather.h"

#include <stddef.h>

struct remap {
    struct pages pages;
    frag_size page, span; /* the parameters */
    uint64_t budget;
};

static enum frag_err init(struct frag_heap *heap)
{
    struct remap *s = heap->state;

    pages_init(&s->pages, heap->mem, s->page, s->span);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    pages_fini(heap, &((struct remap *)heap->state)->pages);
}

static enum frag_err alloc(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out)
{
    struct remap *s = heap->state;

    return gather_alloc(heap, &s->pages, frag_round_up(req->size, FRAG_QUANTUM),
                        s->budget, out);
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
    gather_trim(heap, &((struct remap *)heap->state)->pages);
}

static const struct frag_param params[] = {
    {.name = "budget",
     .kind = FRAG_PARAM_NUMBER,
     .offset = offsetof(struct remap, budget),
     .init = "1000000",
     .min = 0,
     .max = 0x1p40,
     .help = "most pages moved for one request while the device has memory"},
    PAGE_PARAM(struct remap, page),
    SPAN_PARAM(struct remap, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_remap = {
    .name = "remap",
    .summary = "best fit; free pages are remapped where a block needs them",
    .source = "ours; after PyTorch's expandable segments and GMLake",
    .needs = FRAG_NEEDS_VMM,
    .state_size = sizeof(struct remap),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = alloc,
    .free = free_block,
    .free_requested = free_requested,
    .trim = trim,
};
