/* tlsf.c - two-level segregated fit: a good fit in constant time.
 *
 * Free blocks are kept in lists by size, octaves cut into equal parts; see
 * mechanism/bins.h. A request is rounded up to a size that a list begins with,
 * so that the first block of the first list in use serves it: no search, and at
 * most one part in `second_levels` of internal waste. The low part is granted,
 * the rest goes to the list of its size. A freed block is coalesced at once
 * with its free neighbours. Of blocks of one list the last one that was freed,
 * split or coalesced is taken. A freed block serves any stream.
 *
 * Sizes beyond the first levels share the last list. A request for such a size
 * is not rounded and takes the first block of that list that is large enough.
 *
 * The paper's pool is fixed; here a request that no block serves takes a new
 * segment, see mechanism/segments.h. Its headers lie in the memory, ours
 * beside it: the host cannot reach the device's.
 *
 * Source: Masmano, Ripoll, Crespo and Real, "TLSF: A New Dynamic Memory
 * Allocator for Real-Time Systems", ECRTS 2004; requests are rounded as in
 * their code, version 2.4.6.
 */
#include "policies/mechanism/bins.h"

struct tlsf {
    struct bins_fit base;
    uint64_t first_levels;
    uint32_t second_levels; /* as an exponent */
};

static enum frag_err tlsf_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out)
{
    const struct tlsf *t = heap->state;
    frag_size size = whole_quanta(req->size);
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
    {
        .name = "first_levels",
        .kind = FRAG_PARAM_NUMBER,
        .offset = offsetof(struct tlsf, first_levels),
        .init = "32",
        .min = 1,
        .max = CLASSES_LEVELS,
        .help = "octaves of sizes; the first holds those below second_levels "
                "quanta, the last is open",
    },
    {
        .name = "second_levels",
        .kind = FRAG_PARAM_CHOICE,
        .offset = offsetof(struct tlsf, second_levels),
        .init = "32",
        .choices = "1|2|4|8|16|32|64",
        .help = "lists per octave",
    },
    {.name = NULL},
};

const struct frag_policy frag_policy_tlsf = {
    .name = "tlsf",
    .summary = "good fit in constant time: lists by size in two levels",
    .source = "Masmano et al., TLSF: A New Dynamic Memory Allocator for "
              "Real-Time Systems, ECRTS 2004",
    .state_size = sizeof(struct tlsf),
    .params = params,
    .init = init,
    .fini = fit_fini,
    .alloc = tlsf_alloc,
    .free = tlsf_free,
    .trim = fit_trim,
};
