/* growth.h - decides whether a quantity grows from step to step: the bytes that
 * a part of a program holds where each step begins.
 *
 * The quantity grows if all of this holds:
 *   - it rises in most steps: the lower bound of Wilson's 95 % interval of the
 *     share of steps in which it rises is above one half. Four steps suffice if
 *     it rises in each;
 *   - it comes back seldom: all falls together are less than half of all rises.
 *     A buffer that is filled and emptied fails here;
 *   - it has not stopped: the steps at the end in which it does not rise are
 *     not more than the share of rising steps explains, at a level of 1 %. A
 *     cache that is full fails here.
 */
#ifndef FRAG_SIM_ANSWERS_STEPS_GROWTH_H
#define FRAG_SIM_ANSWERS_STEPS_GROWTH_H

#include "traces/base.h"

enum { GROWTH_LEAST_STEPS = 4 }; /* fewer steps cannot show growth */

struct growth {
    bool grows;
    uint64_t rises, steps; /* steps in which it rises, of all that were compared
                            */
    double confidence;     /* the lower bound of the share of rising steps */
    double slope;          /* a step: the median of the slopes between values
                              that lie half of the steps apart (Theil's
                              incomplete method). A few steps that differ do
                              not change it, and it averages what a program
                              does every few steps */
};

/* Judges the values at count - 1 consecutive steps. NOMEM; then *out is
 * untouched. */
enum frag_err growth_judge(const frag_size *values, uint64_t count,
                           struct growth *out,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
