/* test_sweep_rows.c - tests what a sweep does with finished cells: it passes
 * their rows on in the order of the results, and writes them to chunks, for
 * which no thread waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/experiments/devices.h"
#include "sim/experiments/sweep/sweep.h"

enum { TRACES = 3, CAPACITIES = 500, CELLS = 2 * CAPACITIES };

static char folder[] = "/tmp/frag-rows-XXXXXX", chunks_path[64],
            paths[TRACES][64];
static struct grid grid;

/* -- the disk ------------------------------------------------------------- */

static const struct frag_provenance by = {.version = "0",
                                          .commit = "",
                                          .command = "",
                                          .started = FRAG_NO_TIME,
                                          .settings = ""};
static _Atomic unsigned asked; /* by threads that go on */
static unsigned most_asked;    /* in a whole sweep; 0: not known yet */
static pthread_t main_thread;
static _Atomic bool was_written; /* a chunk */
static _Atomic bool went_on;
static bool disk_is_broken, disk_is_slow;

static void wait_us(long us)
{
    nanosleep(&(const struct timespec){.tv_nsec = 1000 * us}, NULL);
}

/* The cells are slow, and the last ones of other threads wait for a chunk, so
 * that they have not ended before the main thread looks for one. */
static bool asked_slowly(void *user)
{
    const bool is_late = most_asked && asked > most_asked / 4 * 3;

    (void)user;
    if ((disk_is_slow && !went_on) || (disk_is_broken && !was_written))
        wait_us(300);
    for (int i = 0;
         (disk_is_slow || disk_is_broken) && is_late && !was_written &&
         !pthread_equal(pthread_self(), main_thread) && i < 20000;
         i++)
        wait_us(1000);
    asked++;
    return false;
}

/* Takes the place of the C library's. Waits for a thread that goes on. */
int fsync(int fd)
{
    const unsigned before = asked;

    (void)fd;
    was_written = true;
    for (int i = 0; disk_is_slow && asked == before && i < 2000; i++)
        wait_us(1000);
    went_on = went_on || asked > before;
    if (!disk_is_broken)
        return 0;
    errno = EIO;
    return -1;
}

/* -- rows ----------------------------------------------------------------- */

struct rows {
    size_t count, most; /* an error is returned after `most` rows */
    char *names[TRACES * CELLS];
};

static enum frag_err add(void *user, const struct frag_run_identity *id,
                         const char *notes, const struct frag_run *run,
                         struct frag_error *e)
{
    struct rows *r = user;
    char text[200];

    (void)notes;
    if (r->count == r->most)
        return frag_no_memory(e, "a row");
    snprintf(text, sizeof(text), "%s %s %llu %llu", id->trace.name, id->policy,
             (unsigned long long)id->bound.bytes,
             (unsigned long long)run->summary.events);
    r->names[r->count++] = strdup(text);
    return FRAG_OK;
}

static void drop(struct rows *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->names[i]);
    r->count = 0;
}

/* -- sweeps --------------------------------------------------------------- */

struct attempt {
    struct cell_settings settings;
    struct sweep_spec spec;
    struct sweep *sweep;
    struct chunks chunks;
    struct rows all;
};

static enum frag_err run(struct attempt *a, size_t threads)
{
    struct frag_error e = {""};
    enum frag_err err;

    *a = (struct attempt){.all = {.most = SIZE_MAX}};
    a->settings = (struct cell_settings){.backend = &cell_arena_backend,
                                         .costs = frag_costs_h200};
    a->spec = (struct sweep_spec){
        .grid = &grid,
        .shard = {1, 1},
        .settings = &a->settings,
        .chunks = &a->chunks,
        .device = INPUT_ANY_DEVICE,
        .on = {.threads = threads, .stop = {.asked = asked_slowly}},
    };
    was_written = false;
    asked = 0;
    main_thread = pthread_self();
    assert_int_equal(
        chunks_open(chunks_path, CHUNKS_NEW, false, &by, &a->chunks, &e),
        FRAG_OK);
    assert_int_equal(sweep_open(&a->spec, &a->sweep, &e), FRAG_OK);
    err = sweep_run(a->sweep, &e);
    most_asked = asked > most_asked ? asked : most_asked;
    assert_true(err == FRAG_OK || *e.text);
    return err;
}

