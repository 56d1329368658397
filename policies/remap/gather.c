#include "policies/remap/gather.h"

#include "policies/remap/lodge.h"
#include "policies/remap/mesh.h"

enum frag_err gather_init(struct frag_heap *heap)
{
    struct gather *g = heap->state;

    pages_init(&g->pages, heap->mem, g->page, g->span);
    g->mesh = g->mesh && !heap->mem->busy;
    return FRAG_OK;
}

void gather_fini(struct frag_heap *heap)
{
    pages_fini(heap, &((struct gather *)heap->state)->pages);
}

/* Whether the block at the spot would lie in part of the tile. */
static bool is_wanted(const struct page_tile *t, const struct spot *spot,
                      frag_size size)
{
    return t->node.addr < spot->addr + size &&
           spot->addr < t->node.addr + t->node.size;
}

/* The hole to take `missing` pages from; NULL if none is left. */
static struct page_tile *donor(struct pages *p, const struct spot *spot,
                               frag_size size, uint64_t missing)
{
    const struct free_node key = {.size = missing * p->unit};
    struct free_node *n;

    for (n = free_set_fit(&p->held, key.size); n;
         n = free_set_after(&p->held, n))
        if (pages_whole(p, (struct page_tile *)n) >= missing &&
            !is_wanted((struct page_tile *)n, spot, size))
            return (struct page_tile *)n;
    for (n = free_set_last(&p->held); n && n->size >= p->unit;
         n = free_set_before(&p->held, n))
        if (pages_whole(p, (struct page_tile *)n) > 0 &&
            !is_wanted((struct page_tile *)n, spot, size))
            return (struct page_tile *)n;
    return NULL;
}

/* Moves free pages to the spare ones until the spot has enough or `budget` have
 * been moved; how many were. */
static uint64_t strip(struct frag_heap *heap, struct pages *p,
                      const struct spot *spot, frag_size size, uint64_t budget)
{
    uint64_t moved = 0;

    while (p->spare_count < spot->pages && moved < budget) {
        uint64_t some = spot->pages - p->spare_count;
        struct page_tile *t;

        some = some < budget - moved ? some : budget - moved;
        t = donor(p, spot, size, some);
        if (!t)
            break;
        if (pages_whole(p, t) < some)
            some = pages_whole(p, t);
        if (!pages_strip(heap, p, t, some))
            break;
        moved += some;
    }
    return moved;
}

/* What a request needs, while it is served. */
struct gather_need {
    const struct frag_request *req;
    frag_size size;
    struct spot spot;
    struct page_tile *block; /* used: it is made */
};

/* Whether partly used pages have more free bytes than `slack` allows. */
static bool is_slack(const struct gather *g)
{
    const struct pages *p = &g->pages;

    return (double)pages_partly(p) >
           g->slack * (double)p->count * (double)p->unit;
}

/* Step 4: makes the block if that takes fewer pages from the device than the
 * spot does. */
static enum frag_err lodge(struct frag_heap *heap, struct gather_need *n,
                           uint64_t budget)
{
    struct pages *p = &((struct gather *)heap->state)->pages;
    const uint64_t have = pages_free_count(p);
    struct spot anywhere = {0};
    struct lodging l;
    enum frag_err err;

    if (budget < LODGE_ENDS || !is_slack(heap->state) ||
        !lodge_find(p, n->size, have, &l) ||
        l.pages >= have + n->spot.pages - p->spare_count)
        return FRAG_OK;
    anywhere.pages = l.pages;
    if (strip(heap, p, &anywhere, 0, budget - LODGE_ENDS))
        FRAG_TRY(pages_place(heap, p, n->size, &n->spot));
    if (!lodge_find(p, n->size, p->spare_count, &l) || l.pages >= n->spot.pages)
        return FRAG_OK;
    err = pages_create(heap, p, l.pages);
    if (err != FRAG_OK)
        return err == FRAG_OOM ? FRAG_OK : err;
    return lodge_block(heap, p, &l, &n->spot.addr, &n->block);
}

/* Steps 2 to 4, and where the block goes then. */
static enum frag_err take_pages(struct frag_heap *heap, struct gather_need *n,
                                uint64_t budget)
{
    struct gather *g = heap->state;
    struct pages *p = &g->pages;
    uint64_t moved = strip(heap, p, &n->spot, n->size, budget), meshed = 0;

    if (moved)
        FRAG_TRY(pages_place(heap, p, n->size, &n->spot));
    if (g->mesh && p->spare_count < n->spot.pages) {
        FRAG_TRY(mesh_pages(heap, p, &n->spot, n->size, budget - moved,
                            n->req->stream, &meshed));
        if (meshed)
            FRAG_TRY(pages_place(heap, p, n->size, &n->spot));
    }
    return p->spare_count < n->spot.pages
               ? lodge(heap, n, budget - moved - meshed)
               : FRAG_OK;
}

/* Spare pages for a request, and the spot where the block then goes. */
static enum frag_err provide(struct frag_heap *heap, struct gather_need *n)
{
    struct gather *g = heap->state;
    struct pages *p = &g->pages;
    enum frag_err err;

