/* expandable.c - best fit in one region per stream and pool that grows by
 * pages, large ones while the device is empty and small ones when it is full.
 *
 * This is the idea of PyTorch's expandable segments without PyTorch's other
 * rules (for these see torch/). Each stream of each pool has address space of
 * its own, a region, and memory is mapped where blocks need it. A request uses
 * the smallest hole of its region that is large enough, among equal sizes the
 * lowest. The block is placed at the end of the hole that leaves more whole
 * pages free, at equal counts the low end. If no hole is large enough, new
 * pages are mapped at the end of the region or in a gap of its address space,
 * wherever the fewest pages are missing (mechanism/pages.h has the ties).
 *
 * The size of a page. The driver's time is a time for each page, whatever its
 * size, so large pages cost less. But only a whole page can go back, and it
 * cannot while a live block lies in it. With B the bytes that the device has
 * for the program (its capacity, the limit of the process or the size of the
 * device, whichever is least) and F the share of B that is left, a new page has
 *
 *   F^3 B / PAGES_OF_DEVICE bytes, but at least `page` and at most `largest`.
 *
 * A page is never larger than what its request misses or, if that is less, than
 * `ahead`: up to this size, memory is mapped ahead above the block.
 *
 * Free pages stay mapped, and the memory of a region serves no other region,
 * until trim, or until the device refuses a page. From then on B is what the
 * policy held at that moment, until trim: the policy tries again with pages of
 * `page` bytes. If these are refused too, it waits for the device once, unmaps
 * as many free pages as the request misses, of any region, and maps the same
 * memory where the request needs it. If that does not suffice, it returns the
 * free pages of all regions and tries once more.
 *
 * The most that a program needs. When a request has failed, each page that is
 * still mapped is in use. A page that does not lie within one live block has an
 * end of a live block in it, and a block has two ends. So the pages that are
 * held are at most the bytes of the live blocks and, for each live block, the
 * two pages at its ends. A request fails only if the capacity is less than
 * this and the pages of the request itself: its bytes, and at most one page
 * more. tests/unit/policies/test_expandable.c holds the policy to it.
 *
 * Source: the idea of PyTorch's expandable segments (c10/cuda, 2.1 and later).
 * The sizes of pages, and the bound, are ours; the constants are from recorded
 * programs (paper/pages/pressure.md).
 */
#include "policies/mechanism/lanes.h"
#include "policies/mechanism/pages.h"

#include <stddef.h>
#include <stdlib.h>

struct expandable_region {
    struct expandable_region *prev, *next;
    struct pages pages;
};

enum { PAGES_OF_DEVICE = 256 };

struct expandable {
    struct expandable_region *regions; /* the most recently used first */
    struct lanes lanes;                /* the regions by stream and pool */
    bool may_shrink;                   /* false: no region can shrink */
    frag_size held; /* bytes of all regions, spare pages included */
    frag_size full; /* bytes held when the device refused last, or
                       FRAG_UNLIMITED */
    frag_size page, largest, ahead, span; /* the parameters */
};

static enum frag_err init(struct frag_heap *heap)
{
    ((struct expandable *)heap->state)->full = FRAG_UNLIMITED;
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct expandable *s = heap->state;

    while (s->regions) {
        struct expandable_region *r = s->regions;

        s->regions = r->next;
        pages_fini(heap, &r->pages);
        free(r);
    }
    lanes_fini(&s->lanes);
}

static struct expandable_region *make_region(struct frag_heap *heap,
                                             const struct frag_request *req)
{
    struct expandable *s = heap->state;
    struct expandable_region *r = calloc(1, sizeof(*r));

    if (r && lanes_add(&s->lanes, req->pool, req->stream, r) != FRAG_OK) {
        free(r);
        r = NULL;
    }
    if (r) {
        pages_init(&r->pages, heap->mem, s->page, s->span);
        r->pages.has_chunks = true;
    }
    return r;
}

static void unlink_region(struct expandable *s, struct expandable_region *r)
{
    *(r->prev ? &r->prev->next : &s->regions) = r->next;
    if (r->next)
        r->next->prev = r->prev;
}

static void put_first(struct expandable *s, struct expandable_region *r)
{
    r->prev = NULL;
    r->next = s->regions;
    if (r->next)
        r->next->prev = r;
    s->regions = r;
}

/* The region of a stream and pool, moved to the front; created if there is none
 * yet. NULL if the host has no memory. */
static struct expandable_region *region_of(struct frag_heap *heap,
                                           const struct frag_request *req)
{
    struct expandable *s = heap->state;
    struct expandable_region *r = lanes_find(&s->lanes, req->pool, req->stream);

    if (r == s->regions && r)
        return r;
    if (r)
        unlink_region(s, r);
    else
        r = make_region(heap, req);
    if (r)
        put_first(s, r);
    return r;
}

