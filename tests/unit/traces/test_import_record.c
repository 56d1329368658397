/* test_import_record.c - tests the importer of recorder logs, call by call and
 * byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/record_calls.h"

#define ALLOC(at, size)                                        \
    {                                                          \
        .kind = RECORD_ALLOC, .address = (at), .bytes = (size) \
    }
#define FREE(at)                             \
    {                                        \
        .kind = RECORD_FREE, .address = (at) \
    }
#define IN(which, at, size)                                     \
    {                                                           \
        .kind = RECORD_ALLOC, .address = (at), .bytes = (size), \
        .context = (which)                                      \
    }
#define GONE(which)                                     \
    {                                                   \
        .kind = RECORD_CONTEXT_GONE, .context = (which) \
    }
#define GREEN(which, owner)                                                \
    {                                                                      \
        .kind = RECORD_CONTEXT_GREEN, .context = (which), .other = (owner) \
    }
#define HELD(which, size)                                               \
    {                                                                   \
        .kind = RECORD_GRAPH_MEMORY, .device = (which), .bytes = (size) \
    }
#define CREATE(handle)                                         \
    {                                                          \
        .kind = RECORD_CREATE, .other = (handle), .bytes = 100 \
    }
#define RELEASE(handle)                           \
    {                                             \
        .kind = RECORD_RELEASE, .other = (handle) \
    }
#define MAP(at, handle)                                                      \
    {                                                                        \
        .kind = RECORD_MAP, .address = (at), .bytes = 100, .other = (handle) \
    }
#define UNMAP(at, size)                                        \
    {                                                          \
        .kind = RECORD_UNMAP, .address = (at), .bytes = (size) \
    }
#define HOST(which, at, size)                                           \
    {                                                                   \
        .kind = (which), .device = -1, .address = (at), .bytes = (size) \
    }

/* Calls, and the events of device 0 and the notes that must result: "+1:8"
 * allocates 8 bytes in slot 1, "-1" frees it, "host" begins the events of host
 * memory, "!" marks its pool of registered ranges, "|" begins a note. */
