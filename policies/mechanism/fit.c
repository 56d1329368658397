/* fit.c - segments and their blocks for the fit policies, the check of their
 * invariants, and the rule that stores holes by address. See fit.h.
 */
#include "policies/mechanism/fit_steps.h"

/* The blocks form a ring that is closed by `ends`. `ends` is never free, so
 * every block has two neighbours and no end is a special case. */
struct fit_segment {
    struct segment base;
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

    segments_fini(heap, &fit->segments);
    nodes_release(&fit->nodes);
}

static bool is_idle(const struct segment *segment)
{
    const struct block *ends = &((const struct fit_segment *)segment)->ends;

    return !is_used(ends->next) && ends->next->next == ends;
}

static void forget(struct frag_heap *heap, struct segment *segment)
{
    struct fit *fit = heap->state;
    struct block *b = ((struct fit_segment *)segment)->ends.next;

    fit->rule->remove(fit, &b->hole);
    nodes_put(&fit->nodes, b);
}

static bool return_segments(struct frag_heap *heap)
{
    struct fit *fit = heap->state;

    return segments_return(heap, &fit->segments, is_idle, forget);
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

    FRAG_TRY(nodes_reserve(&fit->nodes, 2));
    FRAG_TRY(segments_add(heap, &fit->segments, sizeof(*s),
                          segment_size(heap->mem, fit->segment, size),
                          return_segments));
    s = (struct fit_segment *)fit->segments;
    b = nodes_take(&fit->nodes);
    *b = (struct block){
        .hole.node = {.addr = s->base.addr, .size = s->base.size},
        .prev = &s->ends,
        .next = &s->ends};
    s->ends = (struct block){.prev = b, .next = b};
    set_used(&s->ends);
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
    frag_addr addr = s->base.addr;

    CHECK(is_used(&s->ends), "the ends of a segment are free");
    for (const struct block *b = below->next; b != &s->ends; b = b->next) {
        const frag_size size = b->hole.node.size;

        CHECK(b->prev == below, "a block does not know the one below it");
        CHECK(b->hole.node.addr == addr,
              "a block does not begin where the one below it ends");
        CHECK(size > 0 && size <= s->base.size - (addr - s->base.addr),
              "a block is empty or reaches beyond its segment");
        CHECK(is_used(b) || is_used(below), "two neighbours are both free");
        if (!is_used(b))
            met_add(met, b, NULL);
        addr += size;
        below = b;
    }
    CHECK(s->ends.prev == below, "a segment does not know its last block");
    CHECK(addr - s->base.addr == s->base.size,
          "the blocks of a segment do not fill it");
    return NULL;
}

const char *fit_check(const struct frag_heap *heap)
{
    const struct fit *fit = heap->state;
    struct met free = {.most = SIZE_MAX}, kept = {0};

    for (const struct segment *s = fit->segments; s; s = s->next)
        CHECK_ALL(check_segment((const struct fit_segment *)s, &free));
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
