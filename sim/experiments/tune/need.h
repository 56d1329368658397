/* need.h - the memory that the requests of a trace need with any allocator. */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_NEED_H
#define FRAG_SIM_EXPERIMENTS_TUNE_NEED_H

#include "traces/trace.h"

struct tune_need {
    frag_size bytes; /* largest sum of the live requests, which no allocator
                        can serve with less: the peak_requested of a run in
                        which no request fails. FRAG_UNLIMITED if it does not
                        fit */
    uint64_t event;  /* first event with this sum */
};

/* The need of the recorded events, without those that complete a trace. A block
 * counts until the client frees it: for one that another stream still uses an
 * allocator can wait. NOMEM. */
enum frag_err tune_need(const struct frag_device_trace *trace,
                        struct tune_need *out,
                        struct frag_error *e) FRAG_MUST_CHECK;

#endif
