/* test_sweep_faults.c - tests a sweep when the host has no memory once, at
 * every request in turn: its report about its cells is true, and a sweep that
 * resumes its chunks runs each cell that failed for want of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/experiments/devices.h"
#include "sim/experiments/sweep/sweep.h"
#include "tests/support/failing_malloc.h"

static char folder[] = "/tmp/frag-sweep-XXXXXX", path[64];

static struct grid grid;

static enum frag_err count_row(void *user, const struct frag_run_identity *id,
                               const char *notes, const struct frag_run *run,
                               struct frag_error *e)
{
    (void)e;
    /* On segments of 3 MiB, and of any size, the device gives more. */
    assert_null(strchr(notes, '\n'));
    assert_true(run->summary.events > 0);
    if (strstr(id->policy, "segment") && !strstr(run->params, "segment=3MiB"))
        fail_msg("%s ran with the parameters \"%s\"", id->policy, run->params);
    ++*(uint64_t *)user;
    return FRAG_OK;
}

/* A sweep of a shard, and its chunks. */
struct attempt {
    struct cell_settings settings;
    struct sweep_spec spec;
    struct sweep *sweep;
    struct chunks chunks;
};

static const struct frag_provenance by = {.version = "0",
                                          .commit = "",
                                          .command = "",
                                          .started = FRAG_NO_TIME,
                                          .settings = ""};

static void begin(struct attempt *a, uint64_t shards, enum chunks_mode mode)
{
    struct frag_error e = {""};

    a->settings = (struct cell_settings){.backend = &cell_arena_backend,
                                         .costs = frag_costs_h200};
    a->spec = (struct sweep_spec){
        .grid = &grid,
        .shard = {1, shards},
        .settings = &a->settings,
        .chunks = &a->chunks,
        .device = INPUT_ANY_DEVICE,
        .on = {.threads = 1},
    };
    assert_int_equal(chunks_open(path, mode, false, &by, &a->chunks, &e),
                     FRAG_OK);
    assert_int_equal(sweep_open(&a->spec, &a->sweep, &e), FRAG_OK);
}

static void end(struct attempt *a)
{
    sweep_close(a->sweep);
    chunks_close(&a->chunks);
}

/* Half of the grid, which a chunk then holds. */
static void sweep_half(void)
{
    struct frag_error e = {""};
    struct attempt a;

    begin(&a, 2, CHUNKS_REPLACE);
    assert_int_equal(sweep_run(a.sweep, &e), FRAG_OK);
    assert_int_equal(sweep_keep(a.sweep, &e), FRAG_OK);
    end(&a);
}

static void expect_all(struct attempt *a, uint64_t recalled)
{
    const struct sweep_counts n = sweep_counts(a->sweep);
    struct frag_error e = {""};
    uint64_t rows = 0;

    assert_int_equal(n.faults, 0);
    assert_int_equal(n.cells, grid_cells(&grid));
    assert_int_equal(n.recalled, recalled);
    assert_int_equal(n.done, n.cells - recalled);
    assert_int_equal(sweep_write(a->sweep, count_row, &rows, &e), FRAG_OK);
    assert_int_equal(rows, n.cells);
}

/* Resumes a sweep of which `recalled` cells are done. */
static void resume_after(uint64_t recalled)
{
    struct frag_error e = {""};
    struct attempt a;

    begin(&a, 1, CHUNKS_RESUME);
    assert_int_equal(sweep_run(a.sweep, &e), FRAG_OK);
    expect_all(&a, recalled);
    chunks_remove(&a.chunks);
    end(&a);
}

/* Sweeps the cells that no chunk holds, with the k-th request
 * failing, and resumes. Returns whether there was a k-th request. */
static bool sweep_with(uint64_t k, uint64_t recalled)
{
    struct frag_error e = {""};
    struct sweep_counts n;
    struct attempt a;
    enum frag_err err;
    bool failed;

    begin(&a, 1, CHUNKS_RESUME);
    calls_to_failure = k;
    err = sweep_run(a.sweep, &e);
    failed = !calls_to_failure;
    calls_to_failure = 0;
    n = sweep_counts(a.sweep);
    assert_int_equal(sweep_keep(a.sweep, &e), FRAG_OK);
    if (n.done + n.recalled > n.cells)
        fail_msg("request %" PRIu64 ": %" PRIu64 " of %" PRIu64 " cells", k,
                 n.done + n.recalled, n.cells);
    if (err != FRAG_OK && err != FRAG_NOMEM)
        fail_msg("request %" PRIu64 ": error %d: %s", k, (int)err, e.text);
    assert_error_says(err, e);
    if (err == FRAG_OK && n.done + n.recalled < n.cells && !n.faults)
        fail_msg("request %" PRIu64 ": cells are lost without a word", k);
    if (!failed)
        expect_all(&a, recalled);
    end(&a);
    /* The cells of a trace that was not opened are not counted. */
    resume_after(n.done + n.recalled > recalled ? n.done + n.recalled
                                                : recalled);
    return failed;
}

static void what_found_no_memory_is_done_again(void **state)
{
    uint64_t k = 1;

    (void)state;
    while (sweep_with(k, 0))
        k++;
    assert_true(k > 50);
}

static void a_sweep_that_goes_on_counts_what_it_found(void **state)
{
    uint64_t k = 0;

    (void)state;
    do
        sweep_half();
    while (sweep_with(++k, grid_cells(&grid) / 2));
    assert_true(k > 20);
}

static int make_grid(void **state)
{
    const char *trace[] = {FRAG_SOURCE_DIR "/tests/cli/small.csv"};
    const char *policy[] = {"direct", "best_fit:segment=3MiB"},
               *capacity[] = {"1GiB,inf"};
    const struct texts traces = {trace, 1}, policies = {policy, 2};
    const struct texts bounds[FRAG_BOUND_KINDS] = {{capacity, 1}};
    struct frag_error e = {""};

    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/chunks", folder);
    return grid_read(&(const struct grid_source){&traces, &policies, bounds,
                                                 NULL, NULL},
                     &grid, &e) == FRAG_OK
               ? 0
               : -1;
}

static int drop_grid(void **state)
{
    (void)state;
    grid_free(&grid);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_found_no_memory_is_done_again),
        cmocka_unit_test(a_sweep_that_goes_on_counts_what_it_found),
    };

    return cmocka_run_group_tests(tests, make_grid, drop_grid);
}
