/* bench_record.c - measures the time that the recorder adds to a call. Each
 * kind of call is made in two ways, in turns in one process: through the symbol
 * that the recorder intercepts, and directly to a driver that does nothing.
 * Times are processor times, so other programs on the machine disturb them
 * less. The table shows medians of the rounds; `ratio` is the median of the
 * ratios within a round.
 *
 *   fragsim record -q -f -o bench.h5 -- bench_record
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/bench/bare_driver.h"

enum { ROUNDS = 7, PAIRS = 40000, THREADS = 8 };

static void block(const struct bare_calls *cu)
{
    uint64_t at;

    cu->cuMemAlloc_v2(&at, 2 << 20);
    cu->cuMemFree_v2(at);
}

static void in_order(const struct bare_calls *cu)
{
    uint64_t at;

    cu->cuMemAllocAsync(&at, 2 << 20, (void *)0x2000);
    cu->cuMemFreeAsync(at, (void *)0x2000);
}

static void from_pool(const struct bare_calls *cu)
{
    uint64_t at;

    cu->cuMemAllocFromPoolAsync(&at, 2 << 20, (void *)0x3000, (void *)0x2000);
    cu->cuMemFreeAsync(at, (void *)0x2000);
}

static void physical(const struct bare_calls *cu)
{
    static const int like[] = {1, 0, 1, 0};
    uint64_t handle;

    cu->cuMemCreate(&handle, 2 << 20, like, 0);
    cu->cuMemRelease(handle);
}

static void mapping(const struct bare_calls *cu)
{
    cu->cuMemMap(0x5000, 2 << 20, 0, 1, 0);
    cu->cuMemUnmap(0x5000, 2 << 20);
}

static void addresses(const struct bare_calls *cu)
{
    uint64_t at;

    cu->cuMemAddressReserve(&at, 2 << 20, 0, 0, 0);
    cu->cuMemAddressFree(at, 2 << 20);
}

static void array(const struct bare_calls *cu)
{
    static const struct {
        size_t width, height;
        unsigned format, channels;
    } like = {64, 64, 0x20, 1};
    void *handle;

    cu->cuArrayCreate_v2(&handle, &like);
    cu->cuArrayDestroy(handle);
}

static const struct row {
    const char *name;
    void (*pair)(const struct bare_calls *cu);
    int threads;
} rows[] = {
    {"cuMemAlloc, cuMemFree", block, 1},
    {"the same, 8 threads", block, THREADS},
    {"cuMemAllocAsync, cuMemFreeAsync", in_order, 1},
    {"cuMemAllocFromPoolAsync, cuMemFreeAsync", from_pool, 1},
    {"cuMemCreate, cuMemRelease", physical, 1},
    {"cuMemMap, cuMemUnmap", mapping, 1},
    {"cuMemAddressReserve, cuMemAddressFree", addresses, 1},
    {"cuArrayCreate, cuArrayDestroy", array, 1},
};

struct work {
    const struct row *row;
    const struct bare_calls *cu;
};

static void *do_pairs(void *arguments)
{
    const struct work *w = arguments;

    for (int i = 0; i < PAIRS / w->row->threads; i++)
        w->row->pair(w->cu);
    return NULL;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Nanoseconds of processor time per call, over all threads. */
static double time_calls(const struct row *row, const struct bare_calls *cu)
{
    struct work w = {row, cu};
    pthread_t threads[THREADS];
    const double start = seconds();

    for (int i = 1; i < row->threads; i++)
        if (pthread_create(&threads[i], NULL, do_pairs, &w) != 0)
            exit(1);
    do_pairs(&w);
    for (int i = 1; i < row->threads; i++)
        pthread_join(threads[i], NULL);
    return (seconds() - start) * 1e9 / (2.0 * PAIRS);
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof(*values), by_value);
    return values[ROUNDS / 2];
}

static void print_row(const struct row *row, const struct bare_calls *bare,
                      const struct bare_calls *recorded)
{
    double without[ROUNDS], with[ROUNDS], ratio[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        without[i] = time_calls(row, bare);
        with[i] = time_calls(row, recorded);
        ratio[i] = with[i] / without[i];
    }
    printf("%-40s %8.1f %8.1f %6.1f\n", row->name, median(without),
           median(with), median(ratio));
}

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void (*straight)(struct bare_calls *);
    struct bare_calls bare, recorded;

    if (!driver || !(*(void **)&straight = dlsym(driver, "bare_calls"))) {
        fprintf(stderr, "expected the driver that does nothing\n");
        return 1;
    }
    straight(&bare);
#define X(name, arguments) *(void **)&recorded.name = dlsym(driver, #name);
    BARE_CALLS(X)
#undef X
    printf("%-40s %8s %8s %6s\n", "ns a call", "without", "with", "ratio");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        print_row(&rows[i], &bare, &recorded);
    return 0;
}
