/* expandable.c - best fit in one region per stream and pool; memory is mapped
 * in chunks under the blocks, large ones while the device is empty, smaller
 * ones as it fills, and a part of what is idle once it refuses.
 *
 * This is the idea of PyTorch's expandable segments without PyTorch's other
 * rules (for these see torch/). Each stream of each pool has address space of
 * its own, a region, and memory is mapped where blocks need it.
 *
 * The place of a block. A request uses the smallest hole of its region that is
 * large enough, among equal sizes the lowest, and lies at its low end, whether
 * the hole has memory or not; new address space is one hole. So the place
 * depends on the earlier requests and frees alone, not on the memory that the
 * device has.
 *
 * The size of a chunk. Memory is created and mapped in chunks of one or more
 * pages. The driver's time is a time for each chunk, whatever its size, so
 * large chunks cost less. But only a whole chunk can go back, and it cannot
 * while a live block lies in it. With B the bytes that the device has for the
 * program (its capacity, the limit of the process or the size of the device,
 * whichever is least) and F the share of B that is left, a new chunk has
 *
 *   F^3 B / CHUNKS_OF_DEVICE bytes, but at least `page` and at most `largest`,
 *
 * and no more than the request misses. If that is less than `ahead`, memory is
 * mapped ahead above the block, so that the chunk has up to `ahead` bytes.
 *
 * A device that refuses. Free chunks stay mapped until then. From the first
 * refusal until trim, B is what the policy held at the last refusal. Memory
 * moves between the blocks now, and a page at a time would be dear in each step
 * of a program. With L the most bytes that live blocks have had, the new block
 * included, B - L bytes stay idle, and a new chunk has
 *
 *   (B - L) / CHUNKS_OF_IDLE bytes, with the same limits,
 *
 * and nothing is mapped ahead. After the first refusal the policy tries again
 * with chunks of this size. If these are refused too, it waits for the device
 * once, if frees wait or memory is free, and unmaps as many free pages as the
 * request misses: first those of other regions, in each region those of the
 * largest hole first. It maps them at the block; chunks that are smaller than a
 * new one, or larger than the gap, are released and new ones created of their
 * memory. If that does not suffice, it returns the free chunks of all regions
 * and tries once more.
 *
 * Both of the following hold while addresses suffice, no request misses more
 * than PAGES_AT_ONCE pages (mechanism/stock.h), and the device refuses no unmap
 * and no release.
 *
 * The most that a program needs. When a request has failed, each chunk that is
 * still mapped is in use. A chunk that does not lie within one live block has
 * an end of a live block in it, and a block has two ends. So the bytes held are
 * at most those of the live blocks and, for each live block, the two chunks at
 * its ends. A request fails only if the capacity is less than this for the live
 * blocks and the new one together.
 *
 * More memory never makes a program fail, if `largest` is at most `page` and no
 * free waits for queued work (a refusal may complete it earlier). Before any
 * request the live blocks lie at the same places for every capacity, and the
 * request is refused if and only if the pages that they and the new block touch
 * exceed the capacity. So a program survives at every capacity from the most
 * pages on that its live blocks touch at one time. For larger chunks it is not
 * so: a chunk in use in part stays mapped, and its size depends on the
 * capacity. One of 20 recorded programs (paper/data/needs.csv) fails up to
 * 12 MiB, 0.2 % of it, above a capacity at which it survives.
 * tests/unit/policies/test_expandable.c tests the bound for all sizes and this
 * claim for one.
 *
 * Source: the idea of PyTorch's expandable segments (c10/cuda, 2.1 and later).
 * The places, the sizes of chunks and the bounds are ours; the constants are
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
    struct lane lane;
    struct free_set holes;
};

enum { CHUNKS_OF_DEVICE = 384, CHUNKS_OF_IDLE = 16 };

struct expandable {
    struct lanes lanes; /* the regions, the most recently used first */
    struct tiles tiles; /* of all regions; `user` of a segment is
                           its struct backed */
    struct stock memory;
    bool may_shrink; /* false: no region can shrink */
    bool waiting;    /* a free was requested since the device was waited for */
    frag_size live, most_live; /* bytes of the live blocks; the most so far */
    frag_size full;            /* bytes held when the device refused last, or
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

static struct expandable_region *first_region(const struct expandable *s)
{
    return (struct expandable_region *)s->lanes.first;
}

/* The next region; NULL at the end. */
static struct expandable_region *next_region(const struct expandable_region *r)
{
    return (struct expandable_region *)r->lane.next;
}

