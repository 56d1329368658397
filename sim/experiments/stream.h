/* stream.h - replays a stream of events with several cells at once: each window
 * of events runs in every cell before the next window is read. A stream can be
 * read only once, and memory does not grow with its events.
 */
#ifndef FRAG_SIM_EXPERIMENTS_STREAM_H
#define FRAG_SIM_EXPERIMENTS_STREAM_H

#include "sim/experiments/cell.h"
#include "sim/experiments/choices.h"

struct stream_cell {
    const struct policy_choice *policy;
    struct frag_params *params;
    struct frag_run_identity id; /* its trace is for the caller to set */
    struct cell_feed feed;
    enum frag_err err; /* an error of this cell alone: later windows skip it */
    struct frag_error error; /* of err */
};

/* Zeroed: no stream. Not to be moved while the stream is read. */
struct stream {
    struct frag_windows windows; /* for the reader of the stream */
    const char *path;
    uint64_t device; /* as in input_each_device */
    struct stream_cell *cells;
    size_t count;
};

/* The runs of a stream. All pointers are borrowed until stream_close. */
struct stream_plan {
    const struct cell_settings *settings;
    const struct policy_choice *policies;
    size_t policy_count;
    const struct bound_choice *bounds;
    size_t bound_count;
};

/* Fills *s, whose path and device are set, with one cell for each policy and
 * capacity, in this order. INVALID for a capacity that is a share of the peak,
 * and for several cells on one GPU; errors of policy_choice_params and
 * cell_feed_open. The caller closes *s, on error too. */
enum frag_err stream_open(const struct stream_plan *plan, struct stream *s,
                          struct frag_error *e) FRAG_MUST_CHECK;
void stream_close(struct stream *s);

#endif
