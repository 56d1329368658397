/* test_export_faults.c - writes a trace in every format when the host has no
 * memory once: at the first call, at the second, and so on, until a run meets
 * no failure. A failed export leaves no file. ASan detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "policies/device/costs.h"
#include "sim/export/formats.h"
#include "tests/support/failing_malloc.h"

#define FILE_NAME "test_export_faults.out"

/* Two streams and pools, stacks, marks and a block that stays. */
static const uint8_t op[] = {FRAG_ALLOC, FRAG_ALLOC, FRAG_FREE_REQUESTED,
                             FRAG_FREE, FRAG_ALLOC};
static const uint32_t id[] = {0, 1, 0, 0, 0}, stack[] = {1, 1, 1, 1, 1};
static const uint64_t bytes[] = {1000, 3 << 20, 0, 0, 700};
static const frag_stream stream[] = {0, 1, 0, 0, 0};
static const frag_pool pool[] = {0, 1, 0, 0, 0};
static const frag_time when[] = {1000, 2000, 3000, 4000, 5000};
static const uint64_t streams[] = {0, 77};
static const struct frag_pool_id pools[] = {{0, 0}, {0, 1}};
static const struct frag_mark marks[] = {{0, 1000, FRAG_MARK_BEGIN, 0},
                                         {5, 5000, FRAG_MARK_END, 0}};
static struct frag_device_trace device = {.slots = 2,
                                          .count = 5,
                                          .op = op,
                                          .id = id,
                                          .bytes = bytes,
                                          .stream = stream,
                                          .pool = pool,
                                          .time = when,
                                          .stack = stack,
                                          .stream_count = 2,
                                          .pool_count = 2,
                                          .streams = streams,
                                          .pools = pools,
                                          .mark_count = 2,
                                          .marks = marks};
static const char *const strings[] = {"step", "train.py"};
static const uint64_t stack_first[] = {0, 0, 1};
static const struct frag_frame frames[] = {{1, 0, 7}};
static char path[] = "made";
static const struct frag_trace trace = {.path = path,
                                        .device_count = 1,
                                        .devices = &device,
                                        .string_count = 2,
                                        .strings = strings,
                                        .stack_count = 2,
                                        .stack_first = stack_first,
                                        .frames = frames};

/* Writes the file while request k fails; returns whether one failed. */
static bool write_once(enum export_format_number format, uint64_t k,
                       const struct export_job *job)
{
    struct export_notes notes = {0};
    struct frag_error error = {""};
    enum frag_err err;
    bool has_failed;

    unlink(FILE_NAME);
    calls_to_failure = k;
    err = export_write(format, job, FILE_NAME, &notes, &error);
    has_failed = calls_to_failure == 0;
    calls_to_failure = 0;
    export_notes_free(&notes);
    assert_true(err == FRAG_OK || (has_failed && err == FRAG_NOMEM));
    assert_int_equal(access(FILE_NAME, F_OK) == 0, err == FRAG_OK);
    return has_failed;
}

static void every_format_survives(void **state)
{
    const struct cell_settings cell = {.costs = frag_costs_h200};
    struct policy_choice policy;
    struct frag_error error;

    (void)state;
    assert_int_equal(
        policy_choice_read("torch:expandable_segments:True", &policy, &error),
        FRAG_OK);
    for (unsigned f = 0; f < EXPORT_FORMATS; f++) {
        const struct export_job job = {
            .trace = &trace,
            .device = &device,
            .name = "made",
            .cell = &cell,
            .policies = &policy,
            .policy_count = export_formats[f].policy_max ? 1 : 0,
            .bound = FRAG_NO_BOUND,
        };
        uint64_t k = 1;

        while (write_once((enum export_format_number)f, k, &job))
            k++;
        /* csv is written without memory, apart from that of stdio. */
        assert_true(k > 1 || f == EXPORT_csv);
    }
    policy_choice_free(&policy);
    unlink(FILE_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_survives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
