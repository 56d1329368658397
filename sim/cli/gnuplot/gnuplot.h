/* gnuplot.h - writes the data of a script of plots/ and runs gnuplot on both.
 */
#ifndef FRAG_SIM_CLI_GNUPLOT_GNUPLOT_H
#define FRAG_SIM_CLI_GNUPLOT_GNUPLOT_H

#include "sim/cli/gnuplot/drawing.h"

/* A data file of a script; the table of files ends with a NULL suffix. */
struct gnuplot_file {
    const char *suffix; /* of FOLDER/NAME<suffix> */
    void (*write)(FILE *out, const void *user);
};

/* Whether gnuplot can be run. */
bool gnuplot_is_installed(void);

/* Draws NAME.gp with its files to d->out, which appears complete or not at all.
 * The scripts, NAME.gp and canvas.gp, come from FRAG_PLOTS if it is set, else
 * from the installation beside the executable, from the source tree, or from
 * the configured prefix. Scripts and data lie in the folder d->keep, which is
 * created if it does not exist, so that the user can edit the script and run it
 * by hand; NULL: in a temporary folder. The texts of *d were checked
 * (drawing_check). IO if gnuplot is missing or fails, NOMEM. */
enum frag_err gnuplot_draw(const char *name, const struct gnuplot_file *files,
                           const void *user, const struct drawing *d,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
