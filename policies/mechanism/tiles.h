/* tiles.h - segments divided into blocks, for policies with free sets of their
 * own.
 *
 * This file decides less than fit.h: it only keeps the borders of blocks. A
 * block or a hole (free block) is a tile. The caller names the free set that
 * stores the holes of a segment: one set for the whole heap, or one for each
 * stream. The records of tiles are in host memory.
 *
 * Invariants, checked by tiles_check:
 *   - the tiles of a segment fill it without gap or overlap;
 *   - no two neighbours in one segment are both free;
 *   - the free set contains exactly the free tiles of its segments.
 *
 * The place of a tile, node.addr, orders holes of equal size. It is the address
 * of the tile or, with by_age, the address that the tile would have if each new
 * segment had been placed above all earlier ones.
 */
#ifndef FRAG_POLICIES_MECHANISM_TILES_H
#define FRAG_POLICIES_MECHANISM_TILES_H

#include "policies/mechanism/free_set.h"
#include "policies/mechanism/nodes.h"
#include "policies/policy.h"

struct tile {
    struct free_node node;    /* size and place; must be the first member */
    struct tile *prev, *next; /* neighbours, or the segment's ends */
    struct tiled *segment;
    bool used;
};

/* A segment. Its tiles form a ring that is closed by `ends`. `ends` is never
 * free, so every tile has two neighbours and no end is a special case. */
struct tiled {
    struct tiled *prev, *next;
    struct free_set *holes;
    void *user; /* the caller's own */
    frag_addr addr;
    frag_addr place; /* place of its first byte */
    frag_size size;
    struct tile ends;
};

/* The address of a tile on the device. */
static inline frag_addr tile_addr(const struct tile *tile)
{
    const struct tiled *s = tile->segment;

    return s->addr + (tile->node.addr - s->place);
}

/* Starts zeroed except by_age and reserved; then call tiles_init. */
struct tiles {
    struct tiled *segments; /* the newest first */
    frag_size held;         /* bytes in segments */
    bool by_age;            /* how tiles are ordered: see above; set once */
    bool reserved;          /* segments are address space without memory, which
                               the caller maps; set once */
    frag_addr taken;        /* bytes of all segments ever allocated */
    struct nodes nodes;     /* records of tiles */
};

void tiles_init(struct tiles *tiles);

/* Returns every segment to the device and every record to the host. */
void tiles_fini(struct frag_heap *heap, struct tiles *tiles);

/* Allocates a segment of exactly `size` bytes. All of it is one free tile,
 * *out, in `holes`. One more record stays reserved, for tiles_allocate. Errors
 * are NOMEM and those of segment_alloc or va_reserve; then nothing changed. */
enum frag_err tiles_grow(struct frag_heap *heap, struct tiles *tiles,
                         struct free_set *holes, frag_size size,
                         struct tile **out) FRAG_MUST_CHECK;

/* Marks a free tile as used. If it is larger than `size` bytes, it is split:
 * the low part is used, the rest stays free. A split takes one record, which
 * the caller has reserved. */
void tiles_allocate(struct tiles *tiles, struct tile *tile, frag_size size);

/* Frees a used tile and coalesces it with its free neighbours. */
void tiles_free(struct tiles *tiles, struct tile *tile);

/* True if no tile of the segment is used. */
static inline bool tiled_is_free(const struct tiled *segment)
{
    return !segment->ends.next->used &&
           segment->ends.next->next == &segment->ends;
}

/* Returns a segment without used tiles to the device. False if the device
 * refuses; then the segment stays as it was. */
bool tiles_return(struct frag_heap *heap, struct tiles *tiles,
                  struct tiled *segment);

/* Checks the first two invariants. Returns NULL or a text that names the fault.
 * Adds the free tiles to `met`, each with the free set of its segment as home;
 * the caller compares them with the contents of the sets. */
const char *tiles_check(const struct tiles *tiles, struct met *met);

/* Returns all segments without used tiles; true if any was returned. */
bool tiles_return_all(struct frag_heap *heap, struct tiles *tiles);

#endif
