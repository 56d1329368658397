/* best_fit.c - the smallest free block that is large enough.
 *
 * Among blocks of equal size, it uses the one with the lowest address. The low
 * part of the block is allocated, the rest stays free, however small it is. A
 * freed block serves any stream at once. A request that no hole can serve
 * causes a new segment; see mechanism/segments.h.
 *
 * Source: Knuth, The Art of Computer Programming, vol. 1, section 2.5.
 */
#include "policies/mechanism/fit.h"

struct best_fit {
    struct fit fit;
    struct free_set holes;
};

static struct hole *tightest(struct fit *fit, frag_size size)
{
    return (struct hole *)free_set_fit(&((struct best_fit *)fit)->holes, size);
}

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

static const char *check(const struct fit *fit, struct met *met)
{
    return free_set_check(&((const struct best_fit *)fit)->holes, NULL, met);
}

static enum frag_err init(struct frag_heap *heap)
{
    static const struct fit_rule rule = {insert, take_out, resize, tightest,
                                         check};

    return fit_init(heap, &rule);
}

static void fini(struct frag_heap *heap)
{
    struct best_fit *b = heap->state;

    free_set_fini(&b->holes);
    fit_fini(heap);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct best_fit, fit.segment),
    {.name = NULL},
};

const struct frag_policy frag_policy_best_fit = {
    .name = "best_fit",
    .summary = "the smallest free block that is large enough",
    .source = "Knuth, The Art of Computer Programming, vol. 1, section 2.5",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct best_fit),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = fit_alloc,
    .free = fit_free,
    .trim = fit_trim,
    .check = fit_check,
};
