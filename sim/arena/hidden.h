/* hidden.h - what a process does to the address space of cudaMalloc besides the
 * segments of its allocator, inferred from the addresses of these segments.
 *
 * The driver places segments by a rule (arena.h), but it also serves others:
 * kernels and libraries that are loaded at their first use, and, by inference,
 * the local memory of all threads, which grows once, when the first kernel
 * needs a larger stack. Unmapped host memory leaves holes that cudaMalloc uses.
 * No snapshot records this. It can be inferred, because each of these actions
 * moves a segment away from the address that the rule predicts.
 *
 * A list that was learned from one run of a program predicts the addresses of
 * other runs: with other settings, other limits, or another allocator. It must
 * not be used to judge the run from which it was learned, whose addresses it
 * repeats by construction.
 *
 * Source: 69 recordings of PyTorch 2.11 on an H200, driver 580.159.04. In all
 * of them together the steps predict 8735 of 12886 segment addresses (68 %) one
 * segment ahead. Some of these recordings free and allocate segments often, and
 * most of their addresses remain unexplained, since memory of other users in
 * chunks without segments is not inferred; do not learn from such a run. In the
 * other 56, which were told apart after the results were seen, 5 to 56 steps
 * (and 1645 in one) predict 89 %; the rule alone predicts 68 % there.
 *
 * On an H100, /proc/self/maps showed a new mapping of about 504 MiB during one
 * of the first operators, and that the driver reserved the addresses in front
 * of the segments that the steps name. That this mapping is the local memory of
 * all threads, and replaces one of 414 MiB, is inferred.
 */
#ifndef FRAG_SIM_ARENA_HIDDEN_H
#define FRAG_SIM_ARENA_HIDDEN_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

enum frag_hidden_action {
    FRAG_HIDDEN_TAKE,   /* the range is allocated by another user */
    FRAG_HIDDEN_RETURN, /* the TAKE of the same address is freed */
    FRAG_HIDDEN_GROW,   /* the first local memory is freed; at and size are 0.
                           A TAKE follows when its successor is noticed */
    FRAG_HIDDEN_OPEN    /* the host unmaps the range, so that it can hold
                           chunks of cudaMalloc */
};

struct frag_hidden_step {
    uint64_t event; /* the step happens before this event of the trace */
    enum frag_hidden_action action;
    int64_t at;     /* bytes, relative to the chunk of the context */
    frag_size size; /* bytes, a multiple of 2 MiB */
};

/* All zero: no hidden memory. */
struct frag_hidden {
    struct frag_hidden_step *steps; /* in the order of events */
    uint64_t count, room;
    uint64_t segments;    /* segments from which the steps were learned */
    uint64_t predicted;   /* of these, at the address that the rule and the
                             steps of earlier segments predict */
    uint64_t unexplained; /* of these, at an address that no step explains */
};

/* A segment that was allocated or freed at a recorded address. */
struct frag_hidden_segment {
    uint64_t event;
    frag_addr addr;
    frag_size size; /* bytes. The first segment of a run determines the base
                       of the addresses, which differs between processes */
    bool is_free, is_on_side_stream;
};

/* Infers the steps from the segments of one process, in order. Segments whose
 * size is not a multiple of 2 MiB, or exceeds 1 TiB, are ignored. NOMEM; then
 * *out is all zero. frag_hidden_free frees the steps. */
enum frag_err frag_hidden_learn(const struct frag_hidden_segment *segments,
                                uint64_t count,
                                struct frag_hidden *out) FRAG_MUST_CHECK;
void frag_hidden_free(struct frag_hidden *h);

FRAG_END_DECLS

#endif
