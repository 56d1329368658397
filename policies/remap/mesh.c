/* mesh.c - finds pairs of partly used pages and meshes them: both pages then
 * share the memory of one. mesh.h has the rules.
 */
#include "policies/remap/mesh.h"

#include <assert.h>
#include <stdlib.h>

/* A partly used page. */
struct mesh_part {
    struct page_span *span;
    frag_addr addr;
    struct page_tile *used; /* the lowest used tile in it */
    uint64_t bits;          /* bit i: slice i of the page is used */
    frag_size live;         /* bytes used */
    unsigned tiles;         /* used tiles */
    bool is_host;           /* it has guests, so it cannot be one */
    bool moved;             /* it is a guest now */
};

struct parts {
    size_t count;
    struct mesh_part part[MESH_PAGES];
};

/* The bytes of a tile that lie in one page. */
struct mesh_range {
    frag_addr addr;
    frag_size size;
};

static frag_addr end_of(const struct page_tile *t)
{
    return t->node.addr + t->node.size;
}

static struct mesh_range range_of(const struct pages *p,
                                  const struct page_tile *t, frag_addr page)
{
    const frag_addr low = t->node.addr > page ? t->node.addr : page;
    const frag_addr high = page + p->unit;

    return (struct mesh_range){low,
                               (end_of(t) < high ? end_of(t) : high) - low};
}

/* ----------------------------------------------------------- finding --- */

/* The bits of the slices that `size` bytes from offset `low` of a page touch.
 */
static uint64_t bits_of(const struct pages *p, frag_size low, frag_size size)
{
    const unsigned first = (unsigned)(low * MESH_BITS / p->unit);
    const unsigned last = (unsigned)((low + size - 1) * MESH_BITS / p->unit);

    return UINT64_MAX >> (MESH_BITS - 1 - last) & UINT64_MAX << first;
}

static void add_tile(const struct pages *p, struct mesh_part *part,
                     struct page_tile *t)
{
    const struct mesh_range s = range_of(p, t, part->addr);

    if (!part->used)
        part->used = t;
    part->bits |= bits_of(p, s.addr - part->addr, s.size);
    part->live += s.size;
    part->tiles++;
    part->is_host |= t->is_loan;
}

/* Adds the page at `addr`, in which the held tile `hole` begins or ends, unless
 * the page is there already. */
static void note_page(const struct pages *p, struct page_tile *hole,
                      frag_addr addr, struct parts *parts)
{
    struct mesh_part *part = &parts->part[parts->count];
    struct page_tile *t = hole;

    for (size_t i = 0; i < parts->count; i++)
        if (parts->part[i].addr == addr)
            return;
    while (t->node.addr > addr)
        t = t->prev;
    *part = (struct mesh_part){.span = hole->span, .addr = addr};
    for (; !t->is_end && t->node.addr < addr + p->unit; t = t->next)
        if (t->state == TILE_USED)
            add_tile(p, part, t);
    parts->count++;
}

static bool is_touched(const struct pages *p, frag_addr page,
                       const struct spot *spot, frag_size size)
{
    return page < spot->addr + size && spot->addr < page + p->unit;
}

/* Adds the partly used pages at both ends of a held tile. */
static void note_ends(const struct pages *p, struct page_tile *hole,
                      const struct spot *spot, frag_size size,
                      struct parts *parts)
{
    const frag_size low = hole->node.addr - hole->span->addr;
    const frag_size ends[] = {low, low + hole->node.size};

    for (int i = 0; i < 2; i++) {
        const frag_addr page = hole->span->addr + ends[i] - ends[i] % p->unit;

        if (ends[i] % p->unit && parts->count < MESH_PAGES &&
            !is_touched(p, page, spot, size))
            note_page(p, hole, page, parts);
    }
}

