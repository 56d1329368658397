/* record_driver_graphs.c - the stand-in's graphs: nodes that allocate,
 * launches, and the memory that the driver holds for graphs. As on an H100
 * (driver 580.159.04), the graphs of a device share that memory, except while
 * the program holds a block of one: then each graph has its own units of 32
 * MiB. It grows at a launch or an upload and shrinks only by a trim. */
#include "tests/gpu/record/record_driver.h"

enum { GRAPHS = 64, NODES = 4, UNIT = 32 << 20 };

struct graph {
    u64 bytes; /* of all nodes */
    struct node_memory {
        u64 at, size;
        bool is_open, is_live; /* the program frees it; it has not done so */
    } nodes[NODES];
    int device, count;
};

static struct graph graphs[GRAPHS];
static int graph_count;
static u64 held[DEVICES], held_max[DEVICES];

struct graph *new_graph(void)
{
    return &graphs[graph_count++ % GRAPHS];
}

int add_node(struct graph *graph, u64 *out, u64 size, int device, bool is_open)
{
    const int result = take_address(out, size);

    if (result != 0 || !graph)
        return result;
    if (graph->count == NODES)
        return OUT_OF_MEMORY;
    graph->nodes[graph->count++] =
        (struct node_memory){.at = *out, .size = size, .is_open = is_open};
    graph->bytes += size;
    graph->device = device;
    return 0;
}

/* The free of a block that a launch allocated. */
bool free_node(u64 at)
{
    for (int i = 0; i < GRAPHS; i++)
        for (int k = 0; k < graphs[i].count; k++)
            if (graphs[i].nodes[k].at == at && graphs[i].nodes[k].is_live) {
                graphs[i].nodes[k].is_live = false;
                return true;
            }
    return false;
}

int cuGraphCreate(void **graph, unsigned flags);
int cuGraphCreate(void **graph, unsigned flags)
{
    *graph = new_graph();
    return (int)flags;
}

struct graph_memory {
    struct props props;
    u64 rest[9];
    const void *access;
    size_t access_count, size;
    u64 at;
};

int cuGraphAddMemAllocNode(void **node, void *graph, const void *after,
                           size_t count, struct graph_memory *memory);
int cuGraphAddMemAllocNode(void **node, void *graph, const void *after,
                           size_t count, struct graph_memory *memory)
{
    (void)after;
    *node = (void *)0x7100;
    if (count)
        return INVALID_VALUE;
    LOCKED(add_node(graph, &memory->at, memory->size, memory->props.location_id,
                    true));
}

struct node {
    int type, reserved[3];
    struct graph_memory memory;
};

int cuGraphAddNode_v2(void **node, void *graph, const void *after,
                      const void *edges, size_t count, struct node *like);
int cuGraphAddNode_v2(void **node, void *graph, const void *after,
                      const void *edges, size_t count, struct node *like)
{
    (void)edges;
    *node = (void *)0x7200;
    if (like->type != 10)
        return 0;
    return cuGraphAddMemAllocNode(node, graph, after, count, &like->memory);
}

int cuGraphInstantiateWithFlags(void **run, void *graph, u64 flags);
int cuGraphInstantiateWithFlags(void **run, void *graph, u64 flags)
{
    *run = graph;
    return flags ? INVALID_VALUE : 0;
}

/* ---- launches ---- */

static u64 units_of(const struct graph *g)
{
    return (g->bytes + UNIT - 1) / UNIT * UNIT;
}

/* Whether the program holds a block of the graph. */
static bool is_held(const struct graph *g)
{
    for (int i = 0; i < g->count; i++)
        if (g->nodes[i].is_live)
            return true;
    return false;
}

/* Bytes of the units that graphs other than `but` cannot share now. */
static u64 units_in_use(int device, const struct graph *but)
{
    u64 bytes = 0;

    for (const struct graph *g = graphs; g < graphs + GRAPHS; g++)
        bytes +=
            g != but && g->device == device && is_held(g) ? units_of(g) : 0;
    return bytes;
}

static int back(const struct graph *g)
{
    const u64 wanted = units_of(g) + units_in_use(g->device, g);
    u64 *now = &held[g->device];

    if (wanted <= *now)
        return 0;
    if (wanted - *now > left[g->device])
        return OUT_OF_MEMORY;
    left[g->device] -= wanted - *now;
    *now = wanted;
    if (held_max[g->device] < wanted)
        held_max[g->device] = wanted;
    return 0;
}

static int launch(struct graph *g)
{
    if (is_held(g))
        return INVALID_VALUE;
    if (back(g) != 0)
        return OUT_OF_MEMORY;
    for (int i = 0; i < g->count; i++)
        g->nodes[i].is_live = g->nodes[i].is_open;
    return 0;
}

int cuGraphLaunch(struct graph *run, void *stream);
int cuGraphLaunch(struct graph *run, void *stream)
{
    (void)stream;
    LOCKED(launch(run));
}

int cuGraphUpload(struct graph *run, void *stream);
int cuGraphUpload(struct graph *run, void *stream)
{
    (void)stream;
    LOCKED(back(run));
}

static u64 in_use(int device)
{
    u64 bytes = 0;

    for (int i = 0; i < GRAPHS; i++)
        for (int k = 0; k < graphs[i].count; k++)
            if (graphs[i].device == device && graphs[i].nodes[k].is_live)
                bytes += graphs[i].nodes[k].size;
    return bytes;
}

static int trim(int device)
{
    const u64 kept = units_in_use(device, NULL);

    if (kept < held[device]) {
        left[device] += held[device] - kept;
        held[device] = kept;
    }
    return 0;
}

int cuDeviceGraphMemTrim(int device);
int cuDeviceGraphMemTrim(int device)
{
    LOCKED(trim(device));
}

static int attribute(int device, int which, u64 *value)
{
    const u64 values[] = {in_use(device), 0, held[device], held_max[device]};

    spoil_capture();
    if (which < 0 || which > 3)
        return INVALID_VALUE;
    *value = values[which];
    return 0;
}

int cuDeviceGetGraphMemAttribute(int device, int which, void *value);
int cuDeviceGetGraphMemAttribute(int device, int which, void *value)
{
    LOCKED(attribute(device, which, value));
}
