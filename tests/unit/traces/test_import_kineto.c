/* test_import_kineto.c - tests the importer of torch.profiler's traces on small
 * files: each rule by its events, each error by its words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/trace_equal.h"

static struct frag_error error;
static char path[] = "/tmp/frag_kineto_XXXXXX";

static enum frag_err opened(const char *text, struct frag_trace **t)
{
    FILE *file = fopen(path, "wb");

    fprintf(file, "{\"schemaVersion\": 1, %s", text);
    fclose(file);
    error.text[0] = '\0';
    *t = NULL;
    return frag_trace_open(path, NULL, t, &error);
}

/* The text of a memory event: of the GPU, of the CPU, and a failed request. */
#define ARGS(type, id, bytes, total)                             \
    "\"args\": {\"Device Type\": " #type ", \"Device Id\": " #id \
    ", \"Bytes\": " #bytes ", \"Total Allocated\": " #total
#define EVENT(name, ts) \
    "{\"ph\": \"i\", \"name\": \"" name "\", \"ts\": " #ts ", "
#define GPU(ts, addr, bytes, total) \
    EVENT("[memory]", ts) ARGS(1, 0, bytes, total) ", \"Addr\": " #addr "}}"
#define SECOND(ts, addr, bytes, total) \
    EVENT("[memory]", ts) ARGS(1, 1, bytes, total) ", \"Addr\": " #addr "}}"
#define HOST(ts, addr, bytes, total) \
    EVENT("[memory]", ts) ARGS(0, -1, bytes, total) ", \"Addr\": " #addr "}}"
#define OOM(ts, bytes, total) \
    EVENT("[OutOfMemory]", ts) ARGS(1, 0, bytes, total) "}}"
#define OP           "{\"ph\": \"X\", \"name\": \"aten::add\", \"ts\": 1, \"args\": {}}"
#define LIST(events) "\"traceEvents\": [" events "]}"

/* A file, the events of its first device ("+1:8@5" allocates 8 bytes in slot 1
 * at 5 ns, "-1" frees it), and a note that the trace must have. */
