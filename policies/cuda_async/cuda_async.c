/* cuda_async.c - the cuda_async policy: cudaMallocAsync, the CUDA driver's
 * stream-ordered memory pool.
 *
 * The driver's rules are not public. NVIDIA documents these attributes (CUDA
 * C++ Programming Guide, "Stream Ordered Memory Allocator"): the release
 * threshold, 0 by default, and three ways for a stream to reuse memory that
 * another stream has freed. All other rules come from measurements:
 * cuMemPoolGetAttribute and the addresses of small scripts on an H200, driver
 * 580.159.04 (CUDA 13.0). Other drivers may differ.
 *
 * Measured: requests are rounded up to 512 bytes. Blocks lie in one address
 * space. A block gets the low part of the smallest hole that fits, whether the
 * hole has memory or not; if no hole fits, the block goes to the end. Memory is
 * mapped in pages of 32 MiB where a block lacks it: whole free pages of other
 * holes are remapped before new pages are created. A freed block merges with
 * its free neighbours. When the client synchronizes, whole free pages are
 * released, the highest first, while the pool holds more than the threshold.
 *
 * Streams: a hole serves the stream that freed it. It serves another stream
 * once the work before the free is known to be done (`opportunistic`), and
 * after a synchronization. When the device refuses more memory, it serves
 * another stream even earlier, by a wait of that stream (`internal`);
 * measurements show that the driver grows first. A trace does not show when
 * work is done: with `opportunistic` the work counts as done at the free. A
 * trace does not show the events between streams either, so the third way is
 * not modelled. Nor does it show when the client synchronized: a trim is a
 * synchronization, and `sync` is an assumed number of requests between two
 * others.
 *
 * Our choice, where measurements show nothing: among equal holes the lowest one
 * (the driver: the one freed first, after a synchronization the one freed last;
 * between a hole of the stream and a common one, that of the stream); pages are
 * remapped from the largest hole, its high end first. The policy ignores pools.
 */
#include "policies/cuda_async/state.h"
#include "policies/mechanism/segments.h"

#include <stdlib.h>

static enum frag_err init(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    p->page = frag_round_up(p->page, heap->mem->granularity);
    p->span = frag_round_up(p->span, p->page);
    p->nodes.size = sizeof(struct async_block);
    return FRAG_OK;
}

/* Reserves the address space at the first request. */
static enum frag_err reserve_span(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    if (p->base)
        return FRAG_OK;
    FRAG_TRY(heap->mem->ops->va_reserve(heap->mem, p->span, &p->base));
    p->end = nodes_take(&p->nodes);
    *p->end = (struct async_block){.node = {.addr = p->base, .size = p->span}};
    return FRAG_OK;
}

/* ---- blocks ---- */

/* Unlinks a block whose range a neighbour has absorbed, and frees its record.
 * The block is in no set. */
static void drop_record(struct cuda_async *p, struct async_block *t)
{
    if (t->below)
        t->below->above = t->above;
    t->above->below = t->below;
    nodes_put(&p->nodes, t);
}

/* Turns a block that is in no set into a hole of `home`, merged with neighbours
 * in the same holes. */
static void add_hole(struct cuda_async *p, struct async_block *t,
                     struct async_holes *home)
{
    struct async_block *below = t->below, *above = t->above;

    if (below && below->home == home) {
        free_set_remove(&home->set, &below->node);
        t->node.addr = below->node.addr;
        t->node.size += below->node.size;
        drop_record(p, below);
    }
    if (above == p->end && home == &p->common) {
        above->node.addr = t->node.addr;
        above->node.size += t->node.size;
        drop_record(p, t);
        return;
    }
    if (above->home == home) {
        free_set_remove(&home->set, &above->node);
        t->node.size += above->node.size;
        drop_record(p, above);
    }
    t->home = home;
    free_set_insert(&home->set, &t->node);
}

/* Splits the low `size` bytes off a block that is in no set. */
static struct async_block *split_low(struct cuda_async *p,
                                     struct async_block *t, frag_size size)
{
    struct async_block *low = nodes_take(&p->nodes);

    *low = (struct async_block){.node = {.addr = t->node.addr, .size = size},
                                .below = t->below,
                                .above = t};
    if (t->below)
        t->below->above = low;
    t->below = low;
    t->node.addr += size;
    t->node.size -= size;
    return low;
}

/* Makes the low `size` bytes of a free block a used block. */
static struct async_block *use_low(struct cuda_async *p, struct async_block *t,
                                   frag_size size)
{
    struct async_holes *home = t->home;

    if (t == p->end)
        return split_low(p, t, size);
    free_set_remove(&home->set, &t->node);
    if (t->node.size > size) {
        struct async_block *low = split_low(p, t, size);

        free_set_insert(&home->set, &t->node);
        return low;
    }
    t->home = NULL;
    return t;
}

/* The smallest hole that fits and that the stream may use, else the end; NULL:
 * no room. */
static struct async_block *
choose(struct cuda_async *p, const struct async_holes *holes, frag_size size)
{
    struct free_node *own = free_set_fit(&holes->set, size);
    struct free_node *other = free_set_fit(&p->common.set, size);

    if (!own || (other && other->size < own->size))
        own = other;
    if (!own && p->end->node.size >= size)
        return p->end;
    return (struct async_block *)own;
}

