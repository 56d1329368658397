/* calibration.h - compare --calibrate: measures the cost of a GPU driver's
 * memory calls, or computes the cost model from times that were measured
 * before. */
#ifndef FRAG_SIM_CLI_VERBS_CALIBRATION_H
#define FRAG_SIM_CLI_VERBS_CALIBRATION_H

#include "sim/cli/cli.h"

struct calibration {
    const struct common *common;
    const char *costs, *calls; /* outputs, as CSV; NULL: none */
    const char *from;          /* the measured times; NULL: of the GPU */
    uint64_t gpu, rounds;
};

/* Writes the outputs, and prints the table unless the costs go to stdout. The
 * errors are those of frag_cuda_open, frag_calibrate and frag_timings_read; IO,
 * NOMEM. */
enum frag_err calibration_run(const struct calibration *c,
                              struct frag_error *e) FRAG_MUST_CHECK;

#endif
