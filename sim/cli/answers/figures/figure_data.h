/* figure_data.h - what several pictures of answers compute. Private to
 * sim/cli/answers/figures/. */
#ifndef FRAG_SIM_CLI_ANSWERS_FIGURES_FIGURE_DATA_H
#define FRAG_SIM_CLI_ANSWERS_FIGURES_FIGURE_DATA_H

#include "sim/cli/gnuplot/gnuplot.h"

/* The line of a growth, bytes = base + slope * step, through the values at
 * `count` steps from the step `first` on: returns its base, the median of what
 * each value asks for. NAN if count is 0 or the host has no memory. */
double plot_base(const frag_size *values, uint64_t count, uint64_t first,
                 double slope);

#endif
