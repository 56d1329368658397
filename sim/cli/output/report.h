/* report.h - the outputs of a command that reports rows, and those of `replay`
 * and `sweep`, whose rows are runs that an HDF5 result file may have too. Each
 * output appears complete after the last row, or not at all. */
#ifndef FRAG_SIM_CLI_OUTPUT_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_REPORT_H

#include "sim/cli/output/outputs.h"
#include "sim/cli/output/table.h"
#include "sim/experiments/cell_notes.h"
#include "sim/results/columns.h"
#include "traces/bytes/sink.h"

struct report_texts {
    struct sink json, csv, own; /* own: the first that only this verb has */
    struct frag_json writer;    /* to json.out */
    struct table table, below; /* below: printed after it, unless it is empty */
    bool has_table;            /* none of the others goes to stdout */
    const struct frag_column *columns; /* of the rows */
    struct cell_note_list *notes; /* of the cells, written after the rows as
                                     `cell_notes'; NULL: not written */
};

/* Opens the texts: the table begins with its headings, the JSON with what made
 * it, and the CSV with the names of the columns. IO, NOMEM; then nothing is
 * left open. */
enum frag_err report_texts_open(struct report_texts *r,
                                const struct frag_provenance *p,
                                const struct outputs *to, struct table table,
                                const struct frag_column *columns,
                                struct frag_error *e) FRAG_MUST_CHECK;
/* Adds a row to the CSV, and to the JSON as an object that stays open. */
void report_texts_add(struct report_texts *r, const void *row);
/* Writes all of them. They are closed on success and on error. IO, NOMEM. */
enum frag_err report_texts_commit(struct report_texts *r, bool color,
                                  struct frag_error *e) FRAG_MUST_CHECK;
/* Closes them and writes nothing. */
void report_texts_abort(struct report_texts *r);

struct report {
    const struct frag_provenance *provenance;
    struct frag_results *file;
    struct report_texts texts;
    uint64_t runs, failed_runs; /* failed: with at least one OOM */
    uint64_t events;            /* of all runs */
};

/* p is borrowed. On error nothing is left open. */
enum frag_err report_open(struct report *r, const struct frag_provenance *p,
                          const struct outputs *to,
                          struct frag_error *e) FRAG_MUST_CHECK;
/* Adds one run. After an error the report must still be aborted. */
enum frag_err report_add(struct report *r, const struct frag_run_identity *id,
                         const struct frag_run *run,
                         struct frag_error *e) FRAG_MUST_CHECK;
/* Adds a cell that failed and has no numbers: the table says so; JSON and CSV
 * have a row whose numbers are null or empty, and JSON a note with the error.
 * The result file has no row. */
void report_add_failed(struct report *r, const struct frag_run_identity *id,
                       char *params, const char *error);
/* Writes all outputs. The report is closed on success and on error. */
enum frag_err report_commit(struct report *r, bool color,
                            struct frag_error *e) FRAG_MUST_CHECK;
/* Closes the report and writes nothing. */
void report_abort(struct report *r);

#endif
