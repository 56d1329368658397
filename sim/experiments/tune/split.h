/* split.h - a trace in two parts, so that what was tuned on the one can be
 * tried on the other. */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_SPLIT_H
#define FRAG_SIM_EXPERIMENTS_TUNE_SPLIT_H

#include "traces/trace.h"

struct tune_halves {
    struct frag_device_trace first; /* borrows from the whole */
    struct frag_device_trace rest;  /* begins with what is live at the cut */
    void *columns;                  /* of rest */
};

/* Cuts at the beginning of the step nearest to the middle, or in the middle of
 * the events where no steps are marked. UNSUPPORTED if the trace has fewer than
 * two events after its start, NOMEM; then out needs no closing. */
enum frag_err tune_split(const struct frag_device_trace *whole,
                         struct tune_halves *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void tune_halves_close(struct tune_halves *halves);

#endif
