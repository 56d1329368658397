/* stitch.c - GMLake: free physical chunks are mapped in a row at new addresses.
 *
 * Requests smaller than a chunk use best fit over segments. Larger requests are
 * rounded up to chunks (the granularity, 2 MiB). They are served from two
 * pools: primitive blocks, which are ranges of chunks that were created
 * together, and stitched blocks, which map chunks of several primitive blocks a
 * second time, one after another. A stitched block is free while none of its
 * chunks is in use through any address. The order of choice:
 *   1. exact: a free primitive block, then a free stitched block, of the
 *      requested size; among equals the lowest primitive block, or the most
 *      recently used stitched block;
 *   2. single: the smallest larger primitive block, among equals the lowest; it
 *      is split, and its low part is allocated;
 *   3. reuse: the smallest larger stitched block of at most `reuse` times the
 *      size, among equals the most recently used; its first chunks are
 *      allocated;
 *   4. several: primitive blocks of at least `fragment` bytes are stitched, the
 *      largest first, among equals the highest first; of the last one only the
 *      low part is used;
 *   5. insufficient: the missing chunks are created and stitched to the blocks
 *      of step 4; without such blocks, all chunks are created, as a primitive
 *      block.
 * Freed neighbours of one primitive block are coalesced. The addresses of the
 * pool of stitched blocks are limited to `pool` bytes: above that, free
 * stitched blocks are destroyed, the least recently used first. If the device
 * refuses a request, the free chunks are returned to it and the request is
 * tried once more; trim returns the free chunks too. The policy waits for the
 * device before it unmaps memory. A freed block serves any stream.
 *
 * Source: GMLake, Guo et al., ASPLOS 2024, section 3 (the states 1, 2, 4 and 5,
 * the two pools); the limits and their defaults as in the public code's
 * tutorial (intelligent-machine-learning/glake, GMLake/docs): fragment_limit,
 * reuseLimit, auto_gc_limits. Where these sources leave a choice open (ties,
 * and that chunks coalesce only inside a primitive block), the rule is ours.
 * Streams, which the code separates by events, are not distinguished.
 */
#include "policies/mechanism/fit.h"
#include "policies/mechanism/pages.h"
#include "policies/policies.h"

#include <inttypes.h>
#include <stdlib.h>

/* A range of chunks of a primitive block that is part of a stitched block. */
struct stitch_part {
    struct page_span *span;
    frag_addr addr;
    frag_size size;
    struct page_tile *tile; /* its used tile, while the stitched block is in
                               use */
};

struct stitched {
    struct stitched *next;
    frag_addr addr;
    frag_size size;
    frag_size mapped; /* bytes; less than size: incomplete, never used */
    bool in_use;
    size_t count;
    struct stitch_part parts[];
};

struct stitch {
    struct frag_heap small; /* best fit, for small requests */
    struct pages pages;
    struct stitched *pool; /* the most recently used first */
    frag_size pool_bytes;
    frag_size segment, fragment, limit, span; /* the parameters */
    double reuse;
};

/* ----------------------------------------------------- stitched blocks --- */

/* Removes a stitched block from the pool and frees its addresses. False if the
 * device refuses; then the block stays in the pool, to be destroyed later. */
static bool destroy(struct frag_heap *heap, struct stitched **link)
{
    const struct frag_backend_ops *ops = heap->mem->ops;
    struct stitch *s = heap->state;
    struct stitched *b = *link;

    if (b->mapped && ops->unmap(heap->mem, b->addr, b->mapped) != FRAG_OK)
        return false;
    b->mapped = 0;
    if (ops->va_free(heap->mem, b->addr, b->size) != FRAG_OK)
        return false;
    *link = b->next;
    s->pool_bytes -= b->size;
    free(b);
    return true;
}

/* Destroys free stitched blocks, the least recently used first, until the pool
 * has at most `bytes`. */
static void shrink_pool(struct frag_heap *heap, frag_size bytes)
{
    struct stitch *s = heap->state;

    while (s->pool_bytes > bytes) {
        struct stitched **last = NULL;

        for (struct stitched **link = &s->pool; *link; link = &(*link)->next)
            if (!(*link)->in_use)
                last = link;
        if (!last || !destroy(heap, last))
            break;
    }
}

