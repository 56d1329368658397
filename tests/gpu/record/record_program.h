/* record_program.h - declarations shared by the scenarios of record_program.c.
 */
#ifndef FRAG_TESTS_RECORD_RECORD_PROGRAM_H
#define FRAG_TESTS_RECORD_RECORD_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long u64;

/* CUmemAllocationProp and CUmemPoolProps of cuda.h 13.0, 32 and 88 bytes. */
struct props {
    int type, handle_types, location_type, location_id;
    u64 rest[9];
};

struct array_like { /* CUDA_ARRAY_DESCRIPTOR */
    size_t width, height;
    unsigned format, channels;
};

struct array_3d_like { /* CUDA_ARRAY3D_DESCRIPTOR */
    size_t width, height, depth;
    unsigned format, channels, flags;
};

struct resource { /* CUdevResource of cuda.h 13.0 has 144 bytes */
    u64 bytes[64];
};

struct graph_memory { /* CUDA_MEM_ALLOC_NODE_PARAMS */
    struct props props;
    const void *access;
    size_t access_count, bytes;
    u64 at;
};

/* Function, its name for cuGetProcAddress, arguments. */
#define API(X)                                                                 \
    X(cuInit, "cuInit", (unsigned))                                            \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))    \
    X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", (int))            \
    X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", (int))        \
    X(cuCtxDestroy_v2, "cuCtxDestroy", (void *))                               \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (void *))                            \
    X(cuCtxSynchronize, "cuCtxSynchronize", (void))                            \
    X(cuStreamCreate, "cuStreamCreate", (void **, unsigned))                   \
    X(cuMemsetD32Async, "cuMemsetD32Async", (u64, unsigned, size_t, void *))   \
    X(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", (u64, u64, size_t, void *))   \
    X(cuMemAlloc_v2, "cuMemAlloc", (u64 *, size_t))                            \
    X(cuMemAllocPitch_v2, "cuMemAllocPitch",                                   \
      (u64 *, size_t *, size_t, size_t, unsigned))                             \
    X(cuMemAllocManaged, "cuMemAllocManaged", (u64 *, size_t, unsigned))       \
    X(cuMemFree_v2, "cuMemFree", (u64))                                        \
    X(cuMemAllocAsync, "cuMemAllocAsync", (u64 *, size_t, void *))             \
    X(cuMemFreeAsync, "cuMemFreeAsync", (u64, void *))                         \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",                      \
      (u64 *, size_t, void *, void *))                                         \
    X(cuMemPoolCreate, "cuMemPoolCreate", (void **, const struct props *))     \
    X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", (void **, int))  \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", (void *))                          \
    X(cuDeviceGetMemPool, "cuDeviceGetMemPool", (void **, int))                \
    X(cuDeviceSetMemPool, "cuDeviceSetMemPool", (int, void *))                 \
    X(cuMemCreate, "cuMemCreate", (u64 *, size_t, const struct props *, u64))  \
    X(cuMemRelease, "cuMemRelease", (u64))                                     \
    X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle",              \
      (u64 *, void *))                                                         \
    X(cuMemMap, "cuMemMap", (u64, size_t, size_t, u64, u64))                   \
    X(cuMemUnmap, "cuMemUnmap", (u64, size_t))                                 \
    X(cuMemAddressReserve, "cuMemAddressReserve",                              \
      (u64 *, size_t, size_t, u64, u64))                                       \
    X(cuMemAddressFree, "cuMemAddressFree", (u64, size_t))                     \
    X(cuMemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))           \
    X(cuMemAllocHost_v2, "cuMemAllocHost", (void **, size_t))                  \
    X(cuMemFreeHost, "cuMemFreeHost", (void *))                                \
    X(cuMemHostRegister_v2, "cuMemHostRegister", (void *, size_t, unsigned))   \
    X(cuMemHostUnregister, "cuMemHostUnregister", (void *))                    \
    X(cuArrayCreate_v2, "cuArrayCreate", (void **, const struct array_like *)) \
    X(cuArray3DCreate_v2, "cuArray3DCreate",                                   \
      (void **, const struct array_3d_like *))                                 \
    X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate",                        \
      (void **, const struct array_3d_like *, unsigned))                       \
    X(cuArrayDestroy, "cuArrayDestroy", (void *))                              \
    X(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", (void *))            \
    X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", (void *, int))          \
    X(cuStreamEndCapture, "cuStreamEndCapture", (void *, void **))             \
    X(cuGraphCreate, "cuGraphCreate", (void **, unsigned))                     \
    X(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode",                        \
      (void **, void *, const void *, size_t, struct graph_memory *))          \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",              \
      (void **, void *, u64))                                                  \
    X(cuGraphLaunch, "cuGraphLaunch", (void *, void *))                        \
    X(cuGraphUpload, "cuGraphUpload", (void *, void *))                        \
    X(cuDeviceGraphMemTrim, "cuDeviceGraphMemTrim", (int))                     \
    X(cuDeviceGetGraphMemAttribute, "cuDeviceGetGraphMemAttribute",            \
      (int, int, void *))                                                      \
    X(cuDeviceGetDevResource, "cuDeviceGetDevResource",                        \
      (int, struct resource *, int))                                           \
    X(cuDevResourceGenerateDesc, "cuDevResourceGenerateDesc",                  \
      (void **, struct resource *, unsigned))                                  \
    X(cuGreenCtxCreate, "cuGreenCtxCreate", (void **, void *, int, unsigned))  \
    X(cuGreenCtxDestroy, "cuGreenCtxDestroy", (void *))                        \
    X(cuCtxFromGreenCtx, "cuCtxFromGreenCtx", (void **, void *))

extern struct api {
#define X(name, entry, arguments) int(*name) arguments;
    API(X)
#undef X
} cu;

#define MUST(call)                                              \
    do {                                                        \
        int result_ = (call);                                   \
        if (result_ != 0) {                                     \
            fprintf(stderr, "%s: result %d\n", #call, result_); \
            exit(9);                                            \
        }                                                       \
    } while (0)

static const size_t too_much = (size_t)1 << 50;

/* Makes device 0's primary context current to the thread. */
void start(void);

/* Prints the requests that the trace must hold; blocks are numbered from 1. */
unsigned expect_alloc(u64 bytes, void *stream);
void expect_free(unsigned block);
void expect_failure(u64 bytes);

/* A block that separates earlier requests from later ones. */
void mark(size_t bytes);

void run_contexts(void);
void run_arrays(void);
void run_graphs(void);
void run_launches(void);
void run_green(void);
void run_host(void);
void run_old_host(void);
void run_others(void);
void run_unread(void);
void run_ways(void);
void run_mixed(void);
void run_work(void);
void run_both(void);

#endif
