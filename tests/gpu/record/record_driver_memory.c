/* record_driver_memory.c - the stand-in's other kinds of memory: arrays,
 * virtual memory, and imported memory, of which it keeps only addresses and
 * handles. */
#include "tests/gpu/record/record_driver.h"

/* ---- arrays: blocks of which the handle is the address ---- */

struct array_like {
    size_t width, height, depth;
    unsigned format, channels, flags;
};

/* An array needs more memory than its elements, and none if its memory is
 * mapped later. */
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

/* Page i never moves, so an index is a handle. */
static struct page {
    u64 size;
    int device, uses; /* handles and mappings */
    int handles;
} pages[BLOCKS];
static struct mapping {
    u64 at, size;
    int page;
} maps[BLOCKS];
static int page_count = 1, map_count;

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

/* ---- imported memory ---- */

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

/* ---- calls that the recorder cannot describe ---- */

int cuMemMapArrayAsync(void *map, unsigned count, void *stream);
int cuMemMapArrayAsync(void *map, unsigned count, void *stream)
{
    (void)stream;
    return map && count ? 0 : INVALID_VALUE;
}
