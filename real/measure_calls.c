/* measure_calls - what the memory calls of a CUDA driver cost, as a function of
 * size.
 *
 * usage: measure_calls [DEVICE] > calls.csv
 *
 * Prints a comment with device, driver and date, then a row a call:
 * call,bytes,round,ns. Round 0 is cold: the first time this process makes the
 * call with this size. The driver is loaded at run time, so the program builds
 * wherever cuda.h is and says so where there is no device (exit 5).
 *
 * Host time of the call, on an idle device; of copy and synchronize until the
 * device is done. map is cuMemMap and cuMemSetAccess, as a policy uses them.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

enum { ROUNDS = 24, NO_DEVICE = 5 };

/* The entry points, by the names the driver exports. */
#define DRIVER(X)                                                           \
    X(cuInit, "cuInit", (unsigned))                                         \
    X(cuDeviceGet, "cuDeviceGet", (CUdevice *, int))                        \
    X(cuDeviceGetName_, "cuDeviceGetName", (char *, int, CUdevice))         \
    X(cuDriverGetVersion_, "cuDriverGetVersion", (int *))                   \
    X(retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))          \
    X(current, "cuCtxSetCurrent", (CUcontext))                              \
    X(alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                      \
    X(release_segment, "cuMemFree_v2", (CUdeviceptr))                       \
    X(reserve, "cuMemAddressReserve",                                       \
      (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))     \
    X(unreserve, "cuMemAddressFree", (CUdeviceptr, size_t))                 \
    X(create, "cuMemCreate",                                                \
      (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, \
       unsigned long long))                                                 \
    X(release, "cuMemRelease", (CUmemGenericAllocationHandle))              \
    X(map, "cuMemMap",                                                      \
      (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,           \
       unsigned long long))                                                 \
    X(access, "cuMemSetAccess",                                             \
      (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))               \
    X(unmap, "cuMemUnmap", (CUdeviceptr, size_t))                           \
    X(copy, "cuMemcpyDtoDAsync_v2",                                         \
      (CUdeviceptr, CUdeviceptr, size_t, CUstream))                         \
    X(synchronize, "cuCtxSynchronize", (void))

struct driver {
#define X(field, name, arguments) CUresult(*field) arguments;
    DRIVER(X)
#undef X
};

static int fail(const char *what, CUresult code)
{
    fprintf(stderr, "measure_calls: %s (driver error %d)\n", what, (int)code);
    return NO_DEVICE;
}

static int load(struct driver *d)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (!library) {
        fprintf(stderr, "measure_calls: no CUDA driver: %s\n", dlerror());
        return NO_DEVICE;
    }
#define X(field, name, arguments)               \
    *(void **)&d->field = dlsym(library, name); \
    if (!d->field)                              \
        return fail("the driver lacks " name, CUDA_ERROR_NOT_FOUND);
    DRIVER(X)
#undef X
    return 0;
}

static int open_device(const struct driver *d, int ordinal)
{
    char name[256] = "", date[32];
    int version = 0;
    time_t now = time(NULL);
    CUdevice device;
    CUcontext context;
    CUresult code = d->cuInit(0);

    if (code == CUDA_SUCCESS)
        code = d->cuDeviceGet(&device, ordinal);
    if (code == CUDA_SUCCESS)
        code = d->retain(&context, device);
    if (code == CUDA_SUCCESS)
        code = d->current(context);
    if (code != CUDA_SUCCESS)
        return fail("no device", code);
    d->cuDeviceGetName_(name, sizeof(name), device);
    d->cuDriverGetVersion_(&version);
    strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&now));
    printf("# device %s, CUDA driver API %d.%d, %s\n", name, version / 1000,
           version % 1000 / 10, date);
    printf("call,bytes,round,ns\n");
    return 0;
}

static int64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Where a row is: its size and round, and the first error met. */
struct measure {
    const struct driver *d;
    size_t bytes;
    int round;
    CUresult error;
};

static void note(struct measure *m, const char *call, int64_t start,
                 CUresult code)
{
    int64_t ns = clock_ns() - start;

    if (code != CUDA_SUCCESS && m->error == CUDA_SUCCESS)
        m->error = code;
    printf("%s,%zu,%d,%" PRId64 "\n", call, m->bytes, m->round, ns);
}

#define TIMED(m, name, call)          \
    do {                              \
        int64_t start_ = clock_ns();  \
        CUresult code_ = (call);      \
        note(m, name, start_, code_); \
    } while (0)

static void measure_segment(struct measure *m)
{
    CUdeviceptr at = 0;

    TIMED(m, "segment_alloc", m->d->alloc(&at, m->bytes));
    if (m->error == CUDA_SUCCESS)
        TIMED(m, "segment_free", m->d->release_segment(at));
}

static CUresult map_and_open(const struct driver *d, CUdeviceptr at,
                             size_t bytes, CUmemGenericAllocationHandle memory)
{
    const CUmemAccessDesc use = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    CUresult code = d->map(at, bytes, 0, memory, 0);

    return code == CUDA_SUCCESS ? d->access(at, bytes, &use, 1) : code;
}

static void measure_virtual(struct measure *m)
{
    const CUmemAllocationProp kind = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    };
    CUmemGenericAllocationHandle memory = 0;
    CUdeviceptr at = 0;

    TIMED(m, "va_reserve", m->d->reserve(&at, m->bytes, 0, 0, 0));
    TIMED(m, "phys_create", m->d->create(&memory, m->bytes, &kind, 0));
    if (m->error != CUDA_SUCCESS)
        return;
    TIMED(m, "map", map_and_open(m->d, at, m->bytes, memory));
    TIMED(m, "unmap", m->d->unmap(at, m->bytes));
    TIMED(m, "phys_release", m->d->release(memory));
    TIMED(m, "va_free", m->d->unreserve(at, m->bytes));
}

static CUresult copy_and_wait(const struct driver *d, CUdeviceptr to,
                              CUdeviceptr from, size_t bytes)
{
    CUresult code = d->copy(to, from, bytes, NULL);

    return code == CUDA_SUCCESS ? d->synchronize() : code;
}

static void measure_copy(struct measure *m)
{
    CUdeviceptr from = 0, to = 0;

    if (m->d->alloc(&from, m->bytes) != CUDA_SUCCESS)
        return;
    if (m->d->alloc(&to, m->bytes) == CUDA_SUCCESS) {
        TIMED(m, "copy", copy_and_wait(m->d, to, from, m->bytes));
        m->d->release_segment(to);
    }
    m->d->release_segment(from);
    TIMED(m, "synchronize", m->d->synchronize());
}

int main(int argc, char **argv)
{
    static void (*const measures[])(struct measure *) = {
        measure_segment, measure_virtual, measure_copy};
    struct driver d;
    struct measure m = {.d = &d};
    int code = load(&d);

    if (!code)
        code = open_device(&d, argc > 1 ? atoi(argv[1]) : 0);
    if (code)
        return code;
    for (size_t k = 0; k < sizeof(measures) / sizeof(*measures); k++)
        for (m.bytes = (size_t)2 << 20; m.bytes <= (size_t)8 << 30;
             m.bytes *= 2)
            for (m.round = 0; m.round < ROUNDS; m.round++) {
                measures[k](&m);
                if (m.error != CUDA_SUCCESS)
                    return fail("a call failed", m.error);
            }
    return 0;
}
