/* fit_report.h - what `fit` says: a row a policy as JSON, CSV and a table, and
 * the frontier, a row a span of capacities. Each appears whole when the last
 * policy is done, or not at all.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_FIT_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_FIT_REPORT_H

#include "sim/cli/cli.h"
#include "sim/cli/output/table.h"
#include "sim/experiments/capacity/spans.h"
#include "traces/bytes/sink.h"

struct fit_report {
    struct sink json, csv, frontier;
    struct frag_json writer; /* to json.out */
    struct table table;
    bool has_table;
    bool frontier_wanted; /* the spans go up to what the policy takes unlimited
                           */
    size_t rows;
};

/* What was searched; borrowed. */
struct fit_subject {
    const char *trace, *policy;
    uint32_t device;
    frag_size total; /* as of struct frag_capacity_spec */
};

/* NULL for what is not wanted. IO, NOMEM; then nothing is left open. */
enum frag_err fit_report_open(struct fit_report *r, const struct call *call,
                              const char *json, const char *csv,
                              const char *frontier,
                              struct frag_error *e) FRAG_MUST_CHECK;
/* The spans are ascending, and reach at least to the first that survives. */
void fit_report_add(struct fit_report *r, const struct fit_subject *on,
                    const struct frag_capacity_span *unlimited,
                    const struct frag_capacity_spans *spans);
/* Closed either way. IO, NOMEM. */
enum frag_err fit_report_commit(struct fit_report *r, bool color,
                                struct frag_error *e) FRAG_MUST_CHECK;
void fit_report_abort(struct fit_report *r);

#endif
