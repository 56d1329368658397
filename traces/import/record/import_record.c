/* import_record.c - imports the log of a recorded CUDA program
 * (traces/record_log.h): the program's memory requests to the driver.
 *
 * Requests are the calls that allocate device memory: cuMemAlloc and its
 * variants, also where the CUDA runtime calls them, cuMemCreate, and arrays. An
 * array counts with the bytes of its elements. Reserved addresses use no memory
 * and are not requests. Pinned memory of the host is in the device
 * FRAG_HOST_DEVICE of the trace: blocks that the driver allocated, and in a
 * pool of their own the ranges that the program allocated and registered.
 * Memory that is destroyed with its context is freed at that time. The trace
 * keeps the streams and the pools of cuMemAllocAsync. A request that failed for
 * lack of memory is an alloc, directly followed by its free. A note counts
 * requests that failed for another reason.
 *
 * The log of a killed process is valid too: the reader skips entries that were
 * never filled.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/bytes/lines.h"
#include "traces/import/record/import_record.h"

enum {
    CALL = sizeof(struct record_call), /* bytes of an entry */
    RECORD_VERSION_SWAPPED = RECORD_VERSION << 24
};

_Static_assert(FRAG_SOURCE_WINDOW % CALL == 0, "calls fill the window");

static enum frag_err read_header(struct log_reader *r)
{
    struct record_header h;
    const unsigned char *bytes;
    enum frag_err err = FRAG_OK;
    size_t count =
        frag_source_peek(r->source, RECORD_HEADER, &bytes, &err, r->e);

    FRAG_TRY(err);
    if (count < RECORD_HEADER)
        return frag_fail(r->e, FRAG_CORRUPT,
                         "%s:%zu: expected a header of %d bytes, found the end",
                         frag_source_name(r->source), count, RECORD_HEADER);
    memcpy(&h, bytes, sizeof(h));
    if (h.version == RECORD_VERSION_SWAPPED)
        return frag_fail(
            r->e, FRAG_CORRUPT,
            "%s:8: expected numbers in the byte order of this "
            "processor, found the other one (big-endian or "
            "little-endian); import the log on the machine that "
            "recorded it, with -o trace.h5, which every machine reads",
            frag_source_name(r->source));
    if (h.version != RECORD_VERSION || h.call_bytes != CALL)
        return frag_fail(r->e, FRAG_CORRUPT,
                         "%s:8: expected version %d of a recorder log with "
                         "calls of %d bytes, found version %" PRIu32
                         " with calls of %" PRIu32 " bytes; record again "
                         "with this version of fragsim",
                         frag_source_name(r->source), RECORD_VERSION, CALL,
                         h.version, h.call_bytes);
    r->lost = h.lost;
    frag_source_skip(r->source, RECORD_HEADER);
    return FRAG_OK;
}

/* Reads the calls of a window. *empty counts the entries that were not filled
 * since the last call; they are gaps only if another call follows. */
static enum frag_err read_calls(struct log_reader *r,
                                const unsigned char *bytes, size_t count,
                                uint64_t *empty)
{
    for (size_t at = 0; at < count; at += CALL) {
        struct record_call call;

        memcpy(&call, bytes + at, sizeof(call));
        if (call.kind == RECORD_NOTHING) {
            ++*empty;
            continue;
        }
        r->gaps += *empty;
        *empty = 0;
        r->where = frag_source_offset(r->source) + at;
        FRAG_TRY(log_add_call(r, &call));
    }
    return FRAG_OK;
}

static enum frag_err read_all(struct log_reader *r,
                              const struct frag_read_options *opts)
{
    uint64_t empty = 0;

    for (;;) {
        const unsigned char *bytes;
        enum frag_err err = FRAG_OK;
        size_t count =
            frag_source_peek(r->source, FRAG_SOURCE_WINDOW, &bytes, &err, r->e);

        FRAG_TRY(err);
        if (!count)
            return FRAG_OK;
        FRAG_TRY(read_calls(r, bytes, count - count % CALL, &empty));
        if (count % CALL)
            return frag_fail(r->e, FRAG_CORRUPT,
                             "%s:%" PRIu64 ": expected a call of %d bytes, "
                             "found the end after %zu",
                             frag_source_name(r->source),
                             frag_source_offset(r->source) + count -
                                 count % CALL,
                             CALL, count % CALL);
        frag_source_skip(r->source, count);
        FRAG_TRY(lines_tick(r->source, opts, r->e));
    }
}

static enum frag_err record_read(struct frag_source *source,
                                 struct frag_build *build,
                                 const struct frag_read_options *opts,
                                 struct frag_error *e)
{
    struct log_reader r = {.source = source, .build = build, .e = e};
    enum frag_err err = read_header(&r);

    if (err == FRAG_OK)
        err = read_all(&r, opts);
    if (err == FRAG_OK)
        err = log_changes(&r);
    if (err == FRAG_OK)
        err = log_notes(&r);
    if (err == FRAG_OK && !r.has_requests)
        err = frag_build_device(build, 0, e);
    log_fini(&r);
    return err;
}

static bool record_recognize(const unsigned char *bytes, size_t count)
{
    return count >= 8 && !memcmp(bytes, RECORD_MAGIC, 8);
}

const struct frag_importer frag_importer_record = {
    .name = "record",
    .summary = "memory calls of a CUDA program, logged by \"fragsim record\"",
    .made = "fragsim record -o run.h5 -- PROGRAM",
    .lacks = "stacks; of a caching allocator it holds the segments, not the "
             "requests",
    .recognize = record_recognize,
    .read = record_read,
};
