/* cuda_async.c - the cuda_async policy: cudaMallocAsync, the CUDA driver's
 * stream-ordered memory pool.
 *
 * The driver's rules are not public. NVIDIA documents these attributes (CUDA
 * C++ Programming Guide, "Stream Ordered Memory Allocator"): the release
 * threshold, 0 by default, and three ways for a stream to reuse memory that
 * another stream has freed. All other rules come from measurements:
 * cuMemPoolGetAttribute and the addresses of small scripts on an H200, and the
 * size of the pool after each request of 20 recordings on an H100, both with
 * driver 580.159.04 (CUDA 13.0). Other drivers may differ.
 *
 * Blocks: requests are rounded up to 512 bytes. Blocks lie in one address
 * space. A block gets the low part of the smallest hole that fits, among equals
 * of the one that became a hole first. If no hole fits, the block goes to the
 * end. Memory is mapped in pages of 32 MiB where a block lacks it: whole free
 * pages, the highest first, are remapped before new pages are created. When the
 * client synchronizes, whole free pages are released, the highest first, while
 * the pool holds more than the threshold.
 *
 * Holes: a freed block is a hole of the stream that freed it, and merges with
 * that stream's holes beside it. The stream may reuse it at once, but it is
 * neither remapped nor merged with other holes before it is common. A request
 * looks into the holes of its own stream; into common holes of which all pages
 * have memory; and, with `opportunistic`, into the holes of other streams whose
 * work is done. Only if all of them fail does the driver look which work is
 * done: it makes those holes common, the newest first, merges them, and takes
 * any common hole that fits. So a program that never synchronizes holds more,
 * up to 1.7 times as much. A synchronization makes all holes common, the oldest
 * first. A merged hole counts as a new one, and so does the remainder of a hole
 * that was split. When the device refuses more memory, holes of other streams
 * whose work is not done are used as well, by a wait (`internal`).
 *
 * PyTorch's backend cudaMallocAsync, since 2.14, does more when a request fails
 * (`retry`): it synchronizes the stream of the request, trims the pool, and
 * requests again. These calls and their order are those of the library
 * of 2.14.1. The limit of the process (set_per_process_memory_fraction) is not
 * a limit of the pool there: the backend compares it with the bytes that its
 * live blocks were requested with (c10/cuda/CUDAMallocAsyncAllocator.cpp,
 * pytorch_used_bytes; seen on an H100, paper/pages/frontier.md).
 *
 * With a synchronization after every free, and without any on an idle device,
 * the peak is as on the H100 in 60 of 60 replays of recordings; the size of the
 * pool changes at the same requests in 40 of 40 and in 19 of 20.
 *
 * Assumed, because no trace shows it: when the work before a free is done,
 * which is `run_ahead` requests after it (0: an idle device), and when the
 * client synchronized: a trim is a synchronization, and `sync` is a number of
 * requests between two others. A trace does not show the events between streams
 * either, so reuse that follows from them is not modelled. The policy ignores
 * pools.
 */
#include "policies/cuda_async/async_state.h"
#include "policies/mechanism/segments.h"

