/* cuda_driver.h - loads the CUDA driver at run time.
 *
 * The types repeat the parts of cuda.h (13.0) that fragsim uses. So CUDA need
 * not be installed where fragsim is built, and one binary runs on machines with
 * and without a driver.
 */
#ifndef FRAG_REAL_DEVICE_CUDA_DRIVER_H
#define FRAG_REAL_DEVICE_CUDA_DRIVER_H

#include "traces/base.h"

typedef int cu_result; /* CUresult */
typedef int cu_device;
typedef uint64_t cu_address; /* CUdeviceptr */
typedef uint64_t cu_memory;  /* CUmemGenericAllocationHandle */
typedef struct CUctx_st *cu_context;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;

enum {
    CU_SUCCESS = 0,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_READY = 600,
    CU_PINNED = 1,          /* CU_MEM_ALLOCATION_TYPE_PINNED */
    CU_ON_DEVICE = 1,       /* CU_MEM_LOCATION_TYPE_DEVICE */
    CU_READ_AND_WRITE = 3,  /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
    CU_MINIMUM = 0,         /* CU_MEM_ALLOC_GRANULARITY_MINIMUM */
    CU_UNTIMED = 2,         /* CU_EVENT_DISABLE_TIMING */
    CU_NON_BLOCKING = 1,    /* CU_STREAM_NON_BLOCKING */
    CU_FILE_DESCRIPTOR = 1, /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
    CU_HAS_FILE_DESCRIPTORS = 103, /* CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_
                                      FILE_DESCRIPTOR_SUPPORTED */
};

struct cu_location { /* CUmemLocation */
    int type, id;
};

struct cu_memory_prop { /* CUmemAllocationProp */
    int type, handle_types;
    struct cu_location location;
    void *windows;
    uint8_t flags[8];
};

struct cu_access { /* CUmemAccessDesc */
    struct cu_location location;
    int flags;
};

/* The functions that fragsim calls, by the names that the driver exports. */
#define CU_DRIVER(X)                                                          \
    X(cuInit, (unsigned))                                                     \
    X(cuGetErrorName, (cu_result, const char **))                             \
    X(cuGetErrorString, (cu_result, const char **))                           \
    X(cuDriverGetVersion, (int *))                                            \
    X(cuDeviceGetCount, (int *))                                              \
    X(cuDeviceGet, (cu_device *, int))                                        \
    X(cuDeviceGetName, (char *, int, cu_device))                              \
    X(cuDeviceTotalMem_v2, (size_t *, cu_device))                             \
    X(cuDeviceGetAttribute, (int *, int, cu_device))                          \
    X(cuDevicePrimaryCtxRetain, (cu_context *, cu_device))                    \
    X(cuDevicePrimaryCtxRelease_v2, (cu_device))                              \
    X(cuDevicePrimaryCtxGetState, (cu_device, unsigned *, int *))             \
    X(cuCtxPushCurrent_v2, (cu_context))                                      \
    X(cuCtxPopCurrent_v2, (cu_context *))                                     \
    X(cuCtxSynchronize, (void))                                               \
    X(cuCtxEnablePeerAccess, (cu_context, unsigned))                          \
    X(cuCtxDisablePeerAccess, (cu_context))                                   \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                  \
    X(cuMemAlloc_v2, (cu_address *, size_t))                                  \
    X(cuMemFree_v2, (cu_address))                                             \
    X(cuMemGetAllocationGranularity,                                          \
      (size_t *, const struct cu_memory_prop *, int))                         \
    X(cuMemAddressReserve,                                                    \
      (cu_address *, size_t, size_t, cu_address, unsigned long long))         \
    X(cuMemAddressFree, (cu_address, size_t))                                 \
    X(cuMemCreate, (cu_memory *, size_t, const struct cu_memory_prop *,       \
                    unsigned long long))                                      \
    X(cuMemRelease, (cu_memory))                                              \
    X(cuMemMap, (cu_address, size_t, size_t, cu_memory, unsigned long long))  \
    X(cuMemSetAccess, (cu_address, size_t, const struct cu_access *, size_t)) \
    X(cuMemUnmap, (cu_address, size_t))                                       \
    X(cuMemRetainAllocationHandle, (cu_memory *, void *))                     \
    X(cuMemExportToShareableHandle,                                           \
      (void *, cu_memory, int, unsigned long long))                           \
    X(cuMemImportFromShareableHandle, (cu_memory *, void *, int))             \
    X(cuMemcpyDtoDAsync_v2, (cu_address, cu_address, size_t, cu_stream))      \
    X(cuMemcpyDtoH_v2, (void *, cu_address, size_t))                          \
    X(cuMemcpyHtoD_v2, (cu_address, const void *, size_t))                    \
    X(cuStreamCreate, (cu_stream *, unsigned))                                \
    X(cuStreamDestroy_v2, (cu_stream))                                        \
    X(cuStreamWaitEvent, (cu_stream, cu_event, unsigned))                     \
    X(cuEventCreate, (cu_event *, unsigned))                                  \
    X(cuEventRecord, (cu_event, cu_stream))                                   \
    X(cuEventQuery, (cu_event))                                               \
    X(cuEventDestroy_v2, (cu_event))                                          \
    X(cuModuleLoadData, (cu_module *, const void *))                          \
    X(cuModuleUnload, (cu_module))                                            \
    X(cuModuleGetFunction, (cu_function *, cu_module, const char *))          \
    X(cuLaunchKernel,                                                         \
      (cu_function, unsigned, unsigned, unsigned, unsigned, unsigned,         \
       unsigned, unsigned, cu_stream, void **, void **))

struct cu_driver {
#define X(name, arguments) cu_result(*name) arguments;
    CU_DRIVER(X)
#undef X
};

/* Loads and initializes the driver at the first call and returns the same
 * driver later. Returns FRAG_DEVICE with a message if there is no driver, if
 * the driver lacks a function of the list, or if it finds no device. */
enum frag_err cu_driver_get(const struct cu_driver **out,
                            struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the driver's name, number and message of an error, such as
 * "CUDA_ERROR_INVALID_VALUE (1), invalid argument". Returns text. */
const char *cu_words(const struct cu_driver *cu, cu_result code,
                     char text[256]);

#endif
