/* work.c - a program with work between its calls, which takes turns with others
 * (paper/lockstep.py) and says at its end how many requests it made.
 */
#include <time.h>

#include "tests/record/program.h"

static unsigned requests; /* and as many frees */

/* One step of a program: sixteen blocks of 1 to 64 MiB and 1 KiB, each written
 * and copied on the device, given back as the next comes. */
static void step(void)
{
    enum { COUNT = 16, MIB = 1 << 20, PASSES = 8 };
    u64 at, last = 0;
    size_t bytes = 0, least;

    for (int i = 0; i < COUNT; i++) {
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
    requests += COUNT;
}

/* A step a line, and what it took. */
void run_work(void)
{
    struct timespec t[2];
    char line[16];

    step();
    printf("{\"ready\": true}\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        clock_gettime(CLOCK_MONOTONIC, &t[0]);
        step();
        clock_gettime(CLOCK_MONOTONIC, &t[1]);
        printf("{\"seconds\": %.9f}\n",
               (double)(t[1].tv_sec - t[0].tv_sec) +
                   (double)(t[1].tv_nsec - t[0].tv_nsec) * 1e-9);
        fflush(stdout);
    }
    printf("{\"end\": {\"allocs\": %u, \"frees\": %u}}\n", requests, requests);
}
