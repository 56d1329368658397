/* progress.h - a progress bar on stderr, if stderr is a terminal. Its callback
 * also tells a long loop that the user interrupted it. */
#ifndef FRAG_SIM_CLI_OUTPUT_PROGRESS_H
#define FRAG_SIM_CLI_OUTPUT_PROGRESS_H

#include "sim/cli/options.h"

struct progress {
    bool shown;       /* false: nothing is drawn */
    bool drawn;       /* the bar is on the terminal */
    const char *unit; /* of the rate: " events", "B" */
    double scale;     /* units for each count of `done` */
    char label[64];   /* of the step */
    size_t step, steps;
    uint64_t started; /* start of the step, progress_clock ns */
};

/* The bar is shown unless --quiet or CI is set or TERM is dumb. */
struct progress progress_start(const struct common *common);

/* Begins step number `step` of `steps`. */
void progress_step(struct progress *p, size_t step, size_t steps,
                   const char *unit, double scale, const char *label);

/* The progress callback of frag_replay and frag_trace_open; `progress` is a
 * struct progress. Draws the bar; returns true if the user interrupted. */
bool progress_tick(void *progress, uint64_t done, uint64_t total);
/* Removes the bar from the terminal. */
void progress_clear(struct progress *p);

uint64_t progress_clock(void); /* ns of a monotonic clock */

#endif
