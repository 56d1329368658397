/* bare_driver.h - the calls that bench_record times, and how to get the
 * addresses of their bare functions.
 */
#ifndef FRAG_TESTS_BENCH_BARE_DRIVER_H
#define FRAG_TESTS_BENCH_BARE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/* The functions, by the names that the driver exports. */
#define BARE_CALLS(X)                                                      \
    X(cuMemAlloc_v2, (uint64_t *, size_t))                                 \
    X(cuMemFree_v2, (uint64_t))                                            \
    X(cuMemAllocAsync, (uint64_t *, size_t, void *))                       \
    X(cuMemAllocFromPoolAsync, (uint64_t *, size_t, void *, void *))       \
    X(cuMemFreeAsync, (uint64_t, void *))                                  \
    X(cuMemCreate, (uint64_t *, size_t, const void *, unsigned long long)) \
    X(cuMemRelease, (uint64_t))                                            \
    X(cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long))  \
    X(cuMemUnmap, (uint64_t, size_t))                                      \
    X(cuMemAddressReserve,                                                 \
      (uint64_t *, size_t, size_t, uint64_t, unsigned long long))          \
    X(cuMemAddressFree, (uint64_t, size_t))                                \
    X(cuArrayCreate_v2, (void **, const void *))                           \
    X(cuArrayDestroy, (void *))

struct bare_calls {
#define X(name, arguments) int(*name) arguments;
    BARE_CALLS(X)
#undef X
};

/* Stores the addresses of the functions. The recorder does not intercept this
 * name. */
void bare_calls(struct bare_calls *out);

#endif