static const struct row {
    const char *name, *events;
    struct record_call calls[10];
} rows[] = {
    {"an alloc and a free",
     "+0:5 +1:6 -0",
     {ALLOC(0x100, 5), ALLOC(0x200, 6), FREE(0x100), CALLS_END}},
    {"a request that the device has no room for",
     "+0:9 -0",
     {{.kind = RECORD_ALLOC, .result = 2, .bytes = 9}, CALLS_END}},
    {"its free memory is no address, and is said once",
     "+0:5 +1:9 -1 -0 +0:7 -0|the first request that failed was for 9 bytes "
     "of device 0, and 256 bytes were free",
     {ALLOC(0x100, 5),
      {.kind = RECORD_CREATE, .result = 2, .bytes = 9, .address = 0x100},
      FREE(0x100),
      {.kind = RECORD_ALLOC, .result = 2, .bytes = 7, .address = 0x200},
      CALLS_END}},
    {"requests that make no sense",
     "|3 calls failed for a reason other than lack of memory",
     {{.kind = RECORD_ALLOC, .result = 1, .bytes = 9},
      {.kind = RECORD_ALLOC, .result = 2, .bytes = 0},
      {.kind = RECORD_ALLOC, .result = 2, .bytes = UINT64_MAX},
      CALLS_END}},
    {"a free that failed is none",
     "+0:5|1 calls failed for a reason other than lack of memory",
     {ALLOC(0x100, 5),
      {.kind = RECORD_FREE, .result = 1, .address = 0x100},
      CALLS_END}},
    {"a free that was out of memory is none",
     "+0:5|1 calls failed for a reason other than lack of memory",
     {ALLOC(0x100, 5),
      {.kind = RECORD_FREE, .result = 2, .address = 0x100, .bytes = 1},
      CALLS_END}},
    {"a null pointer is no block", "", {FREE(0), CALLS_END}},
    {"a free of what nobody saw",
     "|2 calls freed memory that no recorded call had allocated",
     {FREE(0x100), RELEASE(7), CALLS_END}},
    {"an address handed out again",
     "+0:5 -0 +0:6|1 addresses were allocated again without a free",
     {ALLOC(0x100, 5), ALLOC(0x100, 6), CALLS_END}},
    {"a call that had not returned",
     "+0:5 -0|1 calls had not returned when the program ended",
     {ALLOC(0x100, 5), {.kind = RECORD_NOTHING}, FREE(0x100), CALLS_END}},
    {"the unused end",
     "+0:5",
     {ALLOC(0x100, 5),
      {.kind = RECORD_NOTHING},
      {.kind = RECORD_NOTHING},
      CALLS_END}},
    {"managed memory",
     "+0:5|1 managed blocks count as device memory",
     {{.kind = RECORD_ALLOC_MANAGED, .address = 0x100, .bytes = 5}, CALLS_END}},
    {"what goes with its context, lowest first, arrays last",
     "+0:5 +1:6 +2:7 +3:8 +4:9 -1 -0 -2|3 blocks were freed because their "
     "context was destroyed"
     "|1 arrays count with the bytes of their elements only",
     {IN(1, 0x200, 5),
      IN(1, 0x100, 6),
      {.kind = RECORD_ARRAY, .other = 0x10, .bytes = 7, .context = 1},
      IN(2, 0x300, 8),
      ALLOC(0x400, 9),
      {.kind = RECORD_ALLOC, .device = 1, .address = 0x500, .bytes = 7},
      GONE(1),
      GONE(3),
      CALLS_END}},
    {"a context's handle is given to another one",
     "+0:5 -0 +0:6 -0|2 blocks were freed because their context was destroyed",
     {IN(1, 0x200, 5), GONE(1), IN(1, 0x200, 6), GONE(1), GONE(1), CALLS_END}},
    {"a context that did not go",
     "+0:5 +1:6|1 calls failed for a reason other than lack of memory",
     {IN(1, 0x200, 5),
      ALLOC(0x300, 6),
      {.kind = RECORD_CONTEXT_GONE, .result = 201, .context = 1},
      GONE(0),
      CALLS_END}},
    {"a context with nothing of the device",
     "",
     {{.kind = RECORD_ARRAY, .device = RECORD_ELSEWHERE, .context = 1},
      GONE(1),
      CALLS_END}},
    {"what was taken without a context is said",
     "|2 requests are missing because their device is unknown",
     {{.kind = RECORD_ALLOC, .device = -1, .address = 0x100, .bytes = 5},
      {.kind = RECORD_ALLOC, .device = -1, .result = 2, .bytes = 5},
      FREE(0x100),
      CALLS_END}},
    {"an array by its handle, whatever is at that address",
     "+0:5 +1:7 -0 -1|1 arrays count with the bytes of their elements only",
     {{.kind = RECORD_ARRAY, .other = 0x100, .bytes = 5},
      ALLOC(0x100, 7),
      {.kind = RECORD_ARRAY_GONE, .other = 0x100},
      FREE(0x100),
      CALLS_END}},
    {"arrays without a size, and of memory that comes later",
     "|1 calls freed memory that no recorded call had allocated"
     "|1 arrays are missing because the size of their format is unknown",
     {{.kind = RECORD_ARRAY, .other = 1},
      {.kind = RECORD_ARRAY, .other = 2, .device = RECORD_ELSEWHERE},
      {.kind = RECORD_ARRAY_GONE, .other = 1},
      {.kind = RECORD_ARRAY_GONE, .other = 2},
      {.kind = RECORD_ARRAY_GONE, .other = 2},
      CALLS_END}},
    {"an array that the device has no room for",
     "+0:5 -0",
     {{.kind = RECORD_ARRAY, .result = 2, .bytes = 5}, CALLS_END}},
    {"memory of a graph is freed as often as it is launched",
     "+0:7|1 requests of CUDA graphs are missing because their memory is "
     "allocated at launch|5 bytes is the sum of the missing requests of CUDA "
     "graphs",
     {{.kind = RECORD_GRAPH, .address = 0x100, .bytes = 5},
      FREE(0x100),
      FREE(0x100),
      ALLOC(0x100, 7),
      CALLS_END}},
    {"memory held for graphs grows and shrinks",
     "+0:10 +1:7 +2:20 -2 -0 +0:4 -0|1 requests of CUDA graphs are no blocks "
     "of their own: all graphs of a device share the memory that the driver "
     "holds for them|3 blocks are memory that the driver holds for CUDA "
     "graphs; its size was read after launches, uploads and trims",
     {{.kind = RECORD_GRAPH, .address = 0x100, .bytes = 5},
      HELD(0, 10),
      ALLOC(0x200, 7),
      HELD(0, 10),
      HELD(0, 30),
      HELD(0, 4),
      HELD(0, 0),
      CALLS_END}},
    {"memory held for graphs of two devices",
     "+0:10 -0|2 blocks are memory that the driver holds for CUDA graphs; its "
     "size was read after launches, uploads and trims",
     {HELD(0, 10), HELD(1, 20), HELD(0, 0), CALLS_END}},
    {"memory of a green context ends with the primary one",
     "+0:5 +1:6 +2:7 -0 -1|2 blocks were freed because their context was "
     "destroyed",
     {GREEN(0x91, 0x90), IN(0x91, 0x100, 5), IN(0x90, 0x200, 6),
      IN(0x70, 0x300, 7), GONE(0x91 + 1), GONE(0x90), CALLS_END}},
    {"a green context whose handle had another owner",
     "+0:5 +1:6 -0 -1|2 blocks were freed because their context was destroyed",
     {IN(0x90, 0x100, 5), GREEN(0x91, 0x70), GREEN(0x91, 0x90),
      IN(0x91, 0x200, 6), GONE(0x90), CALLS_END}},
    {"memory that others took",
     "|2 blocks and handles are not requests because they refer to memory that "
     "was allocated elsewhere",
     {{.kind = RECORD_FOREIGN, .device = RECORD_ELSEWHERE, .address = 0x100},
      FREE(0x100),
      {.kind = RECORD_FOREIGN, .device = RECORD_ELSEWHERE, .other = 7},
      MAP(0x1000, 7),
      RELEASE(7),
      UNMAP(0x1000, 100),
      CALLS_END}},
    {"an import of what is the program's own",
     "+0:100 +1:1 -0|1 blocks and handles are not requests because they refer "
     "to memory that was allocated elsewhere",
     {CREATE(7),
      {.kind = RECORD_FOREIGN, .device = RECORD_ELSEWHERE, .other = 7},
      RELEASE(7),
      ALLOC(0x9000, 1),
      RELEASE(7),
      CALLS_END}},
    {"calls that the log has no words for",
     "|calls of cuB_v9 are not recorded: 2 calls or look-ups"
     "|calls of cuA are not recorded: 1 calls or look-ups",
     {{.kind = RECORD_UNREAD, .name = "cuB_v9"},
      {.kind = RECORD_UNREAD, .name = "cuA", .result = 1},
      {.kind = RECORD_UNREAD, .name = "cuB_v9"},
      CALLS_END}},
    {"pinned memory of the host",
     "+0:9 -0host +0:5 +1:6 -0",
     {HOST(RECORD_HOST_ALLOC, 0x100, 5), HOST(RECORD_HOST_ALLOC, 0x200, 6),
      ALLOC(0x900, 9), HOST(RECORD_HOST_FREE, 0x100, 0), FREE(0x900),
      HOST(RECORD_HOST_FREE, 0, 0), CALLS_END}},
    {"a registered range is the program's own memory",
     "host +0:5 +1:7! -1 +1:8!|host memory: 2 ranges, 15 B in all, are the "
     "program's own: it registered them (cudaHostRegister); they count as "
     "pinned, in pool 0:1",
     {HOST(RECORD_HOST_ALLOC, 0x100, 5), HOST(RECORD_HOST_REGISTER, 0x200, 7),
      HOST(RECORD_HOST_UNREGISTER, 0x200, 0),
      HOST(RECORD_HOST_REGISTER, 0x200, 8), CALLS_END}},
    {"host memory that was not to be had, and calls that failed",
     "host +0:5 +1:9 -1 +1:8! -1|4 calls failed for a reason other than lack "
     "of memory",
     {HOST(RECORD_HOST_ALLOC, 0x100, 5),
      {.kind = RECORD_HOST_ALLOC, .device = -1, .result = 2, .bytes = 9},
      {.kind = RECORD_HOST_REGISTER, .device = -1, .result = 2, .bytes = 8},
      {.kind = RECORD_HOST_REGISTER, .device = -1, .result = 712, .bytes = 8},
      {.kind = RECORD_HOST_FREE, .result = 1, .address = 0x100},
      {.kind = RECORD_HOST_UNREGISTER, .result = 713, .address = 0x100},
      {.kind = RECORD_HOST_ALLOC, .device = -1, .result = 1, .bytes = 8},
      CALLS_END}},
    {"pinned memory goes with its context, and none is lost with another",
     "+0:4 -0host +0:5 +1:6! +2:7 -0 -1|3 blocks were freed because their "
     "context was destroyed|host memory: 1 ranges, 6 B in all, are the "
     "program's own: it registered them (cudaHostRegister); they count as "
     "pinned, in pool 0:1",
     {{.kind = RECORD_HOST_ALLOC, .address = 0x100, .bytes = 5, .context = 1},
      {.kind = RECORD_HOST_REGISTER,
       .address = 0x200,
       .bytes = 6,
       .context = 1},
      {.kind = RECORD_HOST_ALLOC, .address = 0x300, .bytes = 7, .context = 2},
      IN(1, 0x400, 4),
      GONE(1),
      CALLS_END}},
    {"no bytes of the host, and memory of a device that is registered as I/O",
     "|1 blocks and handles are not requests because they refer to memory that "
     "was allocated elsewhere",
     {HOST(RECORD_HOST_ALLOC, 0, 0),
      HOST(RECORD_HOST_ALLOC, 0x100, 0),
      HOST(RECORD_HOST_FREE, 0x100, 0),
      {.kind = RECORD_HOST_REGISTER,
       .device = RECORD_ELSEWHERE,
       .address = 0x200,
       .bytes = 6},
      HOST(RECORD_HOST_UNREGISTER, 0x200, 0),
      CALLS_END}},
    {"unpinning what nobody saw",
     "|2 calls freed memory that no recorded call had allocated",
     {HOST(RECORD_HOST_FREE, 0x100, 0), HOST(RECORD_HOST_UNREGISTER, 0x100, 0),
      CALLS_END}},
    {"other memory of the host is none",
     "",
     {{.kind = RECORD_POOL, .device = RECORD_ELSEWHERE, .other = 3},
      {.kind = RECORD_ALLOC_POOL, .address = 0x100, .bytes = 5, .other = 3},
      FREE(0x100),
      {.kind = RECORD_CREATE, .device = RECORD_ELSEWHERE, .bytes = 5},
      {.kind = RECORD_RELEASE},
      CALLS_END}},
    {"reserved addresses are no request",
     "",
     {{.kind = RECORD_RESERVE, .address = 0x100, .bytes = 5},
      {.kind = RECORD_UNRESERVE, .address = 0x100, .bytes = 5},
      CALLS_END}},
    {"physical memory by its handle",
     "+0:100 -0",
     {CREATE(7), RELEASE(7), CALLS_END}},
    {"a mapping keeps what its handle let go",
     "+0:100 -0",
     {CREATE(7), MAP(0x1000, 7), RELEASE(7), UNMAP(0x1000, 100), CALLS_END}},
    {"and is not enough to free it",
     "+0:100",
     {CREATE(7), MAP(0x1000, 7), UNMAP(0x1000, 100), CALLS_END}},
    {"a handle given out again is another's",
     "+0:100 +1:100 -1 -0",
     {CREATE(7), MAP(0x1000, 7), RELEASE(7), CREATE(7), RELEASE(7),
      UNMAP(0x1000, 100), CALLS_END}},
    {"one unmap of two mappings",
     "+0:100 +1:100 -0 -1",
     {CREATE(7), CREATE(8), MAP(0x1000, 7), MAP(0x1064, 8), RELEASE(7),
      RELEASE(8), UNMAP(0x1000, 200), CALLS_END}},
    {"a mapping in two places",
     "+0:100 +1:1 -0",
     {CREATE(7), MAP(0x1000, 7), MAP(0x2000, 7), RELEASE(7), UNMAP(0x1000, 100),
      ALLOC(0x9000, 1), UNMAP(0x2000, 100), CALLS_END}},
    {"a handle retained under another value",
     "+0:100 +1:1 -0",
     {CREATE(7),
      MAP(0x1000, 7),
      RELEASE(7),
      {.kind = RECORD_RETAIN, .address = 0x1000, .other = 9},
      UNMAP(0x1000, 100),
      ALLOC(0x9000, 1),
      RELEASE(9),
      CALLS_END}},
    {"what another process made",
     "",
     {MAP(0x1000, 7),
      UNMAP(0x1000, 100),
      {.kind = RECORD_RETAIN, .address = 0x1000, .other = 9},
      CALLS_END}},
};