static void fini(struct frag_heap *heap)
{
    struct expandable *s = heap->state;

    for (struct tiled *t = s->tiles.segments; t; t = t->next) {
        backing_clear(heap, &s->memory, t->user);
        free(t->user);
    }
    stock_release(heap, &s->memory);
    stock_fini(&s->memory);
    tiles_fini(heap, &s->tiles);
    for (struct expandable_region *r = first_region(s); r; r = next_region(r))
        free_set_fini(&r->holes);
    lanes_fini(&s->lanes);
}

/* ---- regions and places ---- */

/* The region of a stream and pool, moved to the front; created if there is none
 * yet. NULL if the host has no memory. */
static struct expandable_region *region_of(struct expandable *s,
                                           const struct frag_request *req)
{
    struct expandable_region *r =
        lanes_get(&s->lanes, req->pool, req->stream, sizeof(*r));

    if (r)
        lanes_touch(&s->lanes, &r->lane);
    return r;
}

/* Reserves address space for at least `least` bytes: one hole, *out. OOM also
 * if it could not be mapped at once. */
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

/* Where a block will lie: at the low end of the hole. */
struct seat {
    struct tile *hole;
    frag_size size;
    struct page_run pages; /* that it touches */
};

/* Errors are NOMEM, OOM if the block misses more than PAGES_AT_ONCE pages, and
 * those of va_reserve. */
static enum frag_err choose(struct frag_heap *heap, struct expandable_region *r,
                            frag_size size, struct seat *out)
{
    struct expandable *s = heap->state;

    out->size = size;
    out->hole = (struct tile *)free_set_fit(&r->holes, size);
    if (!out->hole)
        FRAG_TRY(widen(heap, r, size, &out->hole));
    out->pages = pages_touched(&s->memory, out->hole->segment->user,
                               out->hole->node.addr, size);
    return backing_missing(&out->pages) > PAGES_AT_ONCE ? FRAG_OOM : FRAG_OK;
}

/* ---- memory for a block ---- */

static frag_size bytes_held(const struct expandable *s)
{
    return s->memory.count * s->memory.page;
}

static bool is_full(const struct expandable *s)
{
    return s->full != FRAG_UNLIMITED;
}

/* A new chunk on a device that has refused nothing. */
static double chunk_of_device(const struct expandable *s, double bound)
{
    const double left = 1 - (double)bytes_held(s) / bound;

    return left > 0 ? left * left * left * bound / CHUNKS_OF_DEVICE : 0;
}

/* A new chunk, for this block, on a device that has refused one. */
static double chunk_of_idle(const struct expandable *s, const struct seat *seat)
{
    const frag_size live = s->live + seat->size;
    const frag_size most = live > s->most_live ? live : s->most_live;

    return s->full > most ? (double)(s->full - most) / CHUNKS_OF_IDLE : 0;
}

/* Sets the size of new chunks. */
static void set_chunk(struct frag_heap *heap, const struct seat *seat)
{
    struct expandable *s = heap->state;
    const double most = (double)s->largest;
    double size;

    if (s->largest <= s->memory.page) /* then no bound is asked for */
        return;
    size = is_full(s)
               ? chunk_of_idle(s, seat)
               : chunk_of_device(s, (double)frag_backend_bound(heap->mem));
    s->memory.chunk = (uint64_t)(size < most ? size : most) / s->memory.page;
}

