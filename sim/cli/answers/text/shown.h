/* shown.h - the answers of commands as functions. A command calls them for each
 * device that its user named, and triage for the parts of its page.
 */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_SHOWN_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_SHOWN_H

#include "sim/cli/gnuplot/drawing.h"
#include "sim/cli/output/progress.h"
#include "sim/experiments/devices.h"

/* What a function answers, as the command of its name does with its other
 * options unset, and where to. Borrowed. */
struct shown {
    const struct call *call;
    struct input in;    /* as recorded: READING_RAW or READING_RECORDED */
    const char *at;     /* the moment, as for moment_read; of top and summary */
    frag_size capacity; /* of leaks */
    frag_size total;    /* of the recorded device, 0: not known; of explain
                           and summary */
    struct drawing drawing; /* out: NULL: no picture */
    FILE *out;              /* for the text, which has no colours */
    struct progress *progress;
};

/* Each function writes the text, and then draws. CANCELLED; errors of the
 * answer and of gnuplot_draw. */
typedef enum frag_err shown_put(const struct shown *on, struct frag_error *e);

shown_put explain_show; /* the recorded failure, and what to do at its bound */
shown_put leaks_show;
shown_put steps_show;
shown_put summary_show;
shown_put top_show;
shown_put classes_show; /* top --by class */

/* Whether the recording has the stacks for it. */
bool classes_are_told(const struct frag_trace *t,
                      const struct frag_device_trace *d);

#endif
