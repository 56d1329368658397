/* mixed.c - a scenario for the recorder: all kinds of calls that allocate and
 * release memory, in random order. The expected trace comes from a list that is
 * searched from end to end. The environment variable SEED (default 1) selects
 * the order. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/gpu/record/record_program.h"

enum { STEPS = 6000, HELD = 4000, CONTEXTS = 6, PAGE = 2 << 20 };

enum form { BLOCK, IN_ORDER, ARRAY, PHYSICAL, FOREIGN, GRAPH };

static struct faulty_memory {
    enum form form;
    u64 at;        /* address or handle */
    void *context; /* the context that frees it, or NULL */
    unsigned number;
    bool is_there;
} held[HELD];
static int held_count;

static void *contexts[CONTEXTS]; /* NULL: does not exist; the first one is
                                  * primary */
static int here;
static u64 random_state;

static unsigned pick(unsigned count)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % count;
}

static void hold(enum form form, u64 at, void *context, unsigned number)
{
    if (held_count == HELD)
        exit(9);
    held[held_count++] =
        (struct faulty_memory){form, at, context, number, true};
}

static void *find(const char *name)
{
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}

/* ---- allocations ---- */

static void take_block(void)
{
    const size_t bytes = 1 + pick(5) * (size_t)100000;
    size_t pitch;
    u64 at;

    switch (pick(3)) {
    case 0:
        MUST(cu.cuMemAlloc_v2(&at, bytes));
        hold(BLOCK, at, contexts[here], expect_alloc(bytes, NULL));
        break;
    case 1:
        MUST(cu.cuMemAllocPitch_v2(&at, &pitch, bytes, 3, 4));
        hold(BLOCK, at, contexts[here], expect_alloc(pitch * 3, NULL));
        break;
    default:
        MUST(cu.cuMemAllocManaged(&at, bytes, 1));
        hold(BLOCK, at, contexts[here], expect_alloc(bytes, NULL));
    }
}

static void take_in_order(void)
{
    u64 at;

    MUST(cu.cuMemAllocAsync(&at, 300000, NULL));
    hold(IN_ORDER, at, NULL, expect_alloc(300000, NULL));
}

static void take_array(void)
{
    const struct array_3d_like like = {1 + pick(50), pick(3), 0, 0x20, 2, 0};
    const size_t rows = like.height ? like.height : 1;
    void *array;

    MUST(cu.cuArray3DCreate_v2(&array, &like));
    hold(ARRAY, (u64)(uintptr_t)array, contexts[here],
         expect_alloc(like.width * rows * 8, NULL));
}

static void take_physical(void)
{
    struct props props = {.type = 1, .location_type = 1};
    u64 handle;

    MUST(cu.cuMemCreate(&handle, PAGE, &props, 0));
    hold(PHYSICAL, handle, NULL, expect_alloc(PAGE, NULL));
}

static void take_from_others(void)
{
    int (*import)(u64 *, void *, void *);
    u64 at;

    *(void **)&import = find("cuMemPoolImportPointer");
    MUST(import(&at, NULL, NULL));
    hold(FOREIGN, at, NULL, 0);
}

/* A launch would allocate it, and a free in stream order would release it. */
static void take_in_graph(void)
{
    struct graph_memory memory = {.bytes = 1 << 20};
    void *node;

    MUST(cu.cuGraphAddMemAllocNode(&node, NULL, NULL, 0, &memory));
    hold(GRAPH, memory.at, NULL, 0);
}

static void take_too_much(void)
{
    u64 at;

    if (cu.cuMemAlloc_v2(&at, too_much) != 2)
        exit(9);
    expect_failure(too_much);
}

static void (*const takes[])(void) = {
    take_block,    take_block,       take_block,    take_in_order, take_array,
    take_physical, take_from_others, take_in_graph, take_too_much,
};

/* ---- frees ---- */

static void give(struct faulty_memory *h)
{
    switch (h->form) {
    case BLOCK:
    case FOREIGN:
        MUST(cu.cuMemFree_v2(h->at));
        break;
    case IN_ORDER:
        MUST(cu.cuMemFreeAsync(h->at, NULL));
        break;
    case ARRAY:
        MUST(cu.cuArrayDestroy((void *)(uintptr_t)h->at));
        break;
    case PHYSICAL:
        MUST(cu.cuMemRelease(h->at));
        break;
    case GRAPH: /* the stand-in for the driver has no launch */
        break;
    }
    h->is_there = false;
    if (h->number)
        expect_free(h->number);
}

static void give_any(void)
{
    for (int tries = 0; held_count && tries < 20; tries++) {
        struct faulty_memory *h = &held[pick((unsigned)held_count)];

        if (h->is_there) {
            give(h);
            return;
        }
    }
}

/* The memory of a context is freed in the order of addresses, then arrays in
 * the order of handles. */
static void expect_all_gone(const void *context)
{
    for (;;) {
        struct faulty_memory *next = NULL;

        for (struct faulty_memory *h = held; h < held + held_count; h++)
            if (h->is_there && h->context == context &&
                (!next || h->form < next->form ||
                 (h->form == next->form && h->at < next->at)))
                next = h;
        if (!next)
            return;
        next->is_there = false;
        expect_free(next->number);
    }
}

/* ---- contexts ---- */

static void go_to(int context)
{
    here = context;
    MUST(cu.cuCtxSetCurrent(contexts[here]));
}

static void make_or_enter(void)
{
    int (*create)(void **, unsigned, int);
    const int i = (int)pick(CONTEXTS);

    *(void **)&create = find("cuCtxCreate_v2");
    if (!contexts[i])
        MUST(create(&contexts[i], 0, 0));
    go_to(i);
}

static void destroy(void)
{
    const int i = 1 + (int)pick(CONTEXTS - 1);

    if (!contexts[i])
        return;
    MUST(cu.cuCtxDestroy_v2(contexts[i]));
    expect_all_gone(contexts[i]);
    contexts[i] = NULL;
    go_to(0);
}

/* One of two retains of the primary context is released: the context stays. */
static void hold_and_let_go(void)
{
    void *again;

    MUST(cu.cuDevicePrimaryCtxRetain(&again, 0));
    MUST(cu.cuDevicePrimaryCtxRelease_v2(0));
}

static void end_primary(void)
{
    if (pick(2))
        MUST(cu.cuDevicePrimaryCtxReset_v2(0));
    MUST(cu.cuDevicePrimaryCtxRelease_v2(0));
    expect_all_gone(contexts[0]);
    start();
    here = 0;
}

void run_mixed(void)
{
    const char *seed = getenv("SEED");

    random_state = seed ? strtoull(seed, NULL, 10) : 1;
    MUST(cu.cuDevicePrimaryCtxRetain(&contexts[0], 0));
    MUST(cu.cuDevicePrimaryCtxRelease_v2(0));
    for (int step = 0; step < STEPS; step++) {
        const unsigned what = pick(100);

        if (what < 48)
            takes[pick(sizeof(takes) / sizeof(*takes))]();
        else if (what < 90)
            give_any();
        else if (what < 96)
            make_or_enter();
        else if (what < 97)
            hold_and_let_go();
        else if (what < 99)
            destroy();
        else
            end_primary();
    }
}
