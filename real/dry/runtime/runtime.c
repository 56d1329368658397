/* runtime.c - a libcudart.so.12 or .13 for PyTorch on machines without a GPU:
 * the runtime functions that PyTorch calls, over the driver of dry_driver.c.
 * devices.c has the properties of the devices.
 *
 * Copies are done at the call, in host memory; a kernel counts as work of its
 * stream and does nothing else. A graph has the copies that were captured and
 * does them again at each launch. Memory without contents (control.h) copies
 * zeros to the host. Functions that PyTorch links and that this file lacks fail
 * and are named (runtime.def).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/device/gpus.h"
#include "real/dry/driver/pinned.h"
#include "real/dry/dry_notes.h"
#include "real/dry/dry_shadow.h"
#include "real/dry/runtime/executables.h"
#include "real/dry/runtime/kernels.h"
#include "real/dry/runtime/runtime.h"

#define EXPORT __attribute__((visibility("default")))

enum { DRY_LACKING = cudaErrorNotSupported };
#include "real/dry/stubs.h"

#include "real/dry/runtime/runtime.def"

enum { MOST_DEVICES = FRAG_GPUS_MOST };

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
        {cudaErrorNoDevice, "no CUDA-capable device is detected"},
        {cudaErrorInvalidDevice, "invalid device ordinal"},
        {cudaErrorNoKernelImageForDevice,
         "no kernel image is available for execution on the device"},
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
    const cu_result code = cuDeviceGetCount(count);

    return answer(code == CU_SUCCESS && !*count ? cudaErrorNoDevice : code);
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

/* The version of CUDA that the program was built for, which the driver also
 * has. */
EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
    return answer(cuDriverGetVersion(version));
}

/* The name of CUDA 13. */
EXPORT cudaError_t cudaGetDeviceProperties(char *out, int ordinal)
{
    return answer(frag_dry_properties(out, 1, ordinal));
}

/* The name of CUDA 12. */
EXPORT cudaError_t cudaGetDeviceProperties_v2(char *out, int ordinal)
{
    return answer(frag_dry_properties(out, 0, ordinal));
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, int which, int ordinal)
{
    return answer(cuDeviceGetAttribute(value, which, ordinal));
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

/* What the driver has under the name, or what says that it lacks it. */
EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *name,
                                                    void **out,
                                                    unsigned version,
                                                    unsigned long long flags,
                                                    int *found)
{
    cuGetProcAddress_v2(name, out, (int)version, flags, found);
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetDriverEntryPoint(const char *name, void **out,
                                           unsigned long long flags, int *found)
{
    return cudaGetDriverEntryPointByVersion(name, out, 0, flags, found);
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
    return answer(frag_dry_pinned_new(out, size) ? CU_SUCCESS
                                                 : CU_OUT_OF_MEMORY);
}

EXPORT cudaError_t cudaMallocHost(void **out, size_t size)
{
    return cudaHostAlloc(out, size, 0);
}

EXPORT cudaError_t cudaFreeHost(void *at)
{
    return answer(!at || frag_dry_pinned_drop(at, true)
                      ? CU_SUCCESS
                      : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaHostRegister(void *at, size_t size, unsigned flags)
{
    (void)flags;
    return answer(frag_dry_pinned_add(at, size) ? CU_SUCCESS
                                                : CU_OUT_OF_MEMORY);
}

EXPORT cudaError_t cudaHostGetDevicePointer(void **out, void *at,
                                            unsigned flags)
{
    (void)flags;
    *out = at;
    return answer(CU_SUCCESS);
}

EXPORT cudaError_t cudaHostUnregister(void *at)
{
    return answer(frag_dry_pinned_drop(at, false) ? CU_SUCCESS
                                                  : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out,
                                            const void *at)
{
    const int owner = frag_dry_owner((uintptr_t)at);
    uint64_t start;
    size_t size;
    const bool pinned =
        owner < 0 && frag_dry_pinned_range((uintptr_t)at, &start, &size);

    *out = (struct cudaPointerAttributes){
        .type = owner >= 0 ? cudaMemoryTypeDevice
                : pinned   ? cudaMemoryTypeHost
                           : cudaMemoryTypeUnregistered,
        .device = pinned ? device : owner};
    if (owner >= 0 || pinned)
        memcpy(&out->devicePointer, &at, sizeof(at));
    if (pinned)
        memcpy(&out->hostPointer, &at, sizeof(at));
    return cudaSuccess;
}

/* Whether `by` may access the memory; FRAG_DRY_HOST: whether its owner may. */
static bool may(int by, const void *at, size_t size)
{
    const int owner = frag_dry_owner((uintptr_t)at);

    return owner == FRAG_DRY_HOST ||
           frag_dry_may(by == FRAG_DRY_HOST ? owner : by, (uintptr_t)at, size);
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
        frag_dry_move(to, from, size);
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
        if (may(FRAG_DRY_HOST, n->to, n->size) &&
            may(FRAG_DRY_HOST, n->from, n->size))
            frag_dry_move(n->to, n->from, n->size);
        else
            code = (cu_result)cudaErrorIllegalAddress;
    }
    pthread_mutex_unlock(&copies_lock);
    return code;
}

static int device_of(const void *at)
{
    return frag_dry_owner((uintptr_t)at);
}

/* The current device copies between devices. */
EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size,
                                   int kind, cudaStream_t stream)
{
    const bool both = device_of(to) >= 0 && device_of(from) >= 0 &&
                      device_of(to) != device_of(from);

    (void)kind;
    INSIDE(copy(both ? device : FRAG_DRY_HOST, to, from, size, stream));
}

EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream);

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
    const cudaError_t code = cudaStreamQuery(NULL); /* forbidden in captures */

    return code != cudaSuccess && code != cudaErrorNotReady
               ? code
               : cudaMemcpyAsync(to, from, size, kind, NULL);
}

