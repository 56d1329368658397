/* columns.h - the tables of columns: every number in a result is defined here
 * once.
 *
 * A column describes one field of a row: its offset in the struct, name, type,
 * units and meaning. The HDF5 tables, the JSON and CSV rows, the reader and the
 * manual are made from these tables. A command with rows of its own defines its
 * own table.
 */
#ifndef FRAG_SIM_RESULTS_COLUMNS_H
#define FRAG_SIM_RESULTS_COLUMNS_H

#include <stdio.h>

#include "sim/results/results.h"

/* The type of a field in a row. An optional count of UINT64_MAX (never,
 * unlimited) and a real that is NAN mean "none": null in JSON, an empty field
 * in CSV, NAN in HDF5. The same holds for a count in JSON and CSV, for the
 * tables of commands, which are not written to HDF5; only those have the kinds
 * from CHARS on. */
enum frag_column_kind {
    FRAG_COLUMN_TEXT,     /* const char * */
    FRAG_COLUMN_COUNT,    /* uint64_t, < 2^63; signed in HDF5 */
    FRAG_COLUMN_COUNT32,  /* uint32_t; signed, 64 bits in HDF5 */
    FRAG_COLUMN_OPTIONAL, /* uint64_t, < 2^63 or UINT64_MAX; a double in HDF5:
                             exact up to 2^53 */
    FRAG_COLUMN_ADDRESS,  /* uint64_t, any value */
    FRAG_COLUMN_REAL,     /* double */
    FRAG_COLUMN_CHARS,    /* char[], a text in the row */
    FRAG_COLUMN_FILLED,   /* char[]; an empty one is none */
    FRAG_COLUMN_WORD,     /* an enum; its text is in words */
    FRAG_COLUMN_WORD8,    /* the same for a bool */
    FRAG_COLUMN_BOOL,     /* bool */
    FRAG_COLUMN_NOT,      /* bool; true if it is not set */
    FRAG_COLUMN_COUNT16,  /* uint16_t */
    FRAG_COLUMN_DEVICE,   /* uint32_t; UINT32_MAX is none */
    FRAG_COLUMN_POSITIVE, /* uint64_t; 0 is none */
    FRAG_COLUMN_NS,       /* uint64_t of nanoseconds, in seconds in JSON */
    FRAG_COLUMN_CAPACITY, /* struct frag_bound: its bytes if it is a capacity,
                             else none */
    FRAG_COLUMN_LIMIT,    /* the same for a limit */
    FRAG_COLUMN_LINE,     /* no field: in JSON the next column starts a line
                             that begins with `offset` spaces */
    FRAG_COLUMN_END,      /* marks the end of a table */
};

struct frag_column {
    const char *name;
    enum frag_column_kind kind;
    size_t offset;       /* in the struct of the row, in bytes */
    const char *units;   /* in the spelling of UDUNITS; "" for text */
    const char *meaning; /* text of the attribute long_name */
    const char *formula; /* computation from other columns; NULL if measured */
    const char *const *words; /* of a WORD; else NULL */
};

/* A row of /summary. All texts are borrowed. */
struct frag_result_row {
    const char *trace, *policy, *params, *backend, *trace_sha256, *edit, *start,
        *asked;
    uint64_t device, capacity, limit, total, seed;
    struct frag_summary summary;
};

/* The tables, each with the struct of its rows. */
extern const struct frag_column frag_summary_columns[]; /* frag_result_row */
extern const struct frag_column frag_series_columns[];  /* frag_point */
extern const struct frag_column frag_oom_columns[];     /* frag_oom */
extern const struct frag_column frag_segment_columns[]; /* frag_segment_row */

/* frag_row_json writes a row as members of the JSON object that is open;
 * frag_row_csv writes it as a line of CSV; frag_header_csv writes the first
 * line of the CSV file. The caller checks ferror(out) for write errors. */
void frag_row_json(struct frag_json *j, const struct frag_column *columns,
                   const void *row);
void frag_row_csv(FILE *out, const struct frag_column *columns,
                  const void *row);
void frag_header_csv(FILE *out, const struct frag_column *columns);
/* Writes a row as an object; null if it is NULL. */
void frag_object_json(struct frag_json *j, const char *key,
                      const struct frag_column *columns, const void *row);
/* Writes an array of rows of `size` bytes, an object for each. If `indent` is
 * not 0, the array stands on a line that begins with so many spaces, and the
 * rows on lines with one more. */
void frag_rows_json(struct frag_json *j, const char *key, int indent,
                    const struct frag_column *columns, const void *rows,
                    size_t count, size_t size);

/* The number of an optional count as HDF5 stores it, and the count of a number
 * that was read. NAN, and -1 in files of schema 1, is UINT64_MAX. The second
 * function returns false, and *n is untouched, if no count is stored as x. */
double frag_optional_real(uint64_t n);
bool frag_optional_count(double x, uint64_t *n);

/* The field of a row that a column describes: a number, of a REAL its bits, a
 * real, or a text, NULL if it is none. */
uint64_t frag_column_number(const struct frag_column *c, const void *row);
double frag_column_real(const struct frag_column *c, const void *row);
const char *frag_column_text(const struct frag_column *c, const void *row);

/* Number of columns before FRAG_COLUMN_END. */
size_t frag_column_count(const struct frag_column *columns);

/* The summary row of a run. Its texts are borrowed from id and run. */
struct frag_result_row frag_result_row(const struct frag_run_identity *id,
                                       const struct frag_run *run);

#endif
