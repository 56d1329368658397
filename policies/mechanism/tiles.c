/* tiles.c - splitting and coalescing the tiles of segments, and the check of
 * their invariants. See tiles.h.
 */
#include "policies/mechanism/tiles.h"

#include <assert.h>
#include <stdlib.h>

void tiles_init(struct tiles *tiles)
{
    tiles->nodes.size = sizeof(struct tile);
}

static enum frag_err obtain(struct frag_heap *heap, const struct tiles *tiles,
                            struct tiled *s)
{
    const struct frag_backend_ops *ops = heap->mem->ops;

    return (tiles->reserved ? ops->va_reserve
                            : ops->segment_alloc)(heap->mem, s->size, &s->addr);
}

static enum frag_err give_back(struct frag_heap *heap,
                               const struct tiles *tiles, const struct tiled *s)
{
    const struct frag_backend_ops *ops = heap->mem->ops;

    return (tiles->reserved ? ops->va_free
                            : ops->segment_free)(heap->mem, s->addr, s->size);
}

void tiles_fini(struct frag_heap *heap, struct tiles *tiles)
{
    while (tiles->segments) {
        struct tiled *s = tiles->segments;

        give_back(heap, tiles, s);
        tiles->segments = s->next;
        free(s);
    }
    nodes_release(&tiles->nodes);
}

static struct tile *tile_all(struct tiles *tiles, struct tiled *s)
{
    struct tile *t = nodes_take(&tiles->nodes);

    *t = (struct tile){.node = {.addr = s->place, .size = s->size},
                       .prev = &s->ends,
                       .next = &s->ends,
                       .segment = s};
    s->ends = (struct tile){.prev = t, .next = t, .segment = s, .used = true};
    free_set_insert(s->holes, &t->node);
    return t;
}

enum frag_err tiles_grow(struct frag_heap *heap, struct tiles *tiles,
                         struct free_set *holes, frag_size size,
                         struct tile **out)
{
    struct tiled *s;
    enum frag_err err;

    assert(size > 0);
    FRAG_TRY(nodes_reserve(&tiles->nodes, 2));
    s = malloc(sizeof(*s));
    if (!s)
        return FRAG_NOMEM;
    *s = (struct tiled){.next = tiles->segments, .holes = holes, .size = size};
    err = obtain(heap, tiles, s);
    if (err != FRAG_OK) {
        free(s);
        return err;
    }
    if (s->next)
        s->next->prev = s;
    s->place = tiles->by_age ? tiles->taken : s->addr;
    tiles->segments = s;
    tiles->held += size;
    tiles->taken += size;
    *out = tile_all(tiles, s);
    return FRAG_OK;
}

void tiles_allocate(struct tiles *tiles, struct tile *tile, frag_size size)
{
    struct tile *rest;

    assert(!tile->used && size > 0 && size <= tile->node.size);
    free_set_remove(tile->segment->holes, &tile->node);
    tile->used = true;
    if (tile->node.size == size)
        return;
    rest = nodes_take(&tiles->nodes);
    *rest = (struct tile){.node = {.addr = tile->node.addr + size,
                                   .size = tile->node.size - size},
                          .prev = tile,
                          .next = tile->next,
                          .segment = tile->segment};
    tile->next->prev = rest;
    tile->next = rest;
    tile->node.size = size;
    free_set_insert(rest->segment->holes, &rest->node);
}

/* Merges the tile `high` into `low`, the tile below it; neither is in a set. */
static void merge(struct tiles *tiles, struct tile *low, struct tile *high)
{
    low->node.size += high->node.size;
    low->next = high->next;
    high->next->prev = low;
    nodes_put(&tiles->nodes, high);
}

void tiles_free(struct tiles *tiles, struct tile *tile)
{
    struct free_set *holes = tile->segment->holes;

    assert(tile->used && tile != &tile->segment->ends);
    tile->used = false;
    if (!tile->next->used) {
        free_set_remove(holes, &tile->next->node);
        merge(tiles, tile, tile->next);
    }
    if (!tile->prev->used) {
        tile = tile->prev;
        free_set_remove(holes, &tile->node);
        merge(tiles, tile, tile->next);
    }
    free_set_insert(holes, &tile->node);
}

bool tiles_return(struct frag_heap *heap, struct tiles *tiles,
                  struct tiled *segment)
{
    struct tile *t = segment->ends.next;

    assert(tiled_is_free(segment));
    if (give_back(heap, tiles, segment) != FRAG_OK)
        return false;
    tiles->held -= segment->size;
    free_set_remove(segment->holes, &t->node);
    nodes_put(&tiles->nodes, t);
    if (segment->next)
        segment->next->prev = segment->prev;
    if (segment->prev)
        segment->prev->next = segment->next;
    else
        tiles->segments = segment->next;
    free(segment);
    return true;
}

bool tiles_return_all(struct frag_heap *heap, struct tiles *tiles)
{
    bool any = false;

    for (struct tiled *s = tiles->segments, *next; s; s = next) {
        next = s->next;
        if (tiled_is_free(s) && tiles_return(heap, tiles, s))
            any = true;
    }
    return any;
}

/* ---- the check ---- */

static const char *check_segment(const struct tiled *s, struct met *met)
{
    const struct tile *below = &s->ends;
    frag_size at = 0;

    CHECK(s->ends.used, "the ends of a segment are free");
    for (const struct tile *t = below->next; t != &s->ends; t = t->next) {
        CHECK(t->prev == below, "a tile does not know the one below it");
        CHECK(t->segment == s, "a tile does not know its segment");
        CHECK(t->node.addr - s->place == at,
              "a tile does not begin where the one below it ends");
        CHECK(t->node.size > 0 && t->node.size <= s->size - at,
              "a tile is empty or reaches beyond its segment");
        CHECK(t->used || below->used, "two neighbours are both free");
        if (!t->used)
            met_add(met, t, s->holes);
        at += t->node.size;
        below = t;
    }
    CHECK(s->ends.prev == below, "a segment does not know its last tile");
    CHECK(at == s->size, "the tiles of a segment do not fill it");
    return NULL;
}

const char *tiles_check(const struct tiles *tiles, struct met *met)
{
    const struct tiled *newer = NULL;
    frag_size held = 0;

    for (const struct tiled *s = tiles->segments; s; s = s->next) {
        CHECK(s->prev == newer, "a segment does not know the newer one");
        CHECK(tiles->by_age || s->place == s->addr,
              "a segment's place is not its address");
        CHECK(!tiles->by_age || !newer || s->place + s->size <= newer->place,
              "the places of segments are not in the order of their age");
        CHECK_ALL(check_segment(s, met));
        held += s->size;
        newer = s;
    }
    CHECK(held == tiles->held, "`held` is not the bytes of all segments");
    return nodes_check(&tiles->nodes);
}
