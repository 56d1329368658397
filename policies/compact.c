/* compact.c - best fit in one growing region, with live blocks moved together.
 *
 * Address space is reserved, and memory is mapped at the end of the used part,
 * page by page. A request uses the smallest hole that is large enough, among
 * equal sizes the lowest; the low part of the hole is allocated. If no hole is
 * large enough, the region grows at its end if afterwards at most the share
 * `threshold` of it is free, or if it must grow by that much in any case.
 * Otherwise blocks are moved first, as few bytes as the growth within the
 * threshold requires. If the device refuses to let the region grow, blocks are
 * moved too, provided that this can help; with threshold=1 only then.
 *
 * To move as few bytes as necessary, the policy selects the run of neighbouring
 * blocks with the fewest bytes whose holes together have the room; among equal
 * runs the lowest. The end of the region counts as a hole that can grow. The
 * blocks of the run slide down in order.
 *
 * A block slides by copies between disjoint ranges: in parts as large as the
 * hole below it, from the low end up. A hole smaller than 1/PIECES of the block
 * above it is not worth the copies and stays. Moves are synchronous: the policy
 * waits for the device before the first and after the last move of an event,
 * and queues all copies on the stream of the request. Trim returns the free
 * pages at the end of the region and moves nothing. A freed block serves any
 * stream.
 *
 * Source: sliding compaction as in Cohen and Nicolau, "Comparison of Compacting
 * Algorithms for Garbage Collection", TOPLAS 1983; the cheapest run and the
 * limits are ours.
 */
#include "policies/mechanism/pages.h"

#include <stddef.h>

enum { PIECES = 256 };

struct compact {
    struct pages pages;
    double threshold; /* the parameters */
    frag_size span;
    frag_size used;
};

static enum frag_err init(struct frag_heap *heap)
{
    struct compact *s = heap->state;

    pages_init(&s->pages, heap->mem, heap->mem->granularity, s->span);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    pages_fini(heap, &((struct compact *)heap->state)->pages);
}

static frag_addr end_of(const struct page_tile *t)
{
    return t->node.addr + t->node.size;
}

/* ------------------------------------------------------------ moving --- */

static bool is_block(const struct page_tile *t)
{
    return t->state == TILE_USED && !t->is_end;
}

/* True if a hole is large enough to be worth moving the block above it. */
static bool is_worth(const struct page_tile *block, frag_size hole)
{
    return block->node.size / PIECES <= hole;
}

/* Slides the block above a hole down to the start of the hole. */
static enum frag_err slide(struct frag_heap *heap, struct page_tile *hole,
                           frag_stream stream)
{
    struct compact *s = heap->state;
    struct page_tile *t = hole->next;
    const frag_size gap = hole->node.size, size = t->node.size;

    for (frag_size at = 0; at < size; at += gap)
        FRAG_TRY(heap->mem->ops->copy(
            heap->mem, hole->node.addr + at, t->node.addr + at,
            size - at < gap ? size - at : gap, stream));
    pages_slide(&s->pages, hole);
    heap->moved(heap->user, t->owner,
                &(struct frag_block){t->node.addr, t->node.size, t});
    return FRAG_OK;
}

/* Slides down the blocks between the hole and the address `limit` in the same
 * span. */
static enum frag_err slide_run(struct frag_heap *heap, struct page_tile *hole,
                               frag_addr limit, frag_stream stream)
{
    struct page_tile *t = hole;

    while (!t->is_end && t->node.addr < limit) {
        if (t->state == TILE_HELD && is_block(t->next) && end_of(t) < limit &&
            is_worth(t->next, t->node.size))
            FRAG_TRY(slide(heap, t, stream));
        else
            t = t->next;
    }
    return FRAG_OK;
}

static enum frag_err slide_all(struct frag_heap *heap, frag_stream stream)
{
    struct compact *s = heap->state;

    for (struct page_span *p = s->pages.spans; p; p = p->next)
        FRAG_TRY(slide_run(heap, p->ends.next, p->addr + p->size, stream));
    return FRAG_OK;
}

/* ------------------------------------------------- the cheapest run --- */

/* A run of neighbouring tiles, from the hole `first` to a hole that ends at
 * `end`, or to the end of the region at `end`. */
