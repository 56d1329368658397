/* settle.h - replaces what differs between equal pictures, and the names that
 * gnuplot gives to an SVG and its parts. */
#ifndef FRAG_SIM_CLI_GNUPLOT_SETTLE_H
#define FRAG_SIM_CLI_GNUPLOT_SETTLE_H

#include "traces/base.h"

/* Browsers show a <title> where the mouse rests. In an SVG the title of the
 * whole, which is "Gnuplot", becomes `title`, and a series without a name, such
 * as "gnuplot_plot_4", loses its title; names of series stay. In a PDF every
 * date becomes SOURCE_DATE_EPOCH, or 1970-01-01 if that is not set. Another
 * file is not changed. IO, NOMEM. */
enum frag_err settle_picture(const char *path, const char *title,
                             struct frag_error *e) FRAG_MUST_CHECK;

#endif
