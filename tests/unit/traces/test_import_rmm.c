/* test_import_rmm.c - tests the importer of RMM's logs, on lines written by
 * hand and on random logs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/log_rows.h"
#include "tests/support/trace_equal.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"
#define AT     "7,05:50:42.600038,"

static const struct log_row rows[] = {
    {"an allocation and its free",
     HEADER AT "allocate,0x10,1024,0\n8,05:50:42.600039,free,0x10,1024,0\n",
     "+0:1024 -0", NULL},
    {"columns are found by their names, and unknown ones are passed over",
     "Size,Extra,Pointer,Stream,Action,Time,Thread\n"
     "8,x,0x10,0x2,allocate,05:50:42.600038,7\n",
     "+0:8@2", NULL},
    {"RMM before 0.14 has no thread",
     "Time,Action,Pointer,Size,Stream\n05:50:42:600038,allocate,0x10,8,0\n",
     "+0:8", NULL},
    {"a log without a header", AT "allocate,0x10,8,0x0\n", "+0:8", NULL},
    {"other lines between the rows are counted",
     "INFO Running\n" AT "allocate,0x10,8,0\n[3][14:24:59] FAILURE\n\n7,8\n" AT
     "free,0x10,8,0\n",
     "+0:8 -0",
     "3 lines that are no rows of the log were skipped (first at "
     "line 1)"},
    {"a header within, as of two logs in one file",
     HEADER AT "allocate,0x10,8,0\n" HEADER AT "free,0x10,8,0\n", "+0:8 -0",
     NULL},
    {"null pointers are no blocks",
     HEADER AT "allocate,(nil),0,0\n" AT "free,0x0,0,0\n" AT
               "free,(nil),0,0x2\n" AT "allocate,0x10,8,0\n",
     "+0:8", NULL},
    {"a failure is a request that is freed at once",
     HEADER AT "allocate,0x10,8,0x2\n" AT "allocate failure,(nil),90,0\n",
     "+0:8@2 ?1:90 -1", NULL},
    {"a failure of 0 bytes is none",
     HEADER AT "allocate failure,(nil),0,0\n" AT "allocate,0x10,8,0\n", "+0:8",
     NULL},
    {"a free on another stream keeps the stream",
     HEADER AT "allocate,0x10,8,0x5\n" AT "allocate,0x20,8,0\n" AT
               "free,0x10,8,0x2\n" AT "free,0x20,8,0\n" AT
               "allocate,0x20,8,0x2\n" AT "free,0x20,8,0\n",
     "+0:8@5 +1:8 -0@2 -1 +1:8@2 -1@0", NULL},
    {"a free of an unknown pointer was live before, with its size",
     HEADER AT "allocate,0x10,8,0\n" AT "free,0x20,77,0x3\n", "+1:77@3 +0:8 -1",
     NULL},
    {"an address that is live is freed first",
     HEADER AT "allocate,0x10,8,0\n" AT "allocate,0x10,9,0\n" AT
               "free,0x10,9,0\n",
     "+0:8 -0 +0:9 -0",
     "1 allocations returned an address that was live: the log lacks the "
     "frees, which were added (first at line 3)"},
    {"a free of another size is counted",
     HEADER AT "allocate,0x10,8,0\n" AT "free,0x10,4294967304,0\n", "+0:8 -0",
     "1 frees state another size"},
    {"a large size is kept",
     HEADER AT "allocate,0x10,9223372036854775800,0\n" AT
               "free,0x10,9223372036854775800,0\n",
     "+0:9223372036854775800 -0", NULL},
    {"0 bytes at an address count as 1",
     HEADER AT "allocate,0x10,0,0\n" AT "free,0x10,0,0\n" AT "free,0x20,0,0\n",
     "+1:1 +0:1 -0 -1",
     "2 blocks of 0 bytes count as 1 byte (first at line 2)"},
    {"a tail that is cut within the action",
     HEADER AT "allocate,0x10,8,0\n" AT "allo", "+0:8",
     "1 row at the end of the log is incomplete and was skipped: the end of "
     "the log is lost, as with a process that was killed (first at line 3)"},
    {"a tail that is cut before the stream",
     HEADER AT "allocate,0x10,8,0\n" AT "free,0x10,8,", "+0:8",
     "1 row at the end"},
    {"a tail that is cut behind 0x",
     HEADER AT "allocate,0x10,8,0\n" AT "free,0x10,8,0x", "+0:8",
     "1 row at the end"},
    {"lines may end as on Windows",
     "Thread,Time,Action,Pointer,Size,Stream\r\n" AT "allocate,0x10,8,0\r\n",
     "+0:8", NULL},
};

static const struct log_refusal refusals[] = {
    {HEADER AT "deallocate,0x10,8,0\n" AT "free,0x10,8,0\n",
     ":2: expected allocate, free or \"allocate failure\", found "
     "\"deallocate\""},
    {HEADER "7,1700000000.5,allocate,0x10,8,0\n" AT "free,0x10,8,0\n",
     ":2: expected a time such as 05:50:42.600038"},
    {HEADER "7,24:00:00.000000,allocate,0x10,8,0\n" AT "free,0x10,8,0\n",
     ":2: expected a time"},
    {HEADER "7,05:60:00.000000,allocate,0x10,8,0\n" AT "free,0x10,8,0\n",
     ":2: expected a time"},
    {HEADER "7,05:50:00.00000,allocate,0x10,8,0\n" AT "free,0x10,8,0\n",
     ":2: expected a time"},
    {HEADER AT "allocate,10,8,0\n" AT "free,0x10,8,0\n",
     ":2: expected a pointer"},
    {HEADER AT "allocate,0x10,8x,0\n" AT "free,0x10,8,0\n",
     ":2: expected a size"},
    {HEADER AT "allocate,0x10,9223372036854775808,0\n" AT "free,0x10,8,0\n",
     ":2: expected a size"},
    {HEADER AT "allocate,(nil),8,0\n" AT "free,0x10,8,0\n",
     ":2: expected 0 bytes for a null pointer"},
    {HEADER AT "allocate,0x10,8,s\n" AT "free,0x10,8,0\n",
     ":2: expected a stream"},
    {"Thread,Time,Action,Pointer,Stream\n7,05:50:42.600038,free,0x10,0\n",
     "expected a known format"},
    {HEADER AT "free,0x10,8,0\n" AT "free,0x10,8,0\n", ":3"},
};

static void what_is_wrong_is_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        log_is_refused(&refusals[i]);
}

static void times_go_on_after_midnight(void **state)
{
    static const char log[] = HEADER "7,23:59:59.999999,allocate,0x10,8,0\n"
                                     "7,00:00:00.000001,allocate,0x20,8,0\n"
                                     "7,00:00:00.000000,allocate,0x30,8,0\n";
    static const frag_time day = 86400 * (frag_time)1000000000;
    struct frag_trace *t;

    (void)state;
    assert_int_equal(log_open(log, &t), FRAG_OK);
    assert_int_equal(t->devices[0].time[0], day - 1000);
    assert_int_equal(t->devices[0].time[1], day + 1000);
    assert_int_equal(t->devices[0].time[2], day);
    frag_trace_close(t);
}

/* ---- trace files ---- */

