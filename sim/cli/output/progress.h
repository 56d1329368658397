/* progress.h - a progress bar on stderr, if stderr is a terminal. Its callbacks
 * also tell a long loop that the user interrupted it. Several threads may call
 * them at once; only the thread that began the step draws the bar, so it shows
 * the part of the work that this thread does. */
#ifndef FRAG_SIM_CLI_OUTPUT_PROGRESS_H
#define FRAG_SIM_CLI_OUTPUT_PROGRESS_H

#include <pthread.h>

#include "sim/cli/options.h"

struct progress {
    bool shown;       /* false: nothing is drawn */
    bool drawn;       /* the bar is on the terminal */
    const char *unit; /* of the rate: " events", "B" */
    double scale;     /* units for each count of `done` */
    char label[41];   /* of the step, printable */
    size_t step, steps;
    pthread_t drawer; /* the thread that began the step */
    bool preparing;   /* nothing was done at the last call, for a while */
    uint64_t done;    /* of the last call */
    uint64_t started; /* start of this count of `done`, progress_clock ns */
    uint64_t next;    /* the earliest time of the next drawing */
};

/* The bar is shown unless --quiet or CI is set or TERM is dumb. */
struct progress progress_start(const struct common *common);

/* Begins step number `step` of `steps`. */
void progress_step(struct progress *p, size_t step, size_t steps,
                   const char *unit, double scale, const char *label);

/* The progress callback of frag_replay and frag_trace_open; `progress` is a
 * struct progress. Draws the bar, or for how long nothing was done yet; returns
 * true if the user interrupted. */
bool progress_tick(void *progress, uint64_t done, uint64_t total);
/* Removes the bar from the terminal. */
void progress_clear(struct progress *p);

uint64_t progress_clock(void); /* ns of a monotonic clock */

#endif