/* Row by row. */
EXPORT cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch,
                                     const void *from, size_t from_pitch,
                                     size_t width, size_t height, int kind,
                                     cudaStream_t stream)
{
    cudaError_t code = cudaSuccess;

    for (size_t i = 0; i < height && code == cudaSuccess; i++)
        code = cudaMemcpyAsync((char *)to + i * to_pitch,
                               (const char *)from + i * from_pitch, width, kind,
                               stream);
    return code;
}

/* Needs no access of one device to the other's memory. */
EXPORT cudaError_t cudaMemcpyPeerAsync(void *to, int to_device,
                                       const void *from, int from_device,
                                       size_t size, cudaStream_t stream)
{
    (void)to_device;
    (void)from_device;
    INSIDE(copy(FRAG_DRY_HOST, to, from, size, stream));
}

static cu_result fill(void *to, int value, size_t size)
{
    if (!may(FRAG_DRY_HOST, to, size))
        return cudaErrorIllegalAddress;
    if (frag_dry_has_contents())
        memset(to, value, size);
    else
        frag_dry_launched();
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

EXPORT cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *at)
{
    INSIDE(cuIpcGetMemHandle(out, (uintptr_t)at));
}

EXPORT cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle,
                                        unsigned flags)
{
    *out = NULL;
    INSIDE(cuIpcOpenMemHandle_v2((cu_address *)(void *)out, handle, flags));
}

EXPORT cudaError_t cudaIpcCloseMemHandle(void *at)
{
    INSIDE(cuIpcCloseMemHandle((uintptr_t)at));
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

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    INSIDE(cuStreamCreate(out, flags));
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
    frag_dry_note(DRY_GUESS, "time between two events: 1 us");
    *ms = 0.001f;
    return cudaSuccess;
}

/* ---- captures and graphs ---- */

EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
    graph_begin();
    INSIDE(cuStreamBeginCapture_v2(stream, mode));
}

EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    const cudaError_t code = answer(cuStreamEndCapture(stream, (void **)out));

    if (code == cudaSuccess)
        graph_end(capture_of(*out), device);
    return code;
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
    uint64_t id;
    int found;

    cuStreamGetCaptureInfo(stream, &found, &id);
    *status = found;
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, int *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
    const void **edges, size_t *count)
{
    uint64_t found = 0;
    int code;

    (void)dependencies;
    (void)edges;
    cuStreamGetCaptureInfo(stream, &code, &found);
    *status = code;
    if (id)
        *id = found;
    if (graph)
        *graph = NULL;
    if (count)
        *count = 0;
    return cudaSuccess;
}

/* The name of CUDA 12, which has no edges. */
EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(
    cudaStream_t stream, int *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies,
                                    NULL, count);
}

EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode)
{
    int code = *mode;

    cuThreadExchangeStreamCaptureMode(&code);
    *mode = code;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out,
                                                 cudaGraph_t graph,
                                                 unsigned long long flags)
{
    (void)flags;
    memcpy(out, &graph, sizeof(graph));
    graph_take(capture_of(graph));
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                        unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(out, graph, flags);
}

EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    frag_dry_queue(stream);
    frag_dry_launched();
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
    graph_return(capture_of(graph));
    return cudaSuccess;
}

/* ---- kernels ---- */

EXPORT cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                                    void **args, size_t shared,
                                    cudaStream_t stream)
{
    (void)grid;
    (void)block;
    (void)args;
    (void)shared;
    if (!kernels_find(function, frag_dry_gpu()).binary)
        return answer((cu_result)cudaErrorNoKernelImageForDevice);
    frag_dry_queue(stream);
    frag_dry_launched();
    INSIDE(CU_SUCCESS);
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
    const struct frag_gpu *g = frag_dry_gpu();
    const struct kernel_code code = kernels_find(function, g);

    if (!code.binary)
        return answer((cu_result)cudaErrorNoKernelImageForDevice);
    *out = (struct cudaFuncAttributes){.maxThreadsPerBlock = 1024,
                                       .binaryVersion = code.binary,
                                       .ptxVersion = code.ptx,
                                       .numRegs = 64,
                                       .maxDynamicSharedSizeBytes =
                                           g->shared_most};
    return cudaSuccess;
}

EXPORT cudaError_t cudaFuncSetAttribute(const void *function, int which,
                                        int value)
{
    (void)function;
    (void)which;
    (void)value;
    return cudaSuccess;
}

/* As many blocks as threads and dynamic shared memory leave room for, if their
 * registers and static shared memory, which are in the compiled code, do. */
EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *count, const void *function, int size, size_t shared)
{
    const struct frag_gpu *g = frag_dry_gpu();
    /* The system takes the memory that no block can request, for each block. */
    const int taken = (int)shared + g->shared_all - g->shared_most;

    (void)function;
    frag_dry_note(DRY_GUESS, "occupancy: registers of compiled code not read");
    *count = size > 0 ? g->threads / size : 0;
    *count = *count < g->blocks ? *count : g->blocks;
    if (taken > 0 && *count > g->shared_all / taken)
        *count = g->shared_all / taken;
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

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed;

EXPORT void **__cudaRegisterFatBinary(void *image)
{
    return (void **)kernels_add(image, frag_dry_gpu());
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

/* The other parameters are not used. */
EXPORT void __cudaRegisterFunction(void **handle, const void *function)
{
    kernels_name((struct kernels *)handle, function);
}

EXPORT void __cudaRegisterVar(void)
{
}

EXPORT char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *function)
{
    memcpy(out, &function, sizeof(function));
    return cudaSuccess;
}

EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid,
                                      dim3 block, void **args, size_t shared,
                                      cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block,
                                            size_t shared, cudaStream_t stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block,
                                              size_t *shared, void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    memcpy(stream, &pushed.stream, sizeof(pushed.stream));
    return cudaSuccess;
}
