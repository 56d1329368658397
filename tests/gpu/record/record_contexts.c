/* record_contexts.c - scenarios for the recorder: memory that ends with its
 * context, and memory that is not a block of the program's own. */
#include <dlfcn.h>
#include <stdint.h>

#include "tests/gpu/record/record_program.h"

enum { FLOAT = 0x20, BC1 = 0x91, SPARSE = 0x40, LAYERED = 0x01 };

/* Calls whose version is not that of cuGetProcAddress for CUDA 12.0. */
static void *find(const char *name)
{
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}

static void *make_context(void)
{
    int (*create)(void **, unsigned, int);
    void *context;

    *(void **)&create = find("cuCtxCreate_v2");
    MUST(create(&context, 0, 0));
    return context;
}

/* Two blocks that were freed together, the lower address first. */
static void expect_both_free(u64 a, unsigned number_a, u64 b, unsigned number_b)
{
    expect_free(a < b ? number_a : number_b);
    expect_free(a < b ? number_b : number_a);
}

/* Memory of a context is freed with it; memory allocated in stream order
 * stays. */
void run_contexts(void)
{
    void *primary, *other;
    u64 a, b, c, in_order;

    MUST(cu.cuDevicePrimaryCtxRetain(&primary, 0)); /* the second time */
    MUST(cu.cuMemAlloc_v2(&a, 1 << 20));
    expect_alloc(1 << 20, NULL);
    other = make_context();
    MUST(cu.cuMemAlloc_v2(&b, 2 << 20));
    expect_alloc(2 << 20, NULL);
    MUST(cu.cuMemAllocManaged(&c, 3 << 20, 1));
    expect_alloc(3 << 20, NULL);
    MUST(cu.cuMemAllocAsync(&in_order, 5000, NULL));
    expect_alloc(5000, NULL);
    MUST(cu.cuCtxSynchronize());
    MUST(cu.cuCtxDestroy_v2(other));
    expect_both_free(b, 2, c, 3);
    if (cu.cuCtxDestroy_v2(NULL) == 0) /* fails, and frees nothing */
        exit(9);

    MUST(cu.cuCtxSetCurrent(primary));
    MUST(cu.cuMemFreeAsync(in_order, NULL));
    expect_free(4);
    MUST(cu.cuDevicePrimaryCtxRelease_v2(0));
    mark(1 << 20); /* still exists: block 5 */
    MUST(cu.cuMemAlloc_v2(&b, 4 << 20));
    expect_alloc(4 << 20, NULL);
    MUST(cu.cuMemFree_v2(b));
    expect_free(6);
    MUST(cu.cuDevicePrimaryCtxRelease_v2(0));
    expect_free(1);
    expect_free(5);

    start();
    MUST(cu.cuMemAlloc_v2(&a, 1 << 20));
    expect_alloc(1 << 20, NULL);
    MUST(cu.cuDevicePrimaryCtxReset_v2(0));
    expect_free(7);
}

void run_arrays(void)
{
    const struct array_like flat = {100, 20, FLOAT, 2};
    const struct array_3d_like cube = {64, 32, 16, FLOAT, 1, 0},
                               layers = {64, 0, 6, 1, 4, LAYERED};
    void *a, *b, *c, *d;

    MUST(cu.cuArrayCreate_v2(&a, &flat));
    expect_alloc(100 * 20 * 2 * 4, NULL);
    MUST(cu.cuArray3DCreate_v2(&b, &cube));
    expect_alloc(64 * 32 * 16 * 4, NULL);
    MUST(cu.cuMipmappedArrayCreate(&c, &cube, 3));
    expect_alloc((64 * 32 * 16 + 32 * 16 * 8 + 16 * 8 * 4) * 4, NULL);
    MUST(cu.cuMipmappedArrayCreate(&d, &layers, 2));
    expect_alloc((64 + 32) * 6 * 4, NULL);
    if (cu.cuArrayDestroy(NULL) == 0)
        exit(9);
    MUST(cu.cuArrayDestroy(b));
    expect_free(2);
    MUST(cu.cuMipmappedArrayDestroy(c));
    expect_free(3);
    MUST(cu.cuMipmappedArrayDestroy(d));
    expect_free(4);
    MUST(cu.cuDevicePrimaryCtxReset_v2(0));
    expect_free(1);
}

/* The trace has no memory of a graph that is not launched. */
void run_graphs(void)
{
    struct graph_memory memory = {.props = {.type = 1, .location_type = 1},
                                  .bytes = 1 << 20};
    void *stream, *graph, *node;
    u64 at;

    MUST(cu.cuStreamCreate(&stream, 1));
    MUST(cu.cuStreamBeginCapture_v2(stream, 0));
    MUST(cu.cuMemAllocAsync(&at, 1 << 20, stream));
    MUST(cu.cuMemFreeAsync(at, stream));
    MUST(cu.cuStreamEndCapture(stream, &graph));
    mark(1 << 20);
    MUST(cu.cuMemAllocAsync(&at, 5000, stream));
    expect_alloc(5000, stream);
    MUST(cu.cuGraphCreate(&graph, 0));
    MUST(cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &memory));
    MUST(cu.cuMemFreeAsync(at, stream));
    expect_free(2);
}

