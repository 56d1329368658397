/* picture.h - where every byte lies at one moment. Private to sim/replay/.
 *
 * Taken of the peak of reserved, at each OOM that is kept, at the end of each
 * bucket of the series and at the end of the run: rarely, from scratch, out of
 * the live blocks in address order and the ranges that are held. All memory is
 * allocated at open, so taking one never fails.
 */
#ifndef FRAG_SIM_REPLAY_PICTURE_H
#define FRAG_SIM_REPLAY_PICTURE_H

#include "sim/meter/meter.h"

struct live_block {
    frag_addr addr;
    frag_size size;
};

struct picture {
    struct live_block *blocks; /* in address order once taken */
    struct live_block *spare;
    uint64_t count;

    /* Of the free memory, for a request of (stream, pool). */
    frag_size largest;
    frag_size here, other_stream, other_pool, unusable;
};

/* A range without a gap: a segment, or maps that touch in one reservation. */
struct extent {
    frag_addr addr;
    frag_size size, allocated;
    uint32_t segment, blocks;
    bool is_mapped;
};

/* Room for `room` blocks. NOMEM. */
enum frag_err picture_open(struct picture *p, uint32_t room);
void picture_close(struct picture *p);

/* Starts a picture; then every live block is added, in any order. */
static inline void picture_clear(struct picture *p)
{
    p->count = 0;
}

static inline void picture_add(struct picture *p, const struct frag_block *b)
{
    p->blocks[p->count++] = (struct live_block){b->addr, b->size};
}

/* Sorts and measures. The parts of the free memory sum to `free` bytes: what
 * lies in no range (memory that is mapped nowhere, or was given back within
 * the event) is unusable, and memory mapped twice is counted once. each (may
 * be NULL) sees the extents in address order; NOMEM from it ends the walk. */
enum frag_err picture_take(struct picture *p, const struct meter *m,
                           frag_stream stream, frag_pool pool, frag_size free,
                           enum frag_err (*each)(void *user,
                                                 const struct extent *x),
                           void *user);

#endif
