/* next_fit.c - first fit that starts where the previous search ended.
 *
 * The search starts at the end of the block that was allocated last, continues
 * upwards, and then continues from the lowest address. A hole that starts below
 * that position, and has grown across it by coalescing, counts as below it.
 * Addresses are unique, so there are no ties. A freed block serves any stream
 * at once. A request that no hole can serve causes a new segment, and the next
 * search starts there; see mechanism/segments.h.
 *
 * Source: Knuth, The Art of Computer Programming, vol. 1, section 2.5, exercise
 * 6: the roving pointer.
 */
#include "policies/mechanism/fit_steps.h"

struct next_fit {
    struct address_fit base;
    frag_addr rover;          /* where the next search starts */
    const struct block *last; /* the live block that ends there, or NULL */
};

/* A hole that begins at the rover is the lowest one that the search can find.
 * It follows `last`, so that no search is needed. */
static struct hole *at_rover(const struct next_fit *n, frag_size size)
{
    struct block *above = n->last ? n->last->next : NULL;

    return above && !is_used(above) && above->hole.size >= size ? &above->hole
                                                                : NULL;
}

static struct hole *next(struct fit *fit, frag_size size)
{
    const struct next_fit *n = (struct next_fit *)fit;
    struct hole *found = at_rover(n, size);

    if (!found)
        found = holes_lowest(n->base.holes, size, n->rover);
    return found ? found : holes_lowest(n->base.holes, size, 0);
}

static enum frag_err next_fit_alloc(struct frag_heap *heap,
                                    const struct frag_request *req,
                                    struct frag_block *out)
{
    struct next_fit *n = heap->state;

    FRAG_TRY(fit_alloc(heap, req, out));
    n->rover = out->addr + out->size;
    n->last = out->node;
    return FRAG_OK;
}

static void next_fit_free(struct frag_heap *heap,
                          const struct frag_block *block)
{
    struct next_fit *n = heap->state;

    if (block->node == n->last)
        n->last = NULL;
    fit_free(heap, block);
}

static enum frag_err init(struct frag_heap *heap)
{
    static const struct fit_rule rule = ADDRESS_FIT_RULE(next);

    return fit_init(heap, &rule);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct next_fit, base.fit.segment),
    {.name = NULL},
};

const struct frag_policy frag_policy_next_fit = {
    .name = "next_fit",
    .summary = "first fit that starts where the previous search ended",
    .source = "Knuth, The Art of Computer Programming, vol. 1, section 2.5, "
              "exercise 6",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct next_fit),
    .params = params,
    .init = init,
    .fini = fit_fini,
    .alloc = next_fit_alloc,
    .free = next_fit_free,
    .trim = fit_trim,
    .check = fit_check,
};