static char written[] = "/tmp/frag_rmm_XXXXXX";

static uint32_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* A log of blocks with streams, failures and frees on other streams. */
static void write_random_log(uint64_t seed)
{
    enum { BLOCKS = 50, ROWS = 5000 };
    unsigned bytes[BLOCKS] = {0};
    FILE *file = fopen(log_path, "wb");

    fputs(HEADER, file);
    for (int i = 0; i < ROWS; i++) {
        const unsigned k = next(&seed) % BLOCKS, stream = next(&seed) % 3;
        const char *action = bytes[k] ? "free" : "allocate";

        fprintf(file, "0,%02d:%02d:%02d.%06u,", (23 + i / 3000) % 24,
                i / 50 % 60, i % 50, i);
        if (next(&seed) % 50 == 0) {
            fprintf(file, "allocate failure,(nil),%u,0\n", next(&seed) + 1);
            continue;
        }
        if (!bytes[k])
            bytes[k] = next(&seed) + 1;
        fprintf(file, "%s,0x7f00%06x,%u,%s%x\n", action, k, bytes[k],
                stream ? "0x" : "", stream);
        if (*action == 'f')
            bytes[k] = 0;
    }
    fclose(file);
}

/* Through a trace file: the streams of frees are in it. */
static void a_trace_file_keeps_the_streams_of_frees(void **state)
{
    struct frag_trace *t = NULL, *again = NULL;
    const char *difference;

    (void)state;
    write_random_log(12);
    if (frag_trace_open(log_path, NULL, &t, &log_error) != FRAG_OK ||
        frag_trace_write(t, written, &log_error) != FRAG_OK ||
        frag_trace_open(written, NULL, &again, &log_error) != FRAG_OK)
        fail_msg("%s", log_error.text);
    difference = traces_differ(t, again);
    if (difference)
        fail_msg("%s", difference);
    frag_trace_close(t);
    frag_trace_close(again);
}

/* The stream of a free is checked only where it means something. */
static void a_free_on_a_stream_beyond_the_table_is_refused(void **state)
{
    const uint8_t op[] = {FRAG_ALLOC, FRAG_FREE};
    const uint32_t id[] = {0, 0};
    const uint64_t bytes[] = {8, 0}, streams[] = {0};
    const frag_pool pool[] = {0, 0};
    frag_stream stream[] = {0, 1};
    struct frag_device_trace d = {.slots = 1,
                                  .count = 2,
                                  .op = op,
                                  .id = id,
                                  .bytes = bytes,
                                  .stream = stream,
                                  .pool = pool,
                                  .stream_count = 1,
                                  .pool_count = 1,
                                  .streams = streams,
                                  .free_streams = true};

    (void)state;
    assert_int_equal(frag_trace_check(&d, "t", &log_error), FRAG_OK);
    stream[1] = 2;
    assert_int_equal(frag_trace_check(&d, "t", &log_error), FRAG_CORRUPT);
    assert_non_null(strstr(log_error.text, "1 + a row of the table of"));
    d.free_streams = false;
    assert_int_equal(frag_trace_check(&d, "t", &log_error), FRAG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(times_go_on_after_midnight),
        cmocka_unit_test(a_trace_file_keeps_the_streams_of_frees),
        cmocka_unit_test(a_free_on_a_stream_beyond_the_table_is_refused),
    };
    const int log = mkstemp(log_path), rmm = mkstemp(written);
    int failed;

    if (log < 0 || rmm < 0)
        return 1;
    close(log);
    close(rmm);
    failed = log_run_rows(rows, sizeof(rows) / sizeof(*rows));
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    unlink(log_path);
    unlink(written);
    return failed;
}
