/* graphs.c - intercepts the calls of CUDA graphs that concern memory: nodes
 * that allocate, launches, uploads and trims.
 *
 * A node only reserves addresses. The driver allocates memory for the graphs of
 * a device when it launches or uploads one, lets graphs share it, and keeps it
 * until a trim (cuda.h, cuDeviceGraphMemTrim). It reports only the sum of a
 * device, so the recorder reads that sum after each of these calls and logs
 * each change.
 */
#include <pthread.h>

#include "real/recorder/watch.h"

/* The devices on which a node or a captured call allocates. As long as there is
 * none, a launch costs one read of this mask. */
static _Atomic uint64_t devices;

static struct {
    pthread_mutex_t lock; /* orders the sums in the log as the driver's */
    uint64_t bytes[DRIVER_DEVICES];
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- nodes ---- */

driver_result graph_end(struct watch *w, driver_result result,
                        const driver_address *at)
{
    w->call.kind = RECORD_GRAPH;
    w->call.other = 0;
    result = watch_end_block(w, result, at);
    if (result == DRIVER_SUCCESS && w->call.device >= 0 &&
        w->call.device < DRIVER_DEVICES)
        atomic_fetch_or(&devices, (uint64_t)1 << w->call.device);
    return result;
}

static struct watch begin_node(const struct driver_graph_memory *memory)
{
    struct watch w = watch_begin(RECORD_GRAPH);

    if (memory && memory->place.location.type == DRIVER_ON_DEVICE)
        w.call.device = memory->place.location.device;
    w.call.bytes = memory ? memory->bytes : 0;
    return w;
}

driver_result cuGraphAddMemAllocNode(void **node, void *graph,
                                     const void *after, size_t count,
                                     struct driver_graph_memory *memory)
{
    struct watch w = begin_node(memory);

    return graph_end(&w,
                     DRIVER_PASS_ON(cuGraphAddMemAllocNode, node, graph, after,
                                    count, memory),
                     memory ? &memory->at : NULL);
}

static bool is_memory(const struct driver_node *like)
{
    return like && like->type == DRIVER_MEMORY_NODE;
}

driver_result cuGraphAddNode(void **node, void *graph, const void *after,
                             size_t count, struct driver_node *like)
{
    struct watch w;

    if (!is_memory(like))
        return DRIVER_PASS_ON(cuGraphAddNode, node, graph, after, count, like);
    w = begin_node(&like->memory);
    return graph_end(
        &w, DRIVER_PASS_ON(cuGraphAddNode, node, graph, after, count, like),
        &like->memory.at);
}

driver_result cuGraphAddNode_v2(void **node, void *graph, const void *after,
                                const void *edges, size_t count,
                                struct driver_node *like)
{
    struct watch w;

    if (!is_memory(like))
        return DRIVER_PASS_ON(cuGraphAddNode_v2, node, graph, after, edges,
                              count, like);
    w = begin_node(&like->memory);
    return graph_end(&w,
                     DRIVER_PASS_ON(cuGraphAddNode_v2, node, graph, after,
                                    edges, count, like),
                     &like->memory.at);
}

/* ---- the memory of launched graphs ---- */

/* Whether the driver reports the bytes that it holds for graphs. The query must
 * not end a capture of this or another thread, so it is made in relaxed mode
 * (cuda.h, cuThreadExchangeStreamCaptureMode). */
static bool read_held(const struct driver *d, int device, uint64_t *bytes)
{
    int mode = DRIVER_RELAXED;
    bool is_read;

    if (!d->cuDeviceGetGraphMemAttribute ||
        !d->cuThreadExchangeStreamCaptureMode ||
        d->cuThreadExchangeStreamCaptureMode(&mode) != DRIVER_SUCCESS)
        return false;
    is_read = d->cuDeviceGetGraphMemAttribute(device, DRIVER_GRAPHS_RESERVED,
                                              bytes) == DRIVER_SUCCESS;
    d->cuThreadExchangeStreamCaptureMode(&mode);
    return is_read;
}

static void log_held(const struct driver *d, int device)
{
    uint64_t bytes;
    struct watch w;

    pthread_mutex_lock(&held.lock);
    if (read_held(d, device, &bytes) && bytes != held.bytes[device]) {
        held.bytes[device] = bytes;
        w = watch_begin(RECORD_GRAPH_MEMORY);
        w.call.device = device;
        w.call.bytes = bytes;
        watch_end(&w, DRIVER_SUCCESS);
    }
    pthread_mutex_unlock(&held.lock);
}

driver_result graph_log_held(driver_result result)
{
    uint64_t left = atomic_load_explicit(&devices, memory_order_relaxed);

    for (int device = 0; left; device++, left >>= 1)
        if (left & 1)
            log_held(driver_get(), device);
    return result;
}

#define RUN(name)                                                   \
    driver_result name(void *graph, void *stream)                   \
    {                                                               \
        return graph_log_held(DRIVER_PASS_ON(name, graph, stream)); \
    }

RUN(cuGraphLaunch)
RUN(cuGraphLaunch_ptsz)
RUN(cuGraphUpload)
RUN(cuGraphUpload_ptsz)

driver_result cuDeviceGraphMemTrim(int device)
{
    return graph_log_held(DRIVER_PASS_ON(cuDeviceGraphMemTrim, device));
}
