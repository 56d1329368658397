/* export_csv.c - writes the events of one device as CSV. The format is
 * described in traces/import/import_csv.c, which reads it; recorded answers,
 * pools, times and stacks are not written. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/bytes/sink.h"
#include "traces/facts.h"
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

struct repetitions {
    uint64_t count;
    struct facts_left_live left;
};

static void put_frees(FILE *out, const struct facts_left_live *left)
{
    for (uint64_t i = 0; i < left->count; i++)
        fprintf(out, "%s,%" PRIu32 ",,\n", frag_op_names[FRAG_FREE],
                left->ids[i]);
}

static void put_events(FILE *out, const struct frag_device_trace *d,
                       const struct repetitions *r)
{
    fputs("op,id,bytes,stream\n", out);
    for (uint64_t k = 0; k < r->count && !ferror(out); k++) {
        if (k)
            put_frees(out, &r->left);
        for (uint64_t i = 0; i < d->count && !ferror(out); i++)
            put_event(out, d, i);
    }
}

static enum frag_err write_events(const char *path,
                                  const struct frag_device_trace *d,
                                  const struct repetitions *r,
                                  struct frag_error *e)
{
    struct sink sink;

    if (sink_is_stdout(path)) { /* directly: this needs no memory */
        put_events(stdout, d, r);
        if (fflush(stdout) == 0 && !ferror(stdout))
            return FRAG_OK;
        return frag_fail(e, FRAG_IO, "stdout: cannot write it: %s",
                         strerror(errno));
    }
    FRAG_TRY(sink_open(&sink, path, e));
    put_events(sink.out, d, r);
    return sink_commit(&sink, e); /* reports an error of put_events */
}

enum frag_err frag_trace_write_csv(const struct frag_trace *trace,
                                   uint32_t device, const char *path,
                                   uint64_t repeat, struct frag_error *e)
{
    const struct frag_device_trace *d = frag_trace_device(trace, device);
    struct repetitions r = {.count = repeat};
    enum frag_err err;

    if (!d)
        return frag_fail(e, FRAG_INVALID, "%s: it has no device %" PRIu32,
                         trace->path, device);
    if (facts_left_live(d, &r.left) != FRAG_OK)
        return frag_no_memory(e, "%s", path);
    err = write_events(path, d, &r, e);
    free(r.left.ids);
    return err;
}
