/* test_import_mtrace.c - tests the importer of glibc's mtrace logs, on lines
 * written by hand. tests/recordings/check_formats.py and
 * tests/commands/check_notes.py read whole logs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/import_log.h"

#define START "= Start\n"

static const struct log_row rows[] = {
    {"a malloc and a free are events",
     START
     "@ ./a:(main+1c)[0x115c] + 0x10 0x20\n@ ./a:[0x1170] - 0x10\n= End\n",
     "+0:32 -0", "policies with a quantum of 512 bytes"},
    {"the caller may be missing", START "+ 0x10 0x20\n- 0x10\n", "+0:32 -0",
     NULL},
    {"the start may be missing if there is a caller",
     "@ ./a:[0x115c] + 0x10 0x20\n", "+0:32", NULL},
    {"the path of the caller may look like a call",
     START "@ /a - b + 0x1 0x2 < c:[0x1] + 0x10 0x20\n@ /a > 0x1 0x2 - b:[0x1] "
           "- 0x10\n",
     "+0:32 -0", NULL},
    {"a realloc is a free, then an alloc",
     START "@ ./a:[0x1] + 0x10 0x20\n@ ./a:[0x1] < 0x10\n@ ./a:[0x1] > 0x50 "
           "0x40\n",
     "+0:32 -0 +0:64", "how long a realloc held"},
    {"a realloc in place, too",
     START "@ ./a:[0x1] + 0x10 0x20\n@ ./a:[0x1] < 0x10\n@ ./a:[0x1] > 0x10 "
           "0x40\n",
     "+0:32 -0 +0:64", NULL},
    {"a realloc that failed leaves the old block",
     START "@ ./a:[0x1] + 0x10 0x20\n@ ./a:[0x1] ! 0x10 0x4000\n@ ./a:[0x1] - "
           "0x10\n",
     "+0:32 +1:16384! -1 -0", NULL},
    {"a malloc that failed is a failed request",
     START "@ ./a:[0x1] + (nil) 0x4000\n", "+0:16384! -0", NULL},
    {"a failed request that no allocator can serve is left out",
     START "@ ./a:[0x1] + (nil) 0xffffffffffffffff\n", "",
     "1 failed requests of 2^63 bytes"},
    {"a block of no bytes has one", START "@ ./a:[0x1] + 0x10 0\n", "+0:1",
     NULL},
    {"a free of null is nothing", START "@ ./a:[0x1] - (nil)\n", "", NULL},
    {"a live address is freed before it is allocated again",
     START "@ ./a:[0x1] + 0x10 0x20\n@ ./a:[0x1] + 0x10 0x30\n",
     "+0:32 -0 +0:48", "1 blocks have no free in the log"},
    {"a free of an unknown block is counted",
     START "@ ./a:[0x1] - 0x99\n@ ./a:[0x1] < 0x88\n@ ./a:[0x1] > 0x10 0x20\n",
     "+0:32", "2 frees are of blocks that were allocated before"},
    {"a cut last line is left out", START "@ ./a:[0x1] + 0x10 0x20\n@ /usr/b",
     "+0:32", "the last line of the log is cut off"},
    {"a cut number at the end is no number",
     START "@ ./a:[0x1] + 0x10 0x20\n@ ./a:[0x1] + 0x40 0x1", "+0:32",
     "the last line of the log is cut off"},
    {"lines may end as on Windows", "= Start\r\n+ 0x10 0x20\r\n- 0x10\r\n",
     "+0:32 -0", NULL},
};

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct bad_log bad[] = {
        {START "@ ./a:[0x1] + 0x10 0x20\n@ /usr/b\n+ 0x20 0x10\n",
         "program forks, its children write into the same log"},
        {START "@ ./a:[0x1] + 0x10 0x20\n@ /usr/b\n+ 0x20 0x10\n",
         ":3: expected a call such as"},
        {START "@ ./a:[0x1] * 0x10 0x20\n", ":2: expected a call such as"},
        {START "@ ./a:[0x1] + 0x10\n", ":2: expected a call such as"},
        {START "@ ./a:[0x1] - 10\n", ":2: expected a call such as"},
        {START "@ ./a:[0x1] + 0x1g 0x20\n", ":2: expected a call such as"},
        {START "@ ./a:[0x1] + 0x10 0x20 0x30\n", ":2: expected a call such as"},
        {START "./a:[0x1] + 0x10 0x20\n", ":2: expected a call such as"},
        {START "@ ./a:[0x1] + 0x10 0x8000000000000000\n",
         ":2: expected a size"},
        {START "+ 0x10 0x10000000000000000\n", ":2: expected a call such as"},
    };

    (void)state;
    log_is_refused(bad, sizeof(bad) / sizeof(*bad));
}

/* The frame of the stack of an event: "FUNCTION FILE". */
static void check_frame(const struct frag_trace *t, uint64_t event,
                        const char *text)
{
    const struct frag_device_trace *d = frag_trace_device(t, 0);
    const uint64_t first = t->stack_first[d->stack[event]];
    const struct frag_frame *f = &t->frames[first];
    char found[128];

    assert_int_equal(t->stack_first[d->stack[event] + 1] - first, 1);
    snprintf(found, sizeof(found), "%s %s", t->strings[f->function],
             t->strings[f->file]);
    assert_string_equal(found, text);
}

static void the_caller_is_the_stack(void **state)
{
    struct frag_trace *t;

    (void)state;
    assert_int_equal(log_opened(START "@ ./a b:(main+1c)[0x115c] + 0x10 0x1\n"
                                      "@ /lib/libc.so.6:[0x115c] + 0x20 0x1\n"
                                      "@ [0x4005d0] + 0x30 0x1\n"
                                      "@ plain + 0x50 0x1\n"
                                      "+ 0x60 0x1\n",
                                &t),
                     FRAG_OK);
    check_frame(t, 0, "main+1c ./a b");
    check_frame(t, 1, "0x115c /lib/libc.so.6");
    check_frame(t, 2, "0x4005d0 ");
    check_frame(t, 3, " plain");
    assert_int_equal(frag_trace_device(t, 0)->stack[4], 0);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(the_caller_is_the_stack),
    };

    return LOG_TESTS("mtrace", rows, tests);
}
