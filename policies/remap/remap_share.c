/* remap_share.c - finds partly used pages that can hold the ends of a new
 * block, and makes the block. remap_share.h defines page sharing.
 */
#include "policies/remap/remap_share.h"

/* ----------------------------------------------------------- finding --- */

/* The bytes of a hole in partly used pages. The bytes at its low end reach up
 * to the end of a page and can hold a block's head; the bytes at its high end
 * begin at the start of a page and can hold a block's tail. */
struct ends {
    struct page_tile *hole;
    frag_size head, tail; /* 0: none */
};

static struct ends ends_of(const struct pages *p, struct page_tile *hole)
{
    const frag_size unit = p->stock.page;
    const frag_size low = hole->node.addr - hole->span->addr;
    const frag_size end = low + hole->node.size;
    const frag_size first = low / unit * unit; /* of its lowest page */
    const frag_size last = (end - 1) / unit * unit;
    struct ends e = {.hole = hole};

    if (low > first && end >= first + unit)
        e.head = first + unit - low;
    if (end < last + unit && low <= last)
        e.tail = end - last;
    return e;
}

static size_t find_ends(const struct pages *p, struct ends *ends)
{
    size_t count = 0;

    for (struct free_node *n = free_set_last(&p->held);
         n && count < SHARE_HOLES; n = free_set_before(&p->held, n)) {
        ends[count] = ends_of(p, (struct page_tile *)n);
        count += ends[count].head || ends[count].tail;
    }
    return count;
}

/* A request, and the best sharing found so far. */
struct share_search {
    frag_size unit, size;
    uint64_t have;
    uint64_t created; /* pages to create for `best`; UINT64_MAX: none found */
    frag_size over;   /* bytes of the ends that `best` does not use */
    struct sharing best;
};

/* Makes a head and a tail of these sizes the best sharing if they are better
 * than the best so far. One of the two may be NULL. */
static void consider(struct share_search *s, struct page_tile *head,
                     frag_size head_size, struct page_tile *tail,
                     frag_size tail_size)
{
    const frag_size both = head_size + tail_size;
    const frag_size rest = s->size > both ? s->size - both : 0;
    const uint64_t pages = (rest + s->unit - 1) / s->unit;
    const uint64_t created = pages > s->have ? pages - s->have : 0;
    const frag_size over = pages * s->unit + both - s->size;

    if ((head && over >= head_size) || (tail && over >= tail_size) ||
        created > s->created || (created == s->created && over >= s->over))
        return;
    s->created = created;
    s->over = over;
    s->best = (struct sharing){head, tail, head_size - (tail ? 0 : over),
                               tail_size - (tail ? over : 0), pages};
}

bool share_find(const struct pages *p, frag_size size, uint64_t have,
                struct sharing *out)
{
    struct share_search s = {.unit = p->stock.page,
                             .size = size,
                             .have = have,
                             .created = UINT64_MAX};
    struct ends ends[SHARE_HOLES];
    const size_t count = find_ends(p, ends);

    for (size_t i = 0; i < count; i++) {
        const struct ends *a = &ends[i];

        consider(&s, NULL, 0, a->hole, a->tail);
        if (!a->head)
            continue;
        consider(&s, a->hole, a->head, NULL, 0);
        for (size_t k = 0; k < count; k++)
            if (ends[k].tail)
                consider(&s, a->hole, a->head, ends[k].hole, ends[k].tail);
    }
    *out = s.best;
    return s.created != UINT64_MAX;
}

/* ---------------------------------------------------------- the block --- */

static frag_addr end_of(const struct page_tile *t)
{
    return t->node.addr + t->node.size;
}

static struct page_tile *tile_at(struct page_tile *t, frag_addr addr)
{
    while (t->node.addr > addr)
        t = t->prev;
    while (end_of(t) <= addr)
        t = t->next;
    return t;
}

/* The address of the page that contains an address of a span. */
static frag_addr page_at(const struct pages *p, const struct page_span *s,
                         frag_addr addr)
{
    return addr - (addr - s->addr) % p->stock.page;
}

/* Maps the bare page at `at`, close to the tile *near, to the memory of the
 * page `host` in the hole's span. All of the new guest is lost at first; *near
 * is then its tile. */
static enum frag_err show(struct frag_heap *heap, struct pages *p,
                          struct page_tile **near, frag_addr at,
                          const struct page_tile *hole, frag_addr host)
{
    const frag_size unit = p->stock.page;
    struct page_span *s = (*near)->span;

    FRAG_TRY(phys_reserve(&s->phys, (at + unit - s->addr) / unit));
    FRAG_TRY(heap->mem->ops->map(heap->mem, at, unit,
                                 *pages_at(p, hole->span, host)));
    *pages_at(p, s, at) = FRAG_GUEST;
    *near = pages_retag(p, tile_at(*near, at), at, unit, TILE_LOST);
    return FRAG_OK;
}

/* Marks [addr, addr + size) of a guest page as used, and the same bytes of the
 * host, from address `host` of the hole, as its loan. */
static struct page_tile *lend(struct pages *p, struct page_tile *lost,
                              frag_addr addr, frag_size size,
                              struct page_tile *hole, frag_addr host)
{
    struct page_tile *t =
        pages_retag(p, tile_at(lost, addr), addr, size, TILE_USED);

    t->loan = pages_retag(p, hole, host, size, TILE_USED);
    t->loan->is_loan = true;
    return t;
}

/* Links up to three tiles into one block, and returns the first of the block.
 */
static struct page_tile *join(struct page_tile *own, struct page_tile *head,
                              struct page_tile *tail)
{
    struct page_tile *parts[] = {own, head, tail};
    struct page_tile *first = NULL;

    for (int i = 2; i >= 0; i--)
        if (parts[i]) {
            parts[i]->part = first;
            first = parts[i];
        }
    return first;
}

enum frag_err share_block(struct frag_heap *heap, struct pages *p,
                          const struct sharing *l, frag_addr *addr,
                          struct page_tile **out)
{
    const frag_size unit = p->stock.page, size = l->pages * unit;
    const frag_size above = l->tail ? unit : 0, below = l->head ? unit : 0;
    struct page_tile *own = NULL, *head = NULL, *tail = l->tail, *near;
    frag_addr high = 0, low = 0, at;
    struct spot spot;

    if (l->head)
        high = page_at(p, l->head->span, l->head->node.addr);
    if (l->tail)
        low = page_at(p, l->tail->span, end_of(l->tail) - 1);
    FRAG_TRY(pages_apart(heap, p, below + size + above, &spot));
    at = spot.addr + below;
    near = spot.tile;
    if (l->pages) {
        spot.addr = at;
        FRAG_TRY(pages_fill(heap, p, spot, size, &own));
        near = own;
    }
    /* Each end needs six records: two for the guest page, two for its used
     * bytes and two for their loan. */
    FRAG_TRY(nodes_reserve(&p->nodes, 12));
    if (l->head)
        FRAG_TRY(show(heap, p, &near, at - unit, l->head, high));
    if (l->tail)
        FRAG_TRY(show(heap, p, &near, at + size, l->tail, low));

    if (own)
        own = pages_retag(p, own, at, size, TILE_USED);
    *addr = at - l->head_size;
    if (l->head)
        head = lend(p, near, *addr, l->head_size, l->head,
                    high + unit - l->head_size);
    if (l->head && l->head == l->tail)
        tail = l->head->next;
    if (l->tail)
        tail = lend(p, near, at + size, l->tail_size, tail, low);
    *out = join(own, head, tail);
    return FRAG_OK;
}
