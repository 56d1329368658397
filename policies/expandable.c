/* expandable.c - best fit in one region per stream and pool that grows by
 * pages.
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
 * Free pages stay mapped, and the memory of a region serves no other region,
 * until trim, or until the device refuses a request. Then the policy waits for
 * the device, unmaps and returns the whole free pages of all regions, and,
 * after a refusal, repeats the request once.
 *
 * Source: the idea of PyTorch's expandable segments (c10/cuda, 2.1 and later).
 */
#include "policies/mechanism/lanes.h"
#include "policies/mechanism/pages.h"

#include <stddef.h>
#include <stdlib.h>

struct expandable_region {
    struct expandable_region *prev, *next;
    struct pages pages;
};

struct expandable {
    struct expandable_region *regions; /* the most recently used first */
    struct lanes lanes;                /* the regions by stream and pool */
    bool may_shrink;                   /* false: no region can shrink */
    frag_size page, span;              /* the parameters */
};

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
    if (r)
        pages_init(&r->pages, heap->mem, s->page, s->span);
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

/* True if the region has a spare page or may have a whole free page. */
static bool can_shrink(const struct expandable_region *r)
{
    const struct free_node *n = free_set_last(&r->pages.held);

    return r->pages.spare_count || (n && n->size >= r->pages.unit);
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

/* Returns the whole free pages of all regions; true if any was returned. */
static bool return_pages(struct frag_heap *heap)
{
    struct expandable *s = heap->state;
    bool any = false;

    if (!any_can_shrink(s) || heap->mem->ops->synchronize(heap->mem) != FRAG_OK)
        return false;
    for (struct expandable_region *r = s->regions; r; r = r->next) {
        pages_strip_all(heap, &r->pages);
        any |= pages_release(heap, &r->pages);
    }
    return any;
}

static enum frag_err grow(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct page_tile **out,
                          frag_addr *addr)
{
    struct spot spot;

    FRAG_TRY(pages_place(heap, p, size, &spot));
    FRAG_TRY(pages_create(heap, p, spot.pages));
    *addr = spot.addr;
    return pages_fill(heap, p, spot, size, out);
}

static enum frag_err find(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct page_tile **out,
                          frag_addr *addr)
{
    *out = pages_fit(p, size);
    if (!*out)
        return grow(heap, p, size, out, addr);
    *addr = pages_addr(p, *out, size);
    return FRAG_OK;
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
    if (err == FRAG_OOM && return_pages(heap))
        err = find(heap, &r->pages, size, &t, &addr);
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
    return_pages(heap);
}

static const char *expandable_check(const struct frag_heap *heap)
{
    const struct expandable *s = heap->state;

    for (const struct expandable_region *r = s->regions; r; r = r->next)
        CHECK_ALL(pages_check(&r->pages));
    return NULL;
}

static const struct frag_param params[] = {
    PAGE_PARAM(struct expandable, page),
    SPAN_PARAM(struct expandable, span),
    {.name = NULL},
};

const struct frag_policy frag_policy_expandable = {
    .name = "expandable",
    .summary = "best fit in a region per stream and pool that grows by pages",
    .source = "the idea of PyTorch's expandable segments, without its rules",
    .needs = FRAG_NEEDS_VMM,
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct expandable),
    .params = params,
    .fini = fini,
    .alloc = alloc,
    .free = free_block,
    .trim = trim,
    .check = expandable_check,
};
