/* expandable.c - best fit in one region per stream and pool; memory is mapped
 * by pages under the blocks, large ones while the device is empty and small
 * ones when it is full.
 *
 * This is the idea of PyTorch's expandable segments without PyTorch's other
 * rules (for these see torch/). Each stream of each pool has address space of
 * its own, a region, and memory is mapped where blocks need it.
 *
 * The place of a block. A request uses the smallest hole of its region that is
 * large enough, among equal sizes the lowest, whether the hole has memory or
 * not; new address space is one hole. The block lies at the low end of the
 * hole, or at the high end if that leaves more whole pages free. So the place
 * depends on the live blocks alone, not on the memory that the device has.
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
 * Free pages stay mapped until trim, or until the device refuses a page. From
 * then on B is what the policy held at that moment, until trim: the policy
 * tries again with pages of `page` bytes. If these are refused too, it waits
 * for the device once, unmaps as many free pages as the request misses, of
 * other regions first and of the largest hole first, and maps the same memory
 * where the request needs it. If that does not suffice, it returns the free
 * pages of all regions and tries once more.
 *
 * The most that a program needs. When a request has failed, each page that is
 * still mapped is in use. A page that does not lie within one live block has an
 * end of a live block in it, and a block has two ends. So the pages that are
 * held are at most the bytes of the live blocks and, for each live block, the
 * two pages at its ends. A request fails only if the capacity is less than this
 * for the live blocks and the new one together.
 *
 * More memory never makes a program fail, if `largest` is `page` and no free
 * waits for queued work (a wait completes it earlier). Before any request the
 * live blocks lie at the same places for every capacity, and the request is
 * refused if and only if the pages that they and the new block touch exceed the
 * capacity. So a program survives from the most pages on that its live blocks
 * ever touch. With larger pages a chunk that is in part in use stays mapped,
 * and its size depends on the capacity; no such proof is known.
 * tests/unit/policies/test_expandable.c holds the policy to both.
 *
 * Source: the idea of PyTorch's expandable segments (c10/cuda, 2.1 and later).
 * The places, the sizes of pages and the bounds are ours; the constants are
 * from recorded programs (paper/pages/pressure.md).
 */
#include "policies/mechanism/backing.h"
#include "policies/mechanism/lanes.h"
#include "policies/mechanism/pages.h" /* the rows of parameters */
#include "policies/mechanism/tiles.h"

#include <stddef.h>
#include <stdlib.h>

/* What one stream has in one pool. */
struct expandable_region {
    struct expandable_region *prev, *next;
    struct free_set holes;
};

enum { PAGES_OF_DEVICE = 384 };

struct expandable {
    struct expandable_region *regions; /* the most recently used first */
    struct lanes lanes;                /* the regions by stream and pool */
    struct tiles tiles;                /* of all regions; `user` of a segment is
                                          its struct backed */
    struct backing memory;
    bool may_shrink; /* false: no region can shrink */
    frag_size full;  /* bytes held when the device refused last, or
                        FRAG_UNLIMITED */
    frag_size page, largest, ahead, span; /* the parameters */
};

static enum frag_err init(struct frag_heap *heap)
{
    struct expandable *s = heap->state;

    s->full = FRAG_UNLIMITED;
    s->memory.page = frag_round_up(s->page, heap->mem->granularity);
    s->span = frag_round_up(s->span, s->memory.page);
    s->tiles.reserved = true;
    tiles_init(&s->tiles);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct expandable *s = heap->state;

    for (struct tiled *t = s->tiles.segments; t; t = t->next) {
        backing_clear(heap, &s->memory, t->user);
        free(t->user);
    }
    backing_fini(&s->memory);
    tiles_fini(heap, &s->tiles);
    while (s->regions) {
        struct expandable_region *r = s->regions;

        s->regions = r->next;
        free_set_fini(&r->holes);
        free(r);
    }
    lanes_fini(&s->lanes);
}

