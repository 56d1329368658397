/* columns.h - every column of the results, said once.
 *
 * A column is a field of a row: where it lies, what it is called, what it
 * means. The HDF5 tables, the JSON and CSV rows, the reader and the manual are
 * made from these tables, and commands with rows of their own bring a table.
 */
#ifndef FRAG_SIM_RESULTS_COLUMNS_H
#define FRAG_SIM_RESULTS_COLUMNS_H

#include <stdio.h>

#include "sim/results/results.h"

/* How a field is held in a row. A count of UINT64_MAX (never, unlimited) and a
 * real that is NAN are "none": null in JSON, empty in CSV, -1 and NAN in HDF5,
 * where counts are signed so that -1 can be told from a number. */
enum frag_column_kind {
    FRAG_COLUMN_TEXT,    /* const char * */
    FRAG_COLUMN_COUNT,   /* uint64_t, < 2^63 or UINT64_MAX */
    FRAG_COLUMN_COUNT32, /* uint32_t */
    FRAG_COLUMN_ADDRESS, /* uint64_t, all of it */
    FRAG_COLUMN_REAL,    /* double */
    FRAG_COLUMN_END,     /* ends a table */
};

struct frag_column {
    const char *name;
    enum frag_column_kind kind;
    size_t offset;       /* in the row */
    const char *units;   /* as UDUNITS spells them; "" for text */
    const char *meaning; /* the attribute long_name */
    const char *formula; /* how it is computed from others; NULL if measured */
};

/* A row of /summary. */
struct frag_result_row {
    const char *trace, *policy, *params, *backend, *trace_sha256;
    uint64_t device, capacity, total, seed;
    struct frag_summary summary;
};

extern const struct frag_column frag_summary_columns[]; /* frag_result_row */
extern const struct frag_column frag_series_columns[];  /* frag_point */
extern const struct frag_column frag_oom_columns[];     /* frag_oom */
extern const struct frag_column frag_segment_columns[]; /* frag_segment_row */

/* A row as members of the JSON object that is open, as a line of CSV, and the
 * line above it. Errors stay in ferror(out). */
void frag_row_json(struct frag_json *j, const struct frag_column *columns,
                   const void *row);
void frag_row_csv(FILE *out, const struct frag_column *columns,
                  const void *row);
void frag_header_csv(FILE *out, const struct frag_column *columns);

size_t frag_column_count(const struct frag_column *columns);

/* The row of a run; borrows from both. */
struct frag_result_row frag_result_row(const struct frag_run_identity *id,
                                       const struct frag_run *run);

#endif
