/* test_csv.c - tests reading and writing CSV traces. Reading goes through the
 * same function as every other input format. */
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
static char folder[] = "/tmp/frag_csv_XXXXXX";
static char path[64], other[64];

static void spill(const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

static enum frag_err opened(const char *text, struct frag_trace **t)
{
    spill(text, strlen(text));
    error.text[0] = '\0';
    *t = NULL;
    return frag_trace_open(path, NULL, t, &error);
}

static struct frag_trace *open_or_fail(const char *text)
{
    struct frag_trace *t;

    if (opened(text, &t) != FRAG_OK)
        fail_msg("%s", error.text);
    return t;
}

static const char plain[] = "op,id,bytes,stream\n"
                            "alloc,7,4096,0\n"
                            "alloc,18446744073709551615,1,5\n"
                            "record_stream,7,,5\n"
                            "free_requested,7,,\n"
                            "empty_cache,,,\n"
                            "free,7,,\n"
                            "alloc,7,9223372036854775807,5\n"
                            "free,18446744073709551615,,\n";

static void lines_become_events(void **state)
{
    static const uint8_t op[] = {
        FRAG_ALLOC,       FRAG_ALLOC, FRAG_RECORD_STREAM, FRAG_FREE_REQUESTED,
        FRAG_EMPTY_CACHE, FRAG_FREE,  FRAG_ALLOC,         FRAG_FREE};
    static const uint32_t id[] = {0, 1, 0, 0, 0, 0, 0, 1};
    static const frag_stream stream[] = {0, 1, 1, 0, 0, 0, 1, 0};
    struct frag_trace *t = open_or_fail(plain);
    const struct frag_device_trace *d = frag_trace_device(t, 0);

    (void)state;
    assert_string_equal(t->format, "csv");
    assert_int_equal(t->file_bytes, sizeof(plain) - 1);
    assert_int_equal(strlen(t->sha256), 64);
    assert_null(frag_trace_device(t, 1));
    assert_int_equal(d->count, 8);
    assert_int_equal(d->slots, 2);
    assert_memory_equal(d->op, op, sizeof(op));
    assert_memory_equal(d->id, id, sizeof(id));
    assert_memory_equal(d->stream, stream, sizeof(stream));
    assert_int_equal(d->bytes[6], INT64_MAX);
    assert_int_equal(d->streams[1], 5);
    assert_null(d->recorded.addr);
    assert_null(d->time);
    frag_trace_close(t);
}

static void the_same_events_may_be_written_loosely(void **state)
{
    static const char *const loose[] = {
        "op,id,bytes,stream\r\nalloc,3,10,0\r\nfree,3,,\r\n",
        "op,id,bytes,stream\nalloc,3,10,0\nfree,3,,",
        "op,id,bytes\nalloc,3,10\nfree,3\n",
        "bytes,stream,id,op\n10,0,3,alloc\n,,3,free\n",
        " op , id ,bytes\t, stream\n\n alloc , 3 , 10 , 0 \n\nfree,3,0,0\n",
        "\"op\",\"id\",\"bytes\"\n\"alloc\",\"3\",\"10\"\nfree,3,\"\"\n",
        "\xef\xbb\xbfop,id,bytes\nalloc,0003,010\nfree,3,10\n",
    };
    struct frag_trace *want = open_or_fail(loose[0]);

    (void)state;
    for (size_t i = 1; i < sizeof(loose) / sizeof(*loose); i++) {
        struct frag_trace *t = open_or_fail(loose[i]);
        const char *difference = traces_differ(want, t);

        if (difference)
            fail_msg("%s: %s", loose[i], difference);
        frag_trace_close(t);
    }
    frag_trace_close(want);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"op,id,bytes\nalloc,1,0\n", ":2: expected a size from 1"},
        {"op,id,bytes\nalloc,1,9223372036854775808\n", ":2: expected a size"},
        {"op,id,bytes\nalloc,1,18446744073709551616\n", ":2: expected a size"},
        {"op,id,bytes\nalloc,1,-5\n", ":2: expected a size"},
        {"op,id,bytes\nalloc,1,\n", ":2: expected a size"},
        {"op,id,bytes\nalloc,1\n", ":2: expected a size"},
        {"op,id,bytes\nalloc,,5\n", ":2: expected an id"},
        {"op,id,bytes\nalloc,x,5\n", ":2: expected an id"},
        {"op,id,bytes\nalloc,18446744073709551616,5\n", ":2: expected an id"},
        {"op,id,bytes\nmalloc,1,5\n", ":2: expected alloc, free"},
        {"op,id,bytes\n\n\nfree,1,\n", ":4: expected an id that is live"},
        {"op,id,bytes\nalloc,1,5\nfree,1,\nfree,1,\n",
         ":4: expected an id that is live, found id 1"},
        {"op,id,bytes\nalloc,1,5\nalloc,1,5\n",
         ":3: expected an id that is not"},
        {"op,id,bytes\nalloc,1,5\nfree_requested,1\nfree_requested,1\n",
         ":4: expected an id whose free"},
        {"op,id,bytes\nrecord_stream,1,\n", ":2: expected a stream"},
        {"op,id,bytes,stream\nrecord_stream,1,,0\n", ":2: expected an id that"},
        {"op,id,bytes\nalloc,1,5,0\n", ":2: expected no more fields"},
        {"op,id,bytes,name\n", ":1: expected one of the columns"},
        {"op,id,id\n", ":1: expected each column once"},
        {"op,bytes\n", ":1: expected a header with the columns"},
        {"hello\n", ":0: expected a known format"},
        {"", ":0: expected a trace, found 0 bytes only"},
        {"hi", ":0: expected a trace, found 2 bytes only"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_trace *t;
        enum frag_err err = opened(rows[i].text, &t);

        if (err != FRAG_CORRUPT || t ||
            strncmp(error.text, path, strlen(path)) ||
            !strstr(error.text, rows[i].words))
            fail_msg("%s: %s \"%s\"", rows[i].text, frag_err_text(err),
                     error.text);
    }
}

