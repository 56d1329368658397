/* export_csv.c - writes the events of one device as CSV. The format is
 * described in traces/import/import_csv.c, which reads it; recorded answers,
 * pools, times and stacks are not written. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "traces/bytes/sink.h"
#include "traces/trace.h"

static void put_event(FILE *out, const struct frag_device_trace *d, uint64_t i)
{
    const char *op = frag_op_names[d->op[i]];

    switch ((enum frag_op)d->op[i]) {
    case FRAG_ALLOC:
        fprintf(out, "%s,%" PRIu32 ",%" PRIu64 ",%" PRIu64 "\n", op, d->id[i],
                d->bytes[i], d->streams[d->stream[i]]);
        break;
    case FRAG_RECORD_STREAM:
        fprintf(out, "%s,%" PRIu32 ",,%" PRIu64 "\n", op, d->id[i],
                d->streams[d->stream[i]]);
        break;
    case FRAG_FREE:
    case FRAG_FREE_REQUESTED:
        fprintf(out, "%s,%" PRIu32 ",,\n", op, d->id[i]);
        break;
    case FRAG_EMPTY_CACHE:
    case FRAG_OP_COUNT:
        fprintf(out, "%s,,,\n", op);
        break;
    }
}

static void put_events(FILE *out, const struct frag_device_trace *d)
{
    fputs("op,id,bytes,stream\n", out);
    for (uint64_t i = 0; i < d->count && !ferror(out); i++)
        put_event(out, d, i);
}

enum frag_err frag_trace_write_csv(const struct frag_trace *trace,
                                   uint32_t device, const char *path,
                                   struct frag_error *e)
{
    const struct frag_device_trace *d = frag_trace_device(trace, device);
    struct sink sink;

    if (!d)
        return frag_fail(e, FRAG_INVALID, "%s: it has no device %" PRIu32,
                         trace->path, device);
    if (sink_is_stdout(path)) { /* directly: this needs no memory */
        put_events(stdout, d);
        if (fflush(stdout) == 0 && !ferror(stdout))
            return FRAG_OK;
        return frag_fail(e, FRAG_IO, "stdout: cannot write it: %s",
                         strerror(errno));
    }
    FRAG_TRY(sink_open(&sink, path, e));
    put_events(sink.out, d);
    return sink_commit(&sink, e); /* reports an error of put_events */
}
