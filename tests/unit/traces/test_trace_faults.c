/* test_trace_faults.c - tests trace functions when the host has no memory once:
 * at the first call, at the second, and so on, until a run meets no failure.
 * Each run returns FRAG_NOMEM, or behaves as if nothing had failed; ASan
 * detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/failing_malloc.h"
#include "tests/support/trace_equal.h"
#include "traces/build/build.h"

static struct frag_error error;
static char folder[] = "/tmp/frag_faults_XXXXXX";
static char csv[64], trace_file[64];

/* A recording that needs every step of the builder: a late beginning, missing
 * completions on one device, empty_cache calls, pools, streams, texts. */
enum { BASE = 1 << 24, SEGMENT = 2 << 20 };

static const struct step {
    uint32_t device;
    enum frag_entry_kind kind;
    frag_addr addr;
    frag_size size;
    uint64_t stream;
} steps[] = {
    {0, FRAG_ENTRY_SEGMENT_ALLOC, BASE, SEGMENT, 9},
    {0, FRAG_ENTRY_ALLOC, BASE, 700, 9},
    {0, FRAG_ENTRY_FREE_REQUESTED, BASE, 700, 9},
    {0, FRAG_ENTRY_FREE_COMPLETED, BASE, 700, 9},
    {0, FRAG_ENTRY_FREE_COMPLETED, BASE + 8 * SEGMENT, 700, 9},
    {0, FRAG_ENTRY_SEGMENT_FREE, BASE, SEGMENT, 9},
    {0, FRAG_ENTRY_SEGMENT_ALLOC, BASE, SEGMENT, 9},
    {0, FRAG_ENTRY_ALLOC, BASE + 512, 700, 3},
    {0, FRAG_ENTRY_SEGMENT_MAP, BASE + 4 * SEGMENT, SEGMENT, 3},
    {0, FRAG_ENTRY_OOM, 77, SEGMENT, 3},
    {1, FRAG_ENTRY_ALLOC, BASE, 5, 0},
    {1, FRAG_ENTRY_FREE_REQUESTED, BASE, 5, 0},
    {1, FRAG_ENTRY_ALLOC, BASE, 5, 0},
    {1, FRAG_ENTRY_ALLOC, BASE + 512, 5, 0},
};

static enum frag_err feed_steps(struct frag_build *b, uint32_t stack)
{
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        const struct frag_entry entry = {.kind = steps[i].kind,
                                         .stack = stack,
                                         .addr = steps[i].addr,
                                         .size = steps[i].size,
                                         .stream = steps[i].stream,
                                         .time = i + 1};

        FRAG_TRY(frag_build_entry(b, steps[i].device, &entry, i, &error));
    }
    return FRAG_OK;
}

static enum frag_err feed_end(struct frag_build *b)
{
    const struct frag_snapshot_segment s = {
        .addr = BASE, .size = SEGMENT, .stream = 4, .pool = {1, 0}};
    const struct frag_snapshot_block blocks[] = {
        {BASE, 512, 5, FRAG_ACTIVE_ALLOCATED},
        {BASE + 512, 1024, 700, FRAG_ACTIVE_ALLOCATED},
        {0, SEGMENT - 1536, 0, FRAG_INACTIVE},
    };

    FRAG_TRY(frag_build_segment(b, 0, &s, 0, &error));
    for (size_t i = 0; i < 3; i++)
        FRAG_TRY(frag_build_block(b, 0, &blocks[i], 0, &error));
    return FRAG_OK;
}

static enum frag_err feed_texts(struct frag_build *b, uint32_t *stack)
{
    const struct frag_recorded_settings settings = {.conf = "a:b"};
    struct frag_frame frame = {frag_build_string(b, "file", 4), 0, 7};

    if (frame.file == UINT32_MAX)
        return FRAG_NOMEM;
    *stack = frag_build_stack(b, &frame, 1);
    if (*stack == UINT32_MAX)
        return FRAG_NOMEM;
    FRAG_TRY(frag_build_settings(b, &settings, &error));
    FRAG_TRY(frag_build_mark(b, 0, FRAG_MARK_BEGIN, 3, "m", 1, &error));
    return frag_build_note(b, "note");
}

