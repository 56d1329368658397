/* draw.h - draws the pictures of answers with the scripts of plots/.
 *
 * Each function writes the data of one script and runs gnuplot. `out` is the
 * file, in the format of its suffix (gnuplot_can_draw); it appears complete or
 * not at all. `keep` is a folder that keeps the script and its data; NULL: they
 * are not kept. Errors: IO if gnuplot is missing or fails, NOMEM.
 */
#ifndef FRAG_SIM_CLI_ANSWERS_FIGURES_DRAW_H
#define FRAG_SIM_CLI_ANSWERS_FIGURES_DRAW_H

#include "sim/answers/explain/explain.h"
#include "sim/cli/answers/text/leaks_text.h"
#include "sim/cli/answers/text/steps_text.h"
#include "sim/cli/output/progress.h"

/* The segments at the failure, drawn to scale: live and pending blocks, holes,
 * the request and the memory that is not reserved. `name` is that of the trace.
 */
enum frag_err draw_holes(const struct explain *x, const char *name,
                         const char *out, const char *keep,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* The addresses of all blocks and holes up to the failure, under the recorded
 * settings and bound. With a name in .html it is the interactive view
 * (sim/cli/review/view.h), which keeps nothing; draw_can_map knows the names.
 * Also the errors of a replay. */
bool draw_can_map(const char *out);
enum frag_err draw_map(const struct explain *x, const char *out,
                       const char *keep, struct progress *progress,
                       struct frag_error *e) FRAG_MUST_CHECK;

/* The peaks of each step and what is live where it begins, with its growth. */
enum frag_err draw_steps(const struct steps_subject *on,
                         const struct step_table *t, const char *out,
                         const char *keep,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* The bytes that each leak holds where each step begins, with its growth, and
 * the peaks of the steps. */
enum frag_err draw_leaks(const struct input *in, const struct leaks *l,
                         const struct leaks_reach *reach, const char *out,
                         const char *keep,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
