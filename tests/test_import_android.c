/* test_import_android.c - tests the importer of Android's malloc logs, on lines
 * written by hand and on the public recordings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/trace_events.h"

static struct frag_error error;
static char path[] = "/tmp/frag_android_XXXXXX";

static enum frag_err opened(const char *text, struct frag_trace **t)
{
    FILE *file = fopen(path, "wb");

    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
    error.text[0] = '\0';
    *t = NULL;
    return frag_trace_open(path, NULL, t, &error);
}

/* A log, and the events that must result (see describe_events). */
static const struct row {
    const char *name, *log, *events;
} rows[] = {
    {"a malloc and a free are events, whatever the thread",
     "7: malloc 0xb6027400 1024\n12: malloc 0x10 3\n12: free 0xb6027400\n",
     "+0:1024 +1:3 -0"},
    {"a calloc is of its product", "7: calloc 0x10 17 8\n", "+0:136"},
    {"a memalign is of its last number", "7: memalign 0x10 64 104\n", "+0:104"},
    {"no bytes are one", "7: malloc 0x10 0\n8: calloc 0x20 0 8\n", "+0:1 +1:1"},
    {"a realloc that moves holds both for a while",
     "7: malloc 0x10 5\n7: realloc 0x20 0x10 9\n", "+0:5 +1:9 -0"},
    {"a realloc in place is a free first",
     "7: malloc 0x10 5\n7: realloc 0x10 0x10 9\n", "+0:5 -0 +0:9"},
    {"a realloc of nothing is a malloc", "7: realloc 0x10 0x0 9\n", "+0:9"},
    {"a realloc to nothing is a free",
     "7: malloc 0x10 5\n7: realloc 0x0 0x10 0\n", "+0:5 -0"},
    {"a realloc that failed is a failed request",
     "7: malloc 0x10 5\n7: realloc 0x0 0x10 90\n", "+0:5 +1:90! -1"},
    {"a null pointer is a failed request, or no block",
     "7: malloc 0x10 5\n7: malloc 0x0 9\n7: free 0x0\n7: thread_done 0x0\n",
     "+0:5 +1:9! -1"},
    {"a failed request that no allocator can serve is left out",
     "7: malloc 0x10 5\n7: malloc 0x0 9223372036854775808\n", "+0:5"},
    {"times behind a call are passed over",
     "7: malloc 0x10 5 100 200\n7: free 0x10 300 400\n", "+0:5 -0"},
    {"lines may end as on Windows, or not at all",
     "7: malloc 0x10 5\r\n\r\n7: free 0x10", "+0:5 -0"},
};

static void a_log_becomes_its_events(void **state)
{
    const struct row *row = *state;
    struct frag_trace *t;
    char events[256];

    if (opened(row->log, &t) != FRAG_OK)
        fail_msg("%s", error.text);
    assert_string_equal(t->format, "android");
    describe_events(frag_trace_device(t, 0), events, sizeof(events));
    assert_string_equal(events, row->events);
    frag_trace_close(t);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"7: malloc 0x10 5\n7: mallox 0x20 5\n", ":2: expected a call"},
        {"7: malloc 0x10 5\n7 malloc 0x20 5\n", ":2: expected a call"},
        {"7: malloc 0x10 5\n7: malloc 0x20\n", ":2: expected a call"},
        {"7: malloc 0x10 5\n7: malloc 0x20 5 6\n", ":2: expected a call"},
        {"7: malloc 0x10 5\n7: malloc 0x2g 5\n", ":2: expected a call"},
        {"7: malloc 0x10 5\n7: malloc 0x20 5a\n", ":2: expected a call"},
        {"7: malloc 0x10 5\n7: malloc 0x20 1 2 3 4 5\n", ":2: expected a call"},
        {"7: malloc 0x10 5\n7: malloc 0x20 18446744073709551616\n",
         ":2: expected a call"},
        {"7: malloc 0x10 5\n\n7: malloc 0x10 5\n", "3"},
        {"7: malloc 0x10 5\n7: free 0x20\n", "2"},
        {"7: malloc 0x10 5\n7: calloc 0x20 4294967296 4294967296\n", "2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct frag_trace *t;

        assert_int_equal(opened(bad[i].text, &t), FRAG_CORRUPT);
        assert_null(t);
        if (!strstr(error.text, bad[i].words))
            fail_msg("%s: %s", bad[i].text, error.text);
    }
}

/* Calls that answered a block, as awk counts them. */
static void a_public_recording_is_read_from_its_zip(void **state)
{
    static const struct {
        const char *path;
        uint64_t allocs;
    } files[] = {
        {FRAG_SHARED_DIR "/foreign/android/surfaceflinger.zip", 1261000},
        {FRAG_SHARED_DIR "/foreign/android/systemui.zip", 421234},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        struct frag_trace *t;
        uint64_t allocs = 0;

        if (access(files[i].path, R_OK)) {
            print_message("no %s\n", files[i].path);
            skip();
        }
        assert_int_equal(frag_trace_open(files[i].path, NULL, &t, &error),
                         FRAG_OK);
        for (uint64_t k = 0; k < frag_trace_device(t, 0)->count; k++)
            allocs += frag_trace_device(t, 0)->op[k] == FRAG_ALLOC;
        assert_int_equal(allocs, files[i].allocs);
        frag_trace_close(t);
    }
}

enum { ROWS = sizeof(rows) / sizeof(*rows) };

static int run_rows(void)
{
    static struct CMUnitTest tests[ROWS];

    for (size_t i = 0; i < ROWS; i++) {
        const void *row = &rows[i];

        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = a_log_becomes_its_events};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(a_public_recording_is_read_from_its_zip),
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