static const struct row {
    const char *name, *text, *events, *note;
} rows[] = {
    {"an alloc and a free",
     LIST(OP "," GPU(1, 16, 8, 8) "," GPU(2.5, 16, -8, 0) "," OP),
     "+0:8@1000 -0@2500", "sizes of the requests are those of the blocks"},
    {"the time of the file, not its order, is the order",
     LIST(GPU(7, 16, -8, 0) "," GPU(3, 16, 8, 8)), "+0:8@3000 -0@7000",
     "no streams"},
    {"equal times keep the order of the file",
     LIST(GPU(3, 16, 8, 8) "," GPU(3, 16, -8, 0) "," GPU(3, 16, 9, 9)),
     "+0:8@3000 -0@3000 +0:9@3000", NULL},
    {"times are decimal and relative to a base",
     "\"baseTimeNanoseconds\": 1790857026000000000, " LIST(
         GPU(4310848349546.882, 16, 8, 8) "," GPU(4310848349546.9, 32, 1, 9)),
     "+0:8@1795167874349546882 +1:1@1795167874349546900", NULL},
    {"decimals below a ns are cut", LIST(GPU(1.23456, 16, 8, 8)), "+0:8@1234",
     NULL},
    {"the memory of the CPU is left out beside that of a GPU",
     LIST(HOST(1, 99, 5, 5) "," GPU(2, 16, 8, 8)), "+0:8@2000",
     "1 memory events of the CPU are left out"},
    {"the memory of the CPU alone is the trace",
     LIST(HOST(1, 99, 5, 5) "," HOST(2, 99, -5, 0)), "+0:5@1000 -0@2000",
     "memory of the CPU only"},
    {"a failed request", LIST(GPU(1, 16, 8, 8) "," OOM(2, 900, 8)),
     "+0:8@1000 +1:900@2000 -1@2000", NULL},
    {"bytes from before the first event are one block",
     LIST(GPU(5, 16, 8, 108) "," GPU(6, 16, -8, 100)),
     "+1:100@0 +0:8@5000 -0@6000", "device 0: 100 B were live before"},
    {"a failed request first", LIST(OOM(5, 900, 100)),
     "+1:100@0 +0:900@5000 -0@5000", "100 B were live before"},
    {"bytes from before that are freed are blocks of their own",
     LIST(GPU(5, 16, 8, 108) "," GPU(6, 32, -30, 78)),
     "+1:30@0 +2:70@0 +0:8@5000 -1@6000", "device 0: 70 B were live before"},
    {"all bytes from before are freed", LIST(GPU(6, 32, -30, 0)),
     "+0:30@0 -0@6000", "1 blocks (30 B) were live"},
    {"a missing event contradicts the total",
     LIST(GPU(1, 16, 8, 8) "," GPU(2, 32, 8, 20) "," GPU(3, 48, 8, 28)),
     "+0:8@1000 +1:8@2000 +2:8@3000", "device 0: 1 memory events contradict"},
    {"an address is allocated again",
     LIST(GPU(1, 16, 8, 8) "," GPU(2, 16, 9, 17) "," GPU(3, 16, -9, 8)),
     "+0:8@1000 -0@2000 +0:9@2000 -0@3000", "1 addresses were allocated again"},
    {"an address is freed again",
     LIST(GPU(1, 16, 8, 8) "," GPU(2, 16, -8, 0) "," GPU(3, 32, 8, 8) "," GPU(
         4, 16, -8, 0)),
     "+0:8@1000 -0@2000 +0:8@3000", "1 frees of addresses that were free"},
    {"a block from before is freed again",
     LIST(GPU(1, 16, -8, 0) "," GPU(2, 32, 8, 8) "," GPU(3, 16, -8, 0)),
     "+0:8@0 -0@1000 +0:8@2000", "1 frees of addresses that were free"},
    {"a free of another size", LIST(GPU(1, 16, 8, 8) "," GPU(2, 16, -4, 4)),
     "+0:8@1000 -0@2000", "1 blocks were freed with another size"},
    {"no bytes are no request", LIST(GPU(1, 16, 8, 8) "," GPU(2, 32, 0, 8)),
     "+0:8@1000", "1 memory events of 0 bytes"},
    {"the devices are apart",
     LIST(SECOND(1, 16, 4, 4) "," GPU(2, 16, 8, 8) "," SECOND(3, 16, -4, 0)),
     "+0:8@2000", NULL},
};

static void describe(const struct frag_device_trace *d, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint64_t i = 0; i < d->count; i++) {
        const char *blank = i ? " " : "";
        const unsigned long long time = d->time ? d->time[i] : 0;

        used += (size_t)(d->op[i] == FRAG_ALLOC
                             ? snprintf(text + used, room - used,
                                        "%s+%u:%llu@%llu", blank, d->id[i],
                                        (unsigned long long)d->bytes[i], time)
                             : snprintf(text + used, room - used, "%s-%u@%llu",
                                        blank, d->id[i], time));
    }
}

static bool has_note(const struct frag_trace *t, const char *words)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        if (strstr(t->notes[i], words))
            return true;
    return false;
}

static void a_file_becomes_its_events(void **state)
{
    const struct row *row = *state;
    struct frag_trace *t;
    char events[512];

    if (opened(row->text, &t) != FRAG_OK)
        fail_msg("%s", error.text);
    assert_string_equal(t->format, "kineto");
    describe(&t->devices[0], events, sizeof(events));
    assert_string_equal(events, row->events);
    if (row->note && !has_note(t, row->note))
        fail_msg("no note has \"%s\"", row->note);
    assert_int_equal(has_note(t, "contradict"),
                     row->note && strstr(row->note, "contradict"));
    frag_trace_close(t);
}

