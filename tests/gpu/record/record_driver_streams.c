/* record_driver_streams.c - the stand-in's allocation in stream order, its
 * pools, and captures. The low 4 bits of a pool's or a stream's handle are its
 * device. */
#include "tests/gpu/record/record_driver.h"

static uintptr_t used_pool[DEVICES] = {0x4000, 0x4001};
static _Atomic(uintptr_t) capturing; /* stream, 0: none */
static struct graph *captured;       /* what it has captured */
static bool is_spoilt;               /* the capture */
static __thread int mode;            /* of the thread, as in cuda.h */

enum { RELAXED = 2 };

static int device_of(const void *handle)
{
    return (int)((uintptr_t)handle & 15);
}

static int take_in_order(u64 *out, u64 size, const void *pool,
                         const void *stream)
{
    int device = contexts[current].device;

    if ((uintptr_t)stream > 2)
        device = device_of(stream);
    if (stream && (uintptr_t)stream == capturing)
        return add_node(captured, out, size, device, false);
    if (!pool && !current)
        return NO_CONTEXT;
    if (!pool)
        pool = (void *)used_pool[device];
    return take(out, size, device_of(pool), 0);
}

static int give_in_order(u64 at, const void *stream)
{
    return stream && (uintptr_t)stream == capturing ? 0
           : free_node(at)                          ? 0
                                                    : give(at);
}

#define ASYNC(suffix)                                                      \
    int cuMemAllocAsync##suffix(u64 *out, size_t size, void *stream);      \
    int cuMemAllocAsync##suffix(u64 *out, size_t size, void *stream)       \
    {                                                                      \
        LOCKED(take_in_order(out, size, NULL, stream));                    \
    }                                                                      \
    int cuMemAllocFromPoolAsync##suffix(u64 *out, size_t size, void *pool, \
                                        void *stream);                     \
    int cuMemAllocFromPoolAsync##suffix(u64 *out, size_t size, void *pool, \
                                        void *stream)                      \
    {                                                                      \
        LOCKED(take_in_order(out, size, pool, stream));                    \
    }                                                                      \
    int cuMemFreeAsync##suffix(u64 at, void *stream);                      \
    int cuMemFreeAsync##suffix(u64 at, void *stream)                       \
    {                                                                      \
        LOCKED(give_in_order(at, stream));                                 \
    }

ASYNC()
ASYNC(_ptsz)

int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreate(void **stream, unsigned flags)
{
    static uintptr_t made = 0x1000;

    (void)flags;
    made += 16;
    *stream = (void *)(made + (uintptr_t)contexts[current].device);
    return 0;
}

int cuStreamGetDevice(void *stream, int *device);
int cuStreamGetDevice(void *stream, int *device)
{
    if (capturing == (uintptr_t)stream) { /* as a driver of CUDA 13.0 does */
        is_spoilt = true;
        return CAPTURE_UNSUPPORTED;
    }
    *device = device_of(stream);
    return 0;
}

/* ---- pools ---- */

int cuMemPoolCreate(void **pool, const struct props *props);
int cuMemPoolCreate(void **pool, const struct props *props)
{
    static uintptr_t made = 0x5000;

    made += 16;
    *pool = (void *)(made + (uintptr_t)props->location_id);
    return 0;
}

int cuMemPoolDestroy(void *pool);
int cuMemPoolDestroy(void *pool)
{
    const int device = device_of(pool);

    if (used_pool[device] == (uintptr_t)pool)
        used_pool[device] = (uintptr_t)(0x4000 + device);
    return 0;
}

int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuDeviceGetDefaultMemPool(void **pool, int device)
{
    *pool = (void *)(uintptr_t)(0x4000 + device);
    return 0;
}

int cuDeviceGetMemPool(void **pool, int device);
int cuDeviceGetMemPool(void **pool, int device)
{
    *pool = (void *)used_pool[device];
    return 0;
}

int cuDeviceSetMemPool(int device, void *pool);
int cuDeviceSetMemPool(int device, void *pool)
{
    used_pool[device] = (uintptr_t)pool;
    return 0;
}

/* ---- captures ---- */

int cuStreamBeginCapture_v2(void *stream, int capture_mode);
int cuStreamBeginCapture_v2(void *stream, int capture_mode)
{
    (void)capture_mode;
    capturing = (uintptr_t)stream;
    captured = new_graph();
    is_spoilt = false;
    return 0;
}

int cuStreamEndCapture(void *stream, void **graph);
int cuStreamEndCapture(void *stream, void **graph)
{
    *graph = captured;
    if (capturing != (uintptr_t)stream)
        return INVALID_VALUE;
    capturing = 0;
    return is_spoilt ? CAPTURE_INVALIDATED : 0;
}

int cuStreamIsCapturing(void *stream, int *status);
int cuStreamIsCapturing(void *stream, int *status)
{
    *status = capturing == (uintptr_t)stream;
    return 0;
}

int cuThreadExchangeStreamCaptureMode(int *other);
int cuThreadExchangeStreamCaptureMode(int *other)
{
    const int before = mode;

    mode = *other;
    *other = before;
    return 0;
}

/* Stricter than a driver, which lets some queries pass. */
void spoil_capture(void)
{
    is_spoilt = is_spoilt || (capturing && mode != RELAXED);
}
