/* best_fit.c - the smallest free block that is large enough.
 *
 * Among blocks of equal size, the parameter `ties` selects the one with the
 * lowest address, or the one that has had its size for the shortest (lifo) or
 * the longest (fifo) time; a block gets its size by a free, a split or a
 * coalescing. The low part of the block is allocated, the rest stays free,
 * however small it is. A freed block serves any stream at once. A request that
 * no hole can serve causes a new segment; see mechanism/segments.h.
 *
 * With lifo and fifo, the free set contains one hole of each size: the next one
 * to use. The other holes of this size form a ring with it, in the order of
 * their use.
 *
 * Source: Knuth, The Art of Computer Programming, vol. 1, section 2.5; the
 * orders among equal sizes: Wilson et al., "Dynamic Storage Allocation: A
 * Survey and Critical Review", IWMM 1995, section 3.5.
 */
#include "policies/mechanism/fit.h"

enum ties { TIES_ADDRESS, TIES_LIFO, TIES_FIFO };

enum { BEFORE, AFTER };

struct best_fit {
    struct fit fit;
    uint32_t ties;
    struct free_set holes;
};

static struct hole *tightest(struct fit *fit, frag_size size)
{
    return (struct hole *)free_set_fit(&((struct best_fit *)fit)->holes, size);
}

static void join_ring(struct hole *hole, struct hole *after)
{
    hole->equal[BEFORE] = after->equal[BEFORE];
    hole->equal[AFTER] = after;
    after->equal[BEFORE]->equal[AFTER] = hole;
    after->equal[BEFORE] = hole;
}

static void insert(struct fit *fit, struct hole *hole)
{
    struct best_fit *b = (struct best_fit *)fit;
    struct hole *first = NULL;

    if (b->ties != TIES_ADDRESS) {
        hole->equal[BEFORE] = hole->equal[AFTER] = hole;
        first = tightest(fit, hole->node.size);
    }
    if (first && first->node.size == hole->node.size) {
        join_ring(hole, first);
        hole->node.left = NULL; /* marks it as free, though it is in no set */
        if (b->ties == TIES_FIFO)
            return;
        free_set_remove(&b->holes, &first->node);
    }
    free_set_insert(&b->holes, &hole->node);
}

static void take_out(struct fit *fit, struct hole *hole)
{
    struct best_fit *b = (struct best_fit *)fit;
    struct hole *next = hole->equal[AFTER];

    if (b->ties == TIES_ADDRESS) {
        free_set_remove(&b->holes, &hole->node);
        return;
    }
    if (tightest(fit, hole->node.size) == hole) {
        free_set_remove(&b->holes, &hole->node);
        if (next != hole)
            free_set_insert(&b->holes, &next->node);
    }
    next->equal[BEFORE] = hole->equal[BEFORE];
    hole->equal[BEFORE]->equal[AFTER] = next;
}

static void resize(struct fit *fit, struct hole *hole, frag_addr addr,
                   frag_size size)
{
    take_out(fit, hole);
    hole->node.addr = addr;
    hole->node.size = size;
    insert(fit, hole);
}

/* Checks the ring of holes of equal size and adds all of them except the first
 * to `met`. */
static const char *check_ring(const struct hole *first, struct met *met)
{
    for (const struct hole *h = first;; h = h->equal[AFTER]) {
        const struct hole *after = h->equal[AFTER];

        CHECK(after->equal[BEFORE] == h, "a hole does not know its equals");
        if (after == first)
            return NULL;
        CHECK(after->node.size == first->node.size,
              "a ring has holes of two sizes");
        CHECK(met_add(met, after, NULL), "a ring has more holes than are free");
    }
}

static const char *check(const struct fit *fit, struct met *met)
{
    const struct best_fit *b = (const struct best_fit *)fit;

    CHECK_ALL(free_set_check(&b->holes, NULL, met));
    if (b->ties == TIES_ADDRESS)
        return NULL;
    for (const struct free_node *n = free_set_first(&b->holes); n;
         n = free_set_after(&b->holes, n))
        CHECK_ALL(check_ring((const struct hole *)n, met));
    return NULL;
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
    FRAG_CHOICE_PARAM("ties", struct best_fit, ties, "address",
                      "address|lifo|fifo",
                      "which of several blocks of equal size is used: the one "
                      "with the lowest address, the newest or the oldest"),
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
