/* record_calls.c - stands in front of the driver's memory calls: passes each on
 * and puts it in the log.
 *
 * What gives memory back claims its place before it is passed on, all else
 * after (traces/record_log.h says why). A call that the driver makes of its own
 * inside another is passed on and not recorded.
 */
#include <stdbool.h>
#include <time.h>

#include "real/record_driver.h"
#include "real/record_write.h"

static __thread unsigned depth; /* calls of this thread that are under way */

/* A call under way. */
struct watch {
    struct record_call call;
    struct record_call *place;
    bool is_outer; /* the program's own */
};

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct watch begin(enum record_kind kind)
{
    return (struct watch){
        .call = {.kind = kind, .device = RECORD_NO_DEVICE},
        .is_outer = depth++ == 0,
    };
}

static struct watch begin_giving_back(enum record_kind kind)
{
    struct watch w = begin(kind);

    if (w.is_outer) {
        w.place = log_claim();
        w.call.time = now();
    }
    return w;
}

static int current_device(void)
{
    const struct driver *d = driver_get();
    int device;

    if (!d->cuCtxGetDevice || d->cuCtxGetDevice(&device) != DRIVER_SUCCESS)
        return RECORD_NO_DEVICE;
    return device;
}

/* The call is over: what it gave is in w->call. */
static driver_result end(struct watch *w, driver_result result)
{
    depth--;
    if (!w->is_outer)
        return result;
    w->call.result = result;
    w->call.thread = log_thread();
    if (w->call.device == RECORD_NO_DEVICE)
        w->call.device = current_device();
    if (!w->call.time) {
        w->place = log_claim();
        w->call.time = now();
    }
    log_commit(w->place, &w->call);
    return result;
}

static uint64_t device_memory_free(void)
{
    const struct driver *d = driver_get();
    size_t left, total;

    if (!d->cuMemGetInfo_v2 ||
        d->cuMemGetInfo_v2(&left, &total) != DRIVER_SUCCESS)
        return 0;
    return left;
}

/* The same of a call that hands out an address. */
static driver_result end_handing_out(struct watch *w, driver_result result,
                                     const driver_address *at)
{
    if (result == DRIVER_SUCCESS)
        w->call.address = *at;
    else if (result == RECORD_OUT_OF_MEMORY)
        w->call.address = device_memory_free();
    return end(w, result);
}

/* Passes a call on to the driver, or gives up where it has none. */
#define PASS_ON(name, ...)                                \
    (driver_get()->name ? driver_get()->name(__VA_ARGS__) \
                        : (driver_result)DRIVER_NOT_FOUND)

/* ---- blocks ---- */

driver_result cuMemAlloc_v2(driver_address *at, size_t bytes)
{
    struct watch w;

    w = begin(RECORD_ALLOC);
    w.call.bytes = bytes;
    return end_handing_out(&w, PASS_ON(cuMemAlloc_v2, at, bytes), at);
}

/* The pitch is the driver's to choose; of a request that failed the width
 * stands for it. */
driver_result cuMemAllocPitch_v2(driver_address *at, size_t *pitch,
                                 size_t width, size_t rows, unsigned element)
{
    struct watch w;
    driver_result result;

    w = begin(RECORD_ALLOC_PITCH);
    result = PASS_ON(cuMemAllocPitch_v2, at, pitch, width, rows, element);
    w.call.bytes = (result == DRIVER_SUCCESS ? *pitch : width) * rows;
    return end_handing_out(&w, result, at);
}

driver_result cuMemAllocManaged(driver_address *at, size_t bytes,
                                unsigned flags)
{
    struct watch w;

    w = begin(RECORD_ALLOC_MANAGED);
    w.call.bytes = bytes;
    return end_handing_out(&w, PASS_ON(cuMemAllocManaged, at, bytes, flags),
                           at);
}

driver_result cuMemFree_v2(driver_address at)
{
    struct watch w;

    w = begin_giving_back(RECORD_FREE);
    w.call.address = at;
    return end(&w, PASS_ON(cuMemFree_v2, at));
}

/* ---- blocks in the order of a stream ---- */

enum { STREAM_PER_THREAD = 2 }; /* CU_STREAM_PER_THREAD */

/* A thread's default stream has one handle for all threads. */
static uint64_t stream_of(void *handle, bool per_thread)
{
    const uint64_t stream = (uint64_t)(uintptr_t)handle;

    if (stream == STREAM_PER_THREAD || (!stream && per_thread))
        return STREAM_PER_THREAD | (uint64_t)log_thread() << 32;
    return stream;
}

#define ALLOC_ASYNC(name, per_thread)                                     \
    driver_result name(driver_address *at, size_t bytes, void *stream)    \
    {                                                                     \
        struct watch w;                                                   \
                                                                          \
        w = begin(RECORD_ALLOC_ASYNC);                                    \
        w.call.bytes = bytes;                                             \
        w.call.stream = stream_of(stream, per_thread);                    \
        return end_handing_out(&w, PASS_ON(name, at, bytes, stream), at); \
    }

ALLOC_ASYNC(cuMemAllocAsync, false)
ALLOC_ASYNC(cuMemAllocAsync_ptsz, true)

#define ALLOC_FROM_POOL(name, per_thread)                                  \
    driver_result name(driver_address *at, size_t bytes, void *pool,       \
                       void *stream)                                       \
    {                                                                      \
        struct watch w;                                                    \
                                                                           \
        w = begin(RECORD_ALLOC_POOL);                                      \
        w.call.bytes = bytes;                                              \
        w.call.stream = stream_of(stream, per_thread);                     \
        w.call.other = (uint64_t)(uintptr_t)pool;                          \
        return end_handing_out(&w, PASS_ON(name, at, bytes, pool, stream), \
                               at);                                        \
    }

