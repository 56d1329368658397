/* complete.h - completes the trace of a job that died.
 *
 * A recording of a job that ran out of memory ends where the job died: the step
 * in which it died is cut off, and what the next steps would have needed is
 * missing. A setting that only has to survive such a recording may fail a
 * moment later. A completed trace goes on: the step in which the job died is
 * finished like a complete step, with sizes that are predicted from its own
 * beginning (predict.h), and complete steps are then repeated, in their order.
 * Blocks that a step leaves behind accumulate as they did in the recording.
 *
 * A completed trace is a prediction. It is as good as the assumption that later
 * steps are like the recorded ones: paper/pages/dead.md compares it with
 * complete runs.
 */
#ifndef FRAG_TRACES_STEPS_COMPLETE_H
#define FRAG_TRACES_STEPS_COMPLETE_H

#include "traces/steps/steps.h"

FRAG_BEGIN_DECLS

/* How far the recording of a device reaches. */
enum frag_reach {
    FRAG_REACH_WHOLE,     /* the job did not die of a failed request */
    FRAG_REACH_CUT,       /* it died, after complete steps; nothing was added */
    FRAG_REACH_COMPLETED, /* it died, after complete steps; the trace was
                             completed */
    FRAG_REACH_NO_STEP,   /* it died before a step was complete: what it would
                             have needed is not known */
};

/* Why the recorded steps do not tell what the further ones may need, as the end
 * of a sentence. */
#define FRAG_UNTOLDS(X)                                                    \
    X(NOTHING, "")                                                         \
    X(NO_STEP, "no step was complete")                                     \
    X(CUT, "the trace was not completed")                                  \
    X(UNFINISHED, "the step in which the job died is unlike the complete " \
                  "ones")                                                  \
    X(FEW, "fewer than 3 complete steps have a peak unlike that of the "   \
           "step before")                                                  \
    X(UNMARKED, "nothing marks its steps")                                 \
    X(GROWS, "its live memory grows from step to step")                    \
    X(RISES, "the peaks of its steps rise")

enum frag_untold {
#define X(name, text) FRAG_UNTOLD_##name,
    FRAG_UNTOLDS(X)
#undef X
        FRAG_UNTOLD_COUNT
};

extern const char *const frag_untold_words[FRAG_UNTOLD_COUNT];

/* The probability with which a job needs at most `spread` times what the
 * completed trace needs (frag_completion). */
#define FRAG_SPREAD_LEVEL 0.9

struct frag_completion {
    enum frag_reach reach;

    /* The remaining members are 0 if reach is FRAG_REACH_WHOLE. */
    uint64_t event;    /* the failed request */
    frag_size request; /* its bytes */
    frag_size live;    /* bytes requested by the blocks that were live then */

    /* The complete steps of the recording; source NONE if there are none. */
    enum frag_steps_source source;
    const char *mark;
    double likeness;
    uint64_t steps;
    frag_size least_peak, most_peak; /* of their peaks */
    int64_t growth; /* of the live bytes, a step: the median; 0 for one step */

    bool finished; /* the step in which the job died was finished; otherwise no
                      complete step continues it plausibly, and it ends where
                      the job died */
    frag_size finished_peak; /* most bytes requested until the end of that step
                              */
    uint64_t added_steps;    /* whole steps, after it */
    uint64_t added_events;
    frag_size peak; /* most bytes requested in the completed trace */

    /* With a probability of FRAG_SPREAD_LEVEL, the job needs at most `spread`
     * times what its completed trace needs, however many steps follow; 1 or
     * more. 0: its steps do not tell, and `untold` says why. */
    double spread;
    enum frag_untold untold;
};

struct frag_completion_options {
    uint64_t further; /* whole steps to add; 0: FRAG_FURTHER_STEPS */
    const char *mark; /* as for frag_steps_find */
    bool only_reach;  /* nothing is completed: the notes say that the trace ends
                         where the job died */
};

/* The whole steps that are added by default: as many as the recording has,
 * within these bounds. */
enum { FRAG_FURTHER_LEAST = 3, FRAG_FURTHER_MOST = 32 };

/* The event of the request of which the job died on this device; FRAG_NEVER if
 * it did not die there. A job died on a device if its recording reports a
 * failed request and has no ALLOC after it. */
uint64_t frag_fatal_request(const struct frag_device_trace *d);

/* Finds out how far the recording of each device reaches, and completes those
 * on which the job died. The completed device keeps its recorded events up to
 * the failed request; the failed request is then met, and the events after it
 * (the frees of a program that ends) are replaced. It has no recorded addresses
 * and segments, and no marks of steps after the recording. Other devices are
 * unchanged.
 *
 * Adds notes that say how far the recording reaches and what was added. *out
 * has a row for each device. options may be NULL.
 * INVALID as frag_steps_find, NOMEM; on error some devices may be completed. */
enum frag_err frag_trace_complete(struct frag_trace *t,
                                  const struct frag_completion_options *options,
                                  struct frag_completion *out,
                                  struct frag_error *e) FRAG_MUST_CHECK;

/* Completes one device and leaves the trace unchanged: *out is a trace that has
 * this device only, and only the notes that frag_trace_complete adds. It
 * borrows all but the added columns from `t`: close it before `t`.
 * Errors of frag_trace_complete; on error *out is untouched. */
enum frag_err frag_device_complete(const struct frag_trace *t,
                                   const struct frag_device_trace *d,
                                   struct frag_trace **out,
                                   struct frag_completion *c,
                                   struct frag_error *e) FRAG_MUST_CHECK;

FRAG_END_DECLS

#endif
