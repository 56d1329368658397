/* tiles.h - segments tiled by blocks, for policies that keep their own sets.
 *
 * Below fit.h in what it decides: only where blocks begin and end. The holes of
 * a segment are in the free set that the segment was given, one for the whole
 * heap or one per stream. Boundary tags are kept beside the memory.
 *
 * Invariants, checked by tiles_check:
 *   - the tiles of a segment tile it: no gap, no overlap;
 *   - no two neighbours of one segment are both free;
 *   - the free tiles of a segment are the ones in its set.
 *
 * A tile's place, node.addr, is what orders equal holes: its address, or, by
 * age, as if segments had been taken at rising addresses.
 */
#ifndef FRAG_POLICIES_MECHANISM_TILES_H
#define FRAG_POLICIES_MECHANISM_TILES_H

#include "policies/mechanism/free_set.h"
#include "policies/mechanism/nodes.h"
#include "policies/policy.h"

struct tile {
    struct free_node node;    /* size and place; first: a set gives tiles */
    struct tile *prev, *next; /* neighbours, or the segment's ends */
    struct tiled *segment;
    bool used;
};

/* A segment. The tiles form a ring that is closed by `ends`, which is never
 * free: it spares them the question whether they have neighbours. */
struct tiled {
    struct tiled *prev, *next;
    struct free_set *holes;
    frag_addr addr;
    frag_addr place; /* of its first byte */
    frag_size size;
    struct tile ends;
};

static inline frag_addr tile_addr(const struct tile *tile)
{
    const struct tiled *s = tile->segment;

    return s->addr + (tile->node.addr - s->place);
}

/* Zeroed but for by_age, then tiles_init. */
struct tiles {
    struct tiled *segments; /* the newest first */
    frag_size held;         /* bytes in segments */
    bool by_age;            /* the places; set once */
    frag_addr taken;        /* bytes ever */
    struct nodes nodes;     /* of tiles */
};

void tiles_init(struct tiles *tiles);

/* Returns every segment to the device and every record to the host. */
void tiles_fini(struct frag_heap *heap, struct tiles *tiles);

/* Takes a segment of just that size from the device, all of it one free tile
 * in holes, and reserves a record more than it takes. Errors are the
 * backend's, or NOMEM; then nothing changed. */
enum frag_err tiles_grow(struct frag_heap *heap, struct tiles *tiles,
                         struct free_set *holes, frag_size size,
                         struct tile **out) FRAG_MUST_CHECK;

/* Makes a free tile used, cut to size if that is less: the low part is taken,
 * the rest stays free. A cut needs a record, reserved beforehand. */
void tiles_take(struct tiles *tiles, struct tile *tile, frag_size size);

/* Makes a used tile free and merges it with its free neighbours. */
void tiles_give(struct tiles *tiles, struct tile *tile);

/* Whether no tile of the segment is used. */
static inline bool tiled_is_free(const struct tiled *segment)
{
    return !segment->ends.next->used &&
           segment->ends.next->next == &segment->ends;
}

/* Returns a free segment to the device; one that the device refuses stays, as
 * free as before, and the answer is false. */
bool tiles_return(struct frag_heap *heap, struct tiles *tiles,
                  struct tiled *segment);

/* NULL, or what is broken. Adds the free tiles to `met`, each as a record that
 * lies in its segment's set: the caller compares them with what is there. */
const char *tiles_check(const struct tiles *tiles, struct met *met);

/* Returns all free segments; whether there was one that went. */
bool tiles_return_all(struct frag_heap *heap, struct tiles *tiles);

#endif
