/* gnuplot.h - a folder with a script of plots/ and its data, and the run of
 * gnuplot on them.
 *
 * If the user requests it (--keep), the folder stays, so that the user can edit
 * the script and run it by hand.
 */
#ifndef FRAG_SIM_CLI_GNUPLOT_GNUPLOT_H
#define FRAG_SIM_CLI_GNUPLOT_GNUPLOT_H

#include <stdio.h>

#include "traces/base.h"

struct gnuplot {
    const char *name; /* of the script, without .gp */
    char *folder;
    bool kept; /* gnuplot_close leaves the folder in place */
};

/* Opens the folder `keep`, which is created if it does not exist; if keep is
 * NULL, opens a temporary folder that gnuplot_close removes. Copies the script
 * there: from FRAG_PLOTS if it is set, else from the installation beside the
 * executable, from the source tree, or from the configured prefix. On IO or
 * NOMEM g need not be closed. */
enum frag_err gnuplot_open(struct gnuplot *g, const char *name,
                           const char *keep,
                           struct frag_error *e) FRAG_MUST_CHECK;
void gnuplot_close(struct gnuplot *g);

/* Creates the data file FOLDER/NAME<suffix>, to be closed with gnuplot_written.
 * NULL with *e (IO) if it cannot be created. */
FILE *gnuplot_data(const struct gnuplot *g, const char *suffix,
                   struct frag_error *e);
/* Closes a data file; IO if it could not be written. */
enum frag_err gnuplot_written(FILE *data, struct frag_error *e) FRAG_MUST_CHECK;

/* Whether the file name has a supported suffix: .svg, .png, .pdf. */
bool gnuplot_can_draw(const char *out);

/* Draws to `out` in the format of its suffix: writes a temporary file beside it
 * and renames that. IO if gnuplot is missing or fails. */
enum frag_err gnuplot_draw(const struct gnuplot *g, const char *out,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