/* The pages to be mapped ahead above a block whose last pages have no memory,
 * if these are less than a chunk. */
static uint64_t pages_ahead(const struct expandable *s, const struct seat *seat)
{
    const struct stock *b = &s->memory;
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
    set_chunk(heap, seat);
    if (!is_full(s))
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
    const struct expandable_region *r = s->may_shrink ? first_region(s) : NULL;

    while (r && !can_shrink(s, r))
        r = next_region(r);
    s->may_shrink = r != NULL;
    return s->may_shrink;
}

/* Unmaps free pages of a hole until `wanted` are spare; not those of the block,
 * if there is one. False if the device refuses. */
static bool strip_hole(struct frag_heap *heap, struct page_run hole,
                       const struct page_run *block, uint64_t wanted)
{
    struct stock *memory = &((struct expandable *)heap->state)->memory;
    struct page_run low = hole;

    if (!block || block->range != hole.range || block->first >= hole.end ||
        block->end <= hole.first)
        return backing_strip(heap, memory, hole, wanted);
    hole.first = block->end < hole.end ? block->end : hole.end;
    low.end = block->first > low.first ? block->first : low.first;
    return backing_strip(heap, memory, low, wanted) &&
           backing_strip(heap, memory, hole, wanted);
}

static bool strip_region(struct frag_heap *heap,
                         const struct expandable_region *r,
                         const struct page_run *block, uint64_t wanted)
{
    const struct expandable *s = heap->state;
    bool all = true;

    for (const struct free_node *n = NULL;
         s->memory.spare_pages < wanted && (n = next_hole(s, r, n)) != NULL;)
        all &= strip_hole(heap, hole_pages(s, n), block, wanted);
    return all;
}

/* Makes pages spare until there are `wanted`, or no more are free: those of
 * other regions, then of the first one, in which the block will lie. DEVICE if
 * the device refused an unmap, after all others. */
static enum frag_err collect(struct frag_heap *heap,
                             const struct page_run *block, uint64_t wanted)
{
    const struct expandable *s = heap->state;
    bool all = true;

    for (const struct expandable_region *r = first_region(s);
         (r = next_region(r)) != NULL;)
        all &= strip_region(heap, r, NULL, wanted);
    all &= strip_region(heap, first_region(s), block, wanted);
    return all ? FRAG_OK : FRAG_DEVICE;
}

/* Waits for the device if frees wait or memory is free; *useful is false if it
 * did not. */
static enum frag_err wait(struct frag_heap *heap, bool *useful)
{
    struct expandable *s = heap->state;

    *useful = s->waiting || any_can_shrink(s);
    if (!*useful)
        return FRAG_OK;
    s->waiting = false;
    return heap->mem->ops->synchronize(heap->mem);
}

/* ---- the policy ---- */

/* Serves a request that the device refused: by chunks of another size, after
 * the first refusal, or else from the free chunks of all regions. The wait may
 * complete frees, so the place is chosen again after it. */
static enum frag_err reuse(struct frag_heap *heap, struct expandable_region *r,
                           struct seat *seat)
{
    struct expandable *s = heap->state;
    const bool may_be_smaller = !is_full(s) && s->memory.chunk > 1;
    enum frag_err err = FRAG_OOM, stripped;
    bool useful;

    s->full = bytes_held(s);
    if (may_be_smaller)
        err = back(heap, seat);
    if (err != FRAG_OOM)
        return err;
    FRAG_TRY(wait(heap, &useful));
    if (!useful)
        return FRAG_OOM;
    FRAG_TRY(choose(heap, r, seat->size, seat));
    (void)collect(heap, &seat->pages, backing_missing(&seat->pages));
    err = back(heap, seat);
    if (err != FRAG_OOM)
        return err;
    stripped = collect(heap, NULL, UINT64_MAX);
    stock_release(heap, &s->memory);
    err = back(heap, seat);
    return err == FRAG_OOM && stripped != FRAG_OK ? stripped : err;
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
        err = reuse(heap, r, &seat);
    if (err == FRAG_OOM) /* memory that did not suffice */
        stock_release(heap, &s->memory);
    FRAG_TRY(err);
    FRAG_TRY(nodes_reserve(&s->tiles.nodes, 1));
    tiles_allocate(&s->tiles, seat.hole, size);
    s->live += size;
    if (s->live > s->most_live)
        s->most_live = s->live;
    *out = (struct frag_block){seat.hole->node.addr, size, seat.hole};
    return FRAG_OK;
}