static enum frag_err init(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    p->page = p->stock.page = frag_round_up(p->page, heap->mem->granularity);
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
 * neighbours in the same holes. A merged hole was freed when the youngest of
 * its parts was. */
static void add_hole(struct cuda_async *p, struct async_block *t,
                     struct async_holes *home)
{
    struct async_block *below = t->below, *above = t->above;

    if (below && below->home == home) {
        cuda_async_unfile(p, below);
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
        cuda_async_unfile(p, above);
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
    cuda_async_unfile(p, t);
    if (t->node.size > size) {
        used = split_low(p, t, size);
        t->node.addr = ++p->ages;
        cuda_async_file(p, t, home);
    }
    return used;
}

static struct async_block *fit(const struct free_set *set, frag_size size)
{
    return (struct async_block *)free_set_fit(set, size);
}

/* The smaller of two holes, of equals the older one; either may be NULL. */
static struct async_block *smaller_of(struct async_block *a,
                                      struct async_block *b)
{
    if (!a || !b)
        return a ? a : b;
    if (a->node.size != b->node.size)
        return a->node.size < b->node.size ? a : b;
    return a->node.addr < b->node.addr ? a : b;
}

/* ---- streams ---- */

/* The holes that a stream's blocks join when freed, created if necessary; NULL
 * if the host has no memory. */
static struct async_holes *holes_of(struct cuda_async *p, frag_stream stream)
{
    return lanes_get(&p->streams, 0, stream, sizeof(struct async_holes));
}

/* Whether the driver may know that the work before the free is done. */
static bool is_done(const struct cuda_async *p, const struct async_block *t)
{
    return p->opportunistic && p->made - t->freed >= p->run_ahead;
}

/* Makes the holes of streams common whose work is done, the newest first. */
static void share_done(struct cuda_async *p)
{
    struct async_block *t = p->newest, *older;

    for (; t; t = older) {
        older = t->older;
        if (!is_done(p, t))
            continue;
        cuda_async_unfile(p, t);
        add_hole(p, t, &p->common);
    }
}

/* Makes the holes of all streams common, the oldest first; true if there was
 * one. */
static bool share_all(struct cuda_async *p)
{
    struct async_block *t;
    bool any = false;

    while ((t = p->oldest) != NULL) {
        cuda_async_unfile(p, t);
        add_hole(p, t, &p->common);
        any = true;
    }
    return any;
}

/* Makes the holes of one stream common, the oldest first. */
static void share_stream(struct cuda_async *p, struct async_holes *own)
{
    struct async_block *t = p->oldest, *newer;

    for (; t; t = newer) {
        newer = t->newer;
        if (t->home != own)
            continue;
        cuda_async_unfile(p, t);
        add_hole(p, t, &p->common);
    }
}

/* The best fit in the holes of other streams whose work is done. */
static struct async_block *fit_of_others(const struct cuda_async *p,
                                         const struct async_holes *own,
                                         frag_size size)
{
    struct async_block *best = NULL;

    for (const struct lane *l = p->streams.first; l; l = l->next) {
        const struct async_holes *h = (const struct async_holes *)l;
        struct async_block *t = h == own ? NULL : fit(&h->backed, size);

        while (t && !is_done(p, t))
            t = (struct async_block *)free_set_after(&h->backed, &t->node);
        best = smaller_of(best, t);
    }
    return best;
}

/* The free block that serves a request; NULL: no room. The first place that has
 * one counts: the stream's own holes, common holes with memory, holes of other
 * streams. If there is none, the driver looks which work is done, and takes any
 * common hole, else the end. */
static struct async_block *choose(struct cuda_async *p,
                                  const struct async_holes *own, frag_size size)
{
    struct async_block *t = fit(&own->backed, size);

    if (!t)
        t = fit(&p->common.backed, size);
    if (!t)
        t = fit_of_others(p, own, size);
    if (t)
        return t;
    share_done(p);
    t = smaller_of(fit(&p->common.backed, size), fit(&p->common.partial, size));
    if (!t && p->end->node.size >= size)
        t = p->end;
    return t;
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
    FRAG_TRY(cuda_async_back(heap, t->addr, size));
    *out = use_low(p, t, size);
    return FRAG_OK;
}

static enum frag_err cuda_async_alloc(struct frag_heap *heap,
                                      const struct frag_request *req,
                                      struct frag_block *out)
{
    struct cuda_async *p = heap->state;
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);
    struct async_holes *holes = holes_of(p, req->stream);
    struct async_block *t;
    enum frag_err err;

    if (!holes)
        return FRAG_NOMEM;
    if (!frag_backend_admits(heap->mem, p->requested + req->size))
        return FRAG_OOM;
    FRAG_TRY(nodes_reserve(&p->nodes, 2));
    FRAG_TRY(reserve_span(heap));
    if (p->sync && p->requests == p->sync)
        synchronize(heap, p->threshold);
    p->requests++;
    err = place(heap, holes, size, &t);
    if (err == FRAG_OOM && p->internal && share_all(p))
        err = place(heap, holes, size, &t);
    if (err == FRAG_OOM && p->retry) {
        share_stream(p, holes);
        cuda_async_shrink(heap, 0);
        err = place(heap, holes, size, &t);
    }
    p->made++;
    if (err != FRAG_OK)
        return err;
    t->owner = holes;
    t->requested = req->size;
    p->requested += req->size;
    *out = (struct frag_block){t->addr, size, t};
    return FRAG_OK;
}

static void cuda_async_free(struct frag_heap *heap,
                            const struct frag_block *block)
{
    struct cuda_async *p = heap->state;
    struct async_block *t = block->node;

    p->requested -= t->requested;
    t->freed = p->made;
    add_hole(p, t, t->owner);
}

static enum frag_err cuda_async_hear(struct frag_heap *heap,
                                     const struct frag_heard *heard)
{
    struct async_holes *holes = holes_of(heap->state, heard->stream);
    struct async_block *t = heard->block->node;

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
    for (struct lane *h = p->streams.first; h; h = h->next) {
        free_set_fini(&((struct async_holes *)h)->backed);
        free_set_fini(&((struct async_holes *)h)->partial);
    }
    lanes_fini(&p->streams);
    free_set_fini(&p->common.backed);
    free_set_fini(&p->common.partial);
    nodes_release(&p->nodes);
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(SIZE, "page", struct cuda_async, page, "32MiB",
                     FRAG_QUANTUM, 0x1p40,
                     "bytes of a page, rounded up to the device's granularity"),
    FRAG_RANGE_PARAM(
        SIZE, "threshold", struct cuda_async, threshold, "0", 0, 0x1p64,
        "release threshold: bytes that the pool keeps at a synchronization"),
    FRAG_RANGE_PARAM(NUMBER, "sync", struct cuda_async, sync, "0", 0, 0x1p53,
                     "requests between two assumed synchronizations; 0: only a "
                     "trim is a synchronization"),
    FRAG_RANGE_PARAM(NUMBER, "run_ahead", struct cuda_async, run_ahead, "0", 0,
                     0x1p53,
                     "requests after a free until its work is done; 0: the "
                     "device is idle; 1000000: only a synchronization ends it"),
    FRAG_SWITCH_PARAM("opportunistic", struct cuda_async, opportunistic, "yes",
                      "look which work is done: its blocks serve other "
                      "streams, and their pages are remapped"),
    FRAG_SWITCH_PARAM("internal", struct cuda_async, internal, "yes",
                      "a freed block serves other streams when the device is "
                      "full: they wait for its work"),
    FRAG_SWITCH_PARAM("retry", struct cuda_async, retry, "no",
                      "when a request fails, synchronize its stream, trim the "
                      "pool and request again, as PyTorch since 2.14"),
    FRAG_RANGE_PARAM(SIZE, "span", struct cuda_async, span, "1TiB", 0x1p21,
                     0x1p44,
                     "bytes of address space that the pool reserves in total"),
    {.name = NULL},
};

const struct frag_policy frag_policy_cuda_async = {
    .name = "cuda_async",
    .summary = "cudaMallocAsync: pages of 32 MiB, remapped under best fit",
    .source = "not public; CUDA C++ Programming Guide, and measured on an "
              "H200, driver 580.159",
    .assumes = "a trace shows neither when the device had done the work before "
               "a free (run_ahead) nor when the program synchronized (sync); "
               "the range is that of sync=1 and of run_ahead=0, an idle "
               "device, to run_ahead=1000000, a device that is never done",
    .needs = FRAG_NEEDS_VMM | FRAG_OWNS_LIMIT | FRAG_HEARS_FREES,
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct cuda_async),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = cuda_async_alloc,
    .free = cuda_async_free,
    .hear = cuda_async_hear,
    .trim = cuda_async_trim,
    .check = cuda_async_check,
};
