#include "policies/mechanism/gather.h"

/* Whether the block at the spot would lie in part of the tile. */
static bool is_wanted(const struct tile *t, const struct spot *spot,
                      frag_size size)
{
    return t->node.addr < spot->addr + size &&
           spot->addr < t->node.addr + t->node.size;
}

/* The hole to take `missing` pages from; NULL if none is left. */
static struct tile *donor(struct pages *p, const struct spot *spot,
                          frag_size size, uint64_t missing)
{
    const struct free_node key = {.size = missing * p->unit};
    struct free_node *n;

    for (n = free_set_fit(&p->held, key.size); n;
         n = free_set_after(&p->held, n))
        if (pages_whole(p, (struct tile *)n) >= missing &&
            !is_wanted((struct tile *)n, spot, size))
            return (struct tile *)n;
    for (n = free_set_last(&p->held); n && n->size >= p->unit;
         n = free_set_before(&p->held, n))
        if (pages_whole(p, (struct tile *)n) > 0 &&
            !is_wanted((struct tile *)n, spot, size))
            return (struct tile *)n;
    return NULL;
}

/* Moves free pages to the spare ones until the spot has enough or `budget` have
 * been moved; true if any. */
static bool gather(struct frag_heap *heap, struct pages *p,
                   const struct spot *spot, frag_size size, uint64_t budget)
{
    bool any = false;

    while (p->spare_count < spot->pages && budget) {
        uint64_t some = spot->pages - p->spare_count;
        struct tile *t;

        some = some < budget ? some : budget;
        t = donor(p, spot, size, some);
        if (!t)
            break;
        if (pages_whole(p, t) < some)
            some = pages_whole(p, t);
        if (!pages_strip(heap, p, t, some))
            break;
        budget -= some;
        any = true;
    }
    return any;
}

/* Whether waiting for the device could help a request. */
static bool may_reclaim(const struct pages *p)
{
    const struct free_node *n = free_set_last(&p->held);

    return p->pending || (n && n->size >= p->unit);
}

/* Spare pages for a spot, and the spot where the block then goes. */
static enum frag_err provide(struct frag_heap *heap, struct pages *p,
                             frag_size size, uint64_t budget, struct spot *spot)
{
    enum frag_err err;

    FRAG_TRY(pages_place(heap, p, size, spot));
    if (gather(heap, p, spot, size, budget))
        FRAG_TRY(pages_place(heap, p, size, spot));
    err = pages_create(heap, p, spot->pages);
    if (err != FRAG_OOM)
        return err;
    if (gather(heap, p, spot, size, UINT64_MAX))
        FRAG_TRY(pages_place(heap, p, size, spot));
    return p->spare_count < spot->pages ? FRAG_OOM : FRAG_OK;
}

/* A held tile for a request that none served. */
static enum frag_err assemble(struct frag_heap *heap, struct pages *p,
                              frag_size size, uint64_t budget,
                              struct tile **out, frag_addr *addr)
{
    struct spot spot;

    if (may_reclaim(p)) {
        FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
        *out = pages_fit(p, size);
        if (*out) {
            *addr = pages_seat(p, *out, size);
            return FRAG_OK;
        }
    }
    FRAG_TRY(provide(heap, p, size, budget, &spot));
    *addr = spot.addr;
    return pages_fill(heap, p, spot, size, out);
}

enum frag_err gather_alloc(struct frag_heap *heap, struct pages *p,
                           frag_size size, uint64_t budget,
                           struct frag_block *out)
{
    struct tile *t = pages_fit(p, size);
    frag_addr addr;

    if (t)
        addr = pages_seat(p, t, size);
    else
        FRAG_TRY(assemble(heap, p, size, budget, &t, &addr));
    FRAG_TRY(pages_ready(p));
    t = pages_retag(p, t, addr, size, TILE_USED);
    *out = (struct frag_block){addr, size, t};
    return FRAG_OK;
}

void gather_trim(struct frag_heap *heap, struct pages *p)
{
    if (may_reclaim(p) && heap->mem->ops->synchronize(heap->mem) == FRAG_OK)
        pages_strip_all(heap, p);
    pages_release(heap, p);
}
