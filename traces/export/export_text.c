/* export_text.c - writes the events of one device as a text, complete or not at
 * all.
 */
#include "traces/export/export_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "traces/bytes/sink.h"

enum frag_err text_device(const struct frag_trace *trace, uint32_t device,
                          const struct frag_device_trace **out,
                          struct frag_error *e)
{
    *out = frag_trace_device(trace, device);
    if (*out)
        return FRAG_OK;
    return frag_fail(e, FRAG_INVALID, "%s: it has no device %" PRIu32,
                     trace->path, device);
}

enum frag_err text_write(const char *path, const struct frag_device_trace *d,
                         void (*put)(FILE *out,
                                     const struct frag_device_trace *d,
                                     void *user),
                         void *user, struct frag_error *e)
{
    struct sink sink;

    if (sink_is_stdout(path)) { /* directly: this needs no memory */
        put(stdout, d, user);
        if (fflush(stdout) == 0 && !ferror(stdout))
            return FRAG_OK;
        return frag_fail(e, FRAG_IO, "stdout: cannot write it: %s",
                         strerror(errno));
    }
    FRAG_TRY(sink_open(&sink, path, e));
    put(sink.out, d, user);
    return sink_commit(&sink, e); /* reports an error of put */
}
