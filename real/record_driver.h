/* record_driver.h - the calls of the CUDA driver that the recorder stands in
 * front of, and how a program comes to call it instead.
 *
 * There are three ways to the driver, and the library is in each of them:
 *   - a program linked to libcuda.so.1 finds the symbols exported here first;
 *   - one that looks them up with dlsym finds dlsym exported here;
 *   - the runtime (shared or inside the program) asks dlsym for
 *     cuGetProcAddress_v2 alone and that for all else (seen in CUDA 13.0's, on
 *     driver 580), as does whoever asks the runtime for an entry point.
 * What is answered in the last two ways is recognized by its address: the
 * driver gives out the same one in all of them (seen on driver 580). So a call
 * that is new, or has changed its arguments under a new version, is passed on
 * as it is.
 *
 * The types are cuda.h's (13.0) as far as they are read, so that CUDA need not
 * be installed where fragsim is built.
 */
#ifndef FRAG_REAL_RECORD_DRIVER_H
#define FRAG_REAL_RECORD_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int driver_result;
typedef uint64_t driver_address;
typedef uint64_t driver_handle;

enum { DRIVER_SUCCESS = 0, DRIVER_NOT_FOUND = 500, DRIVER_ON_DEVICE = 1 };

/* The beginning of CUmemAllocationProp and CUmemPoolProps. */
struct driver_place {
    int type, handle_types;
    int location, device; /* CUmemLocation: DRIVER_ON_DEVICE and which */
};

/* What is stood in front of, by the names the driver exports. _ptsz: where a
 * stream of 0 means the thread's own. */
#define DRIVER_CALLS(X)                                                       \
    X(cuMemAlloc_v2, (driver_address *, size_t))                              \
    X(cuMemAllocPitch_v2,                                                     \
      (driver_address *, size_t *, size_t, size_t, unsigned))                 \
    X(cuMemAllocManaged, (driver_address *, size_t, unsigned))                \
    X(cuMemFree_v2, (driver_address))                                         \
    X(cuMemAllocAsync, (driver_address *, size_t, void *))                    \
    X(cuMemAllocAsync_ptsz, (driver_address *, size_t, void *))               \
    X(cuMemAllocFromPoolAsync, (driver_address *, size_t, void *, void *))    \
    X(cuMemAllocFromPoolAsync_ptsz,                                           \
      (driver_address *, size_t, void *, void *))                             \
    X(cuMemFreeAsync, (driver_address, void *))                               \
    X(cuMemFreeAsync_ptsz, (driver_address, void *))                          \
    X(cuMemPoolCreate, (void **, const struct driver_place *))                \
    X(cuDeviceGetDefaultMemPool, (void **, int))                              \
    X(cuMemCreate, (driver_handle *, size_t, const struct driver_place *,     \
                    unsigned long long))                                      \
    X(cuMemRelease, (driver_handle))                                          \
    X(cuMemRetainAllocationHandle, (driver_handle *, void *))                 \
    X(cuMemMap,                                                               \
      (driver_address, size_t, size_t, driver_handle, unsigned long long))    \
    X(cuMemUnmap, (driver_address, size_t))                                   \
    X(cuMemAddressReserve,                                                    \
      (driver_address *, size_t, size_t, driver_address, unsigned long long)) \
    X(cuMemAddressFree, (driver_address, size_t))                             \
    X(cuDevicePrimaryCtxReset_v2, (int))                                      \
    X(cuGetProcAddress, (const char *, void **, int, uint64_t))               \
    X(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *))

/* What the recorder itself asks. */
#define DRIVER_QUESTIONS(X)    \
    X(cuCtxGetDevice, (int *)) \
    X(cuMemGetInfo_v2, (size_t *, size_t *))

#define EXPORTED __attribute__((visibility("default")))

#define X(name, arguments) EXPORTED driver_result name arguments;
DRIVER_CALLS(X)
#undef X

/* The driver's own, NULL where it has none. */
struct driver {
#define X(name, arguments) driver_result(*name) arguments;
    DRIVER_CALLS(X)
    DRIVER_QUESTIONS(X)
#undef X
};

/* Loads the driver if the program has not, and looks everything up once. All
 * are NULL where there is no driver. */
const struct driver *driver_get(void);

/* What stands in front of a function that the driver gave out; the function
 * itself if nothing does. */
void *driver_front(void *function);

#endif