/* True if the region has a spare page or a whole free page. */
static bool can_shrink(const struct expandable_region *r)
{
    const struct pages *p = &r->pages;
    const struct free_node *n = free_set_last(&p->held);

    while (n && n->size >= p->unit &&
           !pages_whole(p, (const struct page_tile *)n))
        n = free_set_before(&p->held, n);
    return p->spare_count || (n && n->size >= p->unit);
}

/* True if a region can shrink. Without a change since the last search that
 * found none, the regions are not searched again. */
static bool any_can_shrink(struct expandable *s)
{
    const struct expandable_region *r = s->may_shrink ? s->regions : NULL;

    while (r && !can_shrink(r))
        r = r->next;
    s->may_shrink = r != NULL;
    return s->may_shrink;
}

/* Counts the pages that a region has created or released since it had
 * `before`. */
static void note_held(struct expandable *s, const struct pages *p,
                      uint64_t before)
{
    s->held += (p->count - before) * p->unit;
}

/* Releases the spare pages of a region; true if any was released. */
static bool release(struct frag_heap *heap, struct pages *p)
{
    const uint64_t before = p->count;
    const bool any = pages_release(heap, p);

    note_held(heap->state, p, before);
    return any;
}

/* Returns the whole free pages of all regions; true if any was returned. */
static bool return_pages(struct frag_heap *heap)
{
    struct expandable *s = heap->state;
    bool any = false;

    if (!any_can_shrink(s) || heap->mem->ops->synchronize(heap->mem) != FRAG_OK)
        return false;
    for (struct expandable_region *r = s->regions; r; r = r->next) {
        pages_strip_all(heap, &r->pages);
        any |= release(heap, &r->pages);
    }
    return any;
}

/* Sets the size of new chunks, each of which is one page for the driver. */
static void set_chunk(struct frag_heap *heap, struct pages *p)
{
    const struct expandable *s = heap->state;
    const frag_size most_held = frag_backend_bound(heap->mem);
    const double bound = (double)(most_held < s->full ? most_held : s->full);
    const double left = 1 - (double)s->held / bound;
    const double share = left > 0 ? left * left * left : 0;
    const double size = share * bound / PAGES_OF_DEVICE;
    const double most = (double)s->largest;

    p->chunk = (uint64_t)(size < most ? size : most) / p->unit;
}

/* The pages to be mapped ahead above a block that misses less than a chunk. */
static uint64_t pages_ahead(const struct expandable *s, const struct pages *p,
                            const struct spot *spot, frag_size size)
{
    const uint64_t most = s->ahead / p->unit;
    const uint64_t chunk = p->chunk < most ? p->chunk : most;
    const frag_addr end = spot->addr + size;
    const struct page_tile *t = spot->tile;
    uint64_t bare;

    while (t->node.addr + t->node.size < end)
        t = t->next;
    if (t->state != TILE_BARE || spot->pages >= chunk)
        return 0;
    bare = (t->node.addr + t->node.size - end) / p->unit;
    return bare < chunk - spot->pages ? bare : chunk - spot->pages;
}

/* Maps new memory for a block. */
static enum frag_err grow(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct page_tile **out,
                          frag_addr *addr)
{
    struct spot spot;
    uint64_t ahead;

    FRAG_TRY(pages_place(heap, p, size, &spot));
    set_chunk(heap, p);
    ahead = pages_ahead(heap->state, p, &spot, size);
    FRAG_TRY(pages_create(heap, p, spot.pages + ahead));
    *addr = spot.addr;
    return pages_fill(heap, p, spot, size + ahead * p->unit, out);
}

static enum frag_err find(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct page_tile **out,
                          frag_addr *addr)
{
    const uint64_t before = p->count;
    enum frag_err err = FRAG_OK;

    *out = pages_fit(p, size);
    if (*out)
        *addr = pages_addr(p, *out, size);
    else
        err = grow(heap, p, size, out, addr);
    note_held(heap->state, p, before);
    return err;
}

/* Whether tile a is a better one than b to take `missing` pages from: the
 * smaller one of two that have so many, else the larger one. */
static bool is_better_donor(const struct page_tile *a,
                            const struct page_tile *b, uint64_t missing)
{
    const uint64_t x = pages_whole(a->span->home, a);
    const uint64_t y = b ? pages_whole(b->span->home, b) : 0;

    if ((x >= missing) != (y >= missing))
        return x >= missing;
    return x >= missing ? x < y : x > y;
}

/* The held tile of any region that loses pages next; NULL: there is none. */
static struct page_tile *donor(const struct expandable *s,
                               const struct spot *spot, frag_size size,
                               uint64_t missing)
{
    struct page_tile *best = NULL;

    for (struct expandable_region *r = s->regions; r; r = r->next) {
        struct page_tile *t = pages_donor(&r->pages, spot, size, missing);

        if (t && is_better_donor(t, best, missing))
            best = t;
    }
    return best;
}

