/* figure_data.h - writes the data files of one script and draws them. Private
 * to sim/cli/answers/figures/. */
#ifndef FRAG_SIM_CLI_ANSWERS_FIGURES_FIGURE_DATA_H
#define FRAG_SIM_CLI_ANSWERS_FIGURES_FIGURE_DATA_H

#include <stdio.h>

#include "traces/base.h"

/* A data file of a script; the table of files ends with a NULL suffix. */
struct plot_file {
    const char *suffix; /* of FOLDER/NAME<suffix> */
    void (*write)(FILE *out, const void *user);
};

/* Draws plots/NAME.gp. Errors as in draw.h. */
enum frag_err plot_draw(const char *name, const struct plot_file *files,
                        const void *user, const char *out, const char *keep,
                        struct frag_error *e) FRAG_MUST_CHECK;

/* The line of a growth, bytes = base + slope * step, through the values at
 * `count` steps from the step `first` on: returns its base, the median of what
 * each value asks for. NAN if count is 0 or the host has no memory. */
double plot_base(const frag_size *values, uint64_t count, uint64_t first,
                 double slope);

#endif
