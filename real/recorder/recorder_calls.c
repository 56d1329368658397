/* recorder_calls.c - intercepts the driver's calls that allocate and release
 * memory by address or handle: blocks, pools, virtual memory. */
#include "real/recorder/watch.h"

/* ---- blocks ---- */

driver_result cuMemAlloc_v2(driver_address *at, size_t bytes)
{
    struct watch w = watch_begin(RECORD_ALLOC);

    w.call.bytes = bytes;
    w.call.context = watch_context();
    return watch_end_block(&w, DRIVER_PASS_ON(cuMemAlloc_v2, at, bytes), at);
}

/* The driver chooses the pitch. For a request that failed, the width stands for
 * the pitch. */
driver_result cuMemAllocPitch_v2(driver_address *at, size_t *pitch,
                                 size_t width, size_t rows, unsigned element)
{
    struct watch w = watch_begin(RECORD_ALLOC_PITCH);
    driver_result result;

    w.call.context = watch_context();
    result =
        DRIVER_PASS_ON(cuMemAllocPitch_v2, at, pitch, width, rows, element);
    w.call.bytes = (result == DRIVER_SUCCESS ? *pitch : width) * rows;
    return watch_end_block(&w, result, at);
}

driver_result cuMemAllocManaged(driver_address *at, size_t bytes,
                                unsigned flags)
{
    struct watch w = watch_begin(RECORD_ALLOC_MANAGED);

    w.call.bytes = bytes;
    w.call.context = watch_context();
    return watch_end_block(
        &w, DRIVER_PASS_ON(cuMemAllocManaged, at, bytes, flags), at);
}

WATCHED(cuMemFree_v2, (driver_address at), (at),
        watch_begin_release(RECORD_FREE), w.call.address = at)

/* ---- blocks in stream order ---- */

/* The stream of a handle. With per_thread, 0 is the thread's own stream. */
static void *meant(void *stream, bool per_thread)
{
    return !stream && per_thread ? (void *)DRIVER_STREAM_PER_THREAD : stream;
}

/* The handle of the thread's own stream is the same in all threads, so the
 * thread's number is added. */
static uint64_t name_of(const void *stream)
{
    const uint64_t name = (uint64_t)(uintptr_t)stream;

    return name == DRIVER_STREAM_PER_THREAD
               ? name | (uint64_t)log_thread() << 32
               : name;
}

static bool is_device_wide(const void *stream)
{
    return (uintptr_t)stream <= DRIVER_LEGACY_STREAM;
}

/* The memory belongs to the stream's device, not to that of the thread's
 * context. A caller checks first that the stream does not capture: this query
 * would end the capture (driver 580.159.04). */
static int device_of_stream(void *stream)
{
    const struct driver *d = driver_get();
    int device;

    if ((uintptr_t)stream <= DRIVER_STREAM_PER_THREAD ||
        !d->cuStreamGetDevice ||
        d->cuStreamGetDevice(stream, &device) != DRIVER_SUCCESS)
        return RECORD_NO_DEVICE;
    return device;
}

/* While a stream captures, a call adds a node to a graph; the graph allocates
 * the memory when it is launched. */
static bool is_capturing(void *stream)
{
    const struct driver *d = driver_get();
    int status;

    return !is_device_wide(stream) && d->cuStreamIsCapturing &&
           d->cuStreamIsCapturing(stream, &status) == DRIVER_SUCCESS && status;
}

static driver_result end_in_order(struct watch *w, driver_result result,
                                  const driver_address *at, void *stream)
{
    if (!w->is_outer)
        return watch_end_block(w, result, at);
    w->call.stream = name_of(stream);
    if (!is_capturing(stream))
        w->call.device = device_of_stream(stream);
    else if (result == DRIVER_SUCCESS)
        return graph_end(w, result, at);
    return watch_end_block(w, result, at);
}

