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
    NOT_FOUND = 500
};
enum { BLOCKS = 1 << 14, DEVICES = 2, PAGE = 2 << 20 };

/* Block i, page i: never moved, so an index is a handle. */
static struct block {
    u64 at, size;
    int device;
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
static __thread int current; /* 1 + the device, 0 without a context */

#define LOCKED(call)                 \
    do {                             \
        int result_;                 \
                                     \
        pthread_mutex_lock(&lock);   \
        result_ = (call);            \
        pthread_mutex_unlock(&lock); \
        return result_;              \
    } while (0)

/* ---- blocks ---- */

static int take(u64 *out, u64 size, int device)
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
        blocks[i] = (struct block){next_address, size, device, false};
        next_address += (size + PAGE - 1) / PAGE * PAGE;
    }
    blocks[i].used = true;
    left[device] -= size;
    *out = blocks[i].at;
    return 0;
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
    LOCKED(take(out, size, current - 1));
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
    LOCKED(take(out, *pitch * rows, current - 1));
}

/* Calls the exported name, so that under the recorder one call of the program
 * is two: the inner must not be recorded. */
int cuMemAllocManaged(u64 *out, size_t size, unsigned flags);
int cuMemAllocManaged(u64 *out, size_t size, unsigned flags)
{
    return flags == 1 ? cuMemAlloc_v2(out, size) : INVALID_VALUE;
}

/* ---- blocks in the order of a stream; pools are devices ---- */

#define ASYNC(suffix)                                                      \
    int cuMemAllocAsync##suffix(u64 *out, size_t size, void *stream);      \
    int cuMemAllocAsync##suffix(u64 *out, size_t size, void *stream)       \
    {                                                                      \
        (void)stream;                                                      \
        LOCKED(take(out, size, current - 1));                              \
    }                                                                      \
    int cuMemAllocFromPoolAsync##suffix(u64 *out, size_t size, void *pool, \
                                        void *stream);                     \
    int cuMemAllocFromPoolAsync##suffix(u64 *out, size_t size, void *pool, \
                                        void *stream)                      \
    {                                                                      \
        (void)stream;                                                      \
        LOCKED(take(out, size, (int)((uintptr_t)pool & 15)));              \
    }                                                                      \
    int cuMemFreeAsync##suffix(u64 at, void *stream);                      \
    int cuMemFreeAsync##suffix(u64 at, void *stream)                       \
    {                                                                      \
        (void)stream;                                                      \
        LOCKED(give(at));                                                  \
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

int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuDeviceGetDefaultMemPool(void **pool, int device)
{
    *pool = (void *)(uintptr_t)(0x4000 + device);
    return 0;
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

/* ---- contexts: 1 + the device ---- */

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return (int)flags;
}

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = (void *)(uintptr_t)(1 + device);
    return device < DEVICES ? 0 : INVALID_VALUE;
}

static int reset(int device)
{
    for (int i = 0; i < block_count; i++)
        if (blocks[i].used && blocks[i].device == device)
            give(blocks[i].at);
    return 0;
}

int cuDevicePrimaryCtxReset_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device)
{
    LOCKED(reset(device));
}

int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context)
{
    current = (int)(uintptr_t)context;
    return 0;
}

int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
    *device = current - 1;
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
    *is_left = left[current - 1];
    *total = 16ull << 30;
    return 0;
}

int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreate(void **stream, unsigned flags)
{
    static uintptr_t made = 0x1000;

    (void)flags;
    *stream = (void *)(made += 16);
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

    (void)version;
    *function = NULL;
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
