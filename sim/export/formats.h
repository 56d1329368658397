/* formats.h - the formats of other programs that fragsim writes.
 *
 * A format holds the trace itself, or what policies do with it; then each
 * policy is replayed while the file is written, so that no run is kept in
 * memory. To add a format: its writer in NAME.c, and one line in
 * export_list.h.
 */
#ifndef FRAG_SIM_EXPORT_FORMATS_H
#define FRAG_SIM_EXPORT_FORMATS_H

#include "sim/experiments/cell.h"
#include "sim/experiments/choices.h"
#include "sim/export/export_notes.h"

/* The contents to write. All pointers are borrowed. */
struct export_job {
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const char *name; /* of the trace, without folders and suffixes */
    const struct cell_settings *cell;
    const struct policy_choice *policies;
    size_t policy_count;
    struct frag_bound bound;
    uint64_t points; /* most samples of each counter; 0: one an event */
    /* As in frag_replay. */
    frag_progress *tick;
    void *user;
};

/* The parts of a trace that a format holds. */
enum export_holds {
    HOLDS_STREAMS = 1 << 0,
    HOLDS_POOLS = 1 << 1,
    HOLDS_TIMES = 1 << 2,
    HOLDS_STACKS = 1 << 3,
    HOLDS_MARKS = 1 << 4,
    HOLDS_LATE_FREES = 1 << 5, /* free_requested */
    HOLDS_RECORD_STREAM = 1 << 6,
    HOLDS_EMPTY_CACHE = 1 << 7,
    HOLDS_FAILED = 1 << 8,        /* that a request failed */
    HOLDS_SIZES = 1 << 9,         /* requested sizes */
    HOLDS_LIVE = 1 << 10,         /* that a block is never freed */
    HOLDS_FREE_STREAMS = 1 << 11, /* a free on another stream */
    HOLDS_EVERYTHING = (1 << 12) - 1,
};

struct export_format {
    const char *name, *about;
    unsigned holds;    /* enum export_holds */
    size_t policy_max; /* 0: the format holds the trace and no run */
    /* Errors: IO, NOMEM, those of a replay; UNSUPPORTED if the format cannot
     * show what the policy does. On error a file at `path` is unchanged. "-" is
     * stdout. `notes` receives what the file lacks beyond `holds`. */
    enum frag_err (*write)(const struct export_job *job, const char *path,
                           struct export_notes *notes, struct frag_error *e);
};

/* The formats in the order of export_list.h. */
enum export_format_number {
#define FORMAT(name, ...) EXPORT_##name,
#include "sim/export/export_list.h"
#undef FORMAT
    EXPORT_FORMATS
};
extern const struct export_format export_formats[EXPORT_FORMATS];

/* Writes the file. Errors as of the format's writer; INVALID for a policy with
 * a format that holds no runs, and for more policies than it holds. */
enum frag_err export_write(enum export_format_number format,
                           const struct export_job *job, const char *path,
                           struct export_notes *notes,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