static int emptier(const void *a, const void *b)
{
    const struct mesh_part *x = a, *y = b;

    if (x->live != y->live)
        return x->live < y->live ? -1 : 1;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void find_parts(const struct pages *p, const struct spot *spot,
                       frag_size size, struct parts *parts)
{
    parts->count = 0;
    for (struct free_node *n = free_set_last(&p->held);
         n && n->size >= p->unit / MESH_BITS && parts->count < MESH_PAGES;
         n = free_set_before(&p->held, n))
        note_ends(p, (struct page_tile *)n, spot, size, parts);
    qsort(parts->part, parts->count, sizeof(parts->part[0]), emptier);
}

/* The last page after `guest` in the order of used bytes that can be its host;
 * NULL: none can. */
static struct mesh_part *host_of(struct parts *parts,
                                 const struct mesh_part *guest)
{
    if (guest->is_host || guest->moved || guest->tiles > MESH_TILES)
        return NULL;
    for (size_t i = parts->count; &parts->part[i - 1] > guest; i--) {
        struct mesh_part *host = &parts->part[i - 1];

        if (!host->moved && !(host->bits & guest->bits))
            return host;
    }
    return NULL;
}

/* ----------------------------------------------------------- meshing --- */

static enum frag_err copy_part(struct frag_heap *heap, const struct pages *p,
                               const struct mesh_part *guest,
                               const struct mesh_part *host, frag_stream stream)
{
    const frag_addr end = guest->addr + p->unit;

    for (const struct page_tile *t = guest->used;
         !t->is_end && t->node.addr < end; t = t->next) {
        const struct mesh_range s = range_of(p, t, guest->addr);

        if (t->state == TILE_USED)
            FRAG_TRY(heap->mem->ops->copy(heap->mem,
                                          s.addr - guest->addr + host->addr,
                                          s.addr, s.size, stream));
    }
    return heap->mem->ops->synchronize(heap->mem);
}

/* Maps the guest's addresses to the host's memory; the guest's own memory is
 * then spare. On error the guest keeps its memory, or the result is DEVICE. */
static enum frag_err remap(struct frag_heap *heap, struct pages *p,
                           const struct mesh_part *guest,
                           const struct mesh_part *host)
{
    const struct frag_backend_ops *ops = heap->mem->ops;
    frag_phys *own = pages_at(p, guest->span, guest->addr);
    enum frag_err err;

    FRAG_TRY(ops->unmap(heap->mem, guest->addr, p->unit));
    err = ops->map(heap->mem, guest->addr, p->unit,
                   *pages_at(p, host->span, host->addr));
    if (err != FRAG_OK)
        return ops->map(heap->mem, guest->addr, p->unit, *own) == FRAG_OK
                   ? err
                   : FRAG_DEVICE;
    pages_spare(p, *own, 1);
    *own = FRAG_GUEST;
    return FRAG_OK;
}

/* The tile that contains an address of a page. */
static struct page_tile *tile_at(const struct mesh_part *part, frag_addr addr)
{
    struct page_tile *t = part->used;

    while (t->node.addr > addr)
        t = t->prev;
    while (end_of(t) <= addr)
        t = t->next;
    return t;
}

/* Marks the bytes of a guest's used tile as used in the host, from `addr` on.
 */
static void lend(struct pages *p, struct page_tile *own,
                 const struct mesh_part *host, frag_addr addr)
{
    own->loan =
        pages_retag(p, tile_at(host, addr), addr, own->node.size, TILE_USED);
    own->loan->is_loan = true;
}

/* Updates the tiles of a page that is now a guest. */
static void settle(struct pages *p, struct mesh_part *guest,
                   struct mesh_part *host)
{
    const frag_addr end = guest->addr + p->unit;
    struct page_tile *t = tile_at(guest, guest->addr);

    while (!t->is_end && t->node.addr < end) {
        const struct mesh_range s = range_of(p, t, guest->addr);

        if (t->state == TILE_USED) {
            t = pages_split(p, t, s.addr, s.size);
            lend(p, t, host, s.addr - guest->addr + host->addr);
        } else {
            t = pages_retag(p, t, s.addr, s.size, TILE_LOST);
        }
        t = t->next;
    }
    host->bits |= guest->bits;
    host->live += guest->live;
    host->is_host = guest->moved = true;
}

enum frag_err mesh_pages(struct frag_heap *heap, struct pages *p,
                         const struct spot *spot, frag_size size,
                         uint64_t budget, frag_stream stream, uint64_t *moved)
{
    struct parts parts;

    assert(!p->pending);
    *moved = 0;
    find_parts(p, spot, size, &parts);
    for (size_t i = 0;
         i < parts.count && p->spare_count < spot->pages && *moved < budget;
         i++) {
        struct mesh_part *guest = &parts.part[i];
        struct mesh_part *host = host_of(&parts, guest);

        if (!host)
            continue;
        /* Each used tile needs five records: one for its part in the page, two
         * for its loan, two for the free tile above it. */
        FRAG_TRY(nodes_reserve(&p->nodes, 5 * (size_t)guest->tiles + 2));
        FRAG_TRY(copy_part(heap, p, guest, host, stream));
        FRAG_TRY(remap(heap, p, guest, host));
        settle(p, guest, host);
        ++*moved;
    }
    return FRAG_OK;
}
