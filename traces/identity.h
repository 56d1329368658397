/* identity.h - identifies the trace that a result was measured on: the facts
 * about one device's trace that result files store, without its events. */
#ifndef FRAG_TRACES_IDENTITY_H
#define FRAG_TRACES_IDENTITY_H

#include "traces/trace.h"

FRAG_BEGIN_DECLS

/* path, format, sha256, settings, releases and notes have the meaning that they
 * have in struct frag_trace. The struct owns no text: every text is borrowed.
 */
struct frag_trace_identity {
    const char *name; /* file name without folders and suffixes (name.h) */
    const char *edit; /* the edits that a sweep applied to the trace
                         (traces/edit/edit.h); NULL if there were none */
    const char *path;
    const char *format; /* NULL if not known */
    char sha256[65];
    uint64_t file_bytes;
    const char *settings, *releases;
    uint32_t note_count;
    const char *const *notes;
    uint32_t device; /* number of the device */
    uint64_t events; /* number of the device's events */
};

/* Returns the identity of one device of a trace. The result borrows the texts
 * of the trace and `name`, so both must outlive it. If `device` is NULL, the
 * result identifies the whole trace, and its device and events are 0. */
struct frag_trace_identity
frag_trace_identify(const struct frag_trace *trace,
                    const struct frag_device_trace *device, const char *name);

FRAG_END_DECLS

#endif
