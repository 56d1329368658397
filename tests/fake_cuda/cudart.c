/* cudart.c - a libcudart.so.13 for PyTorch on machines without a GPU: the
 * runtime functions that PyTorch calls, over the fake driver of fake_cuda.c.
 *
 * Copies are done at the call, in host memory; a kernel counts as work of its
 * stream and does nothing else. A graph has the copies that were captured and
 * does them again at each launch. Functions
 * that PyTorch links and that the fake lacks fail with a message
 * (cudart_missing.c).
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake_cuda/control.h"

#define EXPORT __attribute__((visibility("default")))

#define X(name, arguments) cu_result name arguments;
CU_DRIVER(X)
FAKE_CUDA_MORE(X)
#undef X

enum { MOST_DEVICES = 8, NOT_SUPPORTED = 801 };

static cu_context contexts[MOST_DEVICES];
static __thread int device;         /* of this thread */
static __thread cudaError_t failed; /* what cudaGetLastError returns */

/* ---- errors and contexts ---- */

static cudaError_t answer(cu_result code)
{
    /* Both enumerations have the same numbers since CUDA 10.1, except that
     * CUDA_ERROR_INVALID_DEVICE is cudaErrorInvalidDevice (101) too. */
    if (code != CU_SUCCESS && code != CU_NOT_READY)
        failed = (cudaError_t)code;
    return (cudaError_t)code;
}

/* Makes the primary context of the thread's device current, as the runtime
 * does in every call that needs a context. */
static cu_result enter(void)
{
    cu_result code = CU_SUCCESS;

    if (!contexts[device]) {
        code = cuInit(0);
        if (code == CU_SUCCESS)
            code = cuDevicePrimaryCtxRetain(&contexts[device], device);
    }
    return code == CU_SUCCESS ? cuCtxSetCurrent(contexts[device]) : code;
}

/* Returns the result of one call of the driver inside the context. */
#define INSIDE(call)                                         \
    do {                                                     \
        cu_result code_ = enter();                           \
                                                             \
        return answer(code_ == CU_SUCCESS ? (call) : code_); \
    } while (0)

EXPORT cudaError_t cudaGetLastError(void)
{
    const cudaError_t last = failed;

    failed = cudaSuccess;
    return last;
}

EXPORT cudaError_t cudaPeekAtLastError(void)
{
    return failed;
}

EXPORT const char *cudaGetErrorName(cudaError_t code)
{
    const char *name;

    cuGetErrorName((cu_result)code, &name);
    return name;
}

EXPORT const char *cudaGetErrorString(cudaError_t code)
{
    static const struct {
        cudaError_t code;
        const char *words;
    } known[] = {
        {cudaErrorInvalidDevice, "invalid device ordinal"},
        {cudaErrorInvalidResourceHandle, "invalid resource handle"},
        {cudaErrorNotReady, "device not ready"},
        {cudaErrorNotSupported, "operation not supported"},
        {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
        {cudaErrorStreamCaptureUnsupported,
         "operation not permitted when stream is capturing"},
        {cudaErrorStreamCaptureInvalidated,
         "operation failed due to a previous error during capture"},
    };
    const char *words;

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].code == code)
            return known[i].words;
    cuGetErrorString((cu_result)code, &words);
    return words;
}

/* ---- devices ---- */

EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
    return answer(cuDeviceGetCount(count));
}

EXPORT cudaError_t cudaGetDevice(int *out)
{
    *out = device;
    return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int wanted)
{
    cu_device found;
    cu_result code = cuDeviceGet(&found, wanted);

    if (code != CU_SUCCESS)
        return answer(code);
    device = found;
    INSIDE(CU_SUCCESS);
}

EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
    return answer(cuDriverGetVersion(version));
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out,
                                           int ordinal)
{
    cu_result code = cuDeviceTotalMem_v2(&out->totalGlobalMem, ordinal);
    const size_t total = out->totalGlobalMem;

    *out = (struct cudaDeviceProp){.totalGlobalMem = total,
                                   .major = 9,
                                   .multiProcessorCount = 132,
                                   .warpSize = 32,
                                   .regsPerBlock = 65536,
                                   .sharedMemPerBlock = 48 << 10,
                                   .maxThreadsPerBlock = 1024,
                                   .maxThreadsPerMultiProcessor = 2048,
                                   .maxThreadsDim = {1024, 1024, 64},
                                   .maxGridSize = {INT32_MAX, 65535, 65535},
                                   .unifiedAddressing = 1};
    cuDeviceGetName(out->name, sizeof(out->name), ordinal);
    return answer(code);
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which,
                                          int ordinal)
{
    static const struct {
        enum cudaDeviceAttr which;
        int value;
    } known[] = {
        {cudaDevAttrComputeCapabilityMajor, 9},
        {cudaDevAttrMultiProcessorCount, 132},
        {cudaDevAttrWarpSize, 32},
        {cudaDevAttrMaxThreadsPerBlock, 1024},
        {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    };

    (void)ordinal;
    *value = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].which == which)
            *value = known[i].value;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *text, int room, int ordinal)
{
    snprintf(text, (size_t)room, "0000:%02x:00.0", ordinal + 1);
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceSynchronize(void)
{
    INSIDE(cuCtxSynchronize());
}

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int from, int to)
{
    *can = from != to;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    const int mine = device;
    cudaError_t code = cudaSetDevice(peer); /* it needs a context */

    device = mine;
    if (code != cudaSuccess)
        return code;
    INSIDE(cuCtxEnablePeerAccess(contexts[peer], flags));
}

/* The driver's functions, by the names that PyTorch asks for. */
static cu_result refuses(void)
{
    fprintf(stderr, "cudart: a driver function that the fake lacks\n");
    return NOT_SUPPORTED;
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion(
    const char *name, void **out, unsigned version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *found)
{
    (void)version;
    (void)flags;
    *out = dlsym(RTLD_DEFAULT, name);
    if (!*out) {
        cu_result (*const none)(void) = refuses;

        memcpy(out, &none, sizeof(none));
    }
    if (found)
        *found = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

/* ---- memory ---- */

EXPORT cudaError_t cudaMalloc(void **out, size_t size)
{
    *out = NULL;
    INSIDE(cuMemAlloc_v2((cu_address *)(void *)out, size));
}

EXPORT cudaError_t cudaFree(void *at)
{
    INSIDE(at ? cuMemFree_v2((uintptr_t)at) : CU_SUCCESS);
}

EXPORT cudaError_t cudaMemGetInfo(size_t *room, size_t *total)
{
    INSIDE(cuMemGetInfo_v2(room, total));
}

EXPORT cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    *out = malloc(size);
    return answer(*out ? CU_SUCCESS : CU_OUT_OF_MEMORY);
}

EXPORT cudaError_t cudaFreeHost(void *at)
{
    free(at);
    return cudaSuccess;
}

EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out,
                                            const void *at)
{
    const int owner = fake_cuda_owner((uintptr_t)at);

    *out = (struct cudaPointerAttributes){.type = cudaMemoryTypeUnregistered,
                                          .device = owner};
    if (owner >= 0) {
        out->type = cudaMemoryTypeDevice;
        memcpy(&out->devicePointer, &at, sizeof(at));
    }
    return cudaSuccess;
}

/* Whether `by` may access the memory; FAKE_CUDA_HOST: whether its owner may. */
static bool may(int by, const void *at, size_t size)
{
    const int owner = fake_cuda_owner((uintptr_t)at);

    return owner == FAKE_CUDA_HOST ||
           fake_cuda_may(by == FAKE_CUDA_HOST ? owner : by, (uintptr_t)at,
                         size);
}

/* A copy of a graph, in the order of the capture. */
static struct node {
    struct node *next;
    uint64_t capture; /* its number */
    void *to;
    const void *from;
    size_t size;
} * copies, **last_copy = &copies;
static pthread_mutex_t copies_lock = PTHREAD_MUTEX_INITIALIZER;

static void add_node(uint64_t capture, void *to, const void *from, size_t size)
{
    struct node *n = malloc(sizeof(*n));

    if (!n)
        abort();
    *n = (struct node){NULL, capture, to, from, size};
    pthread_mutex_lock(&copies_lock);
    *last_copy = n;
    last_copy = &n->next;
    pthread_mutex_unlock(&copies_lock);
}

static uint64_t capture_of(const void *graph)
{
    return (uint64_t)(uintptr_t)graph >> 4;
}

static void drop_nodes(uint64_t capture)
{
    struct node **at = &copies;

    pthread_mutex_lock(&copies_lock);
    while (*at) {
        struct node *n = *at;

        if (n->capture != capture) {
            at = &n->next;
            continue;
        }
        *at = n->next;
        free(n);
    }
    last_copy = at;
    pthread_mutex_unlock(&copies_lock);
}

