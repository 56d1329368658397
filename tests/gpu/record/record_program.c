/* record_program.c - a CUDA program for check_record.sh. usage: program WAY
 * SCENARIO
 *
 * It calls the driver and prints on stdout the requests that its trace must
 * hold, in order, each block with a number:
 *
 *   alloc NUMBER BYTES STREAM
 *   free NUMBER
 *
 * A request that failed for want of memory is an alloc and a free. Scenarios
 * with several threads, processes or devices print nothing: the script knows
 * their counts. `work` and `both` use the protocol of paper/tables/lockstep.py.
 *
 * WAY is how the program finds the driver: linked, dlsym, or entry (as the
 * runtime does: dlsym of cuGetProcAddress_v2, and that function for all
 * others). Built with NOT_LINKED, only the last two work.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/record/record_program.h"

struct api cu;

#ifdef NOT_LINKED
static void find_linked(void)
{
    exit(2);
}
#else
#define X(name, entry, arguments) int name arguments;
API(X)
#undef X

static void find_linked(void)
{
#define X(name, entry, arguments) cu.name = name;
    API(X)
#undef X
}
#endif

static void find_by_dlsym(void *driver)
{
#define X(name, entry, arguments) *(void **)&cu.name = dlsym(driver, #name);
    API(X)
#undef X
}

static void find_by_entry(void *driver)
{
    int (*get)(const char *, void **, int, u64, int *);
    int status;

    *(void **)&get = dlsym(driver, "cuGetProcAddress_v2");
#define X(name, entry, arguments) \
    MUST(get(entry, (void **)&cu.name, 12040, 0, &status));
    API(X)
#undef X
}

static void find(const char *way)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        exit(77);
    }
    if (!strcmp(way, "linked"))
        find_linked();
    else if (!strcmp(way, "dlsym"))
        find_by_dlsym(driver);
    else
        find_by_entry(driver);
}

void start(void)
{
    void *context;

    MUST(cu.cuInit(0));
    MUST(cu.cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cu.cuCtxSetCurrent(context));
}

/* ---- what is expected ---- */

static unsigned blocks;

unsigned expect_alloc(u64 bytes, void *stream)
{
    printf("alloc %u %llu %llu\n", ++blocks, bytes, (u64)(uintptr_t)stream);
    return blocks;
}

void expect_free(unsigned block)
{
    printf("free %u\n", block);
}

void expect_failure(u64 bytes)
{
    expect_free(expect_alloc(bytes, NULL));
}

/* ---- scenarios ---- */

static void run_blocks(void)
{
    u64 at[3], no;
    size_t pitch;

    for (int round = 0; round < 3; round++) {
        errno = ENOTTY; /* is the program's own, also under the recorder */
        MUST(cu.cuMemAlloc_v2(&at[0], 3000000));
        MUST(errno != ENOTTY);
        expect_alloc(3000000, NULL);
        MUST(cu.cuMemAllocPitch_v2(&at[1], &pitch, 1000, 10, 4));
        expect_alloc(pitch * 10, NULL);
        MUST(cu.cuMemAllocManaged(&at[2], 4096, 1));
        expect_alloc(4096, NULL);
        if (cu.cuMemAlloc_v2(&no, too_much) != 2 || cu.cuMemFree_v2(8) != 1)
            exit(9);
        expect_failure(too_much);
        MUST(cu.cuMemFree_v2(0));
        for (int i = 2; i >= 0; i--) {
            MUST(cu.cuMemFree_v2(at[i]));
            expect_free(blocks - (unsigned)(3 - i));
        }
    }
    MUST(cu.cuMemAlloc_v2(&at[0], 512)); /* is live at the end */
    expect_alloc(512, NULL);
}

static void run_streams(void)
{
    struct props props = {.type = 1, .location_type = 1};
    void *stream[2], *pool, *standard;
    u64 a, b, c;

    MUST(cu.cuStreamCreate(&stream[0], 1));
    MUST(cu.cuStreamCreate(&stream[1], 1));
    MUST(cu.cuMemPoolCreate(&pool, &props));
    MUST(cu.cuDeviceGetDefaultMemPool(&standard, 0));
    MUST(cu.cuMemAllocAsync(&a, 1000, stream[0]));
    expect_alloc(1000, stream[0]);
    MUST(cu.cuMemAllocFromPoolAsync(&b, 2000, pool, stream[1]));
    expect_alloc(2000, stream[1]);
    MUST(cu.cuMemAllocFromPoolAsync(&c, 3000, standard, NULL));
    expect_alloc(3000, NULL);
    MUST(cu.cuMemFreeAsync(b, stream[1]));
    expect_free(2);
    MUST(cu.cuMemFreeAsync(a, stream[0]));
    expect_free(1);
    MUST(cu.cuCtxSynchronize());
    MUST(cu.cuMemFree_v2(c));
    expect_free(3);
}

/* A block that separates earlier requests from later ones. */
void mark(size_t bytes)
{
    u64 at;

    MUST(cu.cuMemAlloc_v2(&at, bytes));
    expect_alloc(bytes, NULL);
}

