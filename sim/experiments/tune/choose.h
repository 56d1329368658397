/* choose.h - chooses among the settings that a search tried: the simplest that
 * is almost as good as the best.
 *
 * Of two settings the simpler one has fewer knobs (struct tune_size), then the
 * lower weight; if these are equal, tune_compare decides.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_CHOOSE_H
#define FRAG_SIM_EXPERIMENTS_TUNE_CHOOSE_H

#include "sim/experiments/tune/search.h"

/* A setting may be chosen if it is within the bounds and every other setting
 * within the bounds saves at most this much more: `tolerance` of the best
 * saving, or a tenth of `tolerance` of the default's peak for each knob that it
 * has more. With a tolerance of 0.01, a knob must save at least 0.1 % of the
 * peak. INFINITY: any setting within the bounds may be chosen. */
struct tune_rule {
    double tolerance; /* 0 or more */
};

/* The simplest setting that the rule allows; NULL if no setting is within the
 * bounds. */
const struct tune_trial *tune_choose(const struct tune_search *s,
                                     const struct tune_rule *rule);

/* What each further knob saves. The first rung is the default. A later rung is
 * the best trial with a certain number of knobs; it saves at least 0.1 % of the
 * default's peak more than the rung before it, or is the chosen or the best
 * setting. */
struct tune_ladder {
    const struct tune_trial *rungs[TUNE_MOST_KNOBS + 3];
    size_t count;
};

/* `chosen` may be NULL. */
struct tune_ladder tune_ladder(const struct tune_search *s,
                               const struct tune_trial *chosen);

#endif
