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
 * space. A block gets the low part of the smallest hole that fits, among equals
 * of the one that became a hole first. Holes of which all pages have memory
 * come before all others, also if they are larger. If no hole fits, the block
 * goes to the end. Memory is mapped in pages of 32 MiB where a block lacks it:
 * whole free pages of other holes are remapped before new pages are created. A
 * freed block merges with its free neighbours; the result counts as a new
 * hole, and so does the remainder of a hole that was split. With a
 * synchronization after every free, every change of the pool's size is as on an
 * H100 (driver 580.159.04) in 40 of 40 replays of recordings. When the client
 * synchronizes, whole free pages are released, the highest first, while the
 * pool holds more than the threshold.
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
 * Our choice, where measurements show nothing: pages are remapped from the
 * largest hole, its high end first. The policy ignores pools.
 *
 * Without a synchronization the real pool holds more, up to 1.7 times as much,
 * because it does not know what is done: memory of a free whose completion it
 * has not seen is neither remapped nor merged. How much depends on the program
 * and on how far the host runs ahead of the device; a trace shows neither.
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
    *p->end = (struct async_block){.node = {.size = p->span}, .addr = p->base};
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

/* Turns a block that is in no set into a new hole of `home`, merged with
 * neighbours in the same holes. */
static void add_hole(struct cuda_async *p, struct async_block *t,
                     struct async_holes *home)
{
    struct async_block *below = t->below, *above = t->above;

    if (below && below->home == home) {
        cuda_async_unfile(below);
        t->addr = below->addr;
        t->node.size += below->node.size;
        drop_record(p, below);
    }
    if (above == p->end && home == &p->common) {
        above->addr = t->addr;
        above->node.size += t->node.size;
        drop_record(p, t);
        return;
    }
    if (above->home == home) {
        cuda_async_unfile(above);
        t->node.size += above->node.size;
        drop_record(p, above);
    }
    t->node.addr = ++p->ages;
    cuda_async_file(p, t, home);
}

/* Splits the low `size` bytes off a block that is in no set. */
static struct async_block *split_low(struct cuda_async *p,
                                     struct async_block *t, frag_size size)
{
    struct async_block *low = nodes_take(&p->nodes);

    *low = (struct async_block){
        .node = {.size = size}, .addr = t->addr, .below = t->below, .above = t};
    if (t->below)
        t->below->above = low;
    t->below = low;
    t->addr += size;
    t->node.size -= size;
    return low;
}

/* Makes the low `size` bytes of a free block, which have memory, a used
 * block. */
static struct async_block *use_low(struct cuda_async *p, struct async_block *t,
                                   frag_size size)
{
    struct async_holes *home = t->home;
    struct async_block *used = t;

    if (t == p->end)
        return split_low(p, t, size);
    cuda_async_unfile(t);
    if (t->node.size > size) {
        used = split_low(p, t, size);
        t->node.addr = ++p->ages;
        cuda_async_file(p, t, home);
    }
    return used;
}

/* The better of the best fits of a stream's own and the common set. */
static struct async_block *best_of(const struct free_set *own,
                                   const struct free_set *common,
                                   frag_size size)
{
    struct free_node *mine = free_set_fit(own, size);
    struct free_node *other = free_set_fit(common, size);

    if (!mine || (other && other->size < mine->size))
        mine = other;
    return (struct async_block *)mine;
}

/* The smallest hole that fits, that the stream may use, and all of which has
 * memory, else the smallest one that fits, else the end; NULL: no room. */
static struct async_block *
choose(struct cuda_async *p, const struct async_holes *holes, frag_size size)
{
    struct async_block *t = best_of(&holes->backed, &p->common.backed, size);

    if (!t)
        t = best_of(&holes->partial, &p->common.partial, size);
    if (!t && p->end->node.size >= size)
        return p->end;
    return t;
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

static struct async_block *first_hole(const struct async_holes *h)
{
    struct free_node *n = free_set_first(&h->backed);

    return (struct async_block *)(n ? n : free_set_first(&h->partial));
}

/* Makes all holes common; true if at least one was not. */
static bool share_all(struct cuda_async *p)
{
    struct async_block *n;
    bool any = false;

    for (struct async_holes *h = p->streams; h; h = h->next)
        while ((n = first_hole(h)) != NULL) {
            cuda_async_unfile(n);
            add_hole(p, n, &p->common);
            any = true;
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
    FRAG_TRY(cuda_async_back(heap, holes, t->addr, size));
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
    *out = (struct frag_block){t->addr, size, t};
    return FRAG_OK;
}

static void cuda_async_free(struct frag_heap *heap,
                            const struct frag_block *block)
{
    struct async_block *t = block->node;

    add_hole(heap->state, t, t->owner);
}

static enum frag_err cuda_async_freed_on(struct frag_heap *heap,
                                         const struct frag_block *block,
                                         frag_stream stream)
{
    struct async_holes *holes = holes_of(heap->state, stream);
    struct async_block *t = block->node;

    if (!holes)
        return FRAG_NOMEM;
    t->owner = holes;
    return FRAG_OK;
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
    .freed_on = cuda_async_freed_on,
    .trim = cuda_async_trim,
};
