/* fit_steps.h - the steps of fit.c as inline functions.
 *
 * For a policy that cannot afford indirect calls: it passes its constant rule
 * to these functions, so that the compiler can inline the rule, and calls fit.h
 * for the rest (fit_init, fit_fini, fit_trim). A policy whose rule is not
 * constant uses fit_alloc and fit_free.
 */
#ifndef FRAG_POLICIES_MECHANISM_FIT_STEPS_H
#define FRAG_POLICIES_MECHANISM_FIT_STEPS_H

#include "policies/mechanism/fit.h"

#include <assert.h>

#define FIT_STEP __attribute__((always_inline)) static inline

/* A block; 64 bytes, one cache line. While the block is in use, the left link
 * of its hole points to the hole itself, which never happens in a tree or list
 * of holes. */
struct block {
    struct hole hole; /* size and addr; other members only while free */
    struct block *prev, *next; /* neighbours, or the segment's ends */
};

FIT_STEP bool is_used(const struct block *b)
{
    return b->hole.node.left == &b->hole.node;
}

FIT_STEP void set_used(struct block *b)
{
    b->hole.node.left = &b->hole.node;
}

/* Allocates a new segment with room for `size` bytes; all of it is one hole,
 * *out. One more record stays reserved, so that the caller can split the hole.
 * Errors are those of segment_take, or NOMEM; then no segment was added. */
enum frag_err fit_grow(struct frag_heap *heap, frag_size size,
                       struct hole **out) FRAG_MUST_CHECK;

/* Splits the first `size` bytes off a hole, as a block in use. */
FIT_STEP struct block *cut_front(struct fit *fit, struct block *b,
                                 frag_size size, const struct fit_rule *rule)
{
    const frag_addr addr = b->hole.node.addr;
    struct block *front = nodes_take(&fit->nodes);

    front->hole.node.addr = addr;
    front->hole.node.size = size;
    set_used(front);
    front->prev = b->prev;
    front->next = b;
    b->prev->next = front;
    b->prev = front;
    rule->resize(fit, &b->hole, addr + size, b->hole.node.size - size);
    return front;
}

/* Allocates the first `size` bytes, a multiple of FRAG_QUANTUM, of the hole; of
 * a new segment if hole is NULL. Errors as fit_grow. */
FIT_STEP enum frag_err fit_grant(struct frag_heap *heap, struct hole *hole,
                                 frag_size size, struct frag_block *out,
                                 const struct fit_rule *rule)
{
    struct fit *fit = heap->state;
    struct block *b;

    assert(size > 0 && size % FRAG_QUANTUM == 0);
    assert(!hole || hole->node.size >= size);
    FRAG_TRY(nodes_reserve(&fit->nodes, 1));
    if (!hole)
        FRAG_TRY(fit_grow(heap, size, &hole));

    b = (struct block *)hole;
    if (hole->node.size > size) {
        b = cut_front(fit, b, size, rule);
    } else {
        rule->remove(fit, hole);
        set_used(b);
    }
    *out = (struct frag_block){b->hole.node.addr, size, b};
    return FRAG_OK;
}

/* Removes a block from its segment and frees the record. */
FIT_STEP void drop(struct fit *fit, struct block *b)
{
    b->prev->next = b->next;
    b->next->prev = b->prev;
    nodes_put(&fit->nodes, b);
}

/* Frees b and coalesces it with its free neighbours. */
FIT_STEP void fit_return(struct fit *fit, struct block *b,
                         const struct fit_rule *rule)
{
    struct block *below = b->prev, *above = b->next;
    const frag_addr addr = b->hole.node.addr;
    frag_size size = b->hole.node.size;

    assert(is_used(b));
    if (is_used(below) && is_used(above)) {
        rule->insert(fit, &b->hole);
        return;
    }
    drop(fit, b);
    if (is_used(below)) {
        rule->resize(fit, &above->hole, addr, size + above->hole.node.size);
        return;
    }
    if (!is_used(above)) {
        rule->remove(fit, &above->hole);
        size += above->hole.node.size;
        drop(fit, above);
    }
    rule->resize(fit, &below->hole, below->hole.node.addr,
                 below->hole.node.size + size);
}

#endif