/* ---- streams ---- */

/* The holes that a stream's blocks join when freed, created if necessary; NULL
 * if the host has no memory. */
static struct async_holes *holes_of(struct cuda_async *p, frag_stream stream)
{
    struct async_holes *h = p->streams;

    if (p->opportunistic)
        return &p->common;
    while (h && h->stream != stream)
        h = h->next;
    if (h)
        return h;
    h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->stream = stream;
    h->next = p->streams;
    p->streams = h;
    return h;
}

/* Makes all holes common; true if at least one was not. */
static bool share_all(struct cuda_async *p)
{
    bool any = false;

    for (struct async_holes *h = p->streams; h; h = h->next) {
        struct free_node *n;

        while ((n = free_set_first(&h->set)) != NULL) {
            free_set_remove(&h->set, n);
            add_hole(p, (struct async_block *)n, &p->common);
            any = true;
        }
    }
    return any;
}

/* Models a synchronization of the client. */
static void synchronize(struct frag_heap *heap, frag_size keep)
{
    struct cuda_async *p = heap->state;

    p->requests = 0;
    share_all(p);
    if (p->base)
        cuda_async_shrink(heap, keep);
}

/* ---- the policy ---- */

/* Selects free addresses, maps memory under them, and makes the used block. */
static enum frag_err place(struct frag_heap *heap, struct async_holes *holes,
                           frag_size size, struct async_block **out)
{
    struct cuda_async *p = heap->state;
    struct async_block *t = choose(p, holes, size);

    if (!t)
        return FRAG_OOM;
    FRAG_TRY(cuda_async_back(heap, holes, t->node.addr, size));
    *out = use_low(p, t, size);
    return FRAG_OK;
}

static enum frag_err cuda_async_alloc(struct frag_heap *heap,
                                      const struct frag_request *req,
                                      struct frag_block *out)
{
    struct cuda_async *p = heap->state;
    const frag_size size = whole_quanta(req->size);
    struct async_holes *holes = holes_of(p, req->stream);
    struct async_block *t;
    enum frag_err err;

    if (!holes)
        return FRAG_NOMEM;
    FRAG_TRY(nodes_reserve(&p->nodes, 2));
    FRAG_TRY(reserve_span(heap));
    if (p->sync && p->requests == p->sync)
        synchronize(heap, p->threshold);
    p->requests++;
    err = place(heap, holes, size, &t);
    if (err == FRAG_OOM && p->internal && share_all(p))
        err = place(heap, holes, size, &t);
    if (err != FRAG_OK)
        return err;
    t->owner = holes;
    *out = (struct frag_block){t->node.addr, size, t};
    return FRAG_OK;
}

static void cuda_async_free(struct frag_heap *heap,
                            const struct frag_block *block)
{
    struct async_block *t = block->node;

    add_hole(heap->state, t, t->owner);
}

static void cuda_async_trim(struct frag_heap *heap)
{
    synchronize(heap, 0);
}

static void fini(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    cuda_async_return_all(heap);
    if (p->base)
        heap->mem->ops->va_free(heap->mem, p->base, p->span);
    while (p->streams) {
        struct async_holes *h = p->streams;

        p->streams = h->next;
        free(h);
    }
    nodes_release(&p->nodes);
}

static const struct frag_param params[] = {
    {
        .name = "page",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct cuda_async, page),
        .init = "32MiB",
        .min = FRAG_QUANTUM,
        .max = 0x1p40,
        .help = "bytes of a page, rounded up to the device's granularity",
    },
    {
        .name = "threshold",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct cuda_async, threshold),
        .init = "0",
        .min = 0,
        .max = 0x1p64,
        .help = "release threshold: bytes that the pool keeps at a "
                "synchronization",
    },
    {
        .name = "sync",
        .kind = FRAG_PARAM_NUMBER,
        .offset = offsetof(struct cuda_async, sync),
        .init = "0",
        .min = 0,
        .max = 0x1p53,
        .help = "requests between two assumed synchronizations; 0: only a trim "
                "is a synchronization",
    },
    {
        .name = "opportunistic",
        .kind = FRAG_PARAM_SWITCH,
        .offset = offsetof(struct cuda_async, opportunistic),
        .init = "yes",
        .help =
            "a freed block serves other streams at once: its work counts as "
            "done",
    },
    {
        .name = "internal",
        .kind = FRAG_PARAM_SWITCH,
        .offset = offsetof(struct cuda_async, internal),
        .init = "yes",
        .help = "a freed block serves other streams when the device is full: "
                "they wait for its work",
    },
    {
        .name = "span",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct cuda_async, span),
        .init = "1TiB",
        .min = 0x1p21,
        .max = 0x1p44,
        .help = "bytes of address space that the pool reserves in total",
    },
    {.name = NULL},
};

const struct frag_policy frag_policy_cuda_async = {
    .name = "cuda_async",
    .summary = "cudaMallocAsync: pages of 32 MiB, remapped under best fit",
    .source = "not public; CUDA C++ Programming Guide, and measured on an "
              "H200, driver 580.159",
    .needs = FRAG_NEEDS_VMM,
    .state_size = sizeof(struct cuda_async),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = cuda_async_alloc,
    .free = cuda_async_free,
    .trim = cuda_async_trim,
};