#define ALLOC_ASYNC(name, per_thread)                                        \
    driver_result name(driver_address *at, size_t bytes, void *stream)       \
    {                                                                        \
        struct watch w;                                                      \
                                                                             \
        w = watch_begin(RECORD_ALLOC_ASYNC);                                 \
        w.call.bytes = bytes;                                                \
        return end_in_order(&w, DRIVER_PASS_ON(name, at, bytes, stream), at, \
                            meant(stream, per_thread));                      \
    }

ALLOC_ASYNC(cuMemAllocAsync, false)
ALLOC_ASYNC(cuMemAllocAsync_ptsz, true)

#define ALLOC_FROM_POOL(name, per_thread)                                      \
    driver_result name(driver_address *at, size_t bytes, void *pool,           \
                       void *stream)                                           \
    {                                                                          \
        struct watch w;                                                        \
                                                                               \
        w = watch_begin(RECORD_ALLOC_POOL);                                    \
        w.call.bytes = bytes;                                                  \
        w.call.other = (uint64_t)(uintptr_t)pool;                              \
        return end_in_order(&w, DRIVER_PASS_ON(name, at, bytes, pool, stream), \
                            at, meant(stream, per_thread));                    \
    }

ALLOC_FROM_POOL(cuMemAllocFromPoolAsync, false)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz, true)

WATCHED(cuMemFreeAsync, (driver_address at, void *stream), (at, stream),
        watch_begin_release(RECORD_FREE_ASYNC), w.call.address = at,
        w.call.stream = name_of(stream))
WATCHED(cuMemFreeAsync_ptsz, (driver_address at, void *stream), (at, stream),
        watch_begin_release(RECORD_FREE_ASYNC), w.call.address = at,
        w.call.stream = name_of(meant(stream, true)))

/* ---- pools ---- */

static int device_of(const struct driver_location *location)
{
    return location && location->type == DRIVER_ON_DEVICE ? location->device
                                                          : RECORD_ELSEWHERE;
}

static int device_of_place(const struct recorder_place *place)
{
    return device_of(place ? &place->location : NULL);
}

static driver_result end_pool(struct watch *w, driver_result result,
                              void *const *pool)
{
    if (result == DRIVER_SUCCESS)
        w->call.other = (uint64_t)(uintptr_t)*pool;
    return watch_end(w, result);
}

driver_result cuMemPoolCreate(void **pool, const struct recorder_place *place)
{
    struct watch w = watch_begin(RECORD_POOL);

    w.call.device = device_of_place(place);
    return end_pool(&w, DRIVER_PASS_ON(cuMemPoolCreate, pool, place), pool);
}

WATCHED(cuMemPoolDestroy, (void *pool), (pool),
        watch_begin_release(RECORD_POOL_GONE),
        w.call.other = (uint64_t)(uintptr_t)pool)

driver_result cuDeviceGetDefaultMemPool(void **pool, int device)
{
    struct watch w = watch_begin(RECORD_POOL);

    w.call.device = device;
    w.call.bytes = 1;
    return end_pool(&w, DRIVER_PASS_ON(cuDeviceGetDefaultMemPool, pool, device),
                    pool);
}

driver_result cuMemGetDefaultMemPool(void **pool,
                                     const struct driver_location *location,
                                     int type)
{
    struct watch w = watch_begin(RECORD_POOL);

    w.call.device = device_of(location);
    w.call.bytes = type == DRIVER_PINNED;
    return end_pool(
        &w, DRIVER_PASS_ON(cuMemGetDefaultMemPool, pool, location, type), pool);
}

static bool is_default(void *pool, int device)
{
    const struct driver *d = driver_get();
    void *standard;

    return d->cuDeviceGetDefaultMemPool && device >= 0 &&
           d->cuDeviceGetDefaultMemPool(&standard, device) == DRIVER_SUCCESS &&
           pool == standard;
}

