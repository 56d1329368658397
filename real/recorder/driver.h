/* driver.h - the calls of the CUDA driver that the recorder stands in
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
 * as it is; that the driver gave out such a version of a call of this list is
 * recorded, as nobody could tell afterwards why memory is missing.
 *
 * The types are cuda.h's (13.0) as far as they are read, so that CUDA need not
 * be installed where fragsim is built.
 */
#ifndef FRAG_REAL_RECORDER_DRIVER_H
#define FRAG_REAL_RECORDER_DRIVER_H

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
    DRIVER_ON_DEVICE = 1,        /* CU_MEM_LOCATION_TYPE_DEVICE */
    DRIVER_PINNED = 1,           /* CU_MEM_ALLOCATION_TYPE_PINNED */
    DRIVER_LEGACY_STREAM = 1,    /* CU_STREAM_LEGACY */
    DRIVER_STREAM_PER_THREAD = 2 /* CU_STREAM_PER_THREAD */
};

struct driver_location { /* CUmemLocation */
    int type, device;    /* DRIVER_ON_DEVICE and which */
};

/* The beginning of CUmemAllocationProp and CUmemPoolProps. */
struct driver_place {
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
    struct driver_place place;
    uint64_t place_rest[9];
    const void *access;
    size_t access_count, bytes;
    driver_address at;
};

enum { DRIVER_MEMORY_NODE = 10 }; /* CU_GRAPH_NODE_TYPE_MEM_ALLOC */

struct driver_node { /* CUgraphNodeParams */
    int type, reserved[3];
    struct driver_graph_memory memory; /* of a DRIVER_MEMORY_NODE */
};

/* What is stood in front of, by the names the driver exports. _ptsz: where a
 * stream of 0 means the thread's own. */
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
    X(cuMemPoolCreate, (void **, const struct driver_place *))                 \
    X(cuMemPoolDestroy, (void *))                                              \
    X(cuDeviceGetDefaultMemPool, (void **, int))                               \
    X(cuDeviceGetMemPool, (void **, int))                                      \
    X(cuDeviceSetMemPool, (int, void *))                                       \
    X(cuMemGetDefaultMemPool, (void **, const struct driver_location *, int))  \
    X(cuMemGetMemPool, (void **, const struct driver_location *, int))         \
    X(cuMemSetMemPool, (const struct driver_location *, int, void *))          \
    X(cuMemPoolImportPointer, (driver_address *, void *, void *))              \
    X(cuMemCreate, (driver_handle *, size_t, const struct driver_place *,      \
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
    X(cuCtxDestroy, (void *))                                                  \
    X(cuCtxDestroy_v2, (void *))                                               \
    X(cuDevicePrimaryCtxRelease, (int))                                        \
    X(cuDevicePrimaryCtxRelease_v2, (int))                                     \
    X(cuDevicePrimaryCtxReset, (int))                                          \
    X(cuDevicePrimaryCtxReset_v2, (int))                                       \
    /* in ways that the log has no words for */                                \
    X(cuMemMapArrayAsync, (void *, unsigned, void *))                          \
    X(cuMemMapArrayAsync_ptsz, (void *, unsigned, void *))                     \
    X(cuCtxDetach, (void *))                                                   \
    X(cuGreenCtxDestroy, (void *))                                             \
    X(cuMemAlloc, (unsigned *, unsigned))                                      \
    X(cuMemAllocPitch, (unsigned *, unsigned *, unsigned, unsigned, unsigned)) \
    X(cuMemFree, (unsigned))                                                   \
    X(cuArrayCreate, (void **, const void *))                                  \
    X(cuArray3DCreate, (void **, const void *))                                \
    /* the way to all of them */                                               \
    X(cuGetProcAddress, (const char *, void **, int, uint64_t))                \
    X(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *))

/* What the recorder itself asks. */
#define DRIVER_QUESTIONS(X)                                 \
    X(cuCtxGetCurrent, (void **))                           \
    X(cuCtxGetDevice, (int *))                              \
    X(cuDevicePrimaryCtxGetState, (int, unsigned *, int *)) \
    X(cuDevicePrimaryCtxRetain, (void **, int))             \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                \
    X(cuStreamGetDevice, (void *, int *))                   \
    X(cuStreamIsCapturing, (void *, int *))

/* The C library's dlsym; the one that is exported is front.c's. */
typedef void *driver_lookup(void *handle, const char *name);
driver_lookup *driver_dlsym(void);

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
const struct driver *driver_load(void);

/* The driver, NULL as long as the program has not loaded it. */
const struct driver *driver_if_loaded(void);

extern _Atomic(const struct driver *) driver_loaded;

/* The same, quickly where it is loaded. */
static inline const struct driver *driver_get(void)
{
    const struct driver *d =
        atomic_load_explicit(&driver_loaded, memory_order_acquire);

    return d ? d : driver_load();
}

/* Passes a call on to the driver, or gives up where it has none. */
#define DRIVER_PASS_ON(name, ...)                         \
    (driver_get()->name ? driver_get()->name(__VA_ARGS__) \
                        : (driver_result)DRIVER_NOT_FOUND)

#endif
