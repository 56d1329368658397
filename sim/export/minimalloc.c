/* minimalloc.c - writes the buffers of one device as an instance of
 * static storage allocation: id,lower,upper,size, a buffer being live in
 * [lower, upper). traces/import/import_static.c reads it.
 *
 * Times are event numbers, so no two of them are equal, and a plan for the
 * instance holds for the events in their order. Sizes are rounded up to
 * 512 bytes, a multiple of each policy's quantum, so that the offsets of a plan
 * are aligned and that a unit is one byte. A buffer that is never freed ends
 * with the trace.
 *
 * Source: github.com/google/minimalloc, src/converter.cc. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/export/export_parts.h"
#include "traces/bytes/sink.h"
#include "traces/torch_sizes.h"

static void put_buffer(FILE *out, const struct frag_device_trace *d,
                       uint64_t lower, uint64_t upper)
{
    fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", lower,
            lower, upper, torch_round_size(d->bytes[lower], NULL));
}

/* `since` holds 1 + the event of the ALLOC of each live slot. */
static void put_buffers(FILE *out, const struct frag_device_trace *d,
                        uint64_t *since)
{
    fputs("id,lower,upper,size\n", out);
    for (uint64_t i = 0; i < d->count && !ferror(out); i++) {
        uint64_t *from = &since[d->id[i]];

        if (d->op[i] == FRAG_ALLOC) {
            *from = i + 1;
        } else if (d->op[i] == FRAG_FREE && *from) {
            put_buffer(out, d, *from - 1, i);
            *from = 0;
        }
    }
    for (uint32_t slot = 0; slot < d->slots; slot++)
        if (since[slot])
            put_buffer(out, d, since[slot] - 1, d->count);
}

enum frag_err export_minimalloc(const struct export_job *job, const char *path,
                                struct export_notes *notes,
                                struct frag_error *e)
{
    const struct frag_device_trace *d = job->device;
    uint64_t *since;
    struct sink sink;
    enum frag_err err;

    (void)notes;
    since = calloc((size_t)d->slots + 1, sizeof(*since));
    if (!since)
        return frag_no_memory(e, "the live blocks");
    err = sink_open(&sink, path, e);
    if (err == FRAG_OK) {
        put_buffers(sink.out, d, since);
        err = sink_commit(&sink, e);
    }
    free(since);
    return err;
}