static void append(char *text, size_t room, const char *format, ...)
    FRAG_PRINTF(3, 4);

static void append(char *text, size_t room, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list list;

    va_start(list, format);
    vsnprintf(text + used, room - used, format, list);
    va_end(list);
}

static void describe_events(const struct frag_device_trace *d, char *text,
                            size_t room)
{
    const bool is_host = d->device == FRAG_HOST_DEVICE;

    append(text, room, "%s", is_host ? "host " : "");
    for (uint64_t i = 0; i < d->count; i++) {
        append(text, room, "%s", i ? " " : "");
        if (d->op[i] == FRAG_ALLOC)
            append(text, room, "+%u:%llu%s", d->id[i],
                   (unsigned long long)d->bytes[i],
                   is_host && d->pool[i] ? "!" : "");
        else
            append(text, room, "-%u", d->id[i]);
    }
}

static void describe(const struct frag_trace *t, char *text, size_t room)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < t->device_count; i++) {
        const uint32_t device = t->devices[i].device;

        assert_true(device < 2 || device == FRAG_HOST_DEVICE);
        if (device != 1)
            describe_events(&t->devices[i], text, room);
    }
    for (uint32_t i = 0; i < t->note_count; i++)
        append(text, room, "|%s", t->notes[i]);
}

static struct frag_trace *imported(const struct record_call *calls)
{
    unsigned char log[LOG_ROOM];
    struct frag_error e = {""};
    struct frag_trace *t;