static cu_result copy(int by, void *to, const void *from, size_t size,
                      cudaStream_t stream)
{
    uint64_t capture;
    int status;

    if (!may(by, to, size) || !may(by, from, size)) {
        fprintf(stderr, "cudart: a copy of memory that device %d may not use\n",
                device);
        return cudaErrorIllegalAddress;
    }
    cuStreamGetCaptureInfo(stream, &status, &capture);
    if (status)
        add_node(capture, to, from, size);
    else
        memmove(to, from, size);
    return CU_SUCCESS;
}

/* Does the copies of a graph. */
static cu_result launch(const void *graph)
{
    cu_result code = CU_SUCCESS;

    pthread_mutex_lock(&copies_lock);
    for (const struct node *n = copies; n && code == CU_SUCCESS; n = n->next) {
        if (n->capture != capture_of(graph))
            continue;
        if (may(FAKE_CUDA_HOST, n->to, n->size) &&
            may(FAKE_CUDA_HOST, n->from, n->size))
            memmove(n->to, n->from, n->size);
        else
            code = (cu_result)cudaErrorIllegalAddress;
    }
    pthread_mutex_unlock(&copies_lock);
    return code;
}

static int device_of(const void *at)
{
    return fake_cuda_owner((uintptr_t)at);
}

/* The current device copies between devices. */
EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size,
                                   enum cudaMemcpyKind kind,
                                   cudaStream_t stream)
{
    const bool both = device_of(to) >= 0 && device_of(from) >= 0 &&
                      device_of(to) != device_of(from);

    (void)kind;
    INSIDE(copy(both ? device : FAKE_CUDA_HOST, to, from, size, stream));
}

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t size,
                              enum cudaMemcpyKind kind)
{
    const cudaError_t code = cudaStreamQuery(NULL); /* forbidden in captures */

    return code != cudaSuccess && code != cudaErrorNotReady
               ? code
               : cudaMemcpyAsync(to, from, size, kind, NULL);
}

/* Needs no access of one device to the other's memory. */
EXPORT cudaError_t cudaMemcpyPeerAsync(void *to, int to_device,
                                       const void *from, int from_device,
                                       size_t size, cudaStream_t stream)
{
    (void)to_device;
    (void)from_device;
    INSIDE(copy(FAKE_CUDA_HOST, to, from, size, stream));
}

static cu_result fill(void *to, int value, size_t size)
{
    if (!may(FAKE_CUDA_HOST, to, size))
        return cudaErrorIllegalAddress;
    memset(to, value, size);
    return CU_SUCCESS;
}

EXPORT cudaError_t cudaMemsetAsync(void *to, int value, size_t size,
                                   cudaStream_t stream)
{
    uint64_t capture;
    int status;

    cuStreamGetCaptureInfo(stream, &status, &capture);
    INSIDE(status ? CU_SUCCESS : fill(to, value, size));
}

EXPORT cudaError_t cudaMemset(void *to, int value, size_t size)
{
    return cudaMemsetAsync(to, value, size, NULL);
}

/* A handle: the process and the start of the segment. Mapped memory has
 * none. */
EXPORT cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *at)
{
    const uint64_t what[2] = {(uint64_t)getpid(),
                              fake_cuda_base((uintptr_t)at)};

    memset(out, 0, sizeof(*out));
    memcpy(out, what, sizeof(what));
    return answer(what[1] ? CU_SUCCESS : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out,
                                         cudaEvent_t event)
{
    memset(out, 0, sizeof(*out));
    memcpy(out, &event, sizeof(event));
    return cudaSuccess;
}

/* The work of the other process is done when it sends the handle. */
EXPORT cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out,
                                          cudaIpcEventHandle_t handle)
{
    (void)handle;
    INSIDE(cuEventCreate(out, 0));
}

/* ---- streams ---- */

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out,
                                                unsigned flags, int priority)
{
    (void)priority;
    INSIDE(cuStreamCreate(out, flags));
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    INSIDE(cuStreamCreate(out, 0));
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    INSIDE(cuStreamDestroy_v2(stream));
}

EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    (void)stream;
    *priority = 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    INSIDE(cuStreamQuery(stream));
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    INSIDE(cuStreamSynchronize(stream));
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                       unsigned flags)
{
    INSIDE(cuStreamWaitEvent(stream, event, flags));
}

