/* compare_report.h - what `compare` says: a row a cell as JSON (with its
 * calls), CSV and a table. Each appears whole when the last cell is done, or
 * not at all.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_COMPARE_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_COMPARE_REPORT_H

#include "sim/cli/cli.h"
#include "sim/cli/output/table.h"
#include "sim/results/results.h"
#include "sim/twin.h"
#include "traces/bytes/sink.h"

/* One cell, simulated and real. */
struct compared {
    struct frag_run_identity id; /* borrowed */
    struct frag_summary simulated, real;
    struct frag_twin_cost calls[FRAG_DRIVER_CALL_COUNT]; /* quickest run */
    frag_time measured;  /* of that run, ns; UINT64_MAX: none yet */
    double pace;         /* of the machine around that run: frag_pace */
    frag_size leaked;    /* bytes that a run left on the device */
    uint64_t runs;       /* on the device */
    bool differs;        /* a number of a run was not the simulated one */
    char difference[96]; /* the first: "end_reserved 12, simulated 14" */
};

struct compare_report {
    struct sink json, csv;
    struct frag_json writer; /* to json.out */
    struct table table;
    bool has_table;
    uint64_t rows, wrong; /* wrong: with a difference or a leak */
};

/* NULL for what is not wanted. IO, NOMEM; then nothing is left open. */
enum frag_err compare_report_open(struct compare_report *r,
                                  const struct call *call, const char *json,
                                  const char *csv,
                                  struct frag_error *e) FRAG_MUST_CHECK;
void compare_report_add(struct compare_report *r, const struct compared *c);
/* Closed either way; `wrong` and `rows` stay. IO, NOMEM. */
enum frag_err compare_report_commit(struct compare_report *r, bool color,
                                    struct frag_error *e) FRAG_MUST_CHECK;
void compare_report_abort(struct compare_report *r);

#endif
