/* draw.h - draws the pictures of answers with the scripts of plots/.
 *
 * Each function writes the data of one script and runs gnuplot (gnuplot_draw,
 * whose errors it returns).
 */
#ifndef FRAG_SIM_CLI_ANSWERS_FIGURES_DRAW_H
#define FRAG_SIM_CLI_ANSWERS_FIGURES_DRAW_H

#include "sim/answers/explain/explain.h"
#include "sim/answers/steps/step_table.h"
#include "sim/cli/gnuplot/drawing.h"
#include "sim/experiments/devices.h"

/* A run whose steps are shown; borrowed. */
struct steps_subject {
    const struct input *in;
    const char *policy;
    struct frag_bound bound;
};

/* When the leaks will have filled a device; for leaks_units_left. */
struct leaks_reach {
    const char *policy; /* NULL: no capacity was given */
    frag_size capacity;
    uint64_t least, most; /* units */
};

/* The segments at the failure, drawn to scale: live and pending blocks, holes,
 * the request and the memory that is not reserved. `name` is that of the trace.
 */
enum frag_err draw_holes(const struct explain *x, const char *name,
                         const struct drawing *d,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* The peaks of each step and what is live where it begins. */
enum frag_err draw_steps(const struct steps_subject *on,
                         const struct step_table *t, const struct drawing *d,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* The bytes that each leak holds where each step begins, with its growth, and
 * the peaks of the steps. */
enum frag_err draw_leaks(const struct input *in, const struct leaks *l,
                         const struct leaks_reach *reach,
                         const struct drawing *d,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