static void run_virtual(void)
{
    enum { PAGE = 2 << 20 };
    struct props props = {.type = 1, .location_type = 1};
    u64 at, page[3], again, no;

    MUST(cu.cuMemAddressReserve(&at, 4 * PAGE, 0, 0, 0));
    for (int i = 0; i < 3; i++) {
        MUST(cu.cuMemCreate(&page[i], PAGE, &props, 0));
        expect_alloc(PAGE, NULL);
        MUST(cu.cuMemMap(at + (u64)i * PAGE, PAGE, 0, page[i], 0));
    }
    if (cu.cuMemCreate(&no, too_much, &props, 0) != 2)
        exit(9);
    expect_failure(too_much);
    /* Memory exists as long as a handle or a mapping does. */
    MUST(cu.cuMemRelease(page[0]));
    MUST(cu.cuMemMap(at + 3ull * PAGE, PAGE, 0, page[1], 0));
    mark(1);
    MUST(cu.cuMemRelease(page[1]));
    MUST(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
    mark(2);
    MUST(cu.cuMemUnmap(at, 3ull * PAGE)); /* three mappings in one call */
    mark(3);
    MUST(cu.cuMemRelease(again));
    expect_free(1);
    mark(4);
    MUST(cu.cuMemUnmap(at + 3ull * PAGE, PAGE));
    expect_free(2);
    mark(5);
    MUST(cu.cuMemRelease(page[2]));
    expect_free(3);
    MUST(cu.cuMemAddressFree(at, 4 * PAGE));
}

static void run_reset(void)
{
    u64 at;

    for (int i = 0; i < 3; i++) {
        MUST(cu.cuMemAlloc_v2(&at, 1 << 20));
        expect_alloc(1 << 20, NULL);
    }
    MUST(cu.cuMemFree_v2(at));
    expect_free(3);
    MUST(cu.cuDevicePrimaryCtxReset_v2(0));
    expect_free(1);
    expect_free(2);
    start();
    MUST(cu.cuMemAlloc_v2(&at, 1 << 20));
    expect_alloc(1 << 20, NULL);
}

/* The device of a block is the device that allocated it. */
static void run_devices(void)
{
    struct props props = {.type = 1, .location_type = 1, .location_id = 1};
    void *context[2], *pool, *stream;
    u64 a, b, c, d;

    for (int i = 0; i < 2; i++)
        MUST(cu.cuDevicePrimaryCtxRetain(&context[i], i));
    MUST(cu.cuMemPoolCreate(&pool, &props));
    MUST(cu.cuMemAlloc_v2(&a, 1000));
    MUST(cu.cuMemAllocFromPoolAsync(&b, 2000, pool, NULL));
    MUST(cu.cuCtxSetCurrent(context[1]));
    MUST(cu.cuMemAlloc_v2(&c, 3000));
    MUST(cu.cuMemFree_v2(a));
    MUST(cu.cuStreamCreate(&stream, 1));
    MUST(cu.cuCtxSetCurrent(context[0]));
    MUST(cu.cuMemAllocAsync(&d, 4000, stream));
    MUST(cu.cuMemFree_v2(b));
    MUST(cu.cuMemFree_v2(c));
    if (cu.cuMemCreate(&a, too_much, &props, 0) != 2)
        exit(9);
}

/* Streams of 0 of two threads, where 0 means the thread's own. */
static void *own_stream(void *alloc)
{
    int (*take)(u64 *, size_t, void *);
    u64 at;

    *(void **)&take = alloc;
    start();
    MUST(take(&at, 1 << 20, NULL));
    return NULL;
}

static void run_own_streams(void)
{
    int (*get)(const char *, void **, int, u64, int *);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *alloc;
    pthread_t thread;
    int status;

    *(void **)&get = dlsym(driver, "cuGetProcAddress_v2");
    MUST(get("cuMemAllocAsync", &alloc, 12000, 2, &status));
    own_stream(alloc);
    pthread_create(&thread, NULL, own_stream, alloc);
    pthread_join(thread, NULL);
}

enum { THREADS = 8, HELD = 4 };

static void take_block(u64 *at)
{
    MUST(cu.cuMemAlloc_v2(at, 2 << 20));
}

static void give_block(u64 at)
{
    MUST(cu.cuMemFree_v2(at));
}

static void take_in_order(u64 *at)
{
    MUST(cu.cuMemAllocAsync(at, 1 << 20, NULL));
}

static void give_in_order(u64 at)
{
    MUST(cu.cuMemFreeAsync(at, NULL));
}

static void take_array(u64 *at)
{
    const struct array_like like = {100, 100, 0x20, 1};
    void *array;

    MUST(cu.cuArrayCreate_v2(&array, &like));
    *at = (u64)(uintptr_t)array;
}

static void give_array(u64 at)
{
    MUST(cu.cuArrayDestroy((void *)(uintptr_t)at));
}

static const struct form {
    void (*take)(u64 *at);
    void (*give)(u64 at);
} forms[] = {
    {take_block, give_block},
    {take_in_order, give_in_order},
    {take_array, give_array},
};

struct churn {
    const struct form *form;
    void *context;
    int rounds;
};

/* Blocks of one size, so that one thread's free is another's alloc. */
static void *churn(void *arguments)
{
    const struct churn *c = arguments;
    u64 at[HELD] = {0};

    MUST(cu.cuCtxSetCurrent(c->context));
    for (int i = 0; i < c->rounds; i++) {
        u64 *slot = &at[i % HELD];

        if (*slot)
            c->form->give(*slot);
        c->form->take(slot);
    }
    for (int i = 0; i < HELD; i++)
        c->form->give(at[i]);
    return NULL;
}

/* Eight threads, each with a number of rounds of an alloc and a free, by
 * several kinds of calls in turn. */
static void churn_all(int rounds, int form_count)
{
    pthread_t threads[THREADS];
    struct churn churns[THREADS];
    void *context;

    MUST(cu.cuDevicePrimaryCtxRetain(&context, 0));
    for (int i = 0; i < THREADS; i++) {
        churns[i] = (struct churn){&forms[i % form_count], context, rounds};
        pthread_create(&threads[i], NULL, churn, &churns[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void run_threads(void)
{
    churn_all(4000, 1);
}

/* A million calls. */
static void run_stress(void)
{
    churn_all(62500, sizeof(forms) / sizeof(*forms));
}

/* One thread of four makes calls while others fork children that do. */
static void *spawn(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++) {
        const pid_t child = fork();
        u64 at;

        if (child == 0) {
            start();
            for (int k = 0; k < 100; k++) {
                MUST(cu.cuMemAlloc_v2(&at, 2 << 20));
                MUST(cu.cuMemFree_v2(at));
            }
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return NULL;
}

static void run_fork(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, spawn, NULL);
    for (int i = 0; i < 300; i++) {
        u64 at;

        MUST(cu.cuMemAlloc_v2(&at, 2 << 20));
        MUST(cu.cuMemFree_v2(at));
    }
    pthread_join(thread, NULL);
}

/* Ends as if the kernel killed the program: nothing is flushed, nothing is
 * released. */
static void run_kill(void)
{
    u64 at;

    for (int i = 0; i < 1000; i++) {
        MUST(cu.cuMemAlloc_v2(&at, 4096));
        expect_alloc(4096, NULL);
    }
    fflush(stdout);
    kill(getpid(), SIGKILL);
}

/* Allocates memory until there is none, and gives up as programs do. */
static void run_out(void)
{
    u64 at;

    while (cu.cuMemAlloc_v2(&at, 1u << 30) == 0)
        expect_alloc(1u << 30, NULL);
    expect_failure(1u << 30);
    fflush(stdout);
    abort();
}

/* Another program in the same process. */
static void run_exec(void)
{
    u64 at;

    MUST(cu.cuMemAlloc_v2(&at, 4096));
    execl("/proc/self/exe", "program", "dlsym", "blocks", (char *)NULL);
    exit(9);
}

/* Waits to be killed. */
static void run_wait(void)
{
    u64 at;

    MUST(cu.cuMemAlloc_v2(&at, 4096));
    expect_alloc(4096, NULL);
    fflush(stdout);
    for (;;)
        pause();
}

/* Prints ns per call, to show the cost of recording. */
static void run_speed(void)
{
    enum { CALLS = 20000 };
    struct timespec t[2];
    u64 at;

    clock_gettime(CLOCK_MONOTONIC, &t[0]);
    for (int i = 0; i < CALLS; i++) {
        MUST(cu.cuMemAlloc_v2(&at, 2 << 20));
        MUST(cu.cuMemFree_v2(at));
    }
    clock_gettime(CLOCK_MONOTONIC, &t[1]);
    printf("%.1f ns a call\n", ((double)(t[1].tv_sec - t[0].tv_sec) * 1e9 +
                                (double)(t[1].tv_nsec - t[0].tv_nsec)) /
                                   (2 * CALLS));
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"blocks", run_blocks},     {"streams", run_streams},
    {"virtual", run_virtual},   {"reset", run_reset},
    {"devices", run_devices},   {"own_streams", run_own_streams},
    {"threads", run_threads},   {"stress", run_stress},
    {"fork", run_fork},         {"exec", run_exec},
    {"kill", run_kill},         {"out", run_out},
    {"wait", run_wait},         {"speed", run_speed},
    {"contexts", run_contexts}, {"arrays", run_arrays},
    {"graphs", run_graphs},     {"others", run_others},
    {"mixed", run_mixed},       {"unread", run_unread},
    {"ways", run_ways},         {"work", run_work},
    {"both", run_both},         {"launches", run_launches},
    {"green", run_green},       {"host", run_host},
    {"old_host", run_old_host},
};

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    find(argv[1]);
    start();
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
        if (!strcmp(argv[2], scenarios[i].name)) {
            scenarios[i].run();
            return 0;
        }
    return 2;
}
