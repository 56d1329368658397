/* recorder_driver.h - the functions of the CUDA driver that the recorder
 * intercepts, and how a program calls the recorder in place of the driver.
 * Private to real/recorder/.
 *
 * A program reaches the driver in one of three ways, and the recorder is in
 * each of them:
 *
 *   - a program linked to libcuda.so.1 finds the symbols exported here first;
 *   - a program that looks the functions up with dlsym finds the dlsym exported
 *     here;
 *   - the CUDA runtime (shared or linked into the program) looks up only
 *     cuGetProcAddress_v2 with dlsym, and all other functions with that one
 *     (seen in CUDA 13.0, on driver 580). The runtime answers a program's
 *     request for an entry point in the same way.
 *
 * In the last two ways, the recorder recognizes a function by its address: the
 * driver returns the same address in each way (seen on driver 580). So a
 * function that is new, or that has other arguments in a newer version, is
 * passed on unchanged. If the driver returns such a newer version of a function
 * in this list, the recorder notes it, since nobody could later explain the
 * missing memory.
 *
 * The types repeat the parts of cuda.h (13.0) that the recorder reads, so CUDA
 * need not be installed where fragsim is built.
 */
#ifndef FRAG_REAL_RECORDER_RECORDER_DRIVER_H
#define FRAG_REAL_RECORDER_RECORDER_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int driver_result;
typedef uint64_t driver_address;
typedef uint64_t driver_handle;

enum {
    DRIVER_SUCCESS = 0,
    DRIVER_NOT_FOUND = 500,
    DRIVER_DEVICES = 64,         /* bits of a mask of devices */
    DRIVER_ON_DEVICE = 1,        /* CU_MEM_LOCATION_TYPE_DEVICE */
    DRIVER_PINNED = 1,           /* CU_MEM_ALLOCATION_TYPE_PINNED */
    DRIVER_IO_MEMORY = 4,        /* CU_MEMHOSTREGISTER_IOMEMORY */
    DRIVER_GRAPHS_RESERVED = 2,  /* CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT */
    DRIVER_RELAXED = 2,          /* CU_STREAM_CAPTURE_MODE_RELAXED */
    DRIVER_LEGACY_STREAM = 1,    /* CU_STREAM_LEGACY */
    DRIVER_STREAM_PER_THREAD = 2 /* CU_STREAM_PER_THREAD */
};

struct driver_location { /* CUmemLocation */
    int type, device;    /* DRIVER_ON_DEVICE and the device's number */
};

/* The beginning of CUmemAllocationProp and CUmemPoolProps. */
struct recorder_place {
    int type, handle_types;
    struct driver_location location;
};

struct driver_array { /* CUDA_ARRAY_DESCRIPTOR */
    size_t width, height;
    unsigned format, channels;
};

struct driver_array_3d { /* CUDA_ARRAY3D_DESCRIPTOR */
    size_t width, height, depth;
    unsigned format, channels, flags;
};

/* CUDA_ARRAY3D_* */
enum {
    DRIVER_LAYERED = 0x01,
    DRIVER_CUBEMAP = 0x04,
    DRIVER_SPARSE = 0x40,
    DRIVER_DEFERRED = 0x80
};

struct driver_graph_memory { /* CUDA_MEM_ALLOC_NODE_PARAMS */
    struct recorder_place place;
    uint64_t place_rest[9];
    const void *access;
    size_t access_count, bytes;
    driver_address at;
};

enum { DRIVER_MEMORY_NODE = 10 }; /* CU_GRAPH_NODE_TYPE_MEM_ALLOC */

struct driver_node { /* CUgraphNodeParams */
    int type, reserved[3];
    struct driver_graph_memory memory; /* valid in a DRIVER_MEMORY_NODE */
};

/* The intercepted functions, by the names that the driver exports. In functions
 * named _ptsz, a stream of 0 is the calling thread's own stream. */