static void a_line_longer_than_the_window_is_refused(void **state)
{
    char *text = malloc(200000);
    struct frag_trace *t;

    (void)state;
    memset(text, ' ', 199999);
    text[199999] = '\0';
    memcpy(text, "op,id,bytes\nalloc,1,5", 21);
    assert_int_equal(opened(text, &t), FRAG_CORRUPT);
    assert_non_null(strstr(error.text, ":2: expected a line"));
    free(text);
}

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Random scripts: what we write reads back equal, across window borders. */
static void a_written_trace_reads_back_equal(void **state)
{
    enum { LIVE = 100, EVENTS = 20000 };
    bool live[LIVE] = {false};
    uint64_t seed = 5;
    FILE *file = fopen(path, "wb");
    struct frag_trace *t = NULL, *again = NULL;
    const char *difference;

    (void)state;
    fputs("op,id,bytes,stream\n", file);
    for (int i = 0; i < EVENTS; i++) {
        unsigned id = (unsigned)(next(&seed) % LIVE);

        if (live[id])
            fprintf(file, "free,%u,,\n", id * 1000);
        else
            fprintf(file, "alloc,%u,%u,%u\n", id * 1000,
                    (unsigned)next(&seed) + 1, id % 3 * 7);
        live[id] = !live[id];
    }
    fclose(file);
    if (frag_trace_open(path, NULL, &t, &error) != FRAG_OK ||
        frag_trace_write_csv(t, 0, other, &error) != FRAG_OK ||
        frag_trace_open(other, NULL, &again, &error) != FRAG_OK)
        fail_msg("%s", error.text);
    assert_int_equal(t->devices[0].count, EVENTS);
    difference = traces_differ(t, again);
    if (difference)
        fail_msg("%s", difference);
    assert_int_equal(frag_trace_write_csv(t, 1, other, &error), FRAG_INVALID);
    assert_int_equal(frag_trace_write_csv(t, 0, "/nowhere/x", &error), FRAG_IO);
    frag_trace_close(t);
    frag_trace_close(again);
}

static void a_trace_file_opens_through_the_same_door(void **state)
{
    struct frag_trace *t = open_or_fail(plain), *again = NULL;
    const char *difference;

    (void)state;
    assert_int_equal(frag_trace_write(t, other, &error), FRAG_OK);
    if (frag_trace_open(other, NULL, &again, &error) != FRAG_OK)
        fail_msg("%s", error.text);
    difference = traces_differ(t, again);
    if (difference)
        fail_msg("%s", difference);
    assert_string_equal(again->format, "hdf5");
    assert_string_equal(again->sha256, t->sha256);
    frag_trace_close(t);
    frag_trace_close(again);
}

static void an_absent_file_is_an_io_error(void **state)
{
    struct frag_trace *t = NULL;

    (void)state;
    assert_int_equal(frag_trace_open("/nowhere/x", NULL, &t, &error), FRAG_IO);
    assert_non_null(strstr(error.text, "/nowhere/x"));
    assert_null(t);
}

/* Changed or cut text opens or is refused in words. */
static void damaged_text_is_refused_in_words(void **state)
{
    static const char letters[] = "op,id\n\r\"0123456789 alocfre_\t\x80-";
    uint64_t seed = 9;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        char text[sizeof(plain)];
        size_t length = i % 4 ? sizeof(plain) - 1 : next(&seed) % sizeof(plain);
        struct frag_trace *t = NULL;
        enum frag_err err;

        memcpy(text, plain, sizeof(plain));
        for (uint64_t k = next(&seed) % 4 + 1; k; k--)
            text[next(&seed) % (sizeof(plain) - 1)] =
                letters[next(&seed) % (sizeof(letters) - 1)];
        spill(text, length);
        error.text[0] = '\0';
        err = frag_trace_open(path, NULL, &t, &error);
        if (err != FRAG_OK && (err != FRAG_CORRUPT || !error.text[0] || t))
            fail_msg("%s: %s", text, frag_err_text(err));
        frag_trace_close(t);
    }
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/a.csv", folder);
    snprintf(other, sizeof(other), "%s/b", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_events),
        cmocka_unit_test(the_same_events_may_be_written_loosely),
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(a_line_longer_than_the_window_is_refused),
        cmocka_unit_test(a_written_trace_reads_back_equal),
        cmocka_unit_test(a_trace_file_opens_through_the_same_door),
        cmocka_unit_test(an_absent_file_is_an_io_error),
        cmocka_unit_test(damaged_text_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