static enum frag_err build(struct frag_trace **out)
{
    struct frag_build *b = frag_build_open("x", "test");
    uint32_t stack;
    enum frag_err err = FRAG_NOMEM;

    if (b)
        err = feed_texts(b, &stack);
    if (err == FRAG_OK)
        err = feed_steps(b, stack);
    if (err == FRAG_OK)
        err = feed_end(b);
    if (err == FRAG_OK)
        err = frag_build_finish(b, NULL, out, &error);
    frag_build_close(b);
    return err;
}

static enum frag_err open_csv(struct frag_trace **out)
{
    return frag_trace_open(csv, NULL, out, &error);
}

static enum frag_err open_trace_file(struct frag_trace **out)
{
    return frag_trace_open(trace_file, NULL, out, &error);
}

/* Fails at every call in turn; the run without a failure ends it. */
static void fail_everywhere(enum frag_err (*make)(struct frag_trace **),
                            unsigned least)
{
    struct frag_trace *want = NULL, *t;
    uint64_t k = 0;
    bool failed = true;

    assert_int_equal(make(&want), FRAG_OK);
    while (failed) {
        const char *difference = NULL;
        enum frag_err err;

        t = NULL;
        *error.text = 0;
        calls_to_failure = ++k;
        err = make(&t);
        failed = !calls_to_failure;
        calls_to_failure = 0;
        if (err != FRAG_OK && (err != FRAG_NOMEM || t))
            fail_msg("call %llu: %s", (unsigned long long)k, error.text);
        if (make != build) /* the builder writes no text for NOMEM */
            assert_error_says(err, error);
        if (err == FRAG_OK)
            difference = traces_differ(want, t);
        if (difference)
            fail_msg("call %llu: %s", (unsigned long long)k, difference);
        frag_trace_close(t);
    }
    frag_trace_close(want);
    assert_true(k > least);
}

static void the_builder_survives_every_failure(void **state)
{
    (void)state;
    fail_everywhere(build, 40);
}

static void reading_csv_survives_every_failure(void **state)
{
    (void)state;
    fail_everywhere(open_csv, 10);
}

static void reading_trace_files_survives_every_failure(void **state)
{
    (void)state;
    fail_everywhere(open_trace_file, 10);
}

static void writing_survives_every_failure(void **state)
{
    struct frag_trace *t = NULL;
    uint64_t k = 0;
    bool failed = true;

    (void)state;
    assert_int_equal(build(&t), FRAG_OK);
    while (failed) {
        enum frag_err err;

        unlink(trace_file);
        error.text[0] = '\0';
        calls_to_failure = ++k;
        err = frag_trace_write(t, trace_file, &error);
        if (err == FRAG_OK)
            err = frag_trace_write_csv(t, 0, csv, &error);
        failed = !calls_to_failure;
        calls_to_failure = 0;
        assert_int_equal(err != FRAG_OK, failed);
        assert_true(err == FRAG_OK || err == FRAG_NOMEM || err == FRAG_IO);
        assert_error_says(err, error);
    }
    frag_trace_close(t);
    assert_true(k > 4);
}

static int make_folder(void **state)
{
    struct frag_trace *t = NULL;

    (void)state;
    if (!mkdtemp(folder) || build(&t) != FRAG_OK)
        return -1;
    snprintf(csv, sizeof(csv), "%s/a.csv", folder);
    snprintf(trace_file, sizeof(trace_file), "%s/a.h5", folder);
    if (frag_trace_write_csv(t, 0, csv, &error) != FRAG_OK ||
        frag_trace_write(t, trace_file, &error) != FRAG_OK)
        return -1;
    frag_trace_close(t);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(csv);
    unlink(trace_file);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_builder_survives_every_failure),
        cmocka_unit_test(reading_csv_survives_every_failure),
        cmocka_unit_test(reading_trace_files_survives_every_failure),
        cmocka_unit_test(writing_survives_every_failure),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
