/* identity.h - which trace a number was measured on: the facts that results
 * keep of one device's trace, without its events. */
#ifndef FRAG_TRACES_IDENTITY_H
#define FRAG_TRACES_IDENTITY_H

#include "traces/trace.h"

FRAG_BEGIN_DECLS

/* Every text is borrowed; path, format, sha256, settings and notes are those of
 * struct frag_trace. */
struct frag_trace_identity {
    const char *name; /* file name without folders and suffixes */
    const char *path;
    const char *format; /* NULL if it is not known */
    char sha256[65];
    uint64_t file_bytes;
    const char *settings;
    uint32_t note_count;
    const char *const *notes;
    uint32_t device; /* its number */
    uint64_t events; /* of the device */
};

/* The identity of a device of a trace; it borrows from the trace and name.
 * device NULL: of the trace alone, its device and events are 0. */
struct frag_trace_identity
frag_trace_identify(const struct frag_trace *trace,
                    const struct frag_device_trace *device, const char *name);

FRAG_END_DECLS

#endif
