/* step_finish.h - finishes a step that a recording cuts off. Private to
 * traces/steps. */
#ifndef FRAG_TRACES_STEPS_STEP_FINISH_H
#define FRAG_TRACES_STEPS_STEP_FINISH_H

#include "traces/steps/extend.h"
#include "traces/steps/steps.h"

/* Appends the rest of the step that begins after the last complete step. The
 * last copied event of x is its failed request. *finished is false if no
 * complete step continues it, or if its prediction is not plausible; then what
 * the step allocated is freed. NOMEM. */
enum frag_err finish_step(struct extension *x, const struct frag_steps *steps,
                          bool *finished) FRAG_MUST_CHECK;

#endif
