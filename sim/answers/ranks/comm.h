/* comm.h - tells the buffers of the communication between ranks from other
 * blocks.
 *
 * A block is a buffer of the communication
 *   - if its stack names nccl, c10d, distributed, fsdp, all_reduce, all_gather,
 *     reduce_scatter or reducer. The stack is read from its innermost frame up
 *     to the first frame that runs a module or belongs to the user: the frames
 *     outside of it, such as those of DistributedDataParallel.forward, are
 *     around every block of the job. Of the user's frame only the function is
 *     read, of others the file too;
 *   - or if it was allocated on another stream than the main one of the rank,
 *     which is the stream with the most requested bytes. FSDP communicates on
 *     streams of its own; but so does a program that copies data.
 * Without stacks the second rule alone remains, and the answer is a guess: the
 * buckets of DDP are on the main stream. Without stacks and with a single
 * stream nothing is known.
 */
#ifndef FRAG_SIM_ANSWERS_RANKS_COMM_H
#define FRAG_SIM_ANSWERS_RANKS_COMM_H

#include "traces/trace.h"

enum comm_basis {
    COMM_UNKNOWN, /* no stacks and one stream */
    COMM_STREAMS, /* no stacks: a guess from the streams */
    COMM_STACKS,  /* stacks and streams */
};

struct comm {
    enum comm_basis basis;
    frag_stream main; /* row of the device's streams */
    uint64_t blocks;  /* buffers of the communication at the peak */
    frag_size bytes;  /* their requested bytes */
    frag_size of;     /* requested bytes of all live blocks at the peak */
};

/* Whether the stack names the communication. */
bool comm_is_stack(const struct frag_trace *t, uint32_t stack);

/* Measures the buffers that are live at the first event of peak requested.
 * INVALID if the device has no events; NOMEM. */
enum frag_err comm_measure(const struct frag_trace *t,
                           const struct frag_device_trace *d, struct comm *out,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
