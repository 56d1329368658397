/* runtime.h - the types of the CUDA runtime that runtime.c implements, by the
 * names of cuda_runtime_api.h. They repeat the parts that PyTorch uses, so that
 * CUDA need not be installed where fragsim is built; CUDA 12 and 13 differ in
 * the places of the properties of a device only. For the stand-ins only.
 */
#ifndef FRAG_REAL_DRY_RUNTIME_RUNTIME_H
#define FRAG_REAL_DRY_RUNTIME_RUNTIME_H

#include <stddef.h>

#include "real/dry/control.h"

typedef int cudaError_t;
typedef cu_stream cudaStream_t;
typedef cu_event cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUkern_st *cudaKernel_t;

enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
};

enum { /* cudaMemoryType */
       cudaMemoryTypeUnregistered = 0,
       cudaMemoryTypeHost = 1,
       cudaMemoryTypeDevice = 2,
};

typedef struct {
    unsigned x, y, z;
} dim3;

struct cudaPointerAttributes {
    int type, device;
    void *devicePointer, *hostPointer;
    /* CUDA 13 reserves 64 bytes more, which stay untouched. */
};

struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout;
    int clusters[6], reserved[16];
};

typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    void *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;

typedef struct dry_ipc cudaIpcMemHandle_t, cudaIpcEventHandle_t;

#endif
