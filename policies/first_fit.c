/* first_fit.c - the lowest free block that is large enough.
 *
 * First fit in address order over all segments. Low addresses fill up, high
 * addresses drain, so whole segments at the top are freed. Addresses are
 * unique, so there are no ties. A freed block serves any stream at once. A
 * request that no hole can serve causes a new segment; see
 * mechanism/segments.h.
 *
 * Source: Knuth, The Art of Computer Programming, vol. 1, section 2.5,
 * algorithm A; the address order: Wilson et al., "Dynamic Storage Allocation: A
 * Survey and Critical Review", IWMM 1995, section 3.5.
 */
#include "policies/mechanism/fit.h"

static struct hole *lowest(struct fit *fit, frag_size size)
{
    return holes_lowest(((struct address_fit *)fit)->holes, size, 0);
}

static enum frag_err init(struct frag_heap *heap)
{
    static const struct fit_rule rule = ADDRESS_FIT_RULE(lowest);

    return fit_init(heap, &rule);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct address_fit, fit.segment),
    {.name = NULL},
};

const struct frag_policy frag_policy_first_fit = {
    .name = "first_fit",
    .summary = "the lowest free block that is large enough",
    .source = "Knuth, The Art of Computer Programming, vol. 1, section 2.5",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct address_fit),
    .params = params,
    .init = init,
    .fini = fit_fini,
    .alloc = fit_alloc,
    .free = fit_free,
    .trim = fit_trim,
    .check = fit_check,
};