/* ---- events ---- */

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    INSIDE(cuEventCreate(out, flags));
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    INSIDE(cuEventCreate(out, 0));
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    INSIDE(cuEventDestroy_v2(event));
}

EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    INSIDE(cuEventRecord(event, stream));
}

EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                            cudaStream_t stream, unsigned flags)
{
    (void)flags;
    INSIDE(cuEventRecord(event, stream));
}

EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
    INSIDE(cuEventQuery(event));
}

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    INSIDE(cuEventSynchronize(event));
}

EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from,
                                        cudaEvent_t to)
{
    (void)from;
    (void)to;
    *ms = 0.001f;
    return cudaSuccess;
}

/* ---- captures and graphs ---- */

EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                          enum cudaStreamCaptureMode mode)
{
    INSIDE(cuStreamBeginCapture_v2(stream, (int)mode));
}

EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    INSIDE(cuStreamEndCapture(stream, (void **)out));
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                         enum cudaStreamCaptureStatus *status)
{
    uint64_t id;
    int found;

    cuStreamGetCaptureInfo(stream, &found, &id);
    *status = (enum cudaStreamCaptureStatus)found;
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, enum cudaStreamCaptureStatus *status,
    unsigned long long *id, cudaGraph_t *graph,
    const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
    size_t *count)
{
    uint64_t found = 0;
    int code;

    (void)dependencies;
    (void)edges;
    cuStreamGetCaptureInfo(stream, &code, &found);
    *status = (enum cudaStreamCaptureStatus)code;
    if (id)
        *id = found;
    if (graph)
        *graph = NULL;
    if (count)
        *count = 0;
    return cudaSuccess;
}

EXPORT cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    int code = (int)*mode;

    cuThreadExchangeStreamCaptureMode(&code);
    *mode = (enum cudaStreamCaptureMode)code;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out,
                                                 cudaGraph_t graph,
                                                 unsigned long long flags)
{
    (void)flags;
    memcpy(out, &graph, sizeof(graph));
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    fake_cuda_queue(stream);
    return answer(launch(graph));
}

EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
                                     size_t *count)
{
    (void)graph;
    (void)nodes;
    *count = 1; /* PyTorch warns of a graph without nodes */
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    (void)graph;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    drop_nodes(capture_of(graph));
    return cudaSuccess;
}

/* ---- kernels ---- */

EXPORT cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                                    void **args, size_t shared,
                                    cudaStream_t stream)
{
    (void)function;
    (void)grid;
    (void)block;
    (void)args;
    (void)shared;
    fake_cuda_queue(stream);
    return cudaSuccess;
}

EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                       const void *function, void **args)
{
    return cudaLaunchKernel(function, config->gridDim, config->blockDim, args,
                            config->dynamicSmemBytes, config->stream);
}

EXPORT cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out,
                                         const void *function)
{
    (void)function;
    *out = (struct cudaFuncAttributes){.maxThreadsPerBlock = 1024};
    return cudaSuccess;
}

EXPORT cudaError_t cudaFuncSetAttribute(const void *function,
                                        enum cudaFuncAttribute which, int value)
{
    (void)function;
    (void)which;
    (void)value;
    return cudaSuccess;
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *count, const void *function, int size, size_t shared)
{
    (void)function;
    (void)size;
    (void)shared;
    *count = 1;
    return cudaSuccess;
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *count, const void *function, int size, size_t shared, unsigned flags)
{
    (void)flags;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(count, function, size,
                                                         shared);
}

/* ---- what compiled kernels call: crt/host_runtime.h ---- */

EXPORT void **__cudaRegisterFatBinary(void *image);
EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
EXPORT void __cudaUnregisterFatBinary(void **handle);
EXPORT void __cudaRegisterFunction(void);
EXPORT void __cudaRegisterVar(void);
EXPORT char __cudaInitModule(void **handle);
EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *function);
EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid,
                                      dim3 block, void **args, size_t shared,
                                      cudaStream_t stream);
EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block,
                                            size_t shared, cudaStream_t stream);
EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block,
                                              size_t *shared, void *stream);

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed;

void **__cudaRegisterFatBinary(void *image)
{
    static void *handle;

    (void)image;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void)
{
}

void __cudaRegisterVar(void)
{
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *function)
{
    memcpy(out, &function, sizeof(function));
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void **args, size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     cudaStream_t stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    memcpy(stream, &pushed.stream, sizeof(pushed.stream));
    return cudaSuccess;
}
