#include "policies/mechanism/fit.h"

#include <stdlib.h>

/* One cache line. */
struct block {
    struct hole hole;          /* size and addr; the rest while it is free */
    struct block *prev, *next; /* neighbours; NULL at the segment's ends */
    bool used;
};

/* Splits keep the low part in place and merges the lower block, so a segment's
 * first block is the same one for life. */
struct fit_segment {
    struct fit_segment *next;
    struct block *first;
    frag_size size;
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

        heap->mem->ops->segment_free(heap->mem, s->first->hole.node.addr,
                                     s->size);
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
    struct block *b = s->first;

    if (b->used || b->next ||
        heap->mem->ops->segment_free(heap->mem, b->hole.node.addr, s->size) !=
            FRAG_OK)
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

/* A new segment, all of it one hole. Reserves a node more than it takes: the
 * caller splits. */
static enum frag_err grow(struct frag_heap *heap, frag_size size,
                          struct hole **out)
{
    struct fit *fit = heap->state;
    struct fit_segment *s;
    struct block *b;
    frag_addr addr;
    enum frag_err err;

    FRAG_TRY(nodes_reserve(&fit->nodes, 2));
    s = malloc(sizeof(*s));
    if (!s)
        return FRAG_NOMEM;
    s->size = segment_size(heap->mem, fit->segment, size);
    err = segment_take(heap, s->size, give_back_all, &addr);
    if (err != FRAG_OK) {
        free(s);
        return err;
    }

    b = nodes_take(&fit->nodes);
    *b = (struct block){.hole.node = {.addr = addr, .size = s->size}};
    s->first = b;
    s->next = fit->segments;
    fit->segments = s;
    fit->rule->insert(fit, &b->hole);
    *out = &b->hole;
    return FRAG_OK;
}

/* Cuts off what lies above the first `size` bytes of b; it becomes a hole. */
static void split(struct fit *fit, struct block *b, frag_size size)
{
    struct free_node *node = &b->hole.node;
    struct block *rest = nodes_take(&fit->nodes);

    *rest = (struct block){
        .hole.node = {.addr = node->addr + size, .size = node->size - size},
        .prev = b,
        .next = b->next,
    };
    if (rest->next)
        rest->next->prev = rest;
    b->next = rest;
    node->size = size;
    fit->rule->insert(fit, &rest->hole);
}

enum frag_err fit_alloc(struct frag_heap *heap, const struct frag_request *req,
                        struct frag_block *out)
{
    struct fit *fit = heap->state;
    const frag_size size = whole_quanta(req->size);
    struct hole *hole;
    struct block *b;

    FRAG_TRY(nodes_reserve(&fit->nodes, 1));
    hole = fit->rule->choose(fit, size);
    if (!hole)
        FRAG_TRY(grow(heap, size, &hole));

    b = (struct block *)hole;
    fit->rule->remove(fit, hole);
    b->used = true;
    if (hole->node.size > size)
        split(fit, b, size);
    *out = (struct frag_block){hole->node.addr, size, b};
    return FRAG_OK;
}

/* Makes b and the block above it one. */
static void swallow_next(struct fit *fit, struct block *b)
{
    struct block *gone = b->next;

    b->hole.node.size += gone->hole.node.size;
    b->next = gone->next;
    if (b->next)
        b->next->prev = b;
    nodes_give(&fit->nodes, gone);
}

void fit_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct fit *fit = heap->state;
    struct block *b = block->node;

    b->used = false;
    if (b->next && !b->next->used) {
        fit->rule->remove(fit, &b->next->hole);
        swallow_next(fit, b);
    }
    if (b->prev && !b->prev->used) {
        b = b->prev;
        fit->rule->remove(fit, &b->hole);
        swallow_next(fit, b);
    }
    fit->rule->insert(fit, &b->hole);
}