static void end(struct attempt *a)
{
    drop(&a->all);
    chunks_remove(&a->chunks);
    sweep_close(a->sweep);
    chunks_close(&a->chunks);
}

/* Whatever thread ran the cells, in whatever order. */
static void rows_are_in_one_order(void **state)
{
    static struct attempt a;
    struct rows first = {.most = SIZE_MAX};
    struct frag_error e = {""};

    (void)state;
    for (size_t threads = 1; threads <= 4; threads += 3) {
        struct rows *rows = threads == 1 ? &first : &a.all;

        assert_int_equal(run(&a, threads), FRAG_OK);
        assert_int_equal(sweep_write(a.sweep, add, rows, &e), FRAG_OK);
        assert_int_equal(rows->count, TRACES * CELLS);
        for (size_t i = 0; i < rows->count; i++)
            assert_string_equal(rows->names[i], first.names[i]);
        end(&a);
    }
    drop(&first);
}

static void an_error_ends_the_rows(void **state)
{
    static struct attempt a;
    struct frag_error e = {""};

    (void)state;
    assert_int_equal(run(&a, 1), FRAG_OK);
    a.all.most = CELLS / 2;
    assert_int_equal(sweep_write(a.sweep, add, &a.all, &e), FRAG_NOMEM);
    assert_int_equal(a.all.count, CELLS / 2);
    end(&a);
}

static void threads_go_on_while_a_chunk_is_written(void **state)
{
    static struct attempt a;

    (void)state;
    disk_is_slow = true;
    assert_int_equal(run(&a, 2), FRAG_OK);
    disk_is_slow = false;
    assert_true(went_on);
    assert_true(sweep_counts(a.sweep).kept >= CHUNK_CELLS);
    end(&a);
}

static void a_broken_disk_ends_the_sweep(void **state)
{
    static struct attempt a;

    (void)state;
    disk_is_broken = true;
    assert_int_equal(run(&a, 2), FRAG_IO);
    disk_is_broken = false;
    end(&a);
}

/* "1MiB,2MiB,..." */
static void write_sizes(char *text, size_t room)
{
    size_t used = 0;

    for (int i = 1; i <= CAPACITIES; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%dMiB",
                                 used ? "," : "", i);
}

static int make_grid(void **state)
{
    char sizes[CAPACITIES * 8];
    const char *trace[TRACES], *policy[] = {"direct", "best_fit"},
                               *capacity[] = {sizes};
    const struct texts traces = {trace, TRACES}, policies = {policy, 2};
    const struct texts bounds[FRAG_BOUND_KINDS] = {{capacity, 1}};
    struct frag_error e = {""};

    (void)state;
    write_sizes(sizes, sizeof(sizes));
    if (!mkdtemp(folder))
        return -1;
    snprintf(chunks_path, sizeof(chunks_path), "%s/chunks", folder);
    for (size_t i = 0; i < TRACES; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%c.csv", folder,
                 (char)('c' - i));
        trace[i] = paths[i];
        if (symlink(FRAG_SOURCE_DIR "/tests/cli/small.csv", paths[i]) < 0)
            return -1;
    }
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
    for (size_t i = 0; i < TRACES; i++)
        unlink(paths[i]);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_in_one_order),
        cmocka_unit_test(an_error_ends_the_rows),
        cmocka_unit_test(threads_go_on_while_a_chunk_is_written),
        cmocka_unit_test(a_broken_disk_ends_the_sweep),
    };

    return cmocka_run_group_tests(tests, make_grid, drop_grid);
}
