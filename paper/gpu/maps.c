/* maps.c - the time of each driver call for pages of several sizes, and whether
 * access for a range in one call, maps of a part, and unmaps of a part help.
 *
 *   gcc -O2 -o maps paper/gpu/maps.c -lcuda && ./maps
 *
 * Prints CSV: us for each page of 8 GiB; then the driver's words on parts. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MIB ((size_t)1 << 20)

static CUmemAllocationProp memory = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                 .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void must(CUresult result)
{
    const char *name = "";

    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "maps: %s\n", name);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Maps `count` pages and sets the access of `at_once` pages in a call. */
static void measure(size_t page, size_t count, size_t at_once)
{
    CUmemGenericAllocationHandle *h = calloc(count, sizeof(*h));
    CUdeviceptr va;
    double t[6];

    must(cuMemAddressReserve(&va, count * page, 0, 0, 0));
    t[0] = now();
    for (size_t i = 0; i < count; i++)
        must(cuMemCreate(&h[i], page, &memory, 0));
    t[1] = now();
    for (size_t i = 0; i < count; i++)
        must(cuMemMap(va + i * page, page, 0, h[i], 0));
    t[2] = now();
    for (size_t i = 0; i < count; i += at_once)
        must(cuMemSetAccess(va + i * page, at_once * page, &access, 1));
    t[3] = now();
    for (size_t i = 0; i < count; i += at_once)
        must(cuMemUnmap(va + i * page, at_once * page));
    t[4] = now();
    for (size_t i = 0; i < count; i++)
        must(cuMemRelease(h[i]));
    t[5] = now();
    must(cuMemAddressFree(va, count * page));
    free(h);
    printf("%zu,%zu,%zu", page / MIB, count, at_once);
    for (int i = 0; i < 5; i++)
        printf(",%.2f", (t[i + 1] - t[i]) / (double)count);
    printf("\n");
}

static void say(const char *what, CUresult result)
{
    const char *name = "";

    cuGetErrorName(result, &name);
    printf("# %s: %s\n", what, name);
}

static void try_parts(void)
{
    CUmemGenericAllocationHandle h;
    CUdeviceptr va;

    must(cuMemCreate(&h, 20 * MIB, &memory, 0));
    must(cuMemAddressReserve(&va, 64 * MIB, 0, 0, 0));
    say("a map with an offset", cuMemMap(va, 2 * MIB, 4 * MIB, h, 0));
    say("a map of a part", cuMemMap(va, 2 * MIB, 0, h, 0));
    must(cuMemMap(va, 20 * MIB, 0, h, 0));
    say("an unmap of a part", cuMemUnmap(va + 2 * MIB, 2 * MIB));
}

int main(void)
{
    static const size_t pages[] = {2, 2, 2, 4, 8, 32, 64, 256};
    static const size_t at_once[] = {1, 16, 1024, 1, 1, 1, 1, 1};
    CUdevice device;
    CUcontext context;

    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&context, device));
    must(cuCtxSetCurrent(context));
    measure(2 * MIB, 1024, 1); /* loads the driver's code */
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
        measure(pages[i] * MIB, 8192 / pages[i], at_once[i]);
    try_parts();
    return 0;
}
