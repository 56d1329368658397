/* filter.h - keeps the runs of a selection that have wanted traces, policies
 * and bounds. */
#ifndef FRAG_SIM_CLI_FIGURES_FILTER_H
#define FRAG_SIM_CLI_FIGURES_FILTER_H

#include "sim/cli/figures/selection.h"

/* The texts of --trace, --policy, --capacity and --process-limit. An empty list
 * wants all. A trace or a policy is a name or a pattern with * and ?; a bound
 * is a list such as "24GiB,0.9x,inf". */
struct wanted {
    struct texts traces, policies, bounds[FRAG_BOUND_KINDS];
};

/* Keeps the runs that match one text of every list that is not empty. A share
 * matches a bound that is equal to it, rounded to a thousandth of the peak
 * requested of the run's trace. INVALID if a text of a list matches no run,
 * with the nearest name if there is one; or if no run is left. NOMEM. On error
 * s is unchanged. */
enum frag_err selection_filter(struct selection *s, const struct wanted *w,
                               struct frag_error *e) FRAG_MUST_CHECK;

#endif
