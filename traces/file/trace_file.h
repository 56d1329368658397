/* trace_file.h - the trace file, HDF5; private to traces/.
 *
 *   /                          attributes schema_name "fragsim-trace",
 *                              schema_version "1.0", tool, source_path,
 *                              source_format, source_sha256, settings
 *   /devices/<n>               attributes slots, initial, has_actions, has_end
 *   /devices/<n>/events/       op id bytes stream pool time stack
 *   /devices/<n>/recorded/     addr actions start_segments start_blocks
 *                              end_segments end_blocks
 *   /devices/<n>/              streams pools marks
 *   /strings/                  text first: string k is text[first[k]] up to the
 *                              0 before first[k + 1]
 *   /stacks/                   frames first
 *   /notes/                    text first
 *
 * Only /devices/<n>/events/{op,id,bytes} must be there; what is absent is
 * zeros, empty or not recorded. Event columns are contiguous, uncompressed,
 * little-endian and start on a page, so that a reader maps them; columns stored
 * otherwise are read. Every dataset says its units and its long_name.
 *
 * HDF5 is not thread-safe: one call at a time in a process.
 */
#ifndef FRAG_TRACES_FILE_TRACE_FILE_H
#define FRAG_TRACES_FILE_TRACE_FILE_H

#include <hdf5.h>

#include "traces/storage.h"

#define TRACE_SCHEMA         "fragsim-trace"
#define TRACE_SCHEMA_VERSION "1.0"
#define TRACE_TOOL           "fragsim"

extern const char *const trace_file_format; /* "hdf5" */

/* Whether a file begins as HDF5 does. */
bool trace_file_is(const unsigned char *bytes, size_t count);

/* As frag_trace_open, of a file that is HDF5. */
enum frag_err trace_file_read(const char *path,
                              const struct frag_read_options *opts,
                              struct frag_trace **out,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* The parts that frag_trace_check does not look at: tables, strings, stacks. */
enum frag_err trace_file_check(const struct frag_trace *t,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* How a value lies in memory; in the file it is the same, little-endian. */
enum trace_type {
    TRACE_U8,
    TRACE_U16,
    TRACE_U32,
    TRACE_U64,
    TRACE_OP, /* uint8_t; in the file an enum */
};

/* A dataset of one value a row. */
struct trace_column {
    const char *name, *units, *long_name;
    enum trace_type type;
};

struct trace_field {
    const char *name; /* NULL ends the table */
    size_t offset;
    enum trace_type type;
};

/* A dataset of one struct a row. */
struct trace_table {
    const char *name, *units, *long_name;
    size_t size;
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
    trace_marks, trace_frames;

const void *trace_event_data(const struct frag_device_trace *d,
                             enum trace_events k);
size_t trace_type_size(enum trace_type type);

/* Types as in memory and as in the file. The caller closes them with H5Tclose;
 * negative if HDF5 has no room. */
hid_t trace_memory_type(enum trace_type type);
hid_t trace_file_type(enum trace_type type);
hid_t trace_row_type(const struct trace_table *table, bool in_file);

/* A file being read. */
struct trace_reader {
    struct frag_trace *trace;
    struct frag_error *e;
    const char *path;
    const unsigned char *map;
    uint64_t map_size;
    hid_t file;
};

/* CORRUPT, with the words that `what` was expected at where + name. */
enum frag_err trace_expected(const struct trace_reader *r, const char *where,
                             const char *name, const char *what);
bool trace_has(hid_t at, const char *name);

/* A dataset of the group `at`, whose path `where` ends in a slash. The rows
 * belong to the trace. A table that is absent is empty; a column must be
 * there. CORRUPT, NOMEM. */
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

/* An attribute of `at`, at most max; *value stays if it is absent. */
enum frag_err trace_read_number(const struct trace_reader *r, hid_t at,
                                const char *where, const char *name,
                                uint64_t max, uint64_t *value) FRAG_MUST_CHECK;
/* An attribute of the root; NULL if it is absent. The caller frees it. */
enum frag_err trace_read_text(const struct trace_reader *r, const char *name,
                              char **text) FRAG_MUST_CHECK;

/* The texts of a group of the root (strings, notes), and the stacks. */
enum frag_err trace_read_texts(const struct trace_reader *r, const char *name,
                               const char *const **out,
                               uint32_t *count) FRAG_MUST_CHECK;
enum frag_err trace_read_stacks(const struct trace_reader *r) FRAG_MUST_CHECK;

/* Writing: attributes, groups and datasets; false or negative if HDF5 refuses.
 * A label is text of variable length, which h5py gives as str. A text, which is
 * read back, is of fixed length, so that it lies in the checksummed header. */
bool trace_put_label(hid_t at, const char *name, const char *text);
bool trace_put_text(hid_t at, const char *name, const char *text);
bool trace_put_number(hid_t at, const char *name, uint64_t value);
hid_t trace_make_group(hid_t at, const char *name);
bool trace_close_group(hid_t group, bool fine); /* fine, and closed */
hid_t trace_make_column(hid_t at, const struct trace_column *column,
                        uint64_t count);
hid_t trace_rows_type(enum trace_type type); /* what trace_put_rows takes */
bool trace_put_rows(hid_t data, hid_t type, uint64_t first, uint64_t count,
                    const void *rows);
bool trace_put_column(hid_t at, const struct trace_column *column,
                      const void *rows, uint64_t count);
bool trace_put_table(hid_t at, const struct trace_table *table,
                     const void *rows, uint64_t count);

/* HDF5 prints its errors unless told otherwise; ours say more. It also
 * complains at exit of what it lost itself on a damaged file, so its clean-up
 * at exit is left out: every file is closed here. */
struct trace_quiet {
    H5E_auto2_t print;
    void *data;
};
struct trace_quiet trace_hush(void);
void trace_unhush(struct trace_quiet q);

#endif
