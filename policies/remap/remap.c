/* remap.c - holes are reclaimed by remapping pages under blocks that never
 * move.
 *
 * Blocks lie in reserved address space at a quantum's resolution, so that a
 * block's last page is also its neighbour's first; requests below a page fill
 * what others leave of theirs. Holes that are mapped are used as best fit does;
 * where none is large enough, free pages from anywhere are put together under
 * addresses where nothing lives. What is left are partly used pages. Before the
 * device is asked for another,
 *   - two whose used bytes do not overlap are meshed: the bytes of one are
 *     copied into the other's free places, and both show that one's memory;
 *   - the new block is put where its ends lodge in such pages: its first and
 *     last page of addresses show their memory, of which it uses what is free.
 * mechanism/gather.h, mesh.h and lodge.h have the rules, mechanism/pages.h the
 * ties. A freed block serves any stream.
 *
 * With lodge=early a block of a page or more also lodges where it would break
 * whole free pages that a peak may soon need; gather.h says when. It is for
 * programs whose peak matters more than their calls: with mesh=no, peak
 * reserved over peak allocated is at most 1.017 on each of the 20 recordings of
 * default settings, not 1.034. They have 1.4 times the maps then, 9 times the
 * unmaps, 6 times the waits for the device, and 1.4 times the modelled time in
 * the driver; those that pay most are llama_accum and t5_varlen, with 6 and 4
 * times the maps.
 *
 * `budget` bounds the pages that one request may have mapped elsewhere while
 * the device still has memory; with 0 there is none until the device is full.
 * Up to `slack` of the pages' bytes may lie free in partly used ones before a
 * block lodges: its maps cost time. Meshing takes live memory away for the
 * moment between copy and map, so nobody may queue work while a request is
 * served: on a busy backend, and with mesh=no, live memory is never touched.
 *
 * Source: ours. Its parts: PyTorch's expandable segments (pages under reserved
 * addresses), GMLake, ASPLOS 2024 (free pages put together), Mesh, PLDI 2019.
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
    {.name = "budget",
     .kind = FRAG_PARAM_NUMBER,
     .offset = offsetof(struct gather, budget),
     .init = "1000000",
     .min = 0,
     .max = 0x1p40,
     .help = "most pages moved for one request while the device has memory"},
    {.name = "mesh",
     .kind = FRAG_PARAM_SWITCH,
     .offset = offsetof(struct gather, mesh),
     .init = "yes",
     .help = "partly used pages that fit together share one's memory; never "
             "under a running program"},
    {.name = "slack",
     .kind = FRAG_PARAM_RATIO,
     .offset = offsetof(struct gather, slack),
     .init = "0.01",
     .min = 0,
     .max = 1,
     .help = "the share of memory that may lie free in partly used pages "
             "before new blocks lodge there"},
    {.name = "lodge",
     .kind = FRAG_PARAM_CHOICE,
     .offset = offsetof(struct gather, lodge),
     .init = "late",
     .choices = "late|early",
     .help = "late: before the device is asked for more; early: also before a "
             "short block breaks whole free pages"},
    PAGE_PARAM(struct gather, page),
    SPAN_PARAM(struct gather, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_remap = {
    .name = "remap",
    .summary = "best fit; free pages are remapped where a block needs them",
    .source = "ours; after PyTorch's expandable segments, GMLake and Mesh",
    .needs = FRAG_NEEDS_VMM,
    .state_size = sizeof(struct gather),
    .params = params,
    .init = gather_init,
    .fini = gather_fini,
    .alloc = alloc,
    .free = gather_free,
    .free_requested = gather_free_requested,
    .trim = gather_trim,
};