/* The held tile that contains the first `size` bytes of a part; NULL if these
 * bytes are not all free. */
static struct page_tile *free_tile(const struct stitch_part *part,
                                   frag_size size)
{
    struct page_tile *t = part->span->ends.next;

    while (!t->is_end && t->node.addr + t->node.size <= part->addr)
        t = t->next;
    return t->state == TILE_HELD && t->node.addr <= part->addr &&
                   part->addr + size <= t->node.addr + t->node.size
               ? t
               : NULL;
}

static frag_size least(frag_size a, frag_size b)
{
    return a < b ? a : b;
}

/* True if the first `size` bytes of a stitched block can be allocated. */
static bool is_free(const struct stitched *b, frag_size size)
{
    if (b->in_use || b->mapped < b->size)
        return false;
    for (const struct stitch_part *p = b->parts; size; p++) {
        const frag_size some = least(size, p->size);

        if (!free_tile(p, some))
            return false;
        size -= some;
    }
    return true;
}

/* Reserves the records that use_parts takes. NOMEM. */
static enum frag_err ready(struct stitch *s, const struct stitched *b)
{
    return nodes_reserve(&s->pages.nodes, 2 * b->count);
}

/* Marks the first `size` bytes of a free stitched block as used. The records
 * are reserved. */
static void use_parts(struct stitch *s, struct stitched *b, frag_size size)
{
    b->in_use = true;
    for (struct stitch_part *p = b->parts; p < b->parts + b->count; p++) {
        const frag_size some = least(size, p->size);

        p->tile = NULL;
        if (some)
            p->tile = pages_retag(&s->pages, free_tile(p, some), p->addr, some,
                                  TILE_USED);
        if (p->tile)
            p->tile->user = b;
        size -= some;
    }
}

/* Frees the chunks of a stitched block. */
static void drop_parts(struct stitched *b)
{
    b->in_use = false;
    for (struct stitch_part *p = b->parts; p < b->parts + b->count; p++) {
        if (p->tile)
            pages_free(p->tile);
        p->tile = NULL;
    }
}

/* The smallest free stitched block of `size` to `most` bytes, among equals the
 * most recently used; NULL if there is none. */
static struct stitched *find_stitched(const struct stitch *s, frag_size size,
                                      frag_size most)
{
    struct stitched *best = NULL;

    for (struct stitched *b = s->pool; b; b = b->next)
        if (b->size >= size && b->size <= most &&
            (!best || b->size < best->size) && is_free(b, size))
            best = b;
    return best;
}

/* Moves a stitched block to the front of the pool: the most recently used. */
static void touch(struct stitch *s, struct stitched *b)
{
    struct stitched **link = &s->pool;

    while (*link != b)
        link = &(*link)->next;
    *link = b->next;
    b->next = s->pool;
    s->pool = b;
}

static enum frag_err reuse(struct frag_heap *heap, struct stitched *b,
                           frag_size size, struct frag_block *out)
{
    struct stitch *s = heap->state;

    FRAG_TRY(ready(s, b));
    touch(s, b);
    use_parts(s, b, size);
    *out = (struct frag_block){b->addr, size, b->parts[0].tile};
    return FRAG_OK;
}

/* ----------------------------------------------------------- stitching --- */

/* Creates chunks as a new primitive block of `size` bytes. */
static enum frag_err create(struct frag_heap *heap, frag_size size,
                            struct page_tile **out)
{
    struct pages *p = &((struct stitch *)heap->state)->pages;
    struct spot spot;

    FRAG_TRY(stock_create(heap, &p->stock, size / p->stock.page));
    FRAG_TRY(pages_apart(heap, p, size, &spot));
    return pages_fill(heap, p, spot, size, out);
}

/* Collects the largest free primitive blocks of at least `fragment` bytes as
 * parts, up to `size` bytes in all. Returns the collected bytes. With parts
 * NULL it only counts the parts. */