static void steps_of_the_host_are_marks(void **state)
{
#define PHASE(name, cat)                                      \
    "{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name \
    "\", \"ts\": 2, "                                         \
    "\"dur\": 3.5},"
    static const char text[] = LIST(
        PHASE("ProfilerStep#3", "user_annotation")
            PHASE("Optimizer.step#SGD.step",
                  "gpu_user_annotation") PHASE("my phase", "user_annotation")
                GPU(1, 16, 8, 8) "," GPU(3, 32, 8, 16) "," SECOND(9, 16, 8, 8));
    struct frag_trace *t;

    (void)state;
    if (opened(text, &t) != FRAG_OK)
        fail_msg("%s", error.text);
    for (uint32_t i = 0; i < 2; i++) {
        const struct frag_device_trace *d = &t->devices[i];

        assert_int_equal(d->device, i);
        assert_int_equal(d->mark_count, 2);
        assert_int_equal(d->marks[0].kind, FRAG_MARK_BEGIN);
        assert_int_equal(d->marks[0].time, 2000);
        assert_int_equal(d->marks[0].event, i == 0 ? 1 : 0);
        assert_int_equal(d->marks[1].kind, FRAG_MARK_END);
        assert_int_equal(d->marks[1].time, 5500);
        assert_int_equal(d->marks[1].event, i == 0 ? 2 : 0);
        assert_string_equal(t->strings[d->marks[1].name], "ProfilerStep#3");
    }
    frag_trace_close(t);
}

static void what_is_wrong_is_said_with_its_offset(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {LIST(OP), ":0: expected memory events ([memory]), found none among 1 "
                   "events; profile with torch.profiler.profile("
                   "profile_memory=True)"},
        {LIST(EVENT("[memory]", 1) ARGS(1, 0, 8, 8) "}}"),
         ":37: expected \"Addr\" in a [memory] event, found none: PyTorch 1.9"},
        {LIST(GPU(1, 16, 8, 8)) "x", ": expected JSON, found"},
        {"\"traceEvents\": [" GPU(1, 16, 8, 8),
         "expected the rest of the JSON"},
        {LIST(GPU(1e3, 16, 8, 8)), "a time in microseconds"},
        {LIST(GPU(-1, 16, 8, 8)), "a time in microseconds"},
        {LIST(GPU("1", 16, 8, 8)), "a time in microseconds"},
        {LIST(GPU(99999999999999999999, 16, 8, 8)), "a time in microseconds"},
        {LIST(GPU(1, "0x10", 8, 8)), "an address (Addr), found \"0x10\""},
        {LIST(GPU(1, 16, 1.5, 8)), "a number of bytes (Bytes), found \"1.5\""},
        {LIST(GPU(1, 16, null, 8)), "a number of bytes (Bytes)"},
        {LIST(GPU(1, 16, 8, -)), "expected JSON"},
        {LIST(GPU(1, 16, 8, "8")), "a number of bytes (Total Allocated)"},
        {LIST(OOM(1, -8, 8)), "a number of bytes (Bytes), found \"-8\""},
        {LIST(EVENT("[memory]", 1) ARGS(-1, 0, 8, 8) ", \"Addr\": 1}}"),
         "a device type (Device Type)"},
        {LIST(EVENT("[memory]", 1) ARGS(1, -2, 8, 8) ", \"Addr\": 1}}"),
         "a device number (Device Id)"},
        {LIST(GPU(1, 16, 8, 8) "," EVENT("[memory]", 1)
                  ARGS(20, 0, 8, 8) ", \"Addr\": 1}}"),
         "GPUs of one type (Device Type), found \"20\""},
        {LIST("{\"name\": \"[memory]\"}"), "found an event without it"},
        {LIST("{\"name\": \"ProfilerStep#1\", \"cat\": \"user_annotation\", "
              "\"ts\": 1}"),
         "a duration in microseconds (dur)"},
        {"\"baseTimeNanoseconds\": -5, " LIST(GPU(1, 16, 8, 8)),
         "baseTimeNanoseconds as a whole number"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct frag_trace *t;

        if (opened(bad[i].text, &t) != FRAG_CORRUPT)
            fail_msg("%s: %s", bad[i].text, error.text);
        assert_null(t);
        if (!strstr(error.text, bad[i].words))
            fail_msg("%s: %s", bad[i].text, error.text);
    }
}

enum { ROWS = sizeof(rows) / sizeof(*rows) };

static int run_rows(void)
{
    static struct CMUnitTest tests[ROWS];

    for (size_t i = 0; i < ROWS; i++) {
        const void *row = &rows[i];

        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = a_file_becomes_its_events};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_the_host_are_marks),
        cmocka_unit_test(what_is_wrong_is_said_with_its_offset),
    };
    const int file = mkstemp(path);
    int failed;

    if (file < 0)
        return 1;
    close(file);
    failed = run_rows() + cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
