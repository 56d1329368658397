#include "policies/mechanism/fit_steps.h"

#include <stdlib.h>

/* The blocks form a ring that is closed by `ends`, which is never free: it
 * spares them the question whether they have neighbours. */
struct fit_segment {
    struct fit_segment *next;
    frag_addr addr;
    frag_size size;
    struct block ends;
};

enum frag_err fit_init(struct frag_heap *heap, const struct fit_rule *rule)
{
    struct fit *fit = heap->state;

    fit->rule = rule;
    fit->nodes.size = sizeof(struct block);
    return FRAG_OK;
}

void fit_fini(struct frag_heap *heap)
{
    struct fit *fit = heap->state;

    while (fit->segments) {
        struct fit_segment *s = fit->segments;

        heap->mem->ops->segment_free(heap->mem, s->addr, s->size);
        fit->segments = s->next;
        free(s);
    }
    nodes_release(&fit->nodes);
}

/* Returns the segment at *link if no block of it is used. A device that will
 * not take it back leaves it with us, as free as before. */
static bool give_back(struct frag_heap *heap, struct fit_segment **link)
{
    struct fit *fit = heap->state;
    struct fit_segment *s = *link;
    struct block *b = s->ends.next;

    if (is_used(b) || b->next != &s->ends ||
        heap->mem->ops->segment_free(heap->mem, s->addr, s->size) != FRAG_OK)
        return false;
    fit->rule->remove(fit, &b->hole);
    nodes_give(&fit->nodes, b);
    *link = s->next;
    free(s);
    return true;
}

static bool give_back_all(struct frag_heap *heap)
{
    struct fit *fit = heap->state;
    struct fit_segment **link = &fit->segments;
    bool any = false;

    while (*link) {
        if (give_back(heap, link))
            any = true;
        else
            link = &(*link)->next;
    }
    return any;
}

void fit_trim(struct frag_heap *heap)
{
    give_back_all(heap);
}

enum frag_err fit_grow(struct frag_heap *heap, frag_size size,
                       struct hole **out)
{
    struct fit *fit = heap->state;
    struct fit_segment *s;
    struct block *b;
    enum frag_err err;

    FRAG_TRY(nodes_reserve(&fit->nodes, 2));
    s = malloc(sizeof(*s));
    if (!s)
        return FRAG_NOMEM;
    s->size = segment_size(heap->mem, fit->segment, size);
    err = segment_take(heap, s->size, give_back_all, &s->addr);
    if (err != FRAG_OK) {
        free(s);
        return err;
    }

    b = nodes_take(&fit->nodes);
    *b = (struct block){.hole.node = {.addr = s->addr, .size = s->size},
                        .prev = &s->ends,
                        .next = &s->ends};
    s->ends = (struct block){.prev = b, .next = b};
    set_used(&s->ends);
    s->next = fit->segments;
    fit->segments = s;
    fit->rule->insert(fit, &b->hole);
    *out = &b->hole;
    return FRAG_OK;
}

enum frag_err fit_alloc(struct frag_heap *heap, const struct frag_request *req,
                        struct frag_block *out)
{
    struct fit *fit = heap->state;
    const frag_size size = whole_quanta(req->size);

    return fit_grant(heap, fit->rule->choose(fit, size), size, out, fit->rule);
}

void fit_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct fit *fit = heap->state;

    fit_return(fit, block->node, fit->rule);
}

/* ---- holes by address ---- */

void address_fit_insert(struct fit *fit, struct hole *hole)
{
    holes_insert(&((struct address_fit *)fit)->holes, hole);
}

void address_fit_remove(struct fit *fit, struct hole *hole)
{
    holes_remove(&((struct address_fit *)fit)->holes, hole);
}

void address_fit_resize(struct fit *fit, struct hole *hole, frag_addr addr,
                        frag_size size)
{
    holes_resize(&((struct address_fit *)fit)->holes, hole, addr, size);
}