static frag_size collect(const struct stitch *s, frag_size size,
                         struct stitch_part *parts, size_t *count)
{
    frag_size got = 0;

    *count = 0;
    for (struct free_node *n = free_set_last(&s->pages.held);
         n && got < size && n->size >= s->fragment;
         n = free_set_before(&s->pages.held, n)) {
        const frag_size some = least(size - got, n->size);

        if (parts)
            parts[*count] = (struct stitch_part){((struct page_tile *)n)->span,
                                                 n->addr, some, NULL};
        ++*count;
        got += some;
    }
    return got;
}

/* Collects the parts of a new stitched block of `size` bytes, creates the
 * missing chunks, and reserves addresses. It maps nothing yet. */
static enum frag_err gather_parts(struct frag_heap *heap, struct stitched *b,
                                  frag_size size)
{
    struct stitch *s = heap->state;
    const frag_size got = collect(s, size, b->parts, &b->count);
    struct page_tile *t;

    b->size = size;
    if (got < size) {
        FRAG_TRY(create(heap, size - got, &t));
        b->parts[b->count++] =
            (struct stitch_part){t->span, t->node.addr, size - got, NULL};
    }
    FRAG_TRY(ready(s, b));
    return heap->mem->ops->va_reserve(heap->mem, size, &b->addr);
}

/* Maps the chunks of all parts at the addresses of the stitched block. */
static enum frag_err map_parts(struct frag_heap *heap, struct stitched *b)
{
    struct pages *p = &((struct stitch *)heap->state)->pages;

    for (const struct stitch_part *part = b->parts; part < b->parts + b->count;
         part++)
        for (frag_size at = 0; at < part->size; at += p->stock.page) {
            FRAG_TRY(heap->mem->ops->map(
                heap->mem, b->addr + b->mapped, p->stock.page,
                *pages_at(p, part->span, part->addr + at)));
            b->mapped += p->stock.page;
        }
    return FRAG_OK;
}

/* Destroys stitched blocks to make room in the pool for `size` bytes, as far as
 * possible. */
static enum frag_err make_room(struct frag_heap *heap, frag_size size)
{
    struct stitch *s = heap->state;

    if (s->pool_bytes + size <= s->limit || !s->pool)
        return FRAG_OK;
    FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
    shrink_pool(heap, s->limit > size ? s->limit - size : 0);
    return FRAG_OK;
}

static enum frag_err stitch(struct frag_heap *heap, frag_size size,
                            struct frag_block *out)
{
    struct stitch *s = heap->state;
    struct stitched *b;
    size_t count;
    enum frag_err err;

    FRAG_TRY(make_room(heap, size));
    collect(s, size, NULL, &count);
    b = calloc(1, sizeof(*b) + (count + 1) * sizeof(b->parts[0]));
    if (!b)
        return FRAG_NOMEM;
    err = gather_parts(heap, b, size);
    if (err != FRAG_OK) {
        free(b);
        return err;
    }
    b->next = s->pool;
    s->pool = b;
    s->pool_bytes += size;
    FRAG_TRY(map_parts(heap, b));
    return reuse(heap, b, size, out);
}

/* ------------------------------------------------------ large requests --- */

static enum frag_err use_tile(struct stitch *s, struct page_tile *t,
                              frag_size size, struct frag_block *out)
{
    FRAG_TRY(pages_ready(&s->pages));
    t = pages_retag(&s->pages, t, t->node.addr, size, TILE_USED);
    t->user = NULL;
    *out = (struct frag_block){t->node.addr, size, t};
    return FRAG_OK;
}

/* Bytes of the largest stitched block that a request may reuse. */
static frag_size reusable(const struct stitch *s, frag_size size)
{
    const double most = s->reuse * (double)size;

    return most >= 0x1p63 ? (frag_size)1 << 63 : (frag_size)most;
}

static enum frag_err alloc_large(struct frag_heap *heap, frag_size size,
                                 struct frag_block *out)
{
    struct stitch *s = heap->state;
    struct page_tile *t = pages_fit(&s->pages, size);
    const struct free_node *largest;
    struct stitched *b = NULL;

