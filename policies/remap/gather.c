/* gather.c - serves requests from held tiles and, if none fits, collects free
 * pages under new addresses. gather.h has the rules.
 */
#include "policies/remap/gather.h"

#include "policies/remap/remap_share.h"

enum frag_err gather_init(struct frag_heap *heap)
{
    struct gather *g = heap->state;

    pages_init(&g->pages, heap->mem, g->page, g->span);
    return FRAG_OK;
}

void gather_fini(struct frag_heap *heap)
{
    pages_fini(heap, &((struct gather *)heap->state)->pages);
}

/* Step 2: unmaps free pages until the spare pages are enough for the spot, or
 * `budget` pages have been unmapped. Returns their number. */
static uint64_t strip(struct frag_heap *heap, struct pages *p,
                      const struct spot *spot, frag_size size, uint64_t budget)
{
    uint64_t moved = 0;

    while (p->stock.spare_pages < spot->pages && moved < budget) {
        uint64_t some = spot->pages - p->stock.spare_pages;
        struct page_tile *t;

        some = some < budget - moved ? some : budget - moved;
        t = pages_donor(p, spot, size, some);
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

/* A request in progress. */
struct gather_need {
    const struct frag_request *req;
    frag_size size;
    struct spot spot;        /* where the block will lie */
    struct page_tile *block; /* the block's used tile; NULL: not made yet */
};

/* Whether the free bytes in partly used pages are more than `slack` of the
 * bytes of all pages. */
static bool is_slack(const struct gather *g)
{
    const struct pages *p = &g->pages;

    return (double)pages_partly(p) >
           g->slack * (double)p->stock.count * (double)p->stock.page;
}

/* Step 3: makes the block by page sharing, if that needs fewer pages from the
 * device than the spot does. Otherwise n->block stays NULL. */
static enum frag_err share_ends(struct frag_heap *heap, struct gather_need *n,
                                uint64_t budget)
{
    struct pages *p = &((struct gather *)heap->state)->pages;
    const uint64_t have = pages_free_count(p);
    struct spot anywhere = {0};
    struct sharing l;
    enum frag_err err;

    if (budget < SHARE_ENDS || !is_slack(heap->state) ||
        !share_find(p, n->size, have, &l) ||
        l.pages >= have + n->spot.pages - p->stock.spare_pages)
        return FRAG_OK;
    anywhere.pages = l.pages;
    if (strip(heap, p, &anywhere, 0, budget - SHARE_ENDS))
        FRAG_TRY(pages_place(heap, p, n->size, &n->spot));
    if (!share_find(p, n->size, p->stock.spare_pages, &l) ||
        l.pages >= n->spot.pages)
        return FRAG_OK;
    err = stock_create(heap, &p->stock, l.pages);
    if (err != FRAG_OK)
        return err == FRAG_OOM ? FRAG_OK : err;
    return share_block(heap, p, &l, &n->spot.addr, &n->block);
}

/* Does steps 2 and 3, and updates the spot, or makes the block in step 3. */
static enum frag_err find_pages(struct frag_heap *heap, struct gather_need *n,
                                uint64_t budget)
{
    struct gather *g = heap->state;
    struct pages *p = &g->pages;
    const uint64_t moved = strip(heap, p, &n->spot, n->size, budget);

    if (moved)
        FRAG_TRY(pages_place(heap, p, n->size, &n->spot));
    return p->stock.spare_pages < n->spot.pages
               ? share_ends(heap, n, budget - moved)
               : FRAG_OK;
}

/* Does steps 1 to 4: selects the spot and makes enough pages spare for it, or
 * makes the block in step 3. */
static enum frag_err provide(struct frag_heap *heap, struct gather_need *n)
{
    struct gather *g = heap->state;
    struct pages *p = &g->pages;
    enum frag_err err;

    FRAG_TRY(pages_place(heap, p, n->size, &n->spot));
    FRAG_TRY(find_pages(heap, n, g->budget));
    if (n->block)
        return FRAG_OK;
    err = stock_create(heap, &p->stock, n->spot.pages);
    if (err != FRAG_OOM)
        return err;
    FRAG_TRY(find_pages(heap, n, UINT64_MAX));
    return n->block || p->stock.spare_pages >= n->spot.pages ? FRAG_OK
                                                             : FRAG_OOM;
}

/* Whether a wait for the device could make pages free for a request. */
static bool may_reclaim(const struct gather *g)
{
    const struct free_node *n = free_set_last(&g->pages.held);

    return g->pages.pending || (n && n->size >= g->pages.stock.page);
}

/* Makes the block at `addr` of a held tile. */
static enum frag_err make_block(struct pages *p, struct gather_need *n,
                                struct page_tile *t, frag_addr addr)
{
    FRAG_TRY(pages_ready(p));
    n->block = pages_retag(p, t, addr, n->size, TILE_USED);
    n->spot.addr = addr;
    return FRAG_OK;
}

static enum frag_err make_block_in(struct pages *p, struct gather_need *n,
                                   struct page_tile *t)
{
    return make_block(p, n, t, pages_addr(p, t, n->size));
}

/* Serves a request that no held tile can serve. */
static enum frag_err assemble(struct frag_heap *heap, struct gather_need *n)
{
    struct gather *g = heap->state;
    struct page_tile *t;

    if (may_reclaim(g)) {
        FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
        pages_reclaim(heap, &g->pages);
        t = pages_fit(&g->pages, n->size);
        if (t)
            return make_block_in(&g->pages, n, t);
    }
    FRAG_TRY(provide(heap, n));
    if (n->block)
        return FRAG_OK;
    FRAG_TRY(pages_fill(heap, &g->pages, n->spot, n->size, &t));
    return make_block(&g->pages, n, t, n->spot.addr);
}

enum frag_err gather_alloc(struct frag_heap *heap,
                           const struct frag_request *req, frag_size size,
                           struct frag_block *out)
{
    struct pages *p = &((struct gather *)heap->state)->pages;
    struct gather_need n = {.req = req, .size = size};
    struct page_tile *t = pages_fit(p, size);

    FRAG_TRY(t ? make_block_in(p, &n, t) : assemble(heap, &n));
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
    stock_release(heap, &g->pages.stock);
}

const char *gather_check(const struct frag_heap *heap)
{
    return pages_check(&((const struct gather *)heap->state)->pages);
}
