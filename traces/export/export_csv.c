/* export_csv.c - writes the events of one device as CSV. The format is
 * described in traces/import/import_csv.c, which reads it; recorded answers,
 * pools, times and stacks are not written. */
#include <inttypes.h>
#include <stdlib.h>

#include "traces/export/export_text.h"
#include "traces/facts.h"

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

static void put_events(FILE *out, const struct frag_device_trace *d, void *user)
{
    const struct repetitions *r = user;

    fputs("op,id,bytes,stream\n", out);
    for (uint64_t k = 0; k < r->count && !ferror(out); k++) {
        if (k)
            put_frees(out, &r->left);
        for (uint64_t i = 0; i < d->count && !ferror(out); i++)
            put_event(out, d, i);
    }
}

enum frag_err frag_trace_write_csv(const struct frag_trace *trace,
                                   uint32_t device, const char *path,
                                   uint64_t repeat, struct frag_error *e)
{
    struct repetitions r = {.count = repeat};
    const struct frag_device_trace *d;
    enum frag_err err;

    FRAG_TRY(text_device(trace, device, &d, e));
    if (facts_left_live(d, &r.left) != FRAG_OK)
        return frag_no_memory(e, "%s", path);
    err = text_write(path, d, put_events, &r, e);
    free(r.left.ids);
    return err;
}
