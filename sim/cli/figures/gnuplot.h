/* gnuplot.h - data for a script of plots/, and gnuplot run on it.
 *
 * The folder holds the script and its data, so that a user can edit and run it
 * by hand; it is kept where the user asked for it.
 */
#ifndef FRAG_SIM_CLI_FIGURES_GNUPLOT_H
#define FRAG_SIM_CLI_FIGURES_GNUPLOT_H

#include <stdio.h>

#include "traces/base.h"

struct gnuplot {
    const char *name; /* of the script, without .gp */
    char *folder;
    bool kept;
};

/* keep: where the user wants the folder, made if it is not there; NULL: one of
 * its own that gnuplot_close removes. Copies the script there: from
 * FRAG_PLOTS, from the installation beside the executable, or from the source.
 * IO, NOMEM; then g need not be closed. */
enum frag_err gnuplot_open(struct gnuplot *g, const char *name,
                           const char *keep,
                           struct frag_error *e) FRAG_MUST_CHECK;
void gnuplot_close(struct gnuplot *g);

/* A data file, FOLDER/NAME<suffix>, to be closed with gnuplot_written. NULL if
 * it cannot be made: IO. */
FILE *gnuplot_data(const struct gnuplot *g, const char *suffix,
                   struct frag_error *e);
enum frag_err gnuplot_written(FILE *data, struct frag_error *e) FRAG_MUST_CHECK;

/* Whether it has a suffix that can be drawn: .svg, .png, .pdf. */
bool gnuplot_can_draw(const char *out);

/* Draws to `out`, by its suffix, written beside and renamed. IO with words
 * where gnuplot is missing or fails. */
enum frag_err gnuplot_draw(const struct gnuplot *g, const char *out,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
