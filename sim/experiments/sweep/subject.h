/* subject.h - what results say of a trace, without its events: enough to name
 * its cells and to write their rows when the trace itself is not open. And the
 * bytes that a journal keeps of it and of a run.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_SUBJECT_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_SUBJECT_H

#include "sim/results/results.h"

struct subject_device {
    uint32_t device; /* its number */
    uint64_t events;
    frag_size peak_requested;
};

struct subject {
    char file_sha256[65];             /* of the file as it is on the disk */
    struct frag_trace_identity trace; /* of no device */
    uint32_t device_count;
    struct subject_device *devices;
    void *texts; /* what trace points to */
};

/* Of an open trace; NOMEM. On error *out is untouched. */
enum frag_err subject_make(const struct frag_trace *t, const char *file_sha256,
                           struct subject *out,
                           struct frag_error *e) FRAG_MUST_CHECK;
void subject_free(struct subject *s); /* zeroed is fine */

/* The bytes of a subject, to be freed; NULL if there is no memory. */
void *subject_pack(const struct subject *s, size_t *size);
/* CORRUPT if they are not those of a subject, NOMEM; then *out is untouched. */
enum frag_err subject_unpack(const void *bytes, size_t size,
                             struct subject *out) FRAG_MUST_CHECK;

/* The bytes of a run under a key of one's own, with the device's total. */
void *run_pack(const char *key, frag_size total, const struct frag_run *run,
               size_t *size);
/* The key alone, into the bytes; NULL if they are not those of a run. */
const char *run_key(const void *bytes, size_t size);
enum frag_err run_unpack(const void *bytes, size_t size, frag_size *total,
                         struct frag_run *out) FRAG_MUST_CHECK;

#endif
