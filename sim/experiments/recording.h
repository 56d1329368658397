/* recording.h - what is known of a recording: the bound under which its
 * allocator ran, and how far it reaches. Every command takes them from here, so
 * that all answers about a file and a device rest on one reading. */
#ifndef FRAG_SIM_EXPERIMENTS_RECORDING_H
#define FRAG_SIM_EXPERIMENTS_RECORDING_H

#include "sim/experiments/choices.h"
#include "sim/validate/validate_limit.h"
#include "traces/steps/complete.h"

/* A device of a trace. */
struct recording {
    uint32_t device;                  /* its number */
    struct frag_recorded_limit found; /* the source and the possible values */
    struct frag_bound bound;          /* FRAG_NO_BOUND: none is known */
    frag_size peak;  /* largest reserved bytes as recorded; 0: not recorded */
    uint64_t failed; /* requests that the recorded allocator could not meet */
    struct frag_completion completion; /* zeroed for an edited trace */
};

/* What is known of a device. The bound is the limit of the process that the
 * trace states (frag_trace.limit), if it explains the recorded OOMs; else what
 * the OOMs show. If the device refused, it is a capacity, and otherwise a
 * limit: `found' then has the interval in which it lies, and `bound' is its
 * middle.
 * The completed or edited trace no longer shows all that: frag_trace.known is a
 * row for each device, made by reading_open, and is what this returns. */
struct recording recording_of(const struct frag_trace *t,
                              const struct frag_device_trace *d);

/* Whether so much of the device was recorded that it tells what the job needs:
 * more than one event, and of a job that had begun before RECORDING_LEAST. */
enum { RECORDING_LEAST = 100 };
bool recording_tells(const struct frag_device_trace *d);

/* Only the bound. */
struct frag_bound recording_bound(const struct frag_trace *t,
                                  const struct frag_device_trace *d);

/* The policy of a replay for an answer: with the recorded settings, if the
 * trace has them. */
static inline const char *recording_policy(const struct frag_trace *t)
{
    return t->settings ? "torch@recorded" : "torch";
}

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