struct window {
    struct page_tile *first;
    frag_addr end;
    frag_size free, live; /* bytes of its holes, of its blocks */
};

/* Stores the window as the best one if it has fewer live bytes. */
static void consider(const struct window *w, struct window *best)
{
    if (!best->first || w->live < best->live)
        *best = *w;
}

/* Removes the first hole, and the blocks up to the next hole, from the window.
 * `last` is the window's last hole. */
static void shrink(struct window *w, const struct page_tile *last)
{
    if (w->first == last) {
        *w = (struct window){0};
        return;
    }
    w->free -= w->first->node.size;
    for (w->first = w->first->next; is_block(w->first);
         w->first = w->first->next)
        w->live -= w->first->node.size;
}

/* Extends the window by a hole, and considers every window that ends there and
 * has `size` bytes free. */
static void take_hole(struct window *w, struct page_tile *t, frag_size size,
                      struct window *best)
{
    if (!w->first)
        w->first = t;
    w->free += t->node.size;
    w->end = end_of(t);
    while (w->first && w->free >= size) {
        consider(w, best);
        shrink(w, t);
    }
}

/* The same for the end of the region, a bare tile; here `least` free bytes are
 * enough, because the region can grow. */
static void take_end(struct window *w, const struct page_tile *t,
                     frag_size least, struct window *best)
{
    w->end = t->node.addr;
    while (w->first && w->free >= least && w->live > 0) {
        consider(w, best);
        shrink(w, t->prev);
    }
}

/* The window with the fewest live bytes that has `size` bytes free, or `least`
 * bytes if it ends where the region can grow. first is NULL if there is none.
 */
static struct window cheapest(const struct compact *s, frag_size size,
                              frag_size least)
{
    struct window best = {0};

    for (struct page_span *p = s->pages.spans; p; p = p->next) {
        struct window w = {0};

        for (struct page_tile *t = p->ends.next; !t->is_end; t = t->next) {
            if (t->state == TILE_HELD)
                take_hole(&w, t, size, &best);
            else if (t->state == TILE_BARE)
                take_end(&w, t, least, &best);
            else if (is_worth(t, w.free) && w.free)
                w.live += t->node.size;
            else
                w = (struct window){0};
        }
    }
    return best;
}

/* Moves blocks so that a request of `size` bytes fits, or fits after the region
 * has grown by size - least bytes. Moves all blocks to the low end if no window
 * is enough. */
static enum frag_err make_way(struct frag_heap *heap, frag_size size,
                              frag_size least, frag_stream stream)
{
    const struct window w = cheapest(heap->state, size, least);

    if (!heap->moved)
        return FRAG_OK;
    FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
    FRAG_TRY(w.first ? slide_run(heap, w.first, w.end, stream)
                     : slide_all(heap, stream));
    return heap->mem->ops->synchronize(heap->mem);
}

/* ------------------------------------------------------------ growth --- */

/* True if, after growth by `pages` and the request, at most the share
 * `threshold` of the region is free. */
static bool stays_dense(const struct compact *s, frag_size size, uint64_t pages)
{
    const double held =
        (double)(s->pages.stock.count - s->pages.stock.spare_pages + pages) *
        (double)s->pages.stock.page;

    return held - (double)(s->used + size) <= s->threshold * held;
}

/* The fewest pages by which the region must grow, even if all blocks are
 * moved. */
static uint64_t least_pages(const struct compact *s, frag_size size)
{
    const struct pages *p = &s->pages;
    const frag_size free =
        (p->stock.count - p->stock.spare_pages) * p->stock.page - s->used;

    return size > free ? (size - free + p->stock.page - 1) / p->stock.page : 0;
}

/* The free bytes that a window at the end must have, so that the region grows
 * by fewer than `most` pages: by the fewest pages possible, or by more as long
 * as the region stays dense. */
static frag_size least_free(const struct compact *s, frag_size size,
                            uint64_t most)
{
    uint64_t pages = least_pages(s, size);

    while (pages + 1 < most && stays_dense(s, size, pages + 1))
        pages++;
    return size - pages * s->pages.stock.page;
}

