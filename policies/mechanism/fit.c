#include "policies/mechanism/fit.h"

#include <stdlib.h>

struct block {
    struct hole hole;          /* size and addr; the rest while it is free */
    struct block *prev, *next; /* neighbours, or the segment's ends */
    bool used;
};

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

    if (b->used || b->next != &s->ends ||
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

/* A new segment, all of it one hole. Reserves a node more than it takes: the
 * caller splits. */
static enum frag_err grow(struct frag_heap *heap, frag_size size,
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
    s->ends = (struct block){.prev = b, .next = b, .used = true};
    s->next = fit->segments;
    fit->segments = s;
    fit->rule->insert(fit, &b->hole);
    *out = &b->hole;
    return FRAG_OK;
}

/* Cuts the first `size` bytes off a hole, as a block in use. */
static struct block *cut_front(struct fit *fit, struct block *b, frag_size size)
{
    const struct free_node whole = b->hole.node;
    struct block *front = nodes_take(&fit->nodes);

    front->hole.node.addr = whole.addr;
    front->hole.node.size = size;
    front->used = true;
    front->prev = b->prev;
    front->next = b;
    b->prev->next = front;
    b->prev = front;
    fit->rule->resize(fit, &b->hole, whole.addr + size, whole.size - size);
    return front;
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
    if (hole->node.size > size) {
        b = cut_front(fit, b, size);
    } else {
        fit->rule->remove(fit, hole);
        b->used = true;
    }
    *out = (struct frag_block){b->hole.node.addr, size, b};
    return FRAG_OK;
}

static void drop(struct fit *fit, struct block *b)
{
    b->prev->next = b->next;
    b->next->prev = b->prev;
    nodes_give(&fit->nodes, b);
}

/* Adds [addr, addr + size) to a hole that it touches. */
static void widen(struct fit *fit, struct block *hole, frag_addr addr,
                  frag_size size)
{
    const struct free_node *n = &hole->hole.node;

    fit->rule->resize(fit, &hole->hole, addr < n->addr ? addr : n->addr,
                      n->size + size);
}

void fit_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct fit *fit = heap->state;
    struct block *b = block->node;
    struct block *below = b->prev, *above = b->next;
    const frag_addr addr = b->hole.node.addr;
    frag_size size = b->hole.node.size;

    if (below->used && above->used) {
        b->used = false;
        fit->rule->insert(fit, &b->hole);
        return;
    }
    drop(fit, b);
    if (below->used) {
        widen(fit, above, addr, size);
        return;
    }
    if (!above->used) {
        fit->rule->remove(fit, &above->hole);
        size += above->hole.node.size;
        drop(fit, above);
    }
    widen(fit, below, addr, size);
}
