/* step_blocks.h - the lifetimes of the blocks in the first events of a trace:
 * which event allocates a block, and which event frees it.
 *
 * A slot of a trace serves many blocks, one after the other. This table
 * numbers them in the order of their ALLOCs.
 */
#ifndef FRAG_TRACES_STEPS_STEP_BLOCKS_H
#define FRAG_TRACES_STEPS_STEP_BLOCKS_H

#include "traces/trace.h"

struct block_life {
    uint64_t alloc; /* event */
    uint64_t free;  /* event; FRAG_NEVER if the block is live at the end */
};

struct blocks {
    uint64_t events;          /* the table covers the first `events` events */
    uint64_t count;           /* of blocks */
    uint32_t *of;             /* block of each event; UINT32_MAX for an event
                                 without a block */
    struct block_life *lives; /* `count` rows */
    frag_size *live;          /* live bytes before each event, and after the
                                 last one: events + 1 rows */
};

/* Makes the table for the first `events` events. The caller closes it. NOMEM;
 * then *out need not be closed. */
enum frag_err blocks_open(const struct frag_device_trace *d, uint64_t events,
                          struct blocks *out,
                          struct frag_error *e) FRAG_MUST_CHECK;
void blocks_close(struct blocks *b);

/* Whether the block is live just before the event. */
static inline bool block_is_live(const struct blocks *b, uint32_t block,
                                 uint64_t event)
{
    return b->lives[block].alloc < event && b->lives[block].free >= event;
}

#endif