    FRAG_TRY(pages_place(heap, p, n->size, &n->spot));
    FRAG_TRY(take_pages(heap, n, g->budget));
    if (n->block)
        return FRAG_OK;
    err = pages_create(heap, p, n->spot.pages);
    if (err != FRAG_OOM)
        return err;
    FRAG_TRY(take_pages(heap, n, UINT64_MAX));
    return n->block || p->spare_count >= n->spot.pages ? FRAG_OK : FRAG_OOM;
}

/* Whether waiting for the device could help a request. */
static bool may_reclaim(const struct gather *g)
{
    const struct free_node *n = free_set_last(&g->pages.held);

    return g->pages.pending || (n && (g->mesh || n->size >= g->pages.unit));
}

/* The block of a tile that is held. */
static enum frag_err seat(struct pages *p, struct gather_need *n,
                          struct page_tile *t, frag_addr addr)
{
    FRAG_TRY(pages_ready(p));
    n->block = pages_retag(p, t, addr, n->size, TILE_USED);
    n->spot.addr = addr;
    return FRAG_OK;
}

static enum frag_err seat_in(struct pages *p, struct gather_need *n,
                             struct page_tile *t)
{
    return seat(p, n, t, pages_addr(p, t, n->size));
}

/* The block of a request that no held tile served. */
static enum frag_err assemble(struct frag_heap *heap, struct gather_need *n)
{
    struct gather *g = heap->state;
    struct page_tile *t;

    if (may_reclaim(g)) {
        FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
        pages_reclaim(heap, &g->pages);
        t = pages_fit(&g->pages, n->size);
        if (t)
            return seat_in(&g->pages, n, t);
    }
    FRAG_TRY(provide(heap, n));
    if (n->block)
        return FRAG_OK;
    FRAG_TRY(pages_fill(heap, &g->pages, n->spot, n->size, &t));
    return seat(&g->pages, n, t, n->spot.addr);
}

/* Whole pages that a hole has no more once the block is in it. */
static uint64_t broken(const struct pages *p, const struct page_tile *t,
                       frag_size size)
{
    const frag_size low = t->node.addr - t->span->addr;
    const frag_size at = pages_addr(p, t, size) - t->span->addr;

    return pages_whole(p, t) - pages_between(p, low, at) -
           pages_between(p, at + size, low + t->node.size);
}

/* Whether a block lodges early rather than in a hole that would hold it, and
 * where. */
static bool is_early(const struct gather *g, const struct page_tile *t,
                     frag_size size, struct lodging *l)
{
    const struct pages *p = &g->pages;

    return g->lodge == LODGE_EARLY && size >= p->unit &&
           broken(p, t, size) > 0 &&
           pages_free_count(p) <= p->count / EARLY_SHARE && is_slack(g) &&
           lodge_find(p, size, 0, l) && l->pages <= EARLY_PAGES &&
           l->pages < broken(p, t, size) && l->pages + LODGE_ENDS <= g->budget;
}

/* Makes the block, unless what it takes is gone once the device was waited
 * for. */
static enum frag_err lodge_early(struct frag_heap *heap, struct gather_need *n,
                                 struct lodging *l)
{
    struct pages *p = &((struct gather *)heap->state)->pages;
    const struct spot anywhere = {.pages = l->pages};

    if (p->spare_count < l->pages) {
        FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
        pages_reclaim(heap, p);
        strip(heap, p, &anywhere, 0, l->pages);
        if (!lodge_find(p, n->size, 0, l) || l->pages > p->spare_count)
            return FRAG_OK;
    }
    return lodge_block(heap, p, l, &n->spot.addr, &n->block);
}

enum frag_err gather_alloc(struct frag_heap *heap,
                           const struct frag_request *req, frag_size size,
                           struct frag_block *out)
{
    struct pages *p = &((struct gather *)heap->state)->pages;
    struct gather_need n = {.req = req, .size = size};
    struct page_tile *t = pages_fit(p, size);
    struct lodging l;

    if (t && is_early(heap->state, t, size, &l)) {
        FRAG_TRY(lodge_early(heap, &n, &l));
        t = pages_fit(p, size);
    }
    if (!n.block)
        FRAG_TRY(t ? seat_in(p, &n, t) : assemble(heap, &n));
    *out = (struct frag_block){n.spot.addr, size, n.block};
    return FRAG_OK;
}

void gather_free(struct frag_heap *heap, const struct frag_block *block)
{
    (void)heap;
    pages_free(block->node);
}

void gather_free_requested(struct frag_heap *heap,
                           const struct frag_block *block)
{
    (void)heap;
    pages_pend(block->node);
}

void gather_trim(struct frag_heap *heap)
{
    struct gather *g = heap->state;

    if ((may_reclaim(g) || g->pages.lost) &&
        heap->mem->ops->synchronize(heap->mem) == FRAG_OK) {
        pages_reclaim(heap, &g->pages);
        pages_strip_all(heap, &g->pages);
    }
    pages_release(heap, &g->pages);
}

const char *gather_check(const struct frag_heap *heap)
{
    return pages_check(&((const struct gather *)heap->state)->pages);
}
