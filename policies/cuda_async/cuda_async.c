/* cuda_async.c - cudaMallocAsync: the CUDA driver's stream-ordered pool.
 *
 * The driver's rules are not public. What NVIDIA documents are the attributes
 * (CUDA C++ Programming Guide, "Stream Ordered Memory Allocator"): the release
 * threshold, 0 by default, and three ways for a stream to get what another has
 * freed. All else here was read off cuMemPoolGetAttribute and the addresses of
 * small scripts on an H200, driver 580.159.04 (CUDA 13.0), and may differ on
 * others.
 *
 * Measured: requests are rounded up to 512 bytes. Blocks lie in one address
 * space and get the tightest hole, its low part, whether it has memory or not;
 * if there is none they go to the end. Under it are pages of 32 MiB that are
 * mapped where a block lacks them: whole free pages of other holes are remapped
 * before new ones are created. A freed block merges with its free neighbours.
 * When the client synchronizes, the highest whole free pages are returned while
 * the pool holds more than the threshold.
 *
 * Streams: a hole serves the stream that freed it. Another stream gets it once
 * the work before the free is known to be done (`opportunistic`), after a
 * synchronization, and where the device refuses more memory also earlier, by
 * having it wait (`internal`); that the driver grows first was measured. A
 * trace does not tell when work was done: with `opportunistic` it is taken to
 * be done at the free. Nor does it tell of the events between streams, so that
 * the third attribute has nothing to follow; nor when the client synchronized:
 * trim does, and `sync` requests may be assumed to lie between two.
 *
 * Ours, where nothing could be seen: of equal holes the lowest (the driver:
 * the one freed first, after a synchronization the one freed last; of a
 * stream's and a common one the stream's); pages are remapped from the largest
 * hole, its high end first. Pools are not told apart.
 */
#include "policies/cuda_async/state.h"
#include "policies/mechanism/segments.h"

#include <stdlib.h>

static enum frag_err init(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    p->page = frag_round_up(p->page, heap->mem->granularity);
    p->span = frag_round_up(p->span, p->page);
    p->nodes.size = sizeof(struct async_piece);
    return FRAG_OK;
}

static enum frag_err reserve_span(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    if (p->base)
        return FRAG_OK;
    FRAG_TRY(heap->mem->ops->va_reserve(heap->mem, p->span, &p->base));
    p->end = nodes_take(&p->nodes);
    *p->end = (struct async_piece){.node = {.addr = p->base, .size = p->span}};
    return FRAG_OK;
}

/* ---- pieces ---- */

/* The record between two neighbours goes; neither is in a set. */
static void drop(struct cuda_async *p, struct async_piece *t)
{
    if (t->below)
        t->below->above = t->above;
    t->above->below = t->below;
    nodes_put(&p->nodes, t);
}

/* A piece that is in no set becomes a hole of home. */
static void give(struct cuda_async *p, struct async_piece *t,
                 struct holes_of *home)
{
    struct async_piece *below = t->below, *above = t->above;

    if (below && below->home == home) {
        free_set_remove(&home->set, &below->node);
        t->node.addr = below->node.addr;
        t->node.size += below->node.size;
        drop(p, below);
    }
    if (above == p->end && home == &p->common) {
        above->node.addr = t->node.addr;
        above->node.size += t->node.size;
        drop(p, t);
        return;
    }
    if (above->home == home) {
        free_set_remove(&home->set, &above->node);
        t->node.size += above->node.size;
        drop(p, above);
    }
    t->home = home;
    free_set_insert(&home->set, &t->node);
}

/* Cuts the low part off a piece that is in no set. */
static struct async_piece *cut(struct cuda_async *p, struct async_piece *t,
                               frag_size size)
{
    struct async_piece *low = nodes_take(&p->nodes);

    *low = (struct async_piece){.node = {.addr = t->node.addr, .size = size},
                                .below = t->below,
                                .above = t};
    if (t->below)
        t->below->above = low;
    t->below = low;
    t->node.addr += size;
    t->node.size -= size;
    return low;
}

/* Uses the low part of a free piece. */
static struct async_piece *take(struct cuda_async *p, struct async_piece *t,
                                frag_size size)
{
    struct holes_of *home = t->home;

    if (t == p->end)
        return cut(p, t, size);
    free_set_remove(&home->set, &t->node);
    if (t->node.size > size) {
        struct async_piece *low = cut(p, t, size);

        free_set_insert(&home->set, &t->node);
        return low;
    }
    t->home = NULL;
    return t;
}

static struct async_piece *choose(struct cuda_async *p,
                                  const struct holes_of *holes, frag_size size)
{
    struct free_node *own = free_set_fit(&holes->set, size);
    struct free_node *other = free_set_fit(&p->common.set, size);

    if (!own || (other && other->size < own->size))
        own = other;
    if (!own && p->end->node.size >= size)
        return p->end;
    return (struct async_piece *)own;
}

/* ---- streams ---- */

/* The holes of a stream, made if there are none yet; NULL if the host is full.
 */
static struct holes_of *holes_of(struct cuda_async *p, frag_stream stream)
{
    struct holes_of *h = p->streams;

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

/* All that was freed serves all; whether that is news. */
static bool share_all(struct cuda_async *p)
{
    bool any = false;

    for (struct holes_of *h = p->streams; h; h = h->next) {
        struct free_node *n;

        while ((n = free_set_first(&h->set)) != NULL) {
            free_set_remove(&h->set, n);
            give(p, (struct async_piece *)n, &p->common);
            any = true;
        }
    }
    return any;
}

static void synchronize(struct frag_heap *heap, frag_size keep)
{
    struct cuda_async *p = heap->state;

    p->requests = 0;
    share_all(p);
    if (p->base)
        cuda_async_shrink(heap, keep);
}

/* ---- the policy ---- */

static enum frag_err place(struct frag_heap *heap, struct holes_of *holes,
                           frag_size size, struct async_piece **out)
{
    struct cuda_async *p = heap->state;
    struct async_piece *t = choose(p, holes, size);

    if (!t)
        return FRAG_OOM;
    FRAG_TRY(cuda_async_back(heap, holes, t->node.addr, size));
    *out = take(p, t, size);
    return FRAG_OK;
}

static enum frag_err cuda_async_alloc(struct frag_heap *heap,
                                      const struct frag_request *req,
                                      struct frag_block *out)
{
    struct cuda_async *p = heap->state;
    const frag_size size = whole_quanta(req->size);
    struct holes_of *holes = holes_of(p, req->stream);
    struct async_piece *t;
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
    struct async_piece *t = block->node;

    give(heap->state, t, t->owner);
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
        struct holes_of *h = p->streams;

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
        .help = "bytes held through a synchronization (release threshold)",
    },
    {
        .name = "sync",
        .kind = FRAG_PARAM_NUMBER,
        .offset = offsetof(struct cuda_async, sync),
        .init = "0",
        .min = 0,
        .max = 0x1p53,
        .help = "requests between two synchronizations; 0: only trim is one",
    },
    {
        .name = "opportunistic",
        .kind = FRAG_PARAM_SWITCH,
        .offset = offsetof(struct cuda_async, opportunistic),
        .init = "yes",
        .help = "a freed block serves other streams, its work being done",
    },
    {
        .name = "internal",
        .kind = FRAG_PARAM_SWITCH,
        .offset = offsetof(struct cuda_async, internal),
        .init = "yes",
        .help = "or has them wait for it, once the device is full",
    },
    {
        .name = "span",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct cuda_async, span),
        .init = "1TiB",
        .min = 0x1p21,
        .max = 0x1p44,
        .help = "bytes of address space, all that it reserves",
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
