/* picture.h - determines how all held memory is used at one moment. Private to
 * sim/replay/.
 *
 * A picture is taken at the peak of reserved, at each OOM whose row is kept, at
 * the end of each bucket of the series and at the end of the run. That is rare,
 * so each picture is computed from scratch, from the live blocks in address
 * order and the held ranges. picture_open allocates all memory, so a picture
 * without a callback cannot fail.
 */
#ifndef FRAG_SIM_REPLAY_PICTURE_H
#define FRAG_SIM_REPLAY_PICTURE_H

#include "sim/meter/meter.h"

struct live_block {
    frag_addr addr;
    frag_size size;
};

struct picture {
    struct live_block *blocks; /* [count], sorted by picture_take */
    struct live_block *spare;  /* memory for the sort */
    uint64_t count;
    frag_size quantum; /* free bytes in smaller gaps are unusable */

    /* The free bytes, as seen by a request of (stream, pool): the largest free
     * range, and the parts of struct frag_breakdown. */
    frag_size largest;
    frag_size here, other_stream, other_pool, unusable;
};

/* A range without a gap: a segment, or adjacent maps of one reservation. */
struct extent {
    frag_addr addr;
    frag_size size, allocated; /* bytes, and bytes of live blocks */
    uint32_t segment;          /* index in meter.segments */
    uint32_t blocks;           /* number of live blocks */
    bool is_mapped;            /* maps of a reservation, not a segment */
};

/* Opens a picture of up to `room` live blocks. NOMEM. */
enum frag_err picture_open(struct picture *p, uint32_t room);
void picture_close(struct picture *p);

/* Starts a picture. The caller then adds every live block, in any order. */
static inline void picture_clear(struct picture *p)
{
    p->count = 0;
}

static inline void picture_add(struct picture *p, const struct frag_block *b)
{
    p->blocks[p->count++] = (struct live_block){b->addr, b->size};
}

/* Sorts the blocks and computes the free bytes. The parts sum to `free` bytes:
 * memory outside every held range (not mapped anywhere, or returned during the
 * event) counts as unusable, and memory that is mapped twice counts once.
 * `each` (may be NULL) is called with each extent in address order; an error
 * from it ends the walk and is returned. */
enum frag_err picture_take(struct picture *p, const struct meter *m,
                           frag_stream stream, frag_pool pool, frag_size free,
                           enum frag_err (*each)(void *user,
                                                 const struct extent *x),
                           void *user);

#endif
