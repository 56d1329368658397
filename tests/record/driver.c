/* driver.c - a libcuda.so.1 for check_record.sh: what programs under the
 * recorder call, without a device and without memory behind the addresses.
 *
 * Two devices of 16 GiB. An address that was given back is the next one that is
 * handed out for its size, to whichever thread asks: if the recorder's order
 * were not the driver's, the trace would show it. What a driver refuses it
 * refuses with the driver's code; what a program leaves behind is its own
 * affair.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64;

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_CONTEXT = 201,
    NOT_FOUND = 500,
    CONTEXT_DESTROYED = 709
};
enum { BLOCKS = 1 << 14, DEVICES = 2, CONTEXTS = 1 << 10, PAGE = 2 << 20 };

/* Block i, page i: never moved, so an index is a handle. */
static struct block {
    u64 at, size;
    int device, context; /* 0: it stays when contexts go */
    bool used;
} blocks[BLOCKS];
static struct page {
    u64 size;
    int device, uses; /* handles and mappings */
    int handles;
} pages[BLOCKS];
static struct mapping {
    u64 at, size;
    int page;
} maps[BLOCKS];

static int block_count, page_count = 1, map_count;
static u64 next_address = 0x7f0000000000,
           left[DEVICES] = {16ull << 30, 16ull << 30};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A context's handle is its row; the first are the devices' primary ones. */
static struct context {
    int device, retained;
    bool is_there;
} contexts[CONTEXTS] = {[1] = {.device = 0}, [2] = {.device = 1}};
static int context_count = 1 + DEVICES;
static __thread int current; /* 0: none */

#define LOCKED(call)                 \
    do {                             \
        int result_;                 \
                                     \
        pthread_mutex_lock(&lock);   \
        result_ = (call);            \
        pthread_mutex_unlock(&lock); \
        return result_;              \
    } while (0)

/* A fork finds no call half done. */
static void hold(void)
{
    pthread_mutex_lock(&lock);
}

static void let_go(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void prepare(void)
{
    pthread_atfork(hold, let_go, let_go);
}

/* ---- blocks ---- */

static int take(u64 *out, u64 size, int device, int context)
{
    int i = block_count - 1;

    if (device < 0)
        return NO_CONTEXT;
    if (!size)
        return INVALID_VALUE;
    if (size > left[device])
        return OUT_OF_MEMORY;
    while (i >= 0 && (blocks[i].used || blocks[i].size != size ||
                      blocks[i].device != device))
        i--;
    if (i < 0) {
        if (block_count == BLOCKS)
            return OUT_OF_MEMORY;
        i = block_count++;
        blocks[i] =
            (struct block){.at = next_address, .size = size, .device = device};
        next_address += (size + PAGE - 1) / PAGE * PAGE;
    }
    blocks[i].used = true;
    blocks[i].context = context;
    left[device] -= size;
    *out = blocks[i].at;
    return 0;
}

/* Of the thread's context. */
static int take_here(u64 *out, u64 size)
{
    if (!current)
        return NO_CONTEXT;
    if (!contexts[current].is_there)
        return CONTEXT_DESTROYED;
    return take(out, size, contexts[current].device, current);
}

/* Every now and then a call takes its time, before memory is handed out and
 * after it was given back: another thread is sure to come in between. */
static void linger(void)
{
    static __thread unsigned calls;

    if (++calls % 16 == 0)
        usleep(1);
}

static int give(u64 at)
{
    for (int i = 0; at && i < block_count; i++)
        if (blocks[i].at == at && blocks[i].used) {
            blocks[i].used = false;
            left[blocks[i].device] += blocks[i].size;
            return 0;
        }
    return at ? INVALID_VALUE : 0;
}

int cuMemAlloc_v2(u64 *out, size_t size);
int cuMemAlloc_v2(u64 *out, size_t size)
{
    linger();
    LOCKED(take_here(out, size));
}

int cuMemFree_v2(u64 at);
int cuMemFree_v2(u64 at)
{
    int result;

    pthread_mutex_lock(&lock);
    result = give(at);
    pthread_mutex_unlock(&lock);
    linger();
    return result;
}

int cuMemAllocPitch_v2(u64 *out, size_t *pitch, size_t width, size_t rows,
                       unsigned element);
int cuMemAllocPitch_v2(u64 *out, size_t *pitch, size_t width, size_t rows,
                       unsigned element)
{
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    LOCKED(take_here(out, *pitch * rows));
}

/* Calls the exported name, so that under the recorder one call of the program
 * is two: the inner must not be recorded. */
int cuMemAllocManaged(u64 *out, size_t size, unsigned flags);
int cuMemAllocManaged(u64 *out, size_t size, unsigned flags)
{
    return flags == 1 ? cuMemAlloc_v2(out, size) : INVALID_VALUE;
}

/* ---- what is done with blocks: nothing ---- */

int cuMemsetD32Async(u64 at, unsigned value, size_t count, void *stream);
int cuMemsetD32Async(u64 at, unsigned value, size_t count, void *stream)
{
    (void)value;
    (void)stream;
    return at && count ? 0 : INVALID_VALUE;
}

int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t size, void *stream);
int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t size, void *stream)
{
    (void)stream;
    return to && from && size ? 0 : INVALID_VALUE;
}

