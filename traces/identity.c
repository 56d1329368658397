/* identity.c - copies the identifying facts of a trace into one struct. */
#include "traces/identity.h"

#include <string.h>

struct frag_trace_identity
frag_trace_identify(const struct frag_trace *trace,
                    const struct frag_device_trace *device, const char *name)
{
    struct frag_trace_identity id = {
        .name = name,
        .path = trace->path,
        .format = trace->format,
        .file_bytes = trace->file_bytes,
        .settings = trace->settings,
        .releases = trace->releases,
        .note_count = trace->note_count,
        .notes = trace->notes,
        .device = device ? device->device : 0,
        .events = device ? device->count : 0,
    };

    memcpy(id.sha256, trace->sha256, sizeof(id.sha256));
    return id;
}