#define DRIVER_CALLS(X)                                                        \
    X(cuMemAlloc_v2, (driver_address *, size_t))                               \
    X(cuMemAllocPitch_v2,                                                      \
      (driver_address *, size_t *, size_t, size_t, unsigned))                  \
    X(cuMemAllocManaged, (driver_address *, size_t, unsigned))                 \
    X(cuMemFree_v2, (driver_address))                                          \
    X(cuMemAllocAsync, (driver_address *, size_t, void *))                     \
    X(cuMemAllocAsync_ptsz, (driver_address *, size_t, void *))                \
    X(cuMemAllocFromPoolAsync, (driver_address *, size_t, void *, void *))     \
    X(cuMemAllocFromPoolAsync_ptsz,                                            \
      (driver_address *, size_t, void *, void *))                              \
    X(cuMemFreeAsync, (driver_address, void *))                                \
    X(cuMemFreeAsync_ptsz, (driver_address, void *))                           \
    X(cuMemPoolCreate, (void **, const struct recorder_place *))               \
    X(cuMemPoolDestroy, (void *))                                              \
    X(cuDeviceGetDefaultMemPool, (void **, int))                               \
    X(cuDeviceGetMemPool, (void **, int))                                      \
    X(cuDeviceSetMemPool, (int, void *))                                       \
    X(cuMemGetDefaultMemPool, (void **, const struct driver_location *, int))  \
    X(cuMemGetMemPool, (void **, const struct driver_location *, int))         \
    X(cuMemSetMemPool, (const struct driver_location *, int, void *))          \
    X(cuMemPoolImportPointer, (driver_address *, void *, void *))              \
    X(cuMemCreate, (driver_handle *, size_t, const struct recorder_place *,    \
                    unsigned long long))                                       \
    X(cuMemImportFromShareableHandle, (driver_handle *, void *, int))          \
    X(cuMulticastCreate, (driver_handle *, const void *))                      \
    X(cuMemRelease, (driver_handle))                                           \
    X(cuMemRetainAllocationHandle, (driver_handle *, void *))                  \
    X(cuMemMap,                                                                \
      (driver_address, size_t, size_t, driver_handle, unsigned long long))     \
    X(cuMemUnmap, (driver_address, size_t))                                    \
    X(cuMemAddressReserve,                                                     \
      (driver_address *, size_t, size_t, driver_address, unsigned long long))  \
    X(cuMemAddressFree, (driver_address, size_t))                              \
    X(cuMemHostAlloc, (void **, size_t, unsigned))                             \
    X(cuMemAllocHost_v2, (void **, size_t))                                    \
    X(cuMemAllocHost, (void **, unsigned))                                     \
    X(cuMemFreeHost, (void *))                                                 \
    X(cuMemHostRegister_v2, (void *, size_t, unsigned))                        \
    X(cuMemHostRegister, (void *, size_t, unsigned))                           \
    X(cuMemHostUnregister, (void *))                                           \
    X(cuArrayCreate_v2, (void **, const struct driver_array *))                \
    X(cuArray3DCreate_v2, (void **, const struct driver_array_3d *))           \
    X(cuMipmappedArrayCreate,                                                  \
      (void **, const struct driver_array_3d *, unsigned))                     \
    X(cuArrayDestroy, (void *))                                                \
    X(cuMipmappedArrayDestroy, (void *))                                       \
    X(cuGraphAddMemAllocNode,                                                  \
      (void **, void *, const void *, size_t, struct driver_graph_memory *))   \
    X(cuGraphAddNode,                                                          \
      (void **, void *, const void *, size_t, struct driver_node *))           \
    X(cuGraphAddNode_v2, (void **, void *, const void *, const void *, size_t, \
                          struct driver_node *))                               \
    X(cuExternalMemoryGetMappedBuffer,                                         \
      (driver_address *, void *, const void *))                                \
    X(cuGraphLaunch, (void *, void *))                                         \
    X(cuGraphLaunch_ptsz, (void *, void *))                                    \
    X(cuGraphUpload, (void *, void *))                                         \
    X(cuGraphUpload_ptsz, (void *, void *))                                    \
    X(cuDeviceGraphMemTrim, (int))                                             \
    X(cuCtxDestroy, (void *))                                                  \
    X(cuCtxDestroy_v2, (void *))                                               \
    X(cuDevicePrimaryCtxRelease, (int))                                        \
    X(cuDevicePrimaryCtxRelease_v2, (int))                                     \
    X(cuDevicePrimaryCtxReset, (int))                                          \
    X(cuDevicePrimaryCtxReset_v2, (int))                                       \
    X(cuGreenCtxCreate, (void **, void *, int, unsigned))                      \
    X(cuGreenCtxDestroy, (void *))                                             \
    /* only the names of these calls are logged */                             \
    X(cuMemMapArrayAsync, (void *, unsigned, void *))                          \
    X(cuMemMapArrayAsync_ptsz, (void *, unsigned, void *))                     \
    X(cuCtxDetach, (void *))                                                   \
    X(cuMemAlloc, (unsigned *, unsigned))                                      \
    X(cuMemAllocPitch, (unsigned *, unsigned *, unsigned, unsigned, unsigned)) \
    X(cuMemFree, (unsigned))                                                   \
    X(cuArrayCreate, (void **, const void *))                                  \
    X(cuArray3DCreate, (void **, const void *))                                \
    /* these look up all other functions */                                    \
    X(cuGetProcAddress, (const char *, void **, int, uint64_t))                \
    X(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *))

