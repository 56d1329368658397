/* record_calls.h - recorder logs written by hand, as arrays of calls. */
#ifndef FRAG_TESTS_SUPPORT_RECORD_CALLS_H
#define FRAG_TESTS_SUPPORT_RECORD_CALLS_H

#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"
#include "traces/record_log.h"

enum { LOG_CALLS = 64, LOG_ROOM = RECORD_HEADER + LOG_CALLS * 64 };

/* Writes the header and the calls to `log` and returns the number of bytes. The
 * list of calls ends with a kind above all others. */
#define CALLS_END                 \
    {                             \
        .kind = RECORD_KIND_COUNT \
    }

static inline size_t write_log(unsigned char log[LOG_ROOM],
                               const struct record_call *calls)
{
    const struct record_header h = {.magic = RECORD_MAGIC,
                                    .version = RECORD_VERSION,
                                    .call_bytes = sizeof(*calls)};
    size_t size = RECORD_HEADER;

    memset(log, 0, LOG_ROOM);
    memcpy(log, &h, sizeof(h));
    for (; calls->kind != RECORD_KIND_COUNT; calls++, size += sizeof(*calls))
        memcpy(log + size, calls, sizeof(*calls));
    return size;
}

static inline enum frag_err import_log(const unsigned char *log, size_t size,
                                       struct frag_trace **out,
                                       struct frag_error *e)
{
    struct frag_source *source = NULL;
    struct frag_build *build = frag_build_open("log", "record");
    enum frag_err err =
        build ? frag_source_open_memory("log", log, size, &source, e)
              : FRAG_NOMEM;

    if (err == FRAG_OK)
        err = frag_importer_record.read(source, build, NULL, e);
    if (err == FRAG_OK)
        err = frag_build_finish(build, NULL, out, e);
    frag_source_close(source);
    frag_build_close(build);
    return err;
}

/* Each kind of call, with its special cases. */
static const struct record_call all_kinds[] = {
    {.kind = RECORD_POOL, .other = 0x60, .bytes = 1},
    {.kind = RECORD_POOL, .other = 0x70, .device = 1},
    {.kind = RECORD_ALLOC,
     .address = 0x1000,
     .bytes = 5,
     .time = 10,
     .context = 0x90},
    {.kind = RECORD_ALLOC_PITCH, .address = 0x2000, .bytes = 6, .time = 20},
    {.kind = RECORD_ALLOC_MANAGED,
     .address = 0x3000,
     .bytes = 7,
     .time = 30,
     .context = 0x90},
    {.kind = RECORD_ALLOC_ASYNC, .address = 0x4000, .bytes = 8, .stream = 9},
    {.kind = RECORD_ALLOC_POOL, .address = 0x5000, .bytes = 9, .other = 0x70},
    {.kind = RECORD_ALLOC_POOL, .address = 0x6000, .bytes = 9, .other = 0x60},
    {.kind = RECORD_NOTHING},
    {.kind = RECORD_ALLOC, .result = RECORD_OUT_OF_MEMORY, .bytes = 11},
    {.kind = RECORD_FREE_ASYNC, .address = 0x4000, .stream = 9, .time = 40},
    {.kind = RECORD_RESERVE, .address = 0x100000, .bytes = 0x400000},
    {.kind = RECORD_CREATE, .other = 1, .bytes = 0x200000},
    {.kind = RECORD_MAP, .address = 0x100000, .bytes = 0x200000, .other = 1},
    {.kind = RECORD_RETAIN, .address = 0x100000, .other = 1},
    {.kind = RECORD_RELEASE, .other = 1},
    {.kind = RECORD_RELEASE, .other = 1},
    {.kind = RECORD_UNMAP, .address = 0x100000, .bytes = 0x200000},
    {.kind = RECORD_UNRESERVE, .address = 0x100000, .bytes = 0x400000},
    {.kind = RECORD_FREE, .address = 0x2000},
    {.kind = RECORD_POOL_USED, .other = 0x80},
    {.kind = RECORD_ALLOC_ASYNC, .address = 0x7000, .bytes = 1},
    {.kind = RECORD_POOL_GONE, .other = 0x80},
    {.kind = RECORD_ARRAY, .other = 3, .bytes = 12, .context = 0x90},
    {.kind = RECORD_ARRAY, .other = 4, .bytes = 13},
    {.kind = RECORD_ARRAY_GONE, .other = 4},
    {.kind = RECORD_GRAPH, .address = 0x8000, .bytes = 14},
    {.kind = RECORD_GRAPH_MEMORY, .device = 1, .bytes = 15},
    {.kind = RECORD_GRAPH_MEMORY, .device = 1, .bytes = 16},
    {.kind = RECORD_CONTEXT_GREEN, .context = 0x91, .other = 0x90},
    {.kind = RECORD_FOREIGN, .device = RECORD_ELSEWHERE, .other = 5},
    {.kind = RECORD_HOST_ALLOC, .device = -1, .address = 0xa000, .bytes = 17},
    {.kind = RECORD_HOST_REGISTER,
     .device = -1,
     .address = 0xb000,
     .bytes = 18},
    {.kind = RECORD_HOST_FREE, .device = -1, .address = 0xa000},
    {.kind = RECORD_HOST_UNREGISTER, .device = -1, .address = 0xb000},
    {.kind = RECORD_CONTEXT_GONE, .context = 0x90},
    {.kind = RECORD_TEXT, .name = "a:1\n7\tf\tx.py\n8\tg"},
    {.kind = RECORD_TEXT, .name = "\ty.py"},
    {.kind = RECORD_CHANGE, .device = RECORD_NO_DEVICE, .time = 25},
    {.kind = RECORD_CHANGE, .bytes = 19, .time = 41},
    {.kind = RECORD_UNREAD, .name = "cuMemAlloc"},
    CALLS_END,
};

#endif
