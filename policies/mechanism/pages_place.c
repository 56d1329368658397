/* pages_place.c - selects the place of a block in the tiles of pages.h. It maps
 * nothing and changes no tile; it may reserve a new span.
 */
#include "policies/mechanism/pages.h"

#include <assert.h>

static frag_addr end_of(const struct page_tile *t)
{
    return t->node.addr + t->node.size;
}

frag_addr pages_addr(const struct pages *p, const struct page_tile *t,
                     frag_size size)
{
    const frag_size low = t->node.addr - t->span->addr;
    const frag_size end = low + t->node.size;
    const uint64_t above = pages_between(p, low + size, end);
    const uint64_t below = pages_between(p, low, end - size);

    assert(t->state == TILE_HELD && size > 0 && size <= t->node.size);
    return below > above ? t->span->addr + end - size : t->node.addr;
}

/* A spot and the values that rank it. */
struct candidate {
    struct spot spot;
    frag_size continued; /* bytes of the held tile that it starts or ends in;
                            0: none */
};

static bool is_room(const struct page_tile *t)
{
    return t->state == TILE_HELD || t->state == TILE_BARE;
}

/* The block at the low end of tile t, extending upwards. */
static struct candidate low_end(const struct pages *p, struct page_tile *t,
                                frag_size size)
{
    struct candidate c = {.spot = {.tile = t, .addr = t->node.addr}};
    frag_size left = size;

    c.continued = t->state == TILE_HELD ? t->node.size : 0;
    for (; left && is_room(t); t = t->next) {
        const frag_size part = left < t->node.size ? left : t->node.size;

        if (t->state == TILE_BARE)
            c.spot.pages += (part + p->stock.page - 1) / p->stock.page;
        left -= part;
    }
    if (left)
        c.spot.tile = NULL;
    return c;
}

/* The block at the high end of the held tile t, extending downwards. */
static struct candidate high_end(const struct pages *p, struct page_tile *t,
                                 frag_size size)
{
    struct candidate c = {.spot = {.addr = end_of(t) - size},
                          .continued = t->node.size};
    frag_size left = size;

    for (; left && is_room(t); t = t->prev) {
        const frag_size part = left < t->node.size ? left : t->node.size;

        if (t->state == TILE_BARE)
            c.spot.pages += (part + p->stock.page - 1) / p->stock.page;
        left -= part;
        c.spot.tile = t;
    }
    if (left)
        c.spot.tile = NULL;
    return c;
}

static bool is_better(const struct pages *p, frag_size size,
                      const struct candidate *a, const struct candidate *b)
{
    if (!a->spot.tile || !b->spot.tile)
        return a->spot.tile != NULL;
    if (a->spot.pages != b->spot.pages)
        return a->spot.pages < b->spot.pages;
    if (a->continued != b->continued)
        return (a->continued < b->continued) ==
               (a->spot.pages * p->stock.page < size);
    return a->spot.addr < b->spot.addr;
}

static struct candidate best_spot(const struct pages *p, frag_size size)
{
    struct candidate best = {0};

    for (struct page_tile *t = p->bare; t; t = t->above) {
        const bool after_held = t->prev->state == TILE_HELD;
        struct candidate c = low_end(p, after_held ? t->prev : t, size);

        if (is_better(p, size, &c, &best))
            best = c;
        if (t->next->state != TILE_HELD)
            continue;
        c = high_end(p, t->next, size);
        if (is_better(p, size, &c, &best))
            best = c;
    }
    return best;
}

enum frag_err pages_place(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct spot *out)
{
    struct candidate c = best_spot(p, size);

    assert(size > 0);
    if (!c.spot.tile) {
        FRAG_TRY(pages_span(heap, p, size));
        c = best_spot(p, size);
    }
    *out = c.spot;
    return FRAG_OK;
}

static void make_lowest(struct pages *p)
{
    p->has_lowest = true;
    for (struct page_tile *t = p->bare; t; t = t->above)
        holes_insert(&p->lowest, &t->hole);
}

enum frag_err pages_apart(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct spot *out)
{
    const frag_size room = size + 2 * p->stock.page;
    struct page_tile *t;
    struct hole *found;

    if (!p->has_lowest)
        make_lowest(p);
    found = holes_lowest(p->lowest, room, 0);
    if (!found) {
        FRAG_TRY(pages_span(heap, p, room));
        found = holes_lowest(p->lowest, room, 0);
    }
    t = (struct page_tile *)found;
    *out = (struct spot){t, t->node.addr + p->stock.page, size / p->stock.page};
    return FRAG_OK;
}
