/* requested_peak.h - the most bytes that the requests of a trace have live at
 * one time, without a run. No allocator serves them with less, but each needs
 * more: what a policy needs is frag_capacity_need.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_REQUESTED_PEAK_H
#define FRAG_SIM_EXPERIMENTS_TUNE_REQUESTED_PEAK_H

#include "traces/trace.h"

struct requested_peak {
    frag_size bytes; /* largest sum of the live requests: the peak_requested of
                        a run in which no request fails. FRAG_UNLIMITED if it
                        does not fit */
    uint64_t event;  /* first event with this sum */
};

/* The peak of the recorded events, without those that complete a trace. A block
 * counts until the client frees it: for one that another stream still uses an
 * allocator can wait. NOMEM. */
enum frag_err requested_peak_find(const struct frag_device_trace *trace,
                                  struct requested_peak *out,
                                  struct frag_error *e) FRAG_MUST_CHECK;

#endif