/* Functions that the recorder itself calls. */
#define DRIVER_QUESTIONS(X)                                 \
    X(cuCtxGetCurrent, (void **))                           \
    X(cuCtxFromGreenCtx, (void **, void *))                 \
    X(cuCtxGetDevice, (int *))                              \
    X(cuDeviceGetGraphMemAttribute, (int, int, void *))     \
    X(cuDevicePrimaryCtxGetState, (int, unsigned *, int *)) \
    X(cuDevicePrimaryCtxRetain, (void **, int))             \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                \
    X(cuStreamGetDevice, (void *, int *))                   \
    X(cuStreamIsCapturing, (void *, int *))                 \
    X(cuThreadExchangeStreamCaptureMode, (int *))

/* The C library's dlsym. front.c defines the dlsym that this library
 * exports. */
typedef void *driver_lookup(void *handle, const char *name);
driver_lookup *driver_dlsym(void);

#define EXPORTED __attribute__((visibility("default")))

#define X(name, arguments) EXPORTED driver_result name arguments;
DRIVER_CALLS(X)
#undef X

/* The driver's own functions; NULL for a function that it lacks. */
struct driver {
#define X(name, arguments) driver_result(*name) arguments;
    DRIVER_CALLS(X)
    DRIVER_QUESTIONS(X)
#undef X
};

/* Loads the driver if the program has not done so, and looks up its functions
 * once. All members are NULL if there is no driver. */
const struct driver *driver_load(void);

/* The driver, or NULL while the program has not loaded it. */
const struct driver *driver_if_loaded(void);

extern _Atomic(const struct driver *) driver_loaded;

/* The same as driver_load, but fast if the driver is already loaded. */
static inline const struct driver *driver_get(void)
{
    const struct driver *d =
        atomic_load_explicit(&driver_loaded, memory_order_acquire);

    return d ? d : driver_load();
}

/* Passes a call on to the driver; evaluates to DRIVER_NOT_FOUND if the driver
 * lacks the function. */
#define DRIVER_PASS_ON(name, ...) DRIVER_PASS_ALL(name, (__VA_ARGS__))

/* The same; the values are in parentheses. */
#define DRIVER_PASS_ALL(name, values)               \
    (driver_get()->name ? driver_get()->name values \
                        : (driver_result)DRIVER_NOT_FOUND)

#endif
