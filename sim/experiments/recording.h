/* recording.h - what is known of a recording: the bound under which its
 * allocator ran, and how far it reaches. Every command takes them from here, so
 * that all answers about a file and a device rest on one reading. */
#ifndef FRAG_SIM_EXPERIMENTS_RECORDING_H
#define FRAG_SIM_EXPERIMENTS_RECORDING_H

#include "sim/experiments/choices.h"
#include "sim/validate/validate_limit.h"
#include "traces/steps/complete.h"

struct recording_bound {
    struct frag_recorded_limit found; /* the source and the possible values */
    struct frag_bound bound;          /* FRAG_NO_BOUND: none is known */
};

/* Finds the bound of a device: the limit of the process that the trace states
 * (frag_trace.limit), if it explains the recorded OOMs; else what the OOMs
 * show. If the device refused, it is a capacity, and otherwise a limit: `found'
 * then has the interval in which it lies, and `bound' is its middle. */
struct recording_bound recording_find_bound(const struct frag_trace *t,
                                            const struct frag_device_trace *d);

/* A device of a trace: frag_trace.known is a row for each, by reading_open. The
 * completed or edited trace no longer shows the rest. */
struct recording_known {
    uint32_t device; /* its number */
    struct frag_bound bound;
    struct frag_completion completion; /* zeroed for an edited trace */
};

/* NULL if reading_open did not open the trace. */
const struct recording_known *
recording_known(const struct frag_trace *t, const struct frag_device_trace *d);

/* recording_find_bound without the source, if it is not known. */
struct frag_bound recording_bound(const struct frag_trace *t,
                                  const struct frag_device_trace *d);

/* The bound of a replay for an answer: a device of that capacity; without one
 * (0), that of the recorded allocator for a policy with the recorded settings,
 * and none for others. */
struct frag_bound recording_bound_for(const struct frag_trace *t,
                                      const struct frag_device_trace *d,
                                      const struct policy_choice *policy,
                                      frag_size capacity);

/* The facts on which the bounds of runs depend (choices.h). NOMEM. */
enum frag_err recording_facts(const struct frag_trace *t,
                              const struct frag_device_trace *d,
                              struct bound_facts *out,
                              struct frag_error *e) FRAG_MUST_CHECK;

#endif
