/* gnuplot.h - writes the data of a script of plots/ and runs gnuplot on both.
 */
#ifndef FRAG_SIM_CLI_GNUPLOT_GNUPLOT_H
#define FRAG_SIM_CLI_GNUPLOT_GNUPLOT_H

#include <stdio.h>

#include "traces/base.h"

/* A data file of a script; the table of files ends with a NULL suffix. */
struct gnuplot_file {
    const char *suffix; /* of FOLDER/NAME<suffix> */
    void (*write)(FILE *out, const void *user);
};

/* Whether the file name has a supported suffix: .svg, .png, .pdf. */
bool gnuplot_can_draw(const char *out);

/* Whether gnuplot can be run. */
bool gnuplot_is_installed(void);

/* Draws NAME.gp with its files to `out`, in the format of its suffix; the file
 * appears complete or not at all. The script comes from FRAG_PLOTS if it is
 * set, else from the installation beside the executable, from the source tree,
 * or from the configured prefix. Script and data lie in the folder `keep`,
 * which is created if it does not exist, so that the user can edit the script
 * and run it by hand; NULL: in a temporary folder. IO if gnuplot is missing or
 * fails, NOMEM. */
enum frag_err gnuplot_draw(const char *name, const struct gnuplot_file *files,
                           const void *user, const char *out, const char *keep,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
