/* extend.h - appends events to a copy of the beginning of a trace.
 *
 * An extension knows each block of the trace and each block that it adds by a
 * number: the blocks of the copied events keep the numbers of step_blocks.h,
 * and added blocks follow. A step is played by copying its events, with each
 * block of the step replaced by its counterpart.
 */
#ifndef FRAG_TRACES_STEPS_EXTEND_H
#define FRAG_TRACES_STEPS_EXTEND_H

#include "traces/build/build_device.h"
#include "traces/steps/align.h"
#include "traces/steps/step_blocks.h"
#include "traces/steps/steps.h"

enum extension_state { BLOCK_HELD, BLOCK_PENDING, BLOCK_GONE };

struct extension_block {
    uint32_t slot;
    frag_stream stream;
    uint8_t state;  /* enum extension_state */
    uint64_t alloc; /* event, in the extension */
    frag_size bytes;
};

struct extension {
    const struct frag_device_trace *from;
    const struct blocks *blocks;
    struct device_build out; /* its columns and slots */

    struct extension_block *made;
    uint64_t made_count, made_room;
    uint32_t *counterpart; /* of each block of the trace; UINT32_MAX: none */
    struct frag_error *error;
};

/* Copies the events that `blocks` covers. The caller closes *x, on error too.
 * NOMEM. */
enum frag_err extension_open(struct extension *x,
                             const struct frag_device_trace *d,
                             const struct blocks *blocks,
                             struct frag_error *e) FRAG_MUST_CHECK;
void extension_close(struct extension *x);

/* Appends event i of the trace with its block's counterpart. An ALLOC makes the
 * counterpart, with `bytes`. An event whose block has no counterpart is
 * skipped. NOMEM. */
enum frag_err extension_play(struct extension *x, uint64_t i,
                             frag_size bytes) FRAG_MUST_CHECK;

/* Appends the FREE of a block, if it is not gone. NOMEM. */
enum frag_err extension_free(struct extension *x,
                             uint32_t block) FRAG_MUST_CHECK;

/* A block of the extension, for a list; its life is not known. */
static inline struct aligned extension_block(const struct extension *x,
                                             uint32_t block)
{
    const struct extension_block *b = &x->made[block];

    return (struct aligned){block, b->stream, b->bytes, FRAG_NEVER};
}

/* A growing list of blocks. */
struct block_list {
    struct aligned *items;
    uint64_t count, room;
};

/* NOMEM. */
enum frag_err block_list_add(struct block_list *l, struct aligned block,
                             struct frag_error *e) FRAG_MUST_CHECK;

/* Pairs the blocks of the trace in `of` with blocks of the extension in `with`
 * and makes each pair counterparts. lone[k] is set to whether with[k] has no
 * partner. NOMEM. */
enum frag_err extension_pair(struct extension *x, const struct block_list *of,
                             const struct block_list *with,
                             bool *lone) FRAG_MUST_CHECK;

/* Appends the rest of the step that begins after the last complete step. The
 * last copied event of x is its failed request. *finished is false if no
 * complete step continues it, or if its prediction is not plausible; then what
 * the step allocated is freed. NOMEM. */
enum frag_err finish_step(struct extension *x, const struct frag_steps *steps,
                          bool *finished) FRAG_MUST_CHECK;

#endif