ALLOC_FROM_POOL(cuMemAllocFromPoolAsync, false)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz, true)

#define FREE_ASYNC(name, per_thread)                    \
    driver_result name(driver_address at, void *stream) \
    {                                                   \
        struct watch w;                                 \
                                                        \
        w = begin_giving_back(RECORD_FREE_ASYNC);       \
        w.call.address = at;                            \
        w.call.stream = stream_of(stream, per_thread);  \
        return end(&w, PASS_ON(name, at, stream));      \
    }

FREE_ASYNC(cuMemFreeAsync, false)
FREE_ASYNC(cuMemFreeAsync_ptsz, true)

/* ---- pools ---- */

static int device_of(const struct driver_place *place)
{
    return place && place->location == DRIVER_ON_DEVICE ? place->device
                                                        : RECORD_ON_HOST;
}

driver_result cuMemPoolCreate(void **pool, const struct driver_place *place)
{
    struct watch w;
    driver_result result;

    w = begin(RECORD_POOL);
    w.call.device = device_of(place);
    result = PASS_ON(cuMemPoolCreate, pool, place);
    if (result == DRIVER_SUCCESS)
        w.call.other = (uint64_t)(uintptr_t)*pool;
    return end(&w, result);
}

driver_result cuDeviceGetDefaultMemPool(void **pool, int device)
{
    struct watch w;
    driver_result result;

    w = begin(RECORD_POOL);
    w.call.device = device;
    w.call.bytes = 1;
    result = PASS_ON(cuDeviceGetDefaultMemPool, pool, device);
    if (result == DRIVER_SUCCESS)
        w.call.other = (uint64_t)(uintptr_t)*pool;
    return end(&w, result);
}

/* ---- virtual memory ---- */

driver_result cuMemCreate(driver_handle *handle, size_t bytes,
                          const struct driver_place *place,
                          unsigned long long flags)
{
    struct watch w;
    driver_result result;

    w = begin(RECORD_CREATE);
    w.call.bytes = bytes;
    w.call.device = device_of(place);
    result = PASS_ON(cuMemCreate, handle, bytes, place, flags);
    if (result == DRIVER_SUCCESS)
        w.call.other = *handle;
    else if (result == RECORD_OUT_OF_MEMORY)
        w.call.address = device_memory_free();
    return end(&w, result);
}

driver_result cuMemRelease(driver_handle handle)
{
    struct watch w;

    w = begin_giving_back(RECORD_RELEASE);
    w.call.other = handle;
    return end(&w, PASS_ON(cuMemRelease, handle));
}

driver_result cuMemRetainAllocationHandle(driver_handle *handle, void *at)
{
    struct watch w;
    driver_result result;

    w = begin(RECORD_RETAIN);
    w.call.address = (uint64_t)(uintptr_t)at;
    result = PASS_ON(cuMemRetainAllocationHandle, handle, at);
    if (result == DRIVER_SUCCESS)
        w.call.other = *handle;
    return end(&w, result);
}

driver_result cuMemMap(driver_address at, size_t bytes, size_t offset,
                       driver_handle handle, unsigned long long flags)
{
    struct watch w;

    w = begin(RECORD_MAP);
    w.call.address = at;
    w.call.bytes = bytes;
    w.call.other = handle;
    return end(&w, PASS_ON(cuMemMap, at, bytes, offset, handle, flags));
}

driver_result cuMemUnmap(driver_address at, size_t bytes)
{
    struct watch w;

    w = begin_giving_back(RECORD_UNMAP);
    w.call.address = at;
    w.call.bytes = bytes;
    return end(&w, PASS_ON(cuMemUnmap, at, bytes));
}

driver_result cuMemAddressReserve(driver_address *at, size_t bytes,
                                  size_t alignment, driver_address wish,
                                  unsigned long long flags)
{
    struct watch w;

    w = begin(RECORD_RESERVE);
    w.call.bytes = bytes;
    return end_handing_out(
        &w, PASS_ON(cuMemAddressReserve, at, bytes, alignment, wish, flags),
        at);
}

driver_result cuMemAddressFree(driver_address at, size_t bytes)
{
    struct watch w;

    w = begin_giving_back(RECORD_UNRESERVE);
    w.call.address = at;
    w.call.bytes = bytes;
    return end(&w, PASS_ON(cuMemAddressFree, at, bytes));
}

/* ---- all else ---- */

driver_result cuDevicePrimaryCtxReset_v2(int device)
{
    struct watch w;

    w = begin_giving_back(RECORD_RESET);
    w.call.device = device;
    return end(&w, PASS_ON(cuDevicePrimaryCtxReset_v2, device));
}

driver_result cuGetProcAddress(const char *name, void **function, int version,
                               uint64_t flags)
{
    const driver_result result =
        PASS_ON(cuGetProcAddress, name, function, version, flags);

    if (result == DRIVER_SUCCESS && function)
        *function = driver_front(*function);
    return result;
}

driver_result cuGetProcAddress_v2(const char *name, void **function,
                                  int version, uint64_t flags, int *status)
{
    const driver_result result =
        PASS_ON(cuGetProcAddress_v2, name, function, version, flags, status);

    if (result == DRIVER_SUCCESS && function)
        *function = driver_front(*function);
    return result;
}
