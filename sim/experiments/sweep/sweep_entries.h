/* sweep_entries.h - what a sweep keeps: the header of a trace, and the run of a
 * cell as the bytes of a journal entry. The header of a trace is the trace
 * without its events. It is enough to name the cells of the trace and to write
 * their results while the trace itself is closed.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_ENTRIES_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_ENTRIES_H

#include "sim/experiments/cell_notes.h"
#include "sim/experiments/choices.h"

struct trace_header_device {
    uint32_t device; /* its number */
    uint64_t events;
    uint64_t is_replayed; /* see input_replays; 0 or 1 */
    struct bound_facts facts;
};

struct trace_header {
    char file_sha256[65]; /* of the file as it is on the disk, and of the edits
                             if there are any */
    struct frag_trace_identity trace; /* its fields of a device are not set */
    uint32_t device_count;
    struct trace_header_device *devices;
    void *texts; /* storage of the texts of `trace` */
};

/* Makes the header of an open trace. NOMEM; on error *out is untouched. */
enum frag_err trace_header_make(const struct frag_trace *t,
                                const char *file_sha256,
                                struct trace_header *out,
                                struct frag_error *e) FRAG_MUST_CHECK;
void trace_header_free(struct trace_header *s); /* zeroed is fine */

/* A run, its key, its notes (cell_notes.h) and the device's total as bytes,
 * which the caller frees; NULL if the host has no memory. The key is any text
 * that identifies the run. */
void *run_pack(const char *key, frag_size total, const struct cell_notes *notes,
               const struct frag_run *run, size_t *size);
/* The key, a pointer into the bytes; NULL if the bytes have no key. */
const char *run_key(const void *bytes, size_t size);
/* CORRUPT if the bytes are no run, NOMEM. On error *out is untouched, but
 * *total and *notes are not valid. */
enum frag_err run_unpack(const void *bytes, size_t size, frag_size *total,
                         struct cell_notes *notes,
                         struct frag_run *out) FRAG_MUST_CHECK;

#endif