static void free_block(struct frag_heap *heap, const struct frag_block *block)
{
    struct expandable *s = heap->state;

    s->live -= block->size;
    tiles_free(&s->tiles, block->node);
    s->may_shrink = true;
}

static void free_requested(struct frag_heap *heap,
                           const struct frag_block *block)
{
    (void)block;
    ((struct expandable *)heap->state)->waiting = true;
}

static void trim(struct frag_heap *heap)
{
    struct expandable *s = heap->state;
    bool useful;

    s->full = FRAG_UNLIMITED;
    if (wait(heap, &useful) == FRAG_OK && useful)
        (void)collect(heap, NULL, UINT64_MAX);
    stock_release(heap, &s->memory);
}

/* ---- the check ---- */

/* Checks the memory of the blocks in a range. Adds its pages to *mapped, and
 * the bytes of the blocks to *live. */
static const char *check_memory(const struct expandable *s,
                                const struct tiled *segment, uint64_t *mapped,
                                frag_size *live)
{
    struct backed *r = segment->user;

    CHECK(r->addr == segment->addr, "a range is not at its address");
    for (const struct tile *t = segment->ends.next; t != &segment->ends;
         t = t->next) {
        const struct page_run run =
            pages_touched(&s->memory, r, t->node.addr, t->node.size);

        CHECK(!t->used || !backing_missing(&run), "a block has no memory");
        *live += t->used ? t->node.size : 0;
    }
    return backed_check(r, mapped);
}

static const char *check_region(const struct expandable *s,
                                const struct expandable_region *r,
                                struct met *holes)
{
    CHECK(s->may_shrink || !can_shrink(s, r),
          "`may_shrink` is false, and a region can shrink");
    return free_set_check(&r->holes, &r->holes, holes);
}

static const char *expandable_check(const struct frag_heap *heap)
{
    const struct expandable *s = heap->state;
    struct met tiles = {.most = SIZE_MAX}, holes;
    uint64_t mapped = 0;
    frag_size live = 0;

    CHECK_ALL(tiles_check(&s->tiles, &tiles));
    holes = (struct met){.most = tiles.count};
    for (const struct expandable_region *r = first_region(s); r;
         r = next_region(r))
        CHECK_ALL(check_region(s, r, &holes));
    CHECK(met_are_equal(&tiles, &holes), "the sets are not the free tiles");
    for (const struct tiled *t = s->tiles.segments; t; t = t->next)
        CHECK_ALL(check_memory(s, t, &mapped, &live));
    CHECK(live == s->live, "`live` is not the bytes of the blocks");
    CHECK(live <= s->most_live, "the blocks have more than the most so far");
    return stock_check(&s->memory, mapped);
}

static const struct frag_param params[] = {
    PAGE_PARAM(struct expandable, page),
    FRAG_RANGE_PARAM(
        SIZE, "largest", struct expandable, largest, "64MiB", FRAG_QUANTUM,
        0x1p40,
        "bytes that are created and mapped as one while the device "
        "is empty; less as it fills"),
    FRAG_RANGE_PARAM(SIZE, "ahead", struct expandable, ahead, "20MiB", 0,
                     0x1p40,
                     "bytes that are mapped at once for a smaller request, in "
                     "part for later ones"),
    SPAN_PARAM(struct expandable, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_expandable = {
    .name = "expandable",
    .summary = "best fit in a region per stream and pool; chunks shrink as the "
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
    .free_requested = free_requested,
    .trim = trim,
    .check = expandable_check,
};
