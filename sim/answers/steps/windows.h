/* windows.h - cuts a recording where what a program keeps can be told from what
 * it works with.
 *
 * Marks that end a step of a program (Optimizer.step, ProfilerStep, or those
 * that the caller names) say where its work is done. A period of the events is
 * no such evidence: the layers of one pass recur as the steps of a loop do.
 * Without marks the recording is cut into windows of equally many events, and
 * the place of each is the moment at which least is live in it.
 */
#ifndef FRAG_SIM_ANSWERS_STEPS_WINDOWS_H
#define FRAG_SIM_ANSWERS_STEPS_WINDOWS_H

#include "traces/steps/step_blocks.h"
#include "traces/steps/steps.h"

enum {
    WINDOWS_MOST = 32,
    WINDOWS_LEAST_STEPS = 7,    /* fewer marked steps are no evidence */
    WINDOWS_LEAST_RETURNS = 4,  /* nor are fewer returns, without marks */
    WINDOWS_LEAST_EVENTS = 128, /* nor are fewer events */
};

struct windows {
    struct frag_steps steps; /* between marks; none if there are none */
    bool by_steps;           /* steps are the windows, or several of them */
    uint64_t count;          /* of places: one more than windows; 0: nothing can
                                be examined */
    uint64_t from;           /* the first place that is examined: the second
                                half, without the first two places */
    struct {
        uint64_t event; /* the place lies before it */
        double units;   /* complete steps, or thousands of events, before it */
        frag_size live; /* bytes requested by the blocks that are live there */
        frag_size peak; /* most live bytes until the next place */
    } at[WINDOWS_MOST + 1];
    uint64_t returns; /* how often, from there on, the live bytes came back from
                         above a quarter of their range to below a tenth */
    bool repeats;     /* enough marked steps or returns were seen */
};

/* Cuts the events before `end`, for which `blocks` holds the lifetimes. `mark`
 * is as for frag_steps_find. The caller closes *out. INVALID as
 * frag_steps_find; NOMEM; on error *out need not be closed. */
enum frag_err windows_open(const struct frag_trace *t,
                           const struct frag_device_trace *d,
                           const struct blocks *blocks, const char *mark,
                           struct windows *out,
                           struct frag_error *e) FRAG_MUST_CHECK;
void windows_close(struct windows *w);

/* Places at which it is known which blocks stay: all but the last. */
static inline uint64_t windows_known(const struct windows *w)
{
    return w->count - 1;
}

#endif
