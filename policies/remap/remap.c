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
 * With lodge=early a block of a page or more uses page sharing also where it
 * would otherwise use up whole free pages that a peak may soon need; gather.h
 * says when. This is for programs whose peak matters more than the number of
 * their driver calls. Peak reserved over peak allocated is then at most 1.017
 * on each of the 20 recordings of default settings, instead of 1.034. The cost
 * on these recordings: 1.4 times the maps, 9 times the unmaps, 6 times the
 * waits for the device, and 1.4 times the modelled time in the driver. The cost
 * is highest for llama_accum and t5_varlen, with 6 and 4 times the maps.
 *
 * With pack=full the policy does all this only when the device is full. While
 * the device has memory, a run costs few driver calls and no wait; close to the
 * capacity it packs. gather.h has the rule, paper/pages/pressure.md the cost at
 * each capacity. `slack` and `lodge` are then without effect: pages are shared
 * when the device is full.
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
    FRAG_CHOICE_PARAM(
        "lodge", struct gather, share, "late", "late|early",
        "when the ends of a new block share partly used pages; late: before "
        "memory is requested from the device; early: also before a short block "
        "uses up whole free pages"),
    FRAG_CHOICE_PARAM(
        "pack", struct gather, pack, "always", "always|full",
        "when free pages are remapped and shared; always: before memory is "
        "requested from the device; full: only when the device is full, and "
        "new memory is mapped in larger chunks the more of the device is free"),
    FRAG_RANGE_PARAM(NUMBER, "chunks", struct gather, chunks, "128", 1, 0x1p20,
                     "with pack=full: number of equal chunks in which an "
                     "unused device is mapped; fewer chunks need fewer driver "
                     "calls, but a chunk in partial use cannot be remapped"),
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
