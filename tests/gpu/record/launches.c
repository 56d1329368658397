/* launches.c - a recorded program's launches of graphs that allocate, and its
 * green contexts: `launches` and `green` of record_program.c. */
#include "tests/gpu/record/record_program.h"

/* ---- graphs ---- */

/* The blocks that the trace must have for the memory held for graphs. */
static struct {
    unsigned number;
    u64 bytes;
} blocks[16];
static int count;
static u64 sum;

static void push(u64 bytes)
{
    blocks[count].number = expect_alloc(bytes, NULL);
    blocks[count++].bytes = bytes;
    sum += bytes;
}

/* Asks the driver how much it holds for graphs of device 0 now. */
static void expect_held(void)
{
    enum { RESERVED_NOW = 2 };
    u64 bytes;

    MUST(cu.cuDeviceGetGraphMemAttribute(0, RESERVED_NOW, &bytes));
    while (sum > bytes) {
        expect_free(blocks[--count].number);
        sum -= blocks[count].bytes;
    }
    if (bytes > sum)
        push(bytes - sum);
}

static void *captured(void *stream, size_t bytes)
{
    void *graph, *run;
    u64 at;

    MUST(cu.cuStreamBeginCapture_v2(stream, 0));
    MUST(cu.cuMemAllocAsync(&at, bytes, stream));
    MUST(cu.cuMemsetD32Async(at, 7, bytes / 4, stream));
    MUST(cu.cuMemFreeAsync(at, stream));
    MUST(cu.cuStreamEndCapture(stream, &graph));
    MUST(cu.cuGraphInstantiateWithFlags(&run, graph, 0));
    return run;
}

/* A graph whose memory the program frees. */
static void *built(size_t bytes, u64 *at)
{
    struct graph_memory memory = {.props = {.type = 1, .location_type = 1},
                                  .bytes = bytes};
    void *graph, *node, *run;

    MUST(cu.cuGraphCreate(&graph, 0));
    MUST(cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &memory));
    MUST(cu.cuGraphInstantiateWithFlags(&run, graph, 0));
    *at = memory.at;
    return run;
}

static void launch(void *run, void *stream)
{
    MUST(cu.cuGraphLaunch(run, stream));
    MUST(cu.cuCtxSynchronize());
    expect_held();
}

static void trim(void)
{
    MUST(cu.cuCtxSynchronize());
    MUST(cu.cuDeviceGraphMemTrim(0));
    expect_held();
    mark(1 << 20);
}

/* A launch beside a capture in global mode must not end the capture. */
static void launch_beside_capture(void *run, void *stream, void *other)
{
    void *graph;

    MUST(cu.cuStreamBeginCapture_v2(other, 0));
    MUST(cu.cuGraphLaunch(run, stream));
    MUST(cu.cuStreamEndCapture(other, &graph));
    MUST(cu.cuCtxSynchronize());
    expect_held();
}

void run_launches(void)
{
    void *stream, *other, *small, *large;
    u64 at;

    MUST(cu.cuStreamCreate(&stream, 1));
    MUST(cu.cuStreamCreate(&other, 1));
    small = captured(stream, 3 << 20);
    large = built((size_t)200 << 20, &at);
    mark(1 << 20);
    launch(small, stream);
    launch(small, stream);
    launch(large, stream);
    launch_beside_capture(small, stream, other);
    trim(); /* the program has not freed the large block yet */
    MUST(cu.cuMemFreeAsync(at, stream));
    launch(small, stream);
    trim();
    MUST(cu.cuGraphUpload(small, stream));
    MUST(cu.cuCtxSynchronize());
    expect_held();
    launch(small, stream);
    trim();
}

/* ---- green contexts ---- */

static void *green_context(void **green)
{
    struct resource resource = {{0}};
    void *description, *context;

    MUST(cu.cuDeviceGetDevResource(0, &resource, 1));
    MUST(cu.cuDevResourceGenerateDesc(&description, &resource, 1));
    MUST(cu.cuGreenCtxCreate(green, description, 0, 1));
    MUST(cu.cuCtxFromGreenCtx(&context, *green));
    return context;
}

/* The memory of a green context is the primary context's: it outlives the green
 * context, and ends with the primary context, which a green context retains. */
void run_green(void)
{
    void *primary, *green[2], *context;
    u64 a, b, c;

    MUST(cu.cuDevicePrimaryCtxRetain(&primary, 0));
    MUST(cu.cuDevicePrimaryCtxRelease_v2(0));
    MUST(cu.cuMemAlloc_v2(&a, 1 << 20));
    expect_alloc(1 << 20, NULL);
    context = green_context(&green[0]);
    MUST(cu.cuCtxSetCurrent(context));
    MUST(cu.cuMemAlloc_v2(&b, 2 << 20));
    expect_alloc(2 << 20, NULL);
    MUST(cu.cuCtxSetCurrent(primary));
    MUST(cu.cuGreenCtxDestroy(green[0]));
    mark(3 << 20);
    MUST(cu.cuMemFree_v2(b));
    expect_free(2);
    context = green_context(&green[1]);
    MUST(cu.cuCtxSetCurrent(context));
    MUST(cu.cuMemAlloc_v2(&c, 4 << 20));
    expect_alloc(4 << 20, NULL);
    MUST(cu.cuCtxSetCurrent(NULL));
    MUST(cu.cuDevicePrimaryCtxRelease_v2(0)); /* not the last one */
    MUST(cu.cuGreenCtxDestroy(green[1]));
    expect_free(1);
    expect_free(3);
    expect_free(4);
}
