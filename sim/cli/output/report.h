/* report.h - where the runs of a replay go: a result file, JSON, CSV, and the
 * table for people where neither JSON nor CSV takes stdout. Each appears whole
 * when the last run is done, or not at all. */
#ifndef FRAG_SIM_CLI_OUTPUT_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_REPORT_H

#include "sim/cli/output/table.h"
#include "sim/results/results.h"
#include "traces/bytes/sink.h"

struct report {
    const struct frag_provenance *provenance;
    struct frag_results *file;
    struct sink json, csv;
    struct frag_json writer; /* to json.out */
    struct table table;
    bool has_table;
    uint64_t runs, failed_runs; /* failed: with at least one OOM */
    uint64_t events;
};

/* NULL for what is not wanted. On error nothing is left open. */
enum frag_err report_open(struct report *r, const struct frag_provenance *p,
                          const char *file, const char *json, const char *csv,
                          struct frag_error *e) FRAG_MUST_CHECK;
enum frag_err report_add(struct report *r, const struct frag_run_identity *id,
                         const struct frag_run *run,
                         struct frag_error *e) FRAG_MUST_CHECK;
/* Closed either way. */
enum frag_err report_commit(struct report *r, bool color,
                            struct frag_error *e) FRAG_MUST_CHECK;
void report_abort(struct report *r);

#endif
