/* record_driver.c - a libcuda.so.1 for check_record.sh: the functions that
 * recorded programs call, without a device and without memory behind the
 * addresses.
 *
 * It has two devices of 16 GiB. A released address is the next one that is
 * returned for its size, to any thread. So if the recorder's order differed
 * from the driver's order, the trace would show it. The stand-in refuses calls
 * with the driver's codes, and does not complain about memory that a program
 * leaves behind.
 */
#include "tests/gpu/record/record_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct block {
    u64 at, size;
    int device, context; /* 0: it outlives contexts */
    bool used;
} blocks[BLOCKS];
static int block_count;

u64 next_address = 0x7f0000000000, left[DEVICES] = {16ull << 30, 16ull << 30};
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct context contexts[CONTEXTS] = {[1] = {.device = 0}, [2] = {.device = 1}};
static int context_count = 1 + DEVICES;
__thread int current;

/* fork waits until no call is half done. */
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

int take(u64 *out, u64 size, int device, int context)
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

int take_here(u64 *out, u64 size)
{
    if (!current)
        return NO_CONTEXT;
    if (!contexts[current].is_there)
        return CONTEXT_DESTROYED;
    return take(out, size, contexts[current].device,
                contexts[current].is_green ? 1 + contexts[current].device
                                           : current);
}

/* From time to time a call pauses, before it allocates memory and after it
 * frees memory, so that another thread runs in between. */
static void linger(void)
{
    static __thread unsigned calls;

    if (++calls % 16 == 0)
        usleep(1);
}

int give(u64 at)
{
    for (int i = 0; at && i < block_count; i++)
        if (blocks[i].at == at && blocks[i].used) {
            blocks[i].used = false;
            left[blocks[i].device] += blocks[i].size;
            return 0;
        }
    return at ? INVALID_VALUE : 0;
}

int take_address(u64 *out, u64 size)
{
    *out = next_address;
    next_address += (size + PAGE - 1) / PAGE * PAGE;
    return size ? 0 : INVALID_VALUE;
}

int show_block(u64 *out)
{
    blocks[block_count++] = (struct block){.at = next_address, .used = true};
    return take_address(out, 1);
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

/* Calls the exported name. Under the recorder, one call of the program is then
 * two calls, and the inner one must not be recorded. */
int cuMemAllocManaged(u64 *out, size_t size, unsigned flags);
int cuMemAllocManaged(u64 *out, size_t size, unsigned flags)
{
    return flags == 1 ? cuMemAlloc_v2(out, size) : INVALID_VALUE;
}

/* ---- work on blocks: none ---- */

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

/* ---- contexts ---- */

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return (int)flags;
}

/* Frees all memory that was allocated in the context. */
static void end_context(int context)
{
    for (int i = 0; i < block_count; i++)
        if (blocks[i].used && blocks[i].context == context)
            give(blocks[i].at);
    end_host(context);
    contexts[context].is_there = false;
}

int retain_context(void **out, int device)
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

int release_context(int device)
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

/* Other retains of the context stay valid. */
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

/* ---- green contexts ---- */

int cuDeviceGetDevResource(int device, int *resource, int type);
int cuDeviceGetDevResource(int device, int *resource, int type)
{
    *resource = type;
    return device < DEVICES && type == 1 ? 0 : INVALID_VALUE;
}

int cuDevResourceGenerateDesc(void **description, const int *resource,
                              unsigned count);
int cuDevResourceGenerateDesc(void **description, const int *resource,
                              unsigned count)
{
    *description = (void *)0x6000;
    return *resource == 1 && count == 1 ? 0 : INVALID_VALUE;
}

static int make_green(void **out, const void *description, int device,
                      unsigned flags)
{
    void *primary;

    if (!description || flags != 1)
        return INVALID_VALUE;
    if (context_count == CONTEXTS)
        return OUT_OF_MEMORY;
    if (retain_context(&primary, device) != 0)
        return INVALID_VALUE;
    contexts[context_count] =
        (struct context){.device = device, .is_there = true, .is_green = true};
    *out = &contexts[context_count++];
    return 0;
}

int cuGreenCtxCreate(void **green, void *description, int device,
                     unsigned flags);
int cuGreenCtxCreate(void **green, void *description, int device,
                     unsigned flags)
{
    LOCKED(make_green(green, description, device, flags));
}

/* The handle of a green context is not that of its context. */
int cuCtxFromGreenCtx(void **context, const struct context *green);
int cuCtxFromGreenCtx(void **context, const struct context *green)
{
    *context = (void *)(uintptr_t)(green - contexts);
    return green->is_there ? 0 : NO_CONTEXT;
}

static int destroy_green(struct context *green)
{
    if (!green->is_green || !green->is_there)
        return INVALID_VALUE;
    green->is_there = false;
    return release_context(green->device);
}

int cuGreenCtxDestroy(struct context *green);
int cuGreenCtxDestroy(struct context *green)
{
    LOCKED(destroy_green(green));
}

/* ---- end of contexts ---- */

static int destroy_context(int context)
{
    if (context <= DEVICES || !contexts[context].is_there ||
        contexts[context].is_green)
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

/* ---- functions by name, as the runtime looks them up ---- */

/* A version that does not exist yet: of CUDA 99. */
int cuMemAlloc_v9(u64 *out, size_t size, int mood);
int cuMemAlloc_v9(u64 *out, size_t size, int mood)
{
    (void)mood;
    LOCKED(take_here(out, size));
}

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