    if (t && t->node.size == size)
        return use_tile(s, t, size, out);
    b = find_stitched(s, size, t ? size : reusable(s, size));
    if (b)
        return reuse(heap, b, size, out);
    if (t)
        return use_tile(s, t, size, out);
    largest = free_set_last(&s->pages.held);
    if (largest && largest->size >= s->fragment)
        return stitch(heap, size, out);
    FRAG_TRY(create(heap, size, &t));
    return use_tile(s, t, size, out);
}

/* Returns all memory that no live block needs; true if any was returned, or if
 * the best fit for small requests has a segment. */
static bool return_free(struct frag_heap *heap)
{
    struct stitch *s = heap->state;
    const bool small = ((const struct fit *)s->small.state)->segments;

    if ((!s->pages.stock.count && !small) ||
        heap->mem->ops->synchronize(heap->mem) != FRAG_OK)
        return false;
    shrink_pool(heap, 0);
    pages_strip_all(heap, &s->pages);
    fit_trim(&s->small);
    return stock_release(heap, &s->pages.stock) || small;
}

/* ------------------------------------------------------- the interface --- */

static enum frag_err init(struct frag_heap *heap)
{
    struct stitch *s = heap->state;
    char segment[40];

    pages_init(&s->pages, heap->mem, heap->mem->granularity, s->span);
    snprintf(segment, sizeof(segment), "segment=%" PRIu64, s->segment);
    return frag_heap_open(&s->small, &frag_policy_best_fit, heap->mem, segment,
                          NULL);
}

static void fini(struct frag_heap *heap)
{
    struct stitch *s = heap->state;

    while (s->pool && destroy(heap, &s->pool))
        ;
    pages_fini(heap, &s->pages);
    frag_heap_close(&s->small);
}

static enum frag_err try_alloc(struct frag_heap *heap,
                               const struct frag_request *req,
                               struct frag_block *out)
{
    struct stitch *s = heap->state;
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);

    return size < s->pages.stock.page
               ? fit_alloc(&s->small, req, out)
               : alloc_large(heap, frag_round_up(size, s->pages.stock.page),
                             out);
}

static enum frag_err alloc(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out)
{
    const enum frag_err err = try_alloc(heap, req, out);

    return err == FRAG_OOM && return_free(heap) ? try_alloc(heap, req, out)
                                                : err;
}

static void free_block(struct frag_heap *heap, const struct frag_block *block)
{
    struct stitch *s = heap->state;
    struct page_tile *t = block->node;

    if (block->size < s->pages.stock.page)
        fit_free(&s->small, block);
    else if (t->user)
        drop_parts(t->user);
    else
        pages_free(t);
}

static void trim(struct frag_heap *heap)
{
    return_free(heap);
}

static const char *stitch_check(const struct frag_heap *heap)
{
    const struct stitch *s = heap->state;

    CHECK_ALL(fit_check(&s->small));
    return pages_check(&s->pages);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct stitch, segment),
    FRAG_RANGE_PARAM(SIZE, "fragment", struct stitch, fragment, "512MiB",
                     FRAG_QUANTUM, 0x1p62,
                     "free primitive blocks of fewer bytes are not stitched"),
    FRAG_RANGE_PARAM(RATIO, "reuse", struct stitch, reuse, "10", 1, 1000000,
                     "a request can reuse a free stitched block of at most "
                     "this many times its size"),
    FRAG_RANGE_PARAM(SIZE, "pool", struct stitch, limit, "1000GiB", 0, 0x1p62,
                     "free stitched blocks are destroyed while all stitched "
                     "blocks together have more bytes"),
    SPAN_PARAM(struct stitch, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_stitch = {
    .name = "stitch",
    .summary = "GMLake: free chunks are mapped in a row at new addresses",
    .source = "GMLake, ASPLOS 2024; limits as in the public code's tutorial",
    .needs = FRAG_NEEDS_VMM,
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct stitch),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = alloc,
    .free = free_block,
    .trim = trim,
    .check = stitch_check,
};
