/* svg.h - replaces the names that gnuplot gives an SVG file and its parts. */
#ifndef FRAG_SIM_CLI_GNUPLOT_SVG_H
#define FRAG_SIM_CLI_GNUPLOT_SVG_H

#include "traces/base.h"

/* Browsers show a <title> where the mouse rests. The title of the whole, which
 * is "Gnuplot", becomes `title`, and a series without a name, such as
 * "gnuplot_plot_4", loses its title. Names of series stay. A file that is not
 * an SVG is not changed. IO, NOMEM. */
enum frag_err svg_set_titles(const char *path, const char *title,
                             struct frag_error *e) FRAG_MUST_CHECK;

#endif