/* The pool in use is one that the program created, or the default pool. */
static driver_result end_pool_in_use(struct watch *w, driver_result result,
                                     void *const *pool)
{
    if (result == DRIVER_SUCCESS)
        w->call.bytes = is_default(*pool, w->call.device);
    return end_pool(w, result, pool);
}

driver_result cuDeviceGetMemPool(void **pool, int device)
{
    struct watch w = watch_begin(RECORD_POOL);

    w.call.device = device;
    return end_pool_in_use(&w, DRIVER_PASS_ON(cuDeviceGetMemPool, pool, device),
                           pool);
}

driver_result cuMemGetMemPool(void **pool,
                              const struct driver_location *location, int type)
{
    struct watch w = watch_begin(RECORD_POOL);

    w.call.device = device_of(location);
    return end_pool_in_use(
        &w, DRIVER_PASS_ON(cuMemGetMemPool, pool, location, type), pool);
}

WATCHED(cuDeviceSetMemPool, (int device, void *pool), (device, pool),
        watch_begin(RECORD_POOL_USED), w.call.device = device,
        w.call.other = (uint64_t)(uintptr_t)pool)

/* A pool that does not belong to a device is recorded as RECORD_ELSEWHERE:
 * cuMemAllocAsync allocates nothing from it. */
WATCHED(cuMemSetMemPool,
        (const struct driver_location *location, int type, void *pool),
        (location, type, pool), watch_begin(RECORD_POOL_USED),
        w.call.device = type == DRIVER_PINNED ? device_of(location)
                                              : RECORD_ELSEWHERE,
        w.call.other = (uint64_t)(uintptr_t)pool)

/* ---- virtual memory ---- */

driver_result cuMemCreate(driver_handle *handle, size_t bytes,
                          const struct recorder_place *place,
                          unsigned long long flags)
{
    struct watch w = watch_begin(RECORD_CREATE);
    driver_result result;

    w.call.bytes = bytes;
    w.call.device = device_of_place(place);
    result = DRIVER_PASS_ON(cuMemCreate, handle, bytes, place, flags);
    if (result == DRIVER_SUCCESS)
        w.call.other = *handle;
    return watch_end_alloc(&w, result);
}

WATCHED(cuMemRelease, (driver_handle handle), (handle),
        watch_begin_release(RECORD_RELEASE), w.call.other = handle)

driver_result cuMemRetainAllocationHandle(driver_handle *handle, void *at)
{
    struct watch w = watch_begin(RECORD_RETAIN);
    driver_result result;

    w.call.address = (uint64_t)(uintptr_t)at;
    result = DRIVER_PASS_ON(cuMemRetainAllocationHandle, handle, at);
    if (result == DRIVER_SUCCESS)
        w.call.other = *handle;
    return watch_end(&w, result);
}

WATCHED(cuMemMap,
        (driver_address at, size_t bytes, size_t offset, driver_handle handle,
         unsigned long long flags),
        (at, bytes, offset, handle, flags), watch_begin(RECORD_MAP),
        w.call.address = at, w.call.bytes = bytes, w.call.other = handle)

WATCHED(cuMemUnmap, (driver_address at, size_t bytes), (at, bytes),
        watch_begin_release(RECORD_UNMAP), w.call.address = at,
        w.call.bytes = bytes)

driver_result cuMemAddressReserve(driver_address *at, size_t bytes,
                                  size_t alignment, driver_address wish,
                                  unsigned long long flags)
{
    struct watch w = watch_begin(RECORD_RESERVE);
    driver_result result;

    w.call.bytes = bytes;
    result =
        DRIVER_PASS_ON(cuMemAddressReserve, at, bytes, alignment, wish, flags);
    if (result == DRIVER_SUCCESS)
        w.call.address = *at;
    return watch_end(&w, result);
}

WATCHED(cuMemAddressFree, (driver_address at, size_t bytes), (at, bytes),
        watch_begin_release(RECORD_UNRESERVE), w.call.address = at,
        w.call.bytes = bytes)