    if (import_log(log, write_log(log, calls), &t, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    return t;
}

static void calls_become_events(void **state)
{
    const struct row *row = *state;
    struct frag_trace *t = imported(row->calls);
    char text[1024];

    describe(t, text, sizeof(text));
    assert_string_equal(text, row->events);
    frag_trace_close(t);
}

static void times_streams_pools_and_devices_are_kept(void **state)
{
    struct frag_trace *t = imported(all_kinds);
    const struct frag_device_trace *d = frag_trace_device(t, 0);
    const struct frag_device_trace *other = frag_trace_device(t, 1);
    char text[1024];

    (void)state;
    describe(t, text, sizeof(text));
    assert_string_equal(
        text, "+0:5 +1:6 +2:7 +3:8 +4:9 +5:11 -5 -3 +3:2097152 -3 -1 +1:1 "
              "+3:12 +5:13 -5 -0 -2 -3host +0:17 +1:18! -0 -1"
              "|1 calls had not returned when the program ended"
              "|3 blocks were freed because their context was destroyed"
              "|1 managed blocks count as device memory"
              "|2 arrays count with the bytes of their elements only"
              "|1 blocks and handles are not requests because they refer to "
              "memory that was allocated elsewhere"
              "|1 requests of CUDA graphs are no blocks of their own: all "
              "graphs of a device share the memory that the driver holds for "
              "them|2 blocks are memory that the driver holds for CUDA graphs; "
              "its size was read after launches, uploads and trims"
              "|2 changes of settings are those of PyTorch's allocator, whose "
              "segments are among the requests"
              "|host memory: 1 ranges, 18 B in all, are the program's own: it "
              "registered them (cudaHostRegister); they count as pinned, in "
              "pool 0:1"
              "|calls of cuMemAlloc are not recorded: 1 calls or look-ups");
    assert_int_equal(d->time[1], 20);
    assert_int_equal(d->time[7], 40);
    assert_int_equal(d->stream_count, 2);
    assert_int_equal(d->streams[d->stream[3]], 9);
    assert_int_equal(d->pool[4], 0); /* the device's default pool */
    assert_int_equal(d->pools[d->pool[11]].number, 0x80); /* that in use */
    assert_int_equal(d->recorded.addr[1], 0x2000);
    assert_int_equal(d->recorded.addr[5], 0);
    assert_false(d->recorded.has_actions);
    assert_int_equal(other->count, 3);
    assert_int_equal(other->pools[other->pool[0]].number, 0x70);
    frag_trace_close(t);
}

/* The settings are those of all devices with requests, a limit is that of one;
 * the calls between the parts of a text are no part of it. */
static void changes_have_their_place_and_stack(void **state)
{
    static const struct record_call calls[] = {
        {.kind = RECORD_ALLOC, .address = 1, .bytes = 5, .time = 10},
        {.kind = RECORD_TEXT, .name = "a:1\n7\tf\tx"},
        {.kind = RECORD_ALLOC,
         .device = 2,
         .address = 2,
         .bytes = 5,
         .time = 11},
        {.kind = RECORD_TEXT, .name = ".py\n8\tg\ty.py"},
        {.kind = RECORD_CHANGE, .device = RECORD_NO_DEVICE, .time = 12},
        {.kind = RECORD_ALLOC, .address = 3, .bytes = 5, .time = 13},
        {.kind = RECORD_CHANGE, .device = 2, .bytes = 19, .time = 14},
        {.kind = RECORD_CHANGE, .bytes = UINT64_MAX, .time = 15},
        CALLS_END};
    unsigned char log[LOG_ROOM];
    struct frag_error e = {""};
    const struct frag_device_trace *d, *other;
    const struct frag_frame *f;
    struct frag_trace *t;

    (void)state;
    assert_int_equal(import_log(log, write_log(log, calls), &t, &e), FRAG_OK);
    d = frag_trace_device(t, 0);
    other = frag_trace_device(t, 2);
    assert_int_equal(d->change_count, 2);
    assert_int_equal(other->change_count, 2);
    assert_int_equal(d->changes[0].event, 1);
    assert_int_equal(d->changes[0].kind, FRAG_CHANGE_SETTINGS);
    assert_string_equal(t->strings[d->changes[0].text], "a:1");
    f = &t->frames[t->stack_first[d->changes[0].stack]];
    assert_int_equal(t->stack_first[d->changes[0].stack + 1] -
                         t->stack_first[d->changes[0].stack],
                     2);
    assert_int_equal(f[0].line, 7);
    assert_string_equal(t->strings[f[0].function], "f");
    assert_string_equal(t->strings[f[0].file], "x.py");
    assert_int_equal(f[1].line, 8);
    assert_string_equal(t->strings[f[1].function], "g");
    assert_string_equal(t->strings[f[1].file], "y.py");
    assert_int_equal(d->changes[1].event, 2);
    assert_true(d->changes[1].limit == FRAG_UNLIMITED);
    assert_int_equal(d->changes[1].stack, 0);
    assert_int_equal(other->changes[0].event, 1);
    assert_int_equal(other->changes[1].kind, FRAG_CHANGE_LIMIT);
    assert_int_equal(other->changes[1].limit, 19);
    assert_null(t->settings);
    frag_trace_close(t);
}

static void calls_that_were_lost_are_no_gaps(void **state)
{
    unsigned char log[LOG_ROOM];
    const size_t size = write_log(log, all_kinds); /* with one gap */
    struct frag_error e = {""};
    struct frag_trace *t;

    (void)state;
    log[offsetof(struct record_header, lost)] = 1;
    assert_int_equal(import_log(log, size, &t, &e), FRAG_OK);
    assert_int_equal(t->note_count, 10);
    assert_string_equal(
        t->notes[0],
        "1 calls are missing because the log could not grow (disk full?)");
    assert_string_equal(
        t->notes[1], "3 blocks were freed because their context was destroyed");
    frag_trace_close(t);
}

static void the_log_cut_anywhere_is_whole_or_an_error(void **state)
{
    unsigned char log[LOG_ROOM];
    const size_t size = write_log(log, all_kinds);

    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        const bool whole = cut >= RECORD_HEADER && cut % 64 == 0;
        struct frag_trace *t = NULL;
        struct frag_error e = {""};
        /* a copy of its own, for ASan */
        unsigned char *part = malloc(cut + 1);

        memcpy(part, log, cut);
        assert_int_equal(import_log(part, cut, &t, &e),
                         whole ? FRAG_OK : FRAG_CORRUPT);
        if (!whole)
            assert_non_null(strstr(e.text, "expected a"));
        frag_trace_close(t);
        free(part);
    }
}

/* The position of the last call in all_kinds. */
enum { LAST = (sizeof(all_kinds) / sizeof(*all_kinds) - 2) * 64 };

static void what_is_wrong_is_said_with_its_place(void **state)
{
    static const struct {
        size_t at; /* of a byte that is set to 200 */
        const char *words;
    } faults[] = {
        {8, "log:8: expected version 2 of a recorder log with calls of 64 "
            "bytes, found version 200 with calls of 64 bytes; record again "
            "with this version of fragsim"},
        {12, "log:8: expected version 2 of a recorder log with calls of 64 "
             "bytes, found version 2 with calls of 200 bytes; record again "
             "with this version of fragsim"},
        {RECORD_HEADER + LAST + 16,
         "log:6656: expected the name of a call, found 200"},
        {RECORD_HEADER + 2 * 64,
         "log:4224: expected a known kind of call, found 200"},
        {RECORD_HEADER + 2 * 64 + 9,
         "log:4224: expected a device below 1024, found 51200"},
        {RECORD_HEADER + 2 * 64 + 11,
         "log:4224: expected a device below 1024, found 3355443200"},
        {RECORD_HEADER + 2 * 64 + 23,
         "log:4224: expected an address below 2^63, found "
         "14411518807585591296"},
        {RECORD_HEADER + 2 * 64 + 31,
         "log:4224: expected a size from 1 to 2^63 - 1 at an address above 0, "
         "found address 0x1000 of 14411518807585587205 bytes on device 0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
        unsigned char log[LOG_ROOM];
        const size_t size = write_log(log, all_kinds);
        struct frag_error e = {""};
        struct frag_trace *t;

        log[faults[i].at] = 200;
        assert_int_equal(import_log(log, size, &t, &e), FRAG_CORRUPT);
        assert_string_equal(e.text, faults[i].words);
    }
}

static void a_log_of_the_other_byte_order_is_refused(void **state)
{
    unsigned char log[LOG_ROOM];
    const size_t size = write_log(log, all_kinds);
    struct frag_error e = {""};
    struct frag_trace *t;

    (void)state;
    for (size_t i = 0; i < 2; i++) { /* turns the version around */
        const unsigned char byte = log[8 + i];

        log[8 + i] = log[11 - i];
        log[11 - i] = byte;
    }
    assert_int_equal(import_log(log, size, &t, &e), FRAG_CORRUPT);
    assert_string_equal(
        e.text,
        "log:8: expected numbers in the byte order of this processor, "
        "found the other one (big-endian or little-endian); import the log "
        "on the machine that recorded it, with -o trace.h5, which every "
        "machine reads");
}

static void a_call_has_a_name(void **state)
{
    static const struct record_call calls[][2] = {
        {{.kind = RECORD_UNREAD}, CALLS_END},
        {{.kind = RECORD_UNREAD, .name = "a name"}, CALLS_END},
        {{.kind = RECORD_UNREAD, .name = "cu34567890123456789012345678901x"},
         CALLS_END},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        unsigned char log[LOG_ROOM];
        struct frag_error e = {""};
        struct frag_trace *t;

        assert_int_equal(import_log(log, write_log(log, calls[i]), &t, &e),
                         FRAG_CORRUPT);
        assert_non_null(strstr(e.text, "expected the name of a call"));
    }
}

int main(void)
{
    enum { ROWS = sizeof(rows) / sizeof(*rows), OTHERS = 7 };
    struct CMUnitTest tests[ROWS + OTHERS] = {
        cmocka_unit_test(times_streams_pools_and_devices_are_kept),
        cmocka_unit_test(changes_have_their_place_and_stack),
        cmocka_unit_test(calls_that_were_lost_are_no_gaps),
        cmocka_unit_test(the_log_cut_anywhere_is_whole_or_an_error),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
        cmocka_unit_test(a_log_of_the_other_byte_order_is_refused),
        cmocka_unit_test(a_call_has_a_name),
    };

    for (size_t i = 0; i < ROWS; i++)
        tests[OTHERS + i] =
            (struct CMUnitTest){.name = rows[i].name,
                                .test_func = calls_become_events,
                                .initial_state = (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
