/* best_fit.c - the smallest free block that is large enough.
 *
 * Of equals the one with the lowest address. The low part of the block is
 * granted, the rest stays free however small it is. A freed block serves any
 * stream at once. A request that no hole serves takes a new segment; see
 * mechanism/segments.h.
 *
 * Source: Knuth, The Art of Computer Programming, vol. 1, section 2.5; address
 * order among equals as Wilson et al., "Dynamic Storage Allocation: A Survey
 * and Critical Review", IWMM 1995, section 3.5.
 */
#include "policies/mechanism/fit.h"

struct best_fit {
    struct fit fit;
    struct free_set holes;
};

static void insert(struct fit *fit, struct hole *hole)
{
    free_set_insert(&((struct best_fit *)fit)->holes, &hole->node);
}

static void take_out(struct fit *fit, struct hole *hole)
{
    free_set_remove(&((struct best_fit *)fit)->holes, &hole->node);
}

static void resize(struct fit *fit, struct hole *hole, frag_addr addr,
                   frag_size size)
{
    take_out(fit, hole);
    hole->node.addr = addr;
    hole->node.size = size;
    insert(fit, hole);
}

static struct hole *tightest(struct fit *fit, frag_size size)
{
    return (struct hole *)free_set_fit(&((struct best_fit *)fit)->holes, size);
}

static enum frag_err init(struct frag_heap *heap)
{
    static const struct fit_rule rule = {insert, take_out, resize, tightest};

    return fit_init(heap, &rule);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct best_fit, fit.segment),
    {.name = NULL},
};

const struct frag_policy frag_policy_best_fit = {
    .name = "best_fit",
    .summary = "the smallest free block that is large enough",
    .source = "Knuth, The Art of Computer Programming, vol. 1, section 2.5",
    .state_size = sizeof(struct best_fit),
    .params = params,
    .init = init,
    .fini = fit_fini,
    .alloc = fit_alloc,
    .free = fit_free,
    .trim = fit_trim,
};
