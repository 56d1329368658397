/* growth.h - decides whether a quantity grows: the bytes that a part of a
 * program holds at some moments of a run.
 *
 * The quantity grows if all of this holds of the examined values:
 *   - it rises in each quarter of them, so in four steps at least;
 *   - it comes back seldom: all falls together are at most a quarter of all
 *     rises, among the examined values and among all. A buffer that is filled
 *     and emptied fails here;
 *   - it has not stopped: the steps at the end in which it does not rise are
 *     not more than the share of rising steps explains, at a level of 5 %. A
 *     cache that is full fails here.
 */
#ifndef FRAG_SIM_ANSWERS_STEPS_GROWTH_H
#define FRAG_SIM_ANSWERS_STEPS_GROWTH_H

#include "traces/base.h"

/* Fewer steps cannot show growth. The first values are the setup. */
enum { GROWTH_LEAST_STEPS = 4, GROWTH_SETUP = 2 };

struct growth {
    bool grows;
    bool slows; /* the later half of the steps adds less than a third of what
                   the earlier half does: it may come to an end */
    uint64_t rises, steps; /* steps in which it rises, of all examined ones */
    double slope;          /* bytes a step, on average */
};

/* Judges the steps between the values from number `from` on, which is less than
 * `count`. */
struct growth growth_judge(const frag_size *values, uint64_t count,
                           uint64_t from);

#endif