/* Moves blocks for a request that would make the region grow by too much. */
static enum frag_err before_growth(struct frag_heap *heap, frag_size size,
                                   const struct spot *spot, frag_stream stream)
{
    struct compact *s = heap->state;

    if (stays_dense(s, size, spot->pages) ||
        spot->pages <= least_pages(s, size))
        return FRAG_OK;
    return make_way(heap, size, least_free(s, size, spot->pages), stream);
}

/* Finds a hole, or maps pages for one at the end of the region. */
static enum frag_err fit_or_grow(struct frag_heap *heap, frag_size size,
                                 struct page_tile **out)
{
    struct compact *s = heap->state;
    struct spot spot;

    *out = pages_fit(&s->pages, size);
    if (*out)
        return FRAG_OK;
    FRAG_TRY(pages_place(heap, &s->pages, size, &spot));
    FRAG_TRY(stock_create(heap, &s->pages.stock, spot.pages));
    return pages_fill(heap, &s->pages, spot, size, out);
}

static enum frag_err find_room(struct frag_heap *heap, frag_size size,
                               frag_stream stream, struct page_tile **out)
{
    struct compact *s = heap->state;
    struct spot spot;
    frag_size spare;
    enum frag_err err;

    if (s->pages.pending)
        FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
    if (!pages_fit(&s->pages, size)) {
        FRAG_TRY(pages_place(heap, &s->pages, size, &spot));
        FRAG_TRY(before_growth(heap, size, &spot, stream));
    }
    err = fit_or_grow(heap, size, out);
    if (err != FRAG_OOM || !heap->moved ||
        least_pages(s, size) > s->pages.stock.spare_pages)
        return err;
    spare = s->pages.stock.spare_pages * s->pages.stock.page;
    FRAG_TRY(make_way(heap, size, size > spare ? size - spare : 1, stream));
    return fit_or_grow(heap, size, out);
}

/* ------------------------------------------------------ the interface --- */

static enum frag_err alloc(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out)
{
    struct compact *s = heap->state;
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);
    struct page_tile *t;

    FRAG_TRY(pages_ready(&s->pages));
    t = pages_fit(&s->pages, size);
    if (!t)
        FRAG_TRY(find_room(heap, size, req->stream, &t));
    FRAG_TRY(pages_ready(&s->pages));
    t = pages_retag(&s->pages, t, t->node.addr, size, TILE_USED);
    t->owner = req->owner;
    s->used += size;
    *out = (struct frag_block){t->node.addr, size, t};
    return FRAG_OK;
}

static void free_block(struct frag_heap *heap, const struct frag_block *block)
{
    struct compact *s = heap->state;
    struct page_tile *t = block->node;

    s->used -= t->node.size;
    pages_free(t);
}

static void free_requested(struct frag_heap *heap,
                           const struct frag_block *block)
{
    (void)heap;
    pages_pend(block->node);
}

/* The highest tile of a span that is not bare. */
static struct page_tile *topmost(const struct page_span *s)
{
    struct page_tile *t = s->ends.prev;

    return t->state == TILE_BARE ? t->prev : t;
}

static void trim(struct frag_heap *heap)
{
    struct pages *p = &((struct compact *)heap->state)->pages;

    if (p->stock.count && heap->mem->ops->synchronize(heap->mem) == FRAG_OK)
        for (struct page_span *s = p->spans; s; s = s->next) {
            struct page_tile *t = topmost(s);

            if (t->state == TILE_HELD && pages_whole(p, t) > 0)
                pages_strip(heap, p, t, pages_whole(p, t));
        }
    stock_release(heap, &p->stock);
}

static const char *compact_check(const struct frag_heap *heap)
{
    return pages_check(&((const struct compact *)heap->state)->pages);
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(
        RATIO, "threshold", struct compact, threshold, "0.015", 0, 1,
        "share of the region that may be free after growth; for more, "
        "blocks are moved"),
    SPAN_PARAM(struct compact, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_compact = {
    .name = "compact",
    .summary = "best fit in one region; live blocks are moved together",
    .source = "Cohen and Nicolau, TOPLAS 1983 (sliding); limits and the "
              "cheapest run are ours",
    .needs = FRAG_NEEDS_VMM | FRAG_NEEDS_MOVES,
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct compact),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = alloc,
    .free = free_block,
    .free_requested = free_requested,
    .trim = trim,
    .check = compact_check,
};