/* Unmaps free pages of all regions until there are enough spare ones for the
 * spot in `p`, or no region has any. The device waits for no queued work. */
static enum frag_err collect(struct frag_heap *heap, struct pages *p,
                             const struct spot *spot, frag_size size)
{
    const struct expandable *s = heap->state;

    for (struct expandable_region *r = s->regions; r; r = r->next)
        if (&r->pages != p)
            FRAG_TRY(pages_give(&r->pages, p));
    while (p->spare_count < spot->pages) {
        const uint64_t missing = spot->pages - p->spare_count;
        struct page_tile *t = donor(s, spot, size, missing);
        struct pages *from = t ? t->span->home : NULL;
        uint64_t whole;

        if (!t)
            return FRAG_OK;
        whole = pages_whole(from, t);
        if (!pages_strip(heap, from, t, whole < missing ? whole : missing))
            return FRAG_OK;
        if (from != p)
            FRAG_TRY(pages_give(from, p));
    }
    return FRAG_OK;
}

/* Serves a request that the device refused: by smaller pages, or else from the
 * free pages of all regions. */
static enum frag_err reuse(struct frag_heap *heap, struct pages *p,
                           frag_size size, struct page_tile **out,
                           frag_addr *addr)
{
    struct expandable *s = heap->state;
    struct spot spot;
    enum frag_err err = FRAG_OOM;

    s->full = s->held;
    if (p->chunk > 1) /* the device may still have smaller pages */
        err = find(heap, p, size, out, addr);
    if (err != FRAG_OOM || !any_can_shrink(s))
        return err;
    FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
    *out = pages_fit(p, size);
    if (*out)
        return find(heap, p, size, out, addr);
    err = pages_place(heap, p, size, &spot);
    if (err == FRAG_OK)
        err = collect(heap, p, &spot, size);
    if (err == FRAG_OK)
        err = find(heap, p, size, out, addr);
    if (err != FRAG_OOM || !return_pages(heap))
        return err;
    return find(heap, p, size, out, addr);
}

static enum frag_err alloc(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out)
{
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);
    struct expandable_region *r = region_of(heap, req);
    struct expandable *s = heap->state;
    struct page_tile *t;
    frag_addr addr;
    enum frag_err err;

    if (!r)
        return FRAG_NOMEM;
    err = find(heap, &r->pages, size, &t, &addr);
    s->may_shrink = s->may_shrink || can_shrink(r);
    if (err == FRAG_OOM)
        err = reuse(heap, &r->pages, size, &t, &addr);
    if (err == FRAG_OOM) /* pages that did not suffice */
        release(heap, &r->pages);
    s->may_shrink = s->may_shrink || can_shrink(r);
    FRAG_TRY(err);
    FRAG_TRY(pages_ready(&r->pages));
    t = pages_retag(&r->pages, t, addr, size, TILE_USED);
    *out = (struct frag_block){addr, size, t};
    return FRAG_OK;
}

static void free_block(struct frag_heap *heap, const struct frag_block *block)
{
    struct expandable *s = heap->state;

    pages_free(block->node);
    s->may_shrink = true;
}

static void trim(struct frag_heap *heap)
{
    ((struct expandable *)heap->state)->full = FRAG_UNLIMITED;
    return_pages(heap);
}

static const char *expandable_check(const struct frag_heap *heap)
{
    const struct expandable *s = heap->state;

    frag_size held = 0;

    for (const struct expandable_region *r = s->regions; r; r = r->next) {
        CHECK_ALL(pages_check(&r->pages));
        held += r->pages.count * r->pages.unit;
    }
    CHECK(held == s->held, "`held` is not the bytes of the regions");
    return NULL;
}

static const struct frag_param params[] = {
    PAGE_PARAM(struct expandable, page),
    FRAG_RANGE_PARAM(SIZE, "largest", struct expandable, largest, "64MiB",
                     FRAG_QUANTUM, 0x1p40,
                     "bytes of a page while the device is empty; pages shrink "
                     "to `page` as it fills"),
    FRAG_RANGE_PARAM(SIZE, "ahead", struct expandable, ahead, "20MiB", 0,
                     0x1p40,
                     "bytes of a page that is mapped for a smaller request, in "
                     "part for later ones"),
    SPAN_PARAM(struct expandable, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_expandable = {
    .name = "expandable",
    .summary = "best fit in a region per stream and pool; pages shrink as the "
               "device fills",
    .source = "the idea of PyTorch's expandable segments, without its rules",
    .needs = FRAG_NEEDS_VMM,
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct expandable),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = alloc,
    .free = free_block,
    .trim = trim,
    .check = expandable_check,
};
