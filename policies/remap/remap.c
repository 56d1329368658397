/* remap.c - the remap policy: best fit, which reclaims free pages by remapping
 * them under new blocks; live blocks never move.
 *
 * Blocks lie in reserved address space at multiples of the quantum. So the last
 * page of a block can also be the first page of its neighbour, and requests
 * below a page fill the free ends of partly used pages. Mapped free ranges are
 * used by best fit. If none is large enough, the policy gathers: it collects
 * free pages from anywhere and maps them under addresses where nothing is live.
 * What remains free then lies in partly used pages. Before the policy requests
 * another page from the device, it uses page sharing: the first and the last
 * page of the new block's addresses are mapped to the memory of partly used
 * pages, and the block uses the bytes that are free there. gather.h and
 * remap_share.h have the rules; mechanism/pages.h says which of equal places is
 * used. A freed block serves any stream.
 *
 * `budget` limits the pages that are mapped elsewhere for one request while the
 * device still has memory; with budget=0 no page is remapped until the device
 * is full. Up to `slack` of the bytes of all pages may be free in partly used
 * pages before the policy uses page sharing, because its maps cost time.
 * Live memory is never unmapped.
 *
 * Source: ours. Its parts: PyTorch's expandable segments (pages under reserved
 * addresses), GMLake, ASPLOS 2024 (gathered free pages).
 */
#include "policies/remap/gather.h"

#include <stddef.h>

static enum frag_err alloc(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out)
{
    return gather_alloc(heap, req, frag_round_up(req->size, FRAG_QUANTUM), out);
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(
        NUMBER, "budget", struct gather, budget, "1000000", 0, 0x1p40,
        "most pages remapped for one request while the device has memory"),
    FRAG_RANGE_PARAM(RATIO, "slack", struct gather, slack, "0.01", 0, 1,
                     "the fraction of memory that may lie free in partly used "
                     "pages before new blocks share these pages"),
    PAGE_PARAM(struct gather, page),
    SPAN_PARAM(struct gather, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_remap = {
    .name = "remap",
    .summary = "best fit; free pages are remapped where a block needs them",
    .source = "ours; after PyTorch's expandable segments and GMLake",
    .needs = FRAG_NEEDS_VMM,
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct gather),
    .params = params,
    .init = gather_init,
    .fini = gather_fini,
    .alloc = alloc,
    .free = gather_free,
    .free_requested = gather_free_requested,
    .trim = gather_trim,
    .check = gather_check,
};