/* ---- regions and places ---- */

static struct expandable_region *make_region(struct expandable *s,
                                             const struct frag_request *req)
{
    struct expandable_region *r = calloc(1, sizeof(*r));

    if (r && lanes_add(&s->lanes, req->pool, req->stream, r) != FRAG_OK) {
        free(r);
        r = NULL;
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
static struct expandable_region *region_of(struct expandable *s,
                                           const struct frag_request *req)
{
    struct expandable_region *r = lanes_find(&s->lanes, req->pool, req->stream);

    if (r == s->regions && r)
        return r;
    if (r)
        unlink_region(s, r);
    else
        r = make_region(s, req);
    if (r)
        put_first(s, r);
    return r;
}

/* Reserves address space for at least `least` bytes: one hole, *out. */
static enum frag_err widen(struct frag_heap *heap, struct expandable_region *r,
                           frag_size least, struct tile **out)
{
    struct expandable *s = heap->state;
    const frag_size whole = frag_round_up(least, s->memory.page);
    struct backed *range;
    enum frag_err err;

    if (whole > s->span && whole / s->memory.page > PAGES_AT_ONCE)
        return FRAG_OOM;
    range = calloc(1, sizeof(*range));
    if (!range)
        return FRAG_NOMEM;
    err = tiles_grow(heap, &s->tiles, &r->holes,
                     whole > s->span ? whole : s->span, out);
    if (err != FRAG_OK) {
        free(range);
        return err;
    }
    range->addr = (*out)->segment->addr;
    (*out)->segment->user = range;
    return FRAG_OK;
}

/* Where a block will lie. */
struct seat {
    struct tile *hole;
    frag_addr addr;
    struct page_run pages; /* that it touches */
};

/* The address for a block in a hole. */
static frag_addr end_of_hole(const struct backing *b, const struct tile *hole,
                             frag_size size)
{
    struct backed *r = hole->segment->user;
    const frag_addr low = hole->node.addr;
    const frag_size rest = hole->node.size - size;
    const struct page_run below = pages_within(b, r, low, rest);
    const struct page_run above = pages_within(b, r, low + size, rest);

    return below.end - below.first > above.end - above.first ? low + rest : low;
}

static enum frag_err choose(struct frag_heap *heap, struct expandable_region *r,
                            frag_size size, struct seat *out)
{
    struct expandable *s = heap->state;

    out->hole = (struct tile *)free_set_fit(&r->holes, size);
    if (!out->hole)
        FRAG_TRY(widen(heap, r, size, &out->hole));
    out->addr = end_of_hole(&s->memory, out->hole, size);
    out->pages =
        pages_touched(&s->memory, out->hole->segment->user, out->addr, size);
    return FRAG_OK;
}

/* ---- memory for a block ---- */

static frag_size bytes_held(const struct expandable *s)
{
    return s->memory.count * s->memory.page;
}

/* Sets the size of new chunks, each of which is one page for the driver. */
static void set_chunk(struct frag_heap *heap)
{
    struct expandable *s = heap->state;
    const frag_size most_held = frag_backend_bound(heap->mem);
    const double bound = (double)(most_held < s->full ? most_held : s->full);
    const double left = 1 - (double)bytes_held(s) / bound;
    const double share = left > 0 ? left * left * left : 0;
    const double size = share * bound / PAGES_OF_DEVICE;
    const double most = (double)s->largest;

    s->memory.chunk = (uint64_t)(size < most ? size : most) / s->memory.page;
}

/* The pages to be mapped ahead above a block whose last pages have no memory,
 * if these are less than a chunk. */
static uint64_t pages_ahead(const struct expandable *s, const struct seat *seat)
{
    const struct backing *b = &s->memory;
    const struct tile *t = seat->hole;
    const struct page_run *p = &seat->pages;
    const uint64_t most = s->ahead / b->page;
    const uint64_t wanted = b->chunk < most ? b->chunk : most;
    const uint64_t room =
        (t->node.addr + t->node.size - p->range->addr) / b->page;
    uint64_t first = p->end, end = p->end;

    while (first > p->first && !page_has_memory(p->range, first - 1))
        first--;
    while (first < p->end && end < room && end - first < wanted &&
           !page_has_memory(p->range, end))
        end++;
    return end - p->end;
}

/* Maps memory wherever the pages of the block have none. */
static enum frag_err back(struct frag_heap *heap, const struct seat *seat)
{
    struct expandable *s = heap->state;
    struct page_run run = seat->pages;

    if (!backing_missing(&run))
        return FRAG_OK;
    set_chunk(heap);
    run.end += pages_ahead(s, seat);
    s->may_shrink = true; /* what is mapped may turn out not to suffice */
    return backing_map(heap, &s->memory, run);
}

/* ---- free memory ---- */

/* The whole pages of a hole, which may have memory. */
static struct page_run hole_pages(const struct expandable *s,
                                  const struct free_node *n)
{
    const struct tile *t = (const struct tile *)n;

    return pages_within(&s->memory, t->segment->user, n->addr, n->size);
}

/* The next hole, from the largest on, that may have a whole page; NULL at the
 * end. `n` NULL: the first. */
static const struct free_node *next_hole(const struct expandable *s,
                                         const struct expandable_region *r,
                                         const struct free_node *n)
{
    n = n ? free_set_before(&r->holes, n) : free_set_last(&r->holes);
    return n && n->size >= s->memory.page ? n : NULL;
}

/* Whether a free page of the region can be unmapped. */
static bool can_shrink(const struct expandable *s,
                       const struct expandable_region *r)
{
    for (const struct free_node *n = NULL; (n = next_hole(s, r, n)) != NULL;) {
        const struct page_run run = hole_pages(s, n);

        if (backing_can_strip(&run))
            return true;
    }
    return false;
}

/* True if a region can shrink. Without a change since the last search that
 * found none, the regions are not searched again. */
static bool any_can_shrink(struct expandable *s)
{
    const struct expandable_region *r = s->may_shrink ? s->regions : NULL;

    while (r && !can_shrink(s, r))
        r = r->next;
    s->may_shrink = r != NULL;
    return s->may_shrink;
}

/* Unmaps free pages of a hole until `wanted` are spare; not those of the block,
 * if there is one. */
static bool strip_hole(struct frag_heap *heap, struct page_run hole,
                       const struct page_run *block, uint64_t wanted)
{
    struct backing *b = &((struct expandable *)heap->state)->memory;
    struct page_run low = hole;

    if (block && block->range == hole.range && block->first < hole.end &&
        block->end > hole.first) {
        hole.first = block->end < hole.end ? block->end : hole.end;
        low.end = block->first > low.first ? block->first : low.first;
        if (!backing_strip(heap, b, low, wanted))
            return false;
    }
    return backing_strip(heap, b, hole, wanted);
}

static bool strip_region(struct frag_heap *heap,
                         const struct expandable_region *r,
                         const struct page_run *block, uint64_t wanted)
{
    const struct expandable *s = heap->state;

    for (const struct free_node *n = NULL; (n = next_hole(s, r, n)) != NULL;)
        if (!strip_hole(heap, hole_pages(s, n), block, wanted))
            return false;
    return true;
}

/* Makes pages spare until there are `wanted`, or no more are free: those of
 * other regions, then of the first one, in which the block will lie. */
static void collect(struct frag_heap *heap, const struct page_run *block,
                    uint64_t wanted)
{
    const struct expandable *s = heap->state;
    const struct expandable_region *r = s->regions ? s->regions->next : NULL;

    for (; r && s->memory.spare_pages < wanted; r = r->next)
        if (!strip_region(heap, r, NULL, wanted))
            return;
    if (s->regions)
        (void)strip_region(heap, s->regions, block, wanted);
}

/* Returns all free pages to the device. */
static void return_pages(struct frag_heap *heap)
{
    collect(heap, NULL, UINT64_MAX);
    backing_release(heap, &((struct expandable *)heap->state)->memory);
}

/* ---- the policy ---- */

/* Serves a request that the device refused: by smaller pages, or else from the
 * free pages of all regions. The wait may complete frees, so the place is
 * chosen again after it. */
static enum frag_err reuse(struct frag_heap *heap, struct expandable_region *r,
                           frag_size size, struct seat *seat)
{
    struct expandable *s = heap->state;
    enum frag_err err = FRAG_OOM;

    s->full = bytes_held(s);
    if (s->memory.chunk > 1) /* the device may still have smaller pages */
        err = back(heap, seat);
    if (err != FRAG_OOM || !any_can_shrink(s))
        return err;
    FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
    FRAG_TRY(choose(heap, r, size, seat));
    collect(heap, &seat->pages, backing_missing(&seat->pages));
    err = back(heap, seat);
    if (err != FRAG_OOM)
        return err;
    return_pages(heap);
    return back(heap, seat);
}

static enum frag_err alloc(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out)
{
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);
    struct expandable *s = heap->state;
    struct expandable_region *r = region_of(s, req);
    struct seat seat;
    enum frag_err err;

    if (!r)
        return FRAG_NOMEM;
    FRAG_TRY(choose(heap, r, size, &seat));
    err = back(heap, &seat);
    if (err == FRAG_OOM)
        err = reuse(heap, r, size, &seat);
    if (err == FRAG_OOM) /* memory that did not suffice */
        backing_release(heap, &s->memory);
    FRAG_TRY(err);
    FRAG_TRY(nodes_reserve(&s->tiles.nodes, 1));
    (seat.addr == seat.hole->node.addr ? tiles_allocate : tiles_allocate_high)(
        &s->tiles, seat.hole, size);
    *out = (struct frag_block){seat.addr, size, seat.hole};
    return FRAG_OK;
}

static void free_block(struct frag_heap *heap, const struct frag_block *block)
{
    struct expandable *s = heap->state;

    tiles_free(&s->tiles, block->node);
    s->may_shrink = true;
}

static void trim(struct frag_heap *heap)
{
    struct expandable *s = heap->state;

    s->full = FRAG_UNLIMITED;
    if (any_can_shrink(s) && heap->mem->ops->synchronize(heap->mem) == FRAG_OK)
        return_pages(heap);
}

/* ---- the check ---- */

/* Checks the memory of the blocks in a range, and adds its pages to *mapped. */
static const char *check_memory(const struct expandable *s,
                                const struct tiled *segment, uint64_t *mapped)
{
    struct backed *r = segment->user;

    CHECK(r->addr == segment->addr, "a range is not at its address");
    for (const struct tile *t = segment->ends.next; t != &segment->ends;
         t = t->next) {
        const struct page_run run =
            pages_touched(&s->memory, r, t->node.addr, t->node.size);

        CHECK(!t->used || !backing_missing(&run), "a block has no memory");
    }
    return backed_check(r, mapped);
}

static const char *expandable_check(const struct frag_heap *heap)
{
    const struct expandable *s = heap->state;
    struct met tiles = {.most = SIZE_MAX}, holes;
    uint64_t mapped = 0;

    CHECK_ALL(tiles_check(&s->tiles, &tiles));
    holes = (struct met){.most = tiles.count};
    for (const struct expandable_region *r = s->regions; r; r = r->next)
        CHECK_ALL(free_set_check(&r->holes, &r->holes, &holes));
    CHECK(met_are_equal(&tiles, &holes), "the sets are not the free tiles");
    for (const struct tiled *t = s->tiles.segments; t; t = t->next)
        CHECK_ALL(check_memory(s, t, &mapped));
    return backing_check(&s->memory, mapped);
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
