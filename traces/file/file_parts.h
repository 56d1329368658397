/* file_parts.h - what the files of this folder share: the tables of a trace
 * file's columns, and the functions that read and write its parts by HDF5.
 * Private to traces/file/. trace_file.h has the layout.
 */
#ifndef FRAG_TRACES_FILE_FILE_PARTS_H
#define FRAG_TRACES_FILE_FILE_PARTS_H

#include <hdf5.h>

#include "traces/file/trace_file.h"
#include "traces/storage.h"

#define TRACE_SCHEMA "fragsim-trace"
#define TRACE_TOOL   "fragsim"

/* Checks the parts that frag_trace_check omits: tables, strings, stacks.
 * CORRUPT at the first error. */
enum frag_err trace_file_check(const struct frag_trace *t,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* The type of a value in memory. In the file it is the same, little-endian. */
enum trace_type {
    TRACE_U8,
    TRACE_U16,
    TRACE_U32,
    TRACE_U64,
    TRACE_OP, /* uint8_t; an enum in the file */
};

/* A dataset with one number per row. */
struct trace_column {
    const char *name, *units, *long_name;
    enum trace_type type;
};

/* A member of the struct in a table's row. */
struct trace_field {
    const char *name; /* NULL ends the list */
    size_t offset;
    enum trace_type type;
};

/* A dataset with one struct per row. */
struct trace_table {
    const char *name, *units, *long_name;
    size_t size; /* of the struct, in bytes */
    const struct trace_field *fields;
};

/* The event columns, in the order of enum trace_events. */
enum trace_events {
    EVENTS_OP,
    EVENTS_ID,
    EVENTS_BYTES,
    EVENTS_STREAM,
    EVENTS_POOL,
    EVENTS_TIME,
    EVENTS_STACK,
    EVENTS_COUNT
};
extern const struct trace_column trace_event_columns[EVENTS_COUNT];
extern const struct trace_column trace_addr, trace_streams, trace_first,
    trace_text;
extern const struct trace_table trace_actions, trace_start_segments,
    trace_start_blocks, trace_end_segments, trace_end_blocks, trace_pools,
    trace_marks, trace_changes, trace_frames;

/* Returns the rows of an event column; NULL if the trace lacks the column. */
const void *trace_event_data(const struct frag_device_trace *d,
                             enum trace_events k);
/* The size of a value in bytes, in memory and in the file. */
size_t trace_type_size(enum trace_type type);

/* These functions create the HDF5 type of a value or of a row, as in memory or
 * as in the file. The caller closes the type with H5Tclose. Negative if HDF5
 * has no memory. */
hid_t trace_memory_type(enum trace_type type);
hid_t trace_file_type(enum trace_type type);
hid_t trace_row_type(const struct trace_table *table, bool in_file);

/* The state of trace_file_read. */
struct trace_reader {
    struct frag_trace *trace;
    struct frag_error *e;
    const char *path;
    struct hdf5_fault *fault; /* see guard.h */
    const unsigned char *map; /* the mapped file */
    uint64_t map_size;        /* bytes */
    hid_t file;
};

/* Returns CORRUPT, with the message that the file was expected to have `what`
 * at where + name. */
enum frag_err trace_expected(const struct trace_reader *r, const char *where,
                             const char *name, const char *what);

/* These two read a dataset of the group `at`. `where` is the path of the group
 * with a slash at its end, for messages. The trace owns the rows. A table that
 * is absent is empty; a column that is absent is an error. CORRUPT, NOMEM. */
enum frag_err trace_read_column(const struct trace_reader *r, hid_t at,
                                const char *where,
                                const struct trace_column *column,
                                const void **rows,
                                uint64_t *count) FRAG_MUST_CHECK;
enum frag_err trace_read_table(const struct trace_reader *r, hid_t at,
                               const char *where,
                               const struct trace_table *table,
                               const void **rows,
                               uint64_t *count) FRAG_MUST_CHECK;

/* Reads a number from an attribute of `at`. If the attribute is absent, *value
 * is unchanged. CORRUPT if it is more than max or no number. */
enum frag_err trace_read_number(const struct trace_reader *r, hid_t at,
                                const char *where, const char *name,
                                uint64_t max, uint64_t *value) FRAG_MUST_CHECK;
/* Reads a text from an attribute of the root; *text is NULL if it is absent.
 * The caller frees *text. CORRUPT, NOMEM. */
enum frag_err trace_read_text(const struct trace_reader *r, const char *name,
                              char **text) FRAG_MUST_CHECK;

/* These two read the texts of a group of the root (strings, notes), and the
 * stacks. A group that is absent is empty. CORRUPT, NOMEM. */
enum frag_err trace_read_texts(const struct trace_reader *r, const char *name,
                               const char *const **out,
                               uint32_t *count) FRAG_MUST_CHECK;
enum frag_err trace_read_stacks(const struct trace_reader *r) FRAG_MUST_CHECK;

/* These functions write attributes, groups and datasets. They return false or a
 * negative id if HDF5 fails. A label is a text of variable length, which h5py
 * reads as str; this program does not read labels. */
bool trace_put_label(hid_t at, const char *name, const char *text);
bool trace_put_number(hid_t at, const char *name, uint64_t value);
/* Closes the group and returns true if that succeeds and `fine` is true. */
bool trace_close_group(hid_t group, bool fine);
bool trace_put_column(hid_t at, const struct trace_column *column,
                      const void *rows, uint64_t count);
bool trace_put_table(hid_t at, const struct trace_table *table,
                     const void *rows, uint64_t count);

#endif
