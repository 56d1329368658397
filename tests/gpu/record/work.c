/* work.c - a program that works between its calls, runs in turns
 * (paper/tables/lockstep.py), and prints at its end how many requests it made:
 * `work` in turns with other programs, `both` in turns with itself. */
#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "tests/gpu/record/record_program.h"

enum { BLOCKS = 16 }; /* a step */

/* One step of a program: sixteen blocks of 1 to 64 MiB and 1 KiB. Each block is
 * written and copied on the device, and freed when the next one is
 * allocated. */
static void step(void)
{
    enum { MIB = 1 << 20, PASSES = 8 };
    u64 at, last = 0;
    size_t bytes = 0, least;

    for (int i = 0; i < BLOCKS; i++) {
        least = bytes;
        bytes = i % 4 ? (size_t)MIB << (i % 7) : 1024;
        least = least < bytes ? least : bytes;
        MUST(cu.cuMemAlloc_v2(&at, bytes));
        for (int k = 0; k < PASSES; k++) {
            MUST(cu.cuMemsetD32Async(at, (unsigned)k, bytes / 4, NULL));
            if (last)
                MUST(cu.cuMemcpyDtoDAsync_v2(last, at, least, NULL));
        }
        if (last)
            MUST(cu.cuMemFree_v2(last));
        last = at;
    }
    MUST(cu.cuMemFree_v2(last));
    MUST(cu.cuCtxSynchronize());
}

static double seconds_of_step(void)
{
    struct timespec t[2];

    clock_gettime(CLOCK_MONOTONIC, &t[0]);
    step();
    clock_gettime(CLOCK_MONOTONIC, &t[1]);
    return (double)(t[1].tv_sec - t[0].tv_sec) +
           (double)(t[1].tv_nsec - t[0].tv_nsec) * 1e-9;
}

static bool next_turn(void)
{
    char line[16];

    fflush(stdout);
    return fgets(line, sizeof(line), stdin);
}

static void say_ready(void)
{
    step();
    printf("{\"ready\": true}\n");
}

static void say_end(unsigned steps)
{
    printf("{\"end\": {\"allocs\": %u, \"frees\": %u}}\n", steps * BLOCKS,
           steps * BLOCKS);
}

/* Runs one step for each line of input, and prints its time. */
void run_work(void)
{
    unsigned steps = 1;

    say_ready();
    for (; next_turn(); steps++)
        printf("{\"seconds\": %.9f}\n", seconds_of_step());
    say_end(steps);
}

/* ---- both in one process ---- */

struct calls {
    int (*alloc)(u64 *, size_t), (*free)(u64);
};

static void use(const struct calls *c)
{
    cu.cuMemAlloc_v2 = c->alloc;
    cu.cuMemFree_v2 = c->free;
}

/* Looks up the recorder's functions. The recorder is opened with dlopen and not
 * loaded before the program, so the driver's own functions stay available. */
static struct calls of_recorder(void)
{
    const char *name = getenv("FRAG_RECORDER");
    void *recorder = name ? dlopen(name, RTLD_NOW) : NULL;
    struct calls c;

    if (!recorder) {
        fprintf(stderr, "FRAG_RECORDER: %s\n", name ? dlerror() : "not set");
        exit(9);
    }
    *(void **)&c.alloc = dlsym(recorder, "cuMemAlloc_v2");
    *(void **)&c.free = dlsym(recorder, "cuMemFree_v2");
    return c;
}

/* Runs three steps for each line of input: two with the driver's functions and
 * one with the recorder's, in each order equally often, and prints their times.
 * (Two processes differ by more than the cost of the recorder.) Prints at the
 * end how many requests went through the recorder. */
void run_both(void)
{
    enum { SIDES = 3, ORDERS = 6 };
    static const char *const names[SIDES] = {"default", "again", "recorded"};
    static const int orders[ORDERS][SIDES] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1},
                                              {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
    const struct calls own = {cu.cuMemAlloc_v2, cu.cuMemFree_v2};
    const struct calls recorded = of_recorder();
    unsigned round = 0;

    use(&recorded);
    say_ready();
    for (; next_turn(); round++)
        for (int k = 0; k < SIDES; k++) {
            const int side = orders[round % ORDERS][k];

            use(side == SIDES - 1 ? &recorded : &own);
            printf("%s\"%s\": {\"seconds\": %.9f}%s", k ? ", " : "{",
                   names[side], seconds_of_step(), k < SIDES - 1 ? "" : "}\n");
        }
    say_end(1 + round);
}
