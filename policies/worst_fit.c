/* worst_fit.c - the largest free block.
 *
 * Among blocks of equal size, the one with the lowest address is used. The low
 * part of the block is allocated; the rest is as large, and therefore as
 * useful, as it can be. A freed block serves any stream at once. If the largest
 * hole cannot serve a request, a new segment is allocated; see
 * mechanism/segments.h.
 *
 * Source: Wilson et al., "Dynamic Storage Allocation: A Survey and Critical
 * Review", IWMM 1995, section 3.5; its first description is unknown.
 */
#include "policies/mechanism/fit.h"

/* The root of the tree stores the largest size. */
static struct hole *largest(struct fit *fit, frag_size size)
{
    struct hole *tree = ((struct address_fit *)fit)->holes;

    if (!tree || tree->widest < size)
        return NULL;
    return holes_lowest(tree, tree->widest, 0);
}

static enum frag_err init(struct frag_heap *heap)
{
    static const struct fit_rule rule = ADDRESS_FIT_RULE(largest);

    return fit_init(heap, &rule);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct address_fit, fit.segment),
    {.name = NULL},
};

const struct frag_policy frag_policy_worst_fit = {
    .name = "worst_fit",
    .summary = "the largest free block",
    .source = "Wilson et al., Dynamic Storage Allocation: A Survey and "
              "Critical Review, 1995, section 3.5",
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
