/* compare_report.h - the output of `compare`: one row for each cell, as JSON
 * (with the driver calls), as CSV and as a table. Each output appears complete
 * after the last cell, or not at all.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_COMPARE_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_COMPARE_REPORT_H

#include "sim/cli/output/report.h"
#include "sim/results/results.h"
#include "sim/twin.h"

/* One cell: its simulated run and its runs on the device. */
struct compared {
    struct frag_run_identity id; /* borrowed */
    struct frag_summary simulated, real;
    struct frag_twin_cost calls[FRAG_DRIVER_CALL_COUNT]; /* of the fastest
                                                               device run */
    frag_time measured;  /* ns in the driver during that run; UINT64_MAX: no
                            run yet */
    double pace;         /* of the machine before and after that run:
                            frag_pace */
    frag_size leaked;    /* bytes that a run left on the device */
    uint64_t runs;       /* runs on the device so far */
    bool differs;        /* a number of some device run is not the simulated
                            number */
    char difference[96]; /* the first one: "end_reserved 12, simulated 14" */
};

struct compare_report {
    struct report_texts texts;
    const char *costs;    /* as in --costs, for all rows; borrowed */
    uint64_t rows, wrong; /* wrong: rows with a difference or a leak */
};

/* The caller has set r->costs. On IO or NOMEM nothing is left open. */
enum frag_err compare_report_open(struct compare_report *r,
                                  const struct call *call,
                                  const struct outputs *to,
                                  struct frag_error *e) FRAG_MUST_CHECK;
/* Adds one cell; a failed allocation is reported by the commit. */
void compare_report_add(struct compare_report *r, const struct compared *c);
#endif
