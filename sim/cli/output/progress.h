/* progress.h - a bar on stderr, where that is a terminal, and the answer to an
 * interrupt. */
#ifndef FRAG_SIM_CLI_OUTPUT_PROGRESS_H
#define FRAG_SIM_CLI_OUTPUT_PROGRESS_H

#include "sim/cli/options.h"

struct progress {
    bool shown, drawn;
    const char *unit; /* "events", "MiB" */
    double scale;     /* of `done` to the unit of the rate */
    char label[64];   /* of the step */
    size_t step, steps;
    uint64_t started; /* ns */
};

struct progress progress_start(const struct common *common);

/* The next of `steps`. */
void progress_step(struct progress *p, size_t step, size_t steps,
                   const char *unit, double scale, const char *label);

/* The callback of frag_replay and frag_trace_open: draws, and answers whether
 * the user interrupted. */
bool progress_tick(void *progress, uint64_t done, uint64_t total);
void progress_clear(struct progress *p);

uint64_t progress_clock(void); /* ns, never runs backwards */

#endif
