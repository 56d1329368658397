/* recorder_host.c - intercepts the calls that pin and unpin memory of the host.
 * The runtime's cudaMallocHost and cudaHostAlloc call cuMemHostAlloc
 * (CUDA 13.0). Allocated memory and registered ranges end with the context that
 * made them, whatever their flags are (seen on an H100, driver 580.159.04). */
#include "real/recorder/watch.h"

static struct watch begin_pin(enum record_kind kind, size_t bytes)
{
    struct watch w = watch_begin(kind);

    w.call.bytes = bytes;
    w.call.context = watch_context();
    return w;
}

static driver_result end_pin(struct watch *w, driver_result result,
                             const void *at)
{
    if (result == DRIVER_SUCCESS)
        w->call.address = (uint64_t)(uintptr_t)at;
    return watch_end(w, result);
}

/* The driver may leave *at as it was where it returns no block. */
#define ALLOC(name, parameters, values)                             \
    driver_result name parameters                                   \
    {                                                               \
        struct watch w = begin_pin(RECORD_HOST_ALLOC, bytes);       \
        const driver_result result = DRIVER_PASS_ALL(name, values); \
                                                                    \
        return end_pin(&w, result, bytes && at ? *at : NULL);       \
    }

ALLOC(cuMemHostAlloc, (void **at, size_t bytes, unsigned flags),
      (at, bytes, flags))
ALLOC(cuMemAllocHost_v2, (void **at, size_t bytes), (at, bytes))
ALLOC(cuMemAllocHost, (void **at, unsigned bytes), (at, bytes))

#define FREE(name, kind)                                       \
    WATCHED(name, (void *at), (at), watch_begin_release(kind), \
            w.call.address = (uint64_t)(uintptr_t)at)

FREE(cuMemFreeHost, RECORD_HOST_FREE)
FREE(cuMemHostUnregister, RECORD_HOST_UNREGISTER)

/* A range of I/O memory belongs to another device and is no memory of the
 * host. */
#define REGISTER(name)                                                  \
    driver_result name(void *at, size_t bytes, unsigned flags)          \
    {                                                                   \
        struct watch w = begin_pin(RECORD_HOST_REGISTER, bytes);        \
                                                                        \
        if (flags & DRIVER_IO_MEMORY)                                   \
            w.call.device = RECORD_ELSEWHERE;                           \
        return end_pin(&w, DRIVER_PASS_ON(name, at, bytes, flags), at); \
    }

REGISTER(cuMemHostRegister_v2)
REGISTER(cuMemHostRegister)
