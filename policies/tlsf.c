/* tlsf.c - two-level segregated fit: a good fit in constant time.
 *
 * Free blocks are in lists by size: octaves divided into equal parts; see
 * mechanism/bins.h. A request is rounded up to the start size of a list, so
 * that the first block of the first non-empty list can serve it. No list is
 * searched, and at most one part in `second_levels` is internal fragmentation.
 * The low part of the block is allocated, the rest goes to the list of its
 * size. A freed block is coalesced at once with its free neighbours. Within a
 * list, the block that was freed, split or coalesced last is used first. A
 * freed block serves any stream.
 *
 * All sizes beyond the first levels share the last list. A request for such a
 * size is not rounded and uses the first block of that list that is large
 * enough.
 *
 * The pool of the paper has a fixed size. Here a request that no block can
 * serve causes a new segment, see mechanism/segments.h. The block headers of
 * the paper are in the managed memory; here they are in host memory, because
 * the host cannot read device memory.
 *
 * Source: Masmano, Ripoll, Crespo and Real, "TLSF: A New Dynamic Memory
 * Allocator for Real-Time Systems", ECRTS 2004; requests are rounded as in
 * their code, version 2.4.6.
 */
#include "policies/mechanism/bins.h"

struct tlsf {
    struct bins_fit base;
    uint64_t first_levels;  /* parameter, octaves */
    uint32_t second_levels; /* parameter; log2 of the lists per octave */
};

static enum frag_err tlsf_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out)
{
    const struct tlsf *t = heap->state;
    frag_size size = frag_round_up(req->size, FRAG_QUANTUM);
    const uint32_t list = bins_round(&t->base.bins, &size);

    return fit_grant(heap, bins_choose(&t->base.bins, list, size), size, out,
                     &bins_rule);
}

static void tlsf_free(struct frag_heap *heap, const struct frag_block *block)
{
    fit_return(heap->state, block->node, &bins_rule);
}

static enum frag_err init(struct frag_heap *heap)
{
    struct tlsf *t = heap->state;

    bins_init(&t->base.bins, (uint32_t)t->first_levels, t->second_levels);
    return fit_init(heap, &bins_rule);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct tlsf, base.fit.segment),
    FRAG_RANGE_PARAM(
        NUMBER, "first_levels", struct tlsf, first_levels, "32", 1,
        CLASSES_LEVELS,
        "octaves of sizes; the first has all sizes below second_levels quanta "
        "(512 B), the last has no upper bound"),
    FRAG_CHOICE_PARAM("second_levels", struct tlsf, second_levels, "32",
                      "1|2|4|8|16|32|64", "lists per octave"),
    {.name = NULL},
};

const struct frag_policy frag_policy_tlsf = {
    .name = "tlsf",
    .summary = "a good fit in constant time: free lists by size in two levels",
    .source = "Masmano et al., TLSF: A New Dynamic Memory Allocator for "
              "Real-Time Systems, ECRTS 2004",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct tlsf),
    .params = params,
    .init = init,
    .fini = fit_fini,
    .alloc = tlsf_alloc,
    .free = tlsf_free,
    .trim = fit_trim,
    .check = fit_check,
};
