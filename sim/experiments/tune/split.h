/* split.h - parts of a trace: its two halves in time, so that settings that
 * were tuned on the first can be tested on the second; and the requests of the
 * large pools. */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_SPLIT_H
#define FRAG_SIM_EXPERIMENTS_TUNE_SPLIT_H

#include "traces/trace.h"

struct tune_halves {
    struct frag_device_trace
        first; /* its columns are borrowed from the whole trace */
    struct frag_device_trace
        rest; /* begins by allocating the blocks that are live at the cut */
    void *columns; /* storage of the columns of rest */
};

/* Cuts at the start of the step that is nearest to the middle; without marked
 * steps, in the middle of the events. UNSUPPORTED if the trace has fewer than
 * two events after its initial blocks, NOMEM; on error *out need not be closed.
 */
enum frag_err tune_split(const struct frag_device_trace *whole,
                         struct tune_halves *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void tune_halves_close(struct tune_halves *halves);

/* The events of a trace that concern the large pools of PyTorch's allocator,
 * and all its empty_cache. */
struct tune_large {
    struct frag_device_trace trace;
    uint64_t *event; /* [trace.count]: its index in the whole trace; owned */
    void *columns;
};

/* Without padding, the pool of a request is large by its requested bytes, for
 * all settings. NOMEM; on error *out need not be closed. */
enum frag_err tune_large_split(const struct frag_device_trace *whole,
                               struct tune_large *out,
                               struct frag_error *e) FRAG_MUST_CHECK;
void tune_large_close(struct tune_large *large);

#endif
