/* cudart_missing.c - the functions that PyTorch 2.11 links from libcudart.so.13
 * and that cudart.c lacks. Each prints its name and fails with
 * cudaErrorNotSupported. They are declared here without parameters, so this
 * file includes no header of CUDA. */
#include <stdio.h>

enum { NOT_SUPPORTED = 801 };

#define MISSING(X)                  \
    X(cudaDeviceGetDefaultMemPool)  \
    X(cudaFreeAsync)                \
    X(cudaGetSymbolAddress)         \
    X(cudaGraphDebugDotPrint)       \
    X(cudaGraphNodeGetDependencies) \
    X(cudaHostRegister)             \
    X(cudaHostUnregister)           \
    X(cudaIpcCloseMemHandle)        \
    X(cudaIpcOpenMemHandle)         \
    X(cudaLaunchCooperativeKernel)  \
    X(cudaLaunchHostFunc)           \
    X(cudaMallocAsync)              \
    X(cudaMemPoolGetAttribute)      \
    X(cudaMemPoolSetAccess)         \
    X(cudaMemPoolSetAttribute)      \
    X(cudaMemPoolTrimTo)            \
    X(cudaMemcpy2DAsync)            \
    X(cudaMemcpyToSymbol)           \
    X(cudaProfilerStart)            \
    X(cudaProfilerStop)             \
    X(cudaStreamAddCallback)

#define X(name)                                                 \
    __attribute__((visibility("default"))) int name(void);      \
    int name(void)                                              \
    {                                                           \
        fprintf(stderr, "cudart: the fake has no " #name "\n"); \
        return NOT_SUPPORTED;                                   \
    }
MISSING(X)
#undef X
