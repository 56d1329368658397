/* fit.c - segments and their blocks for the fit policies, the check of their
 * invariants, and the rule that stores holes by address. See fit.h.
 */
#include "policies/mechanism/fit_steps.h"

#include <stdlib.h>

/* The blocks form a ring that is closed by `ends`. `ends` is never free, so
 * every block has two neighbours and no end is a special case. */
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

/* Returns the segment at *link to the device if none of its blocks is in use.
 * If the device refuses, the segment stays as it was. */
static bool return_segment(struct frag_heap *heap, struct fit_segment **link)
{
    struct fit *fit = heap->state;
    struct fit_segment *s = *link;
    struct block *b = s->ends.next;

    if (is_used(b) || b->next != &s->ends ||
        heap->mem->ops->segment_free(heap->mem, s->addr, s->size) != FRAG_OK)
        return false;
    fit->rule->remove(fit, &b->hole);
    nodes_put(&fit->nodes, b);
    *link = s->next;
    free(s);
    return true;
}

static bool return_segments(struct frag_heap *heap)
{
    struct fit *fit = heap->state;
    struct fit_segment **link = &fit->segments;
    bool any = false;

    while (*link) {
        if (return_segment(heap, link))
            any = true;
        else
            link = &(*link)->next;
    }
    return any;
}

void fit_trim(struct frag_heap *heap)
{
    return_segments(heap);
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
    err = segment_take(heap, s->size, return_segments, &s->addr);
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
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);

    return fit_grant(heap, fit->rule->choose(fit, size), size, out, fit->rule);
}

void fit_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct fit *fit = heap->state;

    fit_return(fit, block->node, fit->rule);
}

/* ---- the check ---- */

/* Adds the free blocks of a segment to `met`. */
static const char *check_segment(const struct fit_segment *s, struct met *met)
{
    const struct block *below = &s->ends;
    frag_addr addr = s->addr;

    CHECK(is_used(&s->ends), "the ends of a segment are free");
    for (const struct block *b = below->next; b != &s->ends; b = b->next) {
        const frag_size size = b->hole.node.size;

        CHECK(b->prev == below, "a block does not know the one below it");
        CHECK(b->hole.node.addr == addr,
              "a block does not begin where the one below it ends");
        CHECK(size > 0 && size <= s->size - (addr - s->addr),
              "a block is empty or reaches beyond its segment");
        CHECK(is_used(b) || is_used(below), "two neighbours are both free");
        if (!is_used(b))
            met_add(met, b, NULL);
        addr += size;
        below = b;
    }
    CHECK(s->ends.prev == below, "a segment does not know its last block");
    CHECK(addr - s->addr == s->size, "the blocks of a segment do not fill it");
    return NULL;
}

const char *fit_check(const struct frag_heap *heap)
{
    const struct fit *fit = heap->state;
    struct met free = {.most = SIZE_MAX}, kept = {0};

    for (const struct fit_segment *s = fit->segments; s; s = s->next)
        CHECK_ALL(check_segment(s, &free));
    kept.most = free.count;
    CHECK_ALL(fit->rule->check(fit, &kept));
    CHECK(met_are_equal(&free, &kept),
          "the holes that the rule keeps are not the free blocks");
    return nodes_check(&fit->nodes);
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

const char *address_fit_check(const struct fit *fit, struct met *met)
{
    return holes_check(((const struct address_fit *)fit)->holes, NULL, met);
}
