/* test_import_android.c - tests the importer of Android's malloc logs, on lines
 * written by hand and on the public recordings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/import_log.h"

static const struct log_row rows[] = {
    {"a malloc and a free are events, whatever the thread",
     "7: malloc 0xb6027400 1024\n12: malloc 0x10 3\n12: free 0xb6027400\n",
     "+0:1024 +1:3 -0", NULL},
    {"a calloc is of its product", "7: calloc 0x10 17 8\n", "+0:136", NULL},
    {"a memalign is of its last number", "7: memalign 0x10 64 104\n", "+0:104",
     NULL},
    {"no bytes are one", "7: malloc 0x10 0\n8: calloc 0x20 0 8\n", "+0:1 +1:1",
     NULL},
    {"a realloc that moves holds both for a while",
     "7: malloc 0x10 5\n7: realloc 0x20 0x10 9\n", "+0:5 +1:9 -0", NULL},
    {"a realloc in place is a free first",
     "7: malloc 0x10 5\n7: realloc 0x10 0x10 9\n", "+0:5 -0 +0:9", NULL},
    {"a realloc of nothing is a malloc", "7: realloc 0x10 0x0 9\n", "+0:9",
     NULL},
    {"a realloc to nothing is a free",
     "7: malloc 0x10 5\n7: realloc 0x0 0x10 0\n", "+0:5 -0", NULL},
    {"a realloc that failed is a failed request",
     "7: malloc 0x10 5\n7: realloc 0x0 0x10 90\n", "+0:5 +1:90! -1", NULL},
    {"a null pointer is a failed request, or no block",
     "7: malloc 0x10 5\n7: malloc 0x0 9\n7: free 0x0\n7: thread_done 0x0\n",
     "+0:5 +1:9! -1", NULL},
    {"a failed request that no allocator can serve is left out",
     "7: malloc 0x10 5\n7: malloc 0x0 9223372036854775808\n", "+0:5",
     "1 failed requests"},
    {"times behind a call are passed over",
     "7: malloc 0x10 5 100 200\n7: free 0x10 300 400\n", "+0:5 -0", NULL},
    {"times behind a realloc are passed over too",
     "7: malloc 0x10 5\n7: realloc 0x20 0x10 9 100 200\n", "+0:5 +1:9 -0",
     NULL},
    {"lines may end as on Windows, or not at all",
     "7: malloc 0x10 5\r\n\r\n7: free 0x10", "+0:5 -0", NULL},
};

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct bad_log bad[] = {
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
    log_is_refused(bad, sizeof(bad) / sizeof(*bad));
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
        assert_int_equal(frag_trace_open(files[i].path, NULL, &t, &log_error),
                         FRAG_OK);
        for (uint64_t k = 0; k < frag_trace_device(t, 0)->count; k++)
            allocs += frag_trace_device(t, 0)->op[k] == FRAG_ALLOC;
        assert_int_equal(allocs, files[i].allocs);
        frag_trace_close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(a_public_recording_is_read_from_its_zip),
    };

    return LOG_TESTS("android", rows, tests);
}