/* ---- blocks in the order of a stream ----
 *
 * A pool's and a stream's handle end in their device. */

static uintptr_t used_pool[DEVICES] = {0x4000, 0x4001};
static _Atomic(uintptr_t) capturing; /* stream, 0: none */

static int device_of(const void *handle)
{
    return (int)((uintptr_t)handle & 15);
}

/* A graph's memory is no more than an address. */
static int take_address(u64 *out, u64 size)
{
    *out = next_address;
    next_address += (size + PAGE - 1) / PAGE * PAGE;
    return size ? 0 : INVALID_VALUE;
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

struct props {
    int type, handle_types, location_type, location_id;
};

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

/* ---- graphs: no more than what captures and adds nodes ---- */

enum { CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901 };

static bool is_spoilt; /* the capture */

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

/* A block of no bytes, to be freed as any other. */
static int show_block(u64 *out)
{
    blocks[block_count++] = (struct block){.at = next_address, .used = true};
    return take_address(out, 1);
}

/* ---- arrays: blocks of which the handle is the address ---- */

struct array_like {
    size_t width, height, depth;
    unsigned format, channels, flags;
};

/* It takes more than its elements do, and nothing if they are mapped later. */
static int make_array(void **array, const struct array_like *like)
{
    const u64 rows =
        (like->height ? like->height : 1) * (like->depth ? like->depth : 1);
    u64 at = 0;
    int result = like->flags & 0xc0 ? show_block(&at)
                                    : take_here(&at, like->width * rows * 512);

    *array = (void *)(uintptr_t)at;
    return result;
}

int cuArrayCreate_v2(void **array, const void *like);
int cuArrayCreate_v2(void **array, const void *like)
{
    const struct {
        size_t width, height;
        unsigned format, channels;
    } *flat = like;
    const struct array_like whole = {.width = flat->width,
                                     .height = flat->height};

    LOCKED(make_array(array, &whole));
}

int cuArray3DCreate_v2(void **array, const struct array_like *like);
int cuArray3DCreate_v2(void **array, const struct array_like *like)
{
    LOCKED(make_array(array, like));
}

int cuMipmappedArrayCreate(void **array, const struct array_like *like,
                           unsigned levels);
int cuMipmappedArrayCreate(void **array, const struct array_like *like,
                           unsigned levels)
{
    if (!levels)
        return INVALID_VALUE;
    LOCKED(make_array(array, like));
}

int cuArrayDestroy(void *array);
int cuArrayDestroy(void *array)
{
    LOCKED(array ? give((u64)(uintptr_t)array) : INVALID_VALUE);
}

int cuMipmappedArrayDestroy(void *array);
int cuMipmappedArrayDestroy(void *array)
{
    return cuArrayDestroy(array);
}

/* ---- virtual memory ---- */

static int create(u64 *handle, u64 size, int device)
{
    if (!size || size % PAGE)
        return INVALID_VALUE;
    if (size > left[device] || page_count == BLOCKS)
        return OUT_OF_MEMORY;
    left[device] -= size;
    pages[page_count] = (struct page){size, device, 1, 1};
    *handle = (u64)page_count++;
    return 0;
}

static int drop(int page)
{
    if (--pages[page].uses == 0)
        left[pages[page].device] += pages[page].size;
    return 0;
}

static bool is_handle(u64 handle)
{
    return handle && handle < (u64)page_count && pages[handle].handles;
}

static int release(u64 handle)
{
    if (!is_handle(handle))
        return INVALID_VALUE;
    pages[handle].handles--;
    return drop((int)handle);
}

static struct mapping *find_map(u64 at)
{
    for (int i = 0; i < map_count; i++)
        if (maps[i].at == at && maps[i].size)
            return &maps[i];
    return NULL;
}

static int map(u64 at, u64 size, u64 handle)
{
    if (!is_handle(handle) || find_map(at) || map_count == BLOCKS)
        return INVALID_VALUE;
    maps[map_count++] = (struct mapping){at, size, (int)handle};
    pages[handle].uses++;
    return 0;
}

static int unmap(u64 at, u64 size)
{
    while (size) {
        struct mapping *m = find_map(at);

        if (!m || m->size > size)
            return INVALID_VALUE;
        at += m->size;
        size -= m->size;
        m->size = 0;
        drop(m->page);
    }
    return 0;
}

static int retain(u64 *handle, u64 at)
{
    const struct mapping *m = find_map(at);

    if (!m)
        return INVALID_VALUE;
    *handle = (u64)m->page;
    pages[m->page].handles++;
    pages[m->page].uses++;
    return 0;
}

int cuMemCreate(u64 *handle, size_t size, const struct props *props, u64 flags);
int cuMemCreate(u64 *handle, size_t size, const struct props *props, u64 flags)
{
    (void)flags;
    LOCKED(create(handle, size, props->location_id));
}

int cuMemRelease(u64 handle);
int cuMemRelease(u64 handle)
{
    LOCKED(release(handle));
}

int cuMemRetainAllocationHandle(u64 *handle, void *at);
int cuMemRetainAllocationHandle(u64 *handle, void *at)
{
    LOCKED(retain(handle, (u64)(uintptr_t)at));
}

int cuMemMap(u64 at, size_t size, size_t offset, u64 handle, u64 flags);
int cuMemMap(u64 at, size_t size, size_t offset, u64 handle, u64 flags)
{
    (void)flags;
    LOCKED(offset ? INVALID_VALUE : map(at, size, handle));
}

int cuMemUnmap(u64 at, size_t size);
int cuMemUnmap(u64 at, size_t size)
{
    LOCKED(unmap(at, size));
}

int cuMemAddressReserve(u64 *out, size_t size, size_t alignment, u64 wish,
                        u64 flags);
int cuMemAddressReserve(u64 *out, size_t size, size_t alignment, u64 wish,
                        u64 flags)
{
    (void)alignment;
    (void)wish;
    (void)flags;
    *out = next_address;
    next_address += size;
    return 0;
}

int cuMemAddressFree(u64 at, size_t size);
int cuMemAddressFree(u64 at, size_t size)
{
    return at && size ? 0 : INVALID_VALUE;
}

/* ---- memory of others: addresses and handles alone ---- */

int cuMemImportFromShareableHandle(u64 *handle, void *shared, int type);
int cuMemImportFromShareableHandle(u64 *handle, void *shared, int type)
{
    (void)shared;
    (void)type;
    pages[page_count] = (struct page){.uses = 1, .handles = 1};
    *handle = (u64)page_count++;
    return 0;
}

int cuMulticastCreate(u64 *handle, const void *like);
int cuMulticastCreate(u64 *handle, const void *like)
{
    return cuMemImportFromShareableHandle(handle, (void *)(uintptr_t)like, 0);
}

int cuMemPoolImportPointer(u64 *out, void *pool, void *shared);
int cuMemPoolImportPointer(u64 *out, void *pool, void *shared)
{
    (void)pool;
    (void)shared;
    LOCKED(show_block(out));
}

int cuExternalMemoryGetMappedBuffer(u64 *out, void *memory, const void *like);
int cuExternalMemoryGetMappedBuffer(u64 *out, void *memory, const void *like)
{
    (void)memory;
    (void)like;
    LOCKED(show_block(out));
}

struct ipc {
    char bytes[64];
};

int cuIpcOpenMemHandle_v2(u64 *out, struct ipc handle, unsigned flags);
int cuIpcOpenMemHandle_v2(u64 *out, struct ipc handle, unsigned flags)
{
    (void)flags;
    LOCKED(take_address(out, (u64)handle.bytes[0]));
}

int cuIpcCloseMemHandle(u64 at);
int cuIpcCloseMemHandle(u64 at)
{
    return at ? 0 : INVALID_VALUE;
}

/* ---- what the recorder has no words for ---- */

int cuGreenCtxDestroy(void *context);
int cuGreenCtxDestroy(void *context)
{
    return context ? 0 : INVALID_VALUE;
}

int cuMemMapArrayAsync(void *map, unsigned count, void *stream);
int cuMemMapArrayAsync(void *map, unsigned count, void *stream)
{
    (void)stream;
    return map && count ? 0 : INVALID_VALUE;
}

/* A version that nobody knows yet: of CUDA 99. */
int cuMemAlloc_v9(u64 *out, size_t size, int mood);
int cuMemAlloc_v9(u64 *out, size_t size, int mood)
{
    (void)mood;
    LOCKED(take_here(out, size));
}

/* ---- contexts ---- */

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return (int)flags;
}

