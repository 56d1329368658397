/* driver_streams.c - the stand-in's allocation in stream order and its pools.
 * Of graphs it has only capture and the adding of nodes. The low 4 bits of a
 * pool's or a stream's handle are its device. */
#include "tests/record/driver.h"

static uintptr_t used_pool[DEVICES] = {0x4000, 0x4001};
static _Atomic(uintptr_t) capturing; /* stream, 0: none */
static bool is_spoilt;               /* the capture */

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
        return take_address(out, size);
    if (!pool && !current)
        return NO_CONTEXT;
    if (!pool)
        pool = (void *)used_pool[device];
    return take(out, size, device_of(pool), 0);
}

static int give_in_order(u64 at, const void *stream)
{
    return stream && (uintptr_t)stream == capturing ? 0 : give(at);
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

/* ---- graphs ---- */

int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)mode;
    capturing = (uintptr_t)stream;
    is_spoilt = false;
    return 0;
}

int cuStreamEndCapture(void *stream, void **graph);
int cuStreamEndCapture(void *stream, void **graph)
{
    *graph = (void *)0x7000;
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

int cuGraphCreate(void **graph, unsigned flags);
int cuGraphCreate(void **graph, unsigned flags)
{
    *graph = (void *)0x7000;
    return (int)flags;
}

struct graph_memory {
    struct props props;
    u64 rest[9];
    const void *access;
    size_t access_count, size;
    u64 at;
};

int cuGraphAddMemAllocNode(void **node, void *graph, const void *after,
                           size_t count, struct graph_memory *memory);
int cuGraphAddMemAllocNode(void **node, void *graph, const void *after,
                           size_t count, struct graph_memory *memory)
{
    (void)graph;
    (void)after;
    *node = (void *)0x7100;
    if (count)
        return INVALID_VALUE;
    LOCKED(take_address(&memory->at, memory->size));
}

struct node {
    int type, reserved[3];
    struct graph_memory memory;
};

int cuGraphAddNode_v2(void **node, void *graph, const void *after,
                      const void *edges, size_t count, struct node *like);
int cuGraphAddNode_v2(void **node, void *graph, const void *after,
                      const void *edges, size_t count, struct node *like)
{
    (void)edges;
    *node = (void *)0x7200;
    if (like->type != 10)
        return 0;
    return cuGraphAddMemAllocNode(node, graph, after, count, &like->memory);
}
