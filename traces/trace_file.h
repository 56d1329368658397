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
#ifndef TRACES_TRACE_FILE_H
#define TRACES_TRACE_FILE_H

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