/* All that was taken in it goes with it. */
static void end_context(int context)
{
    for (int i = 0; i < block_count; i++)
        if (blocks[i].used && blocks[i].context == context)
            give(blocks[i].at);
    contexts[context].is_there = false;
}

static int retain_context(void **out, int device)
{
    if (device < 0 || device >= DEVICES)
        return INVALID_VALUE;
    contexts[1 + device].retained++;
    contexts[1 + device].is_there = true;
    *out = (void *)(uintptr_t)(1 + device);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    LOCKED(retain_context(context, device));
}

static int release_context(int device)
{
    if (contexts[1 + device].retained == 0)
        return NO_CONTEXT;
    if (--contexts[1 + device].retained == 0)
        end_context(1 + device);
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device)
{
    LOCKED(release_context(device));
}

/* Who has retained it still has. */
static int reset(int device)
{
    end_context(1 + device);
    return 0;
}

int cuDevicePrimaryCtxReset_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device)
{
    LOCKED(reset(device));
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active)
{
    *flags = 0;
    *is_active = contexts[1 + device].is_there;
    return 0;
}

static int make_context(void **out, int device)
{
    if (context_count == CONTEXTS)
        return OUT_OF_MEMORY;
    contexts[context_count] =
        (struct context){.device = device, .is_there = true};
    current = context_count++;
    *out = (void *)(uintptr_t)current;
    return 0;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    (void)flags;
    LOCKED(make_context(context, device));
}

