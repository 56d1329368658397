/* bare_driver.c - a libcuda.so.1 whose functions do nothing, for bench_record:
 * the time that remains is the cost of the recorder. All addresses that it
 * returns are equal. */
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/bare_driver.h"

int cuCtxGetCurrent(void **context);
int cuCtxGetDevice(int *device);
int cuStreamGetDevice(void *stream, int *device);
int cuStreamIsCapturing(void *stream, int *status);

#define X(name, arguments) int name arguments;
BARE_CALLS(X)
#undef X

int cuCtxGetCurrent(void **context)
{
    *context = (void *)0x1000;
    return 0;
}

int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

int cuStreamGetDevice(void *stream, int *device)
{
    (void)stream;
    *device = 0;
    return 0;
}

int cuStreamIsCapturing(void *stream, int *status)
{
    (void)stream;
    *status = 0;
    return 0;
}

/* A call that allocates returns a constant; the other calls ignore their
 * arguments. */
#define TAKES(name, type, ...)                  \
    int name(type *out, __VA_ARGS__)            \
    {                                           \
        *out = (type)(uintptr_t)0x7f0000000000; \
        return 0;                               \
    }

#define IGNORE __attribute__((unused))

TAKES(cuMemAlloc_v2, uint64_t, IGNORE size_t bytes)
TAKES(cuMemAllocAsync, uint64_t, IGNORE size_t bytes, IGNORE void *stream)
TAKES(cuMemAllocFromPoolAsync, uint64_t, IGNORE size_t bytes, IGNORE void *pool,
      IGNORE void *stream)
TAKES(cuMemCreate, uint64_t, IGNORE size_t bytes, IGNORE const void *like,
      IGNORE unsigned long long flags)
TAKES(cuMemAddressReserve, uint64_t, IGNORE size_t bytes,
      IGNORE size_t alignment, IGNORE uint64_t wish,
      IGNORE unsigned long long flags)
TAKES(cuArrayCreate_v2, void *, IGNORE const void *like)

#define GIVES(name, ...)  \
    int name(__VA_ARGS__) \
    {                     \
        return 0;         \
    }

GIVES(cuMemFree_v2, IGNORE uint64_t at)
GIVES(cuMemFreeAsync, IGNORE uint64_t at, IGNORE void *stream)
GIVES(cuMemRelease, IGNORE uint64_t handle)
GIVES(cuMemMap, IGNORE uint64_t at, IGNORE size_t bytes, IGNORE size_t offset,
      IGNORE uint64_t handle, IGNORE unsigned long long flags)
GIVES(cuMemUnmap, IGNORE uint64_t at, IGNORE size_t bytes)
GIVES(cuMemAddressFree, IGNORE uint64_t at, IGNORE size_t bytes)
GIVES(cuArrayDestroy, IGNORE void *array)

void bare_calls(struct bare_calls *out)
{
#define X(name, arguments) out->name = name;
    BARE_CALLS(X)
#undef X
}