/* Requests use the pool that was set; if it was destroyed, the device's own
 * pool. */
static void use_pools(void)
{
    struct props props = {.type = 1, .location_type = 1};
    void *pool, *used;
    u64 a, b, c;

    MUST(cu.cuMemPoolCreate(&pool, &props));
    MUST(cu.cuDeviceSetMemPool(0, pool));
    MUST(cu.cuMemAllocAsync(&a, 1000, NULL));
    expect_alloc(1000, NULL);
    MUST(cu.cuMemPoolCreate(&pool, &props));
    MUST(cu.cuDeviceSetMemPool(0, pool));
    MUST(cu.cuMemPoolDestroy(pool));
    MUST(cu.cuMemAllocAsync(&b, 2000, NULL));
    expect_alloc(2000, NULL);
    MUST(cu.cuDeviceGetMemPool(&used, 0));
    MUST(cu.cuMemAllocFromPoolAsync(&c, 3000, used, NULL));
    expect_alloc(3000, NULL);
}

static void use_memory_of_others(void)
{
    struct ipc {
        char bytes[64];
    } shared = {"x"};
    int (*open)(u64 *, struct ipc, unsigned), (*close)(u64);
    int (*import)(u64 *, void *, int), (*multicast)(u64 *, const void *);
    int (*point)(u64 *, void *, void *), (*buffer)(u64 *, void *, const void *);
    u64 at, handle, address = 0x100000000;

    *(void **)&open = find("cuIpcOpenMemHandle_v2");
    *(void **)&close = find("cuIpcCloseMemHandle");
    *(void **)&import = find("cuMemImportFromShareableHandle");
    *(void **)&multicast = find("cuMulticastCreate");
    *(void **)&point = find("cuMemPoolImportPointer");
    *(void **)&buffer = find("cuExternalMemoryGetMappedBuffer");
    MUST(open(&at, shared, 1));
    MUST(close(at));
    MUST(import(&handle, NULL, 1));
    MUST(cu.cuMemMap(address, 2 << 20, 0, handle, 0));
    MUST(cu.cuMemUnmap(address, 2 << 20));
    MUST(cu.cuMemRelease(handle));
    MUST(multicast(&handle, NULL));
    MUST(cu.cuMemRelease(handle));
    MUST(point(&at, NULL, NULL));
    MUST(cu.cuMemFreeAsync(at, NULL));
    MUST(buffer(&at, NULL, NULL));
    MUST(cu.cuMemFree_v2(at));
}

/* Calls that the trace cannot hold and must mention. */
static void use_what_is_not_recorded(void)
{
    const struct array_3d_like packed = {64, 64, 0, BC1, 4, 0},
                               sparse = {64, 64, 0, FLOAT, 4, SPARSE};
    int (*get)(const char *, void **, int, u64, int *);
    int (*alloc)(u64 *, size_t, int), (*map)(void *, unsigned, void *);
    void *array;
    int status;
    u64 at;

    MUST(cu.cuArray3DCreate_v2(&array, &packed));
    MUST(cu.cuArrayDestroy(array));
    MUST(cu.cuArray3DCreate_v2(&array, &sparse));
    MUST(cu.cuArrayDestroy(array));
    *(void **)&get = find("cuGetProcAddress_v2");
    MUST(get("cuMemAlloc", (void **)&alloc, 99000, 0, &status));
    MUST(alloc(&at, 1 << 20, 7));
    *(void **)&map = find("cuMemMapArrayAsync");
    MUST(map(&at, 1, NULL));
    MUST(map(&at, 1, NULL));
}

typedef int take(u64 *, size_t);

static void take_by(void *found)
{
    take *alloc;
    u64 at;

    *(void **)&alloc = found;
    MUST(alloc(&at, 4096));
    expect_alloc(4096, NULL);
}

/* Other ways to find the driver: its file by name, dlsym without a library, and
 * the first version of cuGetProcAddress, in an environment that is empty by
 * then. */
void run_ways(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found;
    int (*get)(const char *, void **, int, u64);
    Dl_info file;

    clearenv();
    *(void **)&get = dlsym(driver, "cuGetProcAddress");
    MUST(get("cuMemAlloc", &found, 11000, 0));
    take_by(found);
    take_by(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    if (!dladdr(find("cuMemGetInfo_v2"), &file))
        exit(9);
    take_by(dlsym(dlopen(file.dli_fname, RTLD_LAZY), "cuMemAlloc_v2"));
}

/* No request at all: the trace would be empty. */
void run_unread(void)
{
    int (*map)(void *, unsigned, void *);

    *(void **)&map = find("cuMemMapArrayAsync");
    MUST(map(&map, 1, NULL));
}

void run_others(void)
{
    use_pools();
    use_memory_of_others();
    use_what_is_not_recorded();
    mark(1 << 20);
}
