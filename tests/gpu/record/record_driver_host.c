/* record_driver_host.c - the stand-in's pinned memory of the host. As on an
 * H100 (driver 580.159.04), blocks and registered ranges end with the context
 * that made them, any context may free them, and a request of no bytes returns
 * no block. */
#include "tests/gpu/record/record_driver.h"

enum { RANGES = 1 << 8, PAGE_OF_HOST = 4096 };
enum { ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };

static struct range {
    u64 at, size; /* size 0: the row is free */
    int context;
    bool is_registered; /* memory of the program */
} ranges[RANGES];
static u64 host_left = 16ull << 30, next_of_host = 0x7e0000000000;

/* The range that holds the address, or NULL. */
static struct range *find_range(u64 at)
{
    for (struct range *r = ranges; r < ranges + RANGES; r++)
        if (at >= r->at && at - r->at < r->size)
            return r;
    return NULL;
}

static int add_range(u64 at, u64 size, bool is_registered)
{
    struct range *r = ranges;

    if (!current)
        return NO_CONTEXT;
    while (r < ranges + RANGES && r->size)
        r++;
    if (r == ranges + RANGES || size > host_left)
        return OUT_OF_MEMORY;
    *r = (struct range){at, size, current, is_registered};
    host_left -= size;
    return 0;
}

static int pin(void **out, u64 size)
{
    const u64 at = next_of_host;
    const int result = add_range(at, size, false);

    if (result == 0) {
        *out = size ? (void *)(uintptr_t)at : NULL;
        next_of_host += (size + PAGE_OF_HOST - 1) / PAGE_OF_HOST * PAGE_OF_HOST;
    }
    return result;
}

static int enter(u64 at, u64 size)
{
    return find_range(at) ? ALREADY_REGISTERED : add_range(at, size, true);
}

static int unpin(u64 at, bool is_registered)
{
    struct range *r = find_range(at);

    if (!r || r->at != at)
        return is_registered ? NOT_REGISTERED : at ? INVALID_VALUE : 0;
    if (r->is_registered != is_registered)
        return INVALID_VALUE;
    host_left += r->size;
    r->size = 0;
    return 0;
}

void end_host(int context)
{
    for (struct range *r = ranges; r < ranges + RANGES; r++)
        if (r->size && r->context == context)
            unpin(r->at, r->is_registered);
}

int cuMemHostAlloc(void **out, size_t size, unsigned flags);
int cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    LOCKED(pin(out, size));
}

int cuMemAllocHost_v2(void **out, size_t size);
int cuMemAllocHost_v2(void **out, size_t size)
{
    return cuMemHostAlloc(out, size, 0);
}

int cuMemAllocHost(void **out, unsigned size);
int cuMemAllocHost(void **out, unsigned size)
{
    return cuMemHostAlloc(out, size, 0);
}

int cuMemFreeHost(void *at);
int cuMemFreeHost(void *at)
{
    LOCKED(unpin((u64)(uintptr_t)at, false));
}

int cuMemHostRegister_v2(void *at, size_t size, unsigned flags);
int cuMemHostRegister_v2(void *at, size_t size, unsigned flags)
{
    (void)flags;
    LOCKED(enter((u64)(uintptr_t)at, size));
}

int cuMemHostRegister(void *at, size_t size, unsigned flags);
int cuMemHostRegister(void *at, size_t size, unsigned flags)
{
    return cuMemHostRegister_v2(at, size, flags);
}

int cuMemHostUnregister(void *at);
int cuMemHostUnregister(void *at)
{
    LOCKED(unpin((u64)(uintptr_t)at, true));
}
