/* trace_header.h - what a sweep keeps of a trace: the trace without its events.
 * It is enough to name the cells of the trace and to write their results while
 * the trace itself is closed.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_TRACE_HEADER_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_TRACE_HEADER_H

#include "sim/experiments/choices.h"
#include "traces/identity.h"

struct trace_header_device {
    uint32_t device; /* its number */
    uint64_t events;
    uint64_t is_replayed; /* see input_replays; 0 or 1 */
    struct bound_facts facts;
};

struct trace_header {
    char file_sha256[65]; /* of the file as it is on the disk, and of the edits
                             if there are any */
    /* Without its name, path and device. */
    struct frag_trace_identity trace;
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

#endif