static int destroy_context(int context)
{
    if (context <= DEVICES || !contexts[context].is_there)
        return NO_CONTEXT;
    end_context(context);
    if (current == context)
        current = 0;
    return 0;
}

int cuCtxDestroy_v2(void *context);
int cuCtxDestroy_v2(void *context)
{
    LOCKED(destroy_context((int)(uintptr_t)context));
}

int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context)
{
    current = (int)(uintptr_t)context;
    return 0;
}

int cuCtxGetCurrent(void **context);
int cuCtxGetCurrent(void **context)
{
    *context = (void *)(uintptr_t)current;
    return 0;
}

int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
    *device = contexts[current].device;
    return current ? 0 : NO_CONTEXT;
}

int cuCtxSynchronize(void);
int cuCtxSynchronize(void)
{
    return 0;
}

int cuMemGetInfo_v2(size_t *is_left, size_t *total);
int cuMemGetInfo_v2(size_t *is_left, size_t *total)
{
    *is_left = left[contexts[current].device];
    *total = 16ull << 30;
    return 0;
}

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

/* ---- entry points by name, as the runtime asks for them ---- */

int cuGetProcAddress_v2(const char *name, void **function, int version,
                        u64 flags, int *status);
int cuGetProcAddress_v2(const char *name, void **function, int version,
                        u64 flags, int *status)
{
    static const char *const suffixes[] = {"_ptsz", "_v2", ""};
    void *self = dlopen("libcuda.so.1", RTLD_NOW);

    *function = NULL;
    if (version >= 99000 && !strcmp(name, "cuMemAlloc"))
        *function = dlsym(self, "cuMemAlloc_v9");
    for (int i = flags & 2 ? 0 : 1; !*function && i < 3; i++) {
        char whole[100];

        snprintf(whole, sizeof(whole), "%s%s", name, suffixes[i]);
        *function = dlsym(self, whole);
    }
    dlclose(self);
    *status = !*function;
    return *function ? 0 : NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **function, int version, u64 flags);
int cuGetProcAddress(const char *name, void **function, int version, u64 flags)
{
    int status;

    return cuGetProcAddress_v2(name, function, version, flags, &status);
}
