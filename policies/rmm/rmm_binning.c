/* rmm_binning.c - the rmm_binning policy: RAPIDS RMM's bins of fixed block
 * sizes, on top of its pool.
 *
 * There is a bin for `smallest` bytes and for each doubling of that up to
 * `largest`. A request gets a whole block of the smallest bin that fits, even
 * if the request is much smaller. The pool serves requests larger than every
 * bin; stream_pool.h has its rules.
 *
 * A bin has a queue of free blocks for each stream: first in, first out. A
 * freed block joins the queue of the stream on which it is freed. If the
 * stream's own queue is empty, the others are used in the order of stream
 * numbers (in RMM, of event handles, whose order is not defined). If all are
 * empty, one block of the pool is allocated on the requesting stream and split
 * into `blocks` blocks, which are queued in address order. If the pool has no
 * block of that size, the request is refused. A bin never returns its blocks.
 *
 * Each bin starts with `blocks` blocks in the queue of stream 0. RMM allocates
 * them when it is constructed, smallest bin first. Here the first request
 * allocates them, and every request is refused until all are allocated.
 *
 * Source: rapidsai/rmm 26.08 at 5d50a37, with pull request 2470 of 26.10,
 * cpp/src/mr/detail/binning_memory_resource_impl.cpp,
 * fixed_size_memory_resource_impl.cpp; the default bins are those of
 * cpp/benchmarks/replay/replay.cpp.
 */
#include "policies/rmm/stream_pool.h"

#include <stdlib.h>

enum { MAX_BINS = 48 };

struct bin_block { /* a block of a bin */
    struct bin_block *next;
    struct bin *bin;
    frag_addr addr;
    frag_stream stream; /* in the queue of this stream, or used by it */
};

struct bin_queue {
    struct bin_block *first, *last; /* `last` is undefined if first is NULL */
};

struct bin {
    frag_size size;
    bool filled;              /* its first blocks are allocated */
    struct bin_queue *queues; /* by stream */
};

struct rmm_binning {
    struct stream_pool pool;     /* first */
    frag_size smallest, largest; /* parameters, in bytes */
    uint64_t blocks;             /* parameter */
    bool ready;                  /* all bins are filled */
    size_t bin_count, queue_count;
    struct nodes nodes; /* records of bin blocks */
    struct bin bins[MAX_BINS];
};

static void push(struct bin_queue *q, struct bin_block *c)
{
    c->next = NULL;
    if (q->first)
        q->last->next = c;
    else
        q->first = c;
    q->last = c;
}

static struct bin_block *pop(struct bin_queue *q)
{
    struct bin_block *c = q->first;

    if (c)
        q->first = c->next;
    return c;
}

static enum frag_err widen(struct bin *bin, size_t old, size_t count)
{
    struct bin_queue *queues = realloc(bin->queues, count * sizeof(*queues));

    if (!queues)
        return FRAG_NOMEM;
    for (size_t i = old; i < count; i++)
        queues[i] = (struct bin_queue){NULL, NULL};
    bin->queues = queues;
    return FRAG_OK;
}

/* Makes sure that each bin has a queue for the stream. NOMEM. */
static enum frag_err ensure_queues(struct rmm_binning *p, frag_stream stream)
{
    const size_t count = (size_t)stream + 1;

    if (count <= p->queue_count)
        return FRAG_OK;
    for (size_t i = 0; i < p->bin_count; i++)
        FRAG_TRY(widen(&p->bins[i], p->queue_count, count));
    p->queue_count = count;
    return FRAG_OK;
}

/* Allocates a chunk from the pool and splits it into blocks of the bin, in the
 * stream's queue. */
static enum frag_err fill_bin(struct frag_heap *heap, struct bin *bin,
                              frag_stream stream)
{
    struct rmm_binning *p = heap->state;
    const struct frag_request all = {.size = bin->size * p->blocks,
                                     .stream = stream};
    struct frag_block chunk;

    FRAG_TRY(nodes_reserve(&p->nodes, p->blocks));
    FRAG_TRY(stream_pool_alloc(heap, &all, &chunk));
    for (uint64_t i = 0; i < p->blocks; i++) {
        struct bin_block *c = nodes_take(&p->nodes);

        *c = (struct bin_block){.bin = bin, .addr = chunk.addr + i * bin->size};
        push(&bin->queues[stream], c);
    }
    bin->filled = true;
    return FRAG_OK;
}

static enum frag_err start(struct frag_heap *heap)
{
    struct rmm_binning *p = heap->state;

    if (p->ready)
        return FRAG_OK;
    FRAG_TRY(stream_pool_start(heap));
    FRAG_TRY(ensure_queues(p, 0));
    for (size_t i = 0; i < p->bin_count; i++)
        if (!p->bins[i].filled)
            FRAG_TRY(fill_bin(heap, &p->bins[i], 0));
    p->ready = true;
    return FRAG_OK;
}

static struct bin_block *from_queues(struct rmm_binning *p, struct bin *bin,
                                     frag_stream stream)
{
    struct bin_block *c = pop(&bin->queues[stream]);

    for (size_t i = 0; !c && i < p->queue_count; i++)
        c = pop(&bin->queues[i]);
    return c;
}

static struct bin *bin_for(struct rmm_binning *p, frag_size size)
{
    struct bin *bin = p->bins;

    while (bin->size < size)
        bin++;
    return bin;
}

static enum frag_err rmm_binning_alloc(struct frag_heap *heap,
                                       const struct frag_request *req,
                                       struct frag_block *out)
{
    struct rmm_binning *p = heap->state;
    struct bin *bin;
    struct bin_block *c;

    FRAG_TRY(start(heap));
    if (req->size > p->bins[p->bin_count - 1].size)
        return stream_pool_alloc(heap, req, out);

    FRAG_TRY(ensure_queues(p, req->stream));
    bin = bin_for(p, req->size);
    c = from_queues(p, bin, req->stream);
    if (!c) {
        FRAG_TRY(fill_bin(heap, bin, req->stream));
        c = pop(&bin->queues[req->stream]);
    }
    c->stream = req->stream;
    *out = (struct frag_block){c->addr, bin->size, c};
    return FRAG_OK;
}

static void rmm_binning_free(struct frag_heap *heap,
                             const struct frag_block *block)
{
    struct rmm_binning *p = heap->state;
    struct bin_block *c = block->node;

    if (block->size > p->bins[p->bin_count - 1].size)
        stream_pool_free(heap, block);
    else
        push(&c->bin->queues[c->stream], c);
}

static enum frag_err rmm_binning_hear(struct frag_heap *heap,
                                      const struct frag_heard *heard)
{
    struct rmm_binning *p = heap->state;
    struct bin_block *c = heard->block->node;

    if (heard->block->size > p->bins[p->bin_count - 1].size)
        return stream_pool_hear(heap, heard);
    FRAG_TRY(ensure_queues(p, heard->stream));
    c->stream = heard->stream;
    return FRAG_OK;
}

static enum frag_err init(struct frag_heap *heap)
{
    struct rmm_binning *p = heap->state;

    for (frag_size size = frag_round_up(p->smallest, FRAG_ALIGNMENT);
         p->bin_count < MAX_BINS && (!p->bin_count || size <= p->largest);
         size *= 2)
        p->bins[p->bin_count++].size = size;
    p->nodes.size = sizeof(struct bin_block);
    return stream_pool_init(heap);
}

static void fini(struct frag_heap *heap)
{
    struct rmm_binning *p = heap->state;

    for (size_t i = 0; i < p->bin_count; i++)
        free(p->bins[i].queues);
    nodes_release(&p->nodes);
    stream_pool_fini(heap);
}

static const struct frag_param params[] = {
    {
        .name = "smallest",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct rmm_binning, smallest),
        .init = "256KiB",
        .min = 1,
        .max = 0x1p40,
        .help = "block size of the smallest bin, in bytes",
        .at_most = "largest",
    },
    FRAG_RANGE_PARAM(SIZE, "largest", struct rmm_binning, largest, "4MiB", 1,
                     0x1p40, "largest block size of a bin, in bytes"),
    FRAG_RANGE_PARAM(NUMBER, "blocks", struct rmm_binning, blocks, "128", 1,
                     0x1p16,
                     "blocks that a bin allocates from the pool at once"),
    STREAM_POOL_PARAMS,
    {.name = NULL},
};

const struct frag_policy frag_policy_rmm_binning = {
    .name = "rmm_binning",
    .summary = "RAPIDS RMM's bins of fixed block sizes, on top of its pool",
    .source = "rapidsai/rmm 26.10, binning_memory_resource",
    .needs = FRAG_HEARS_FREES,
    .quantum = FRAG_ALIGNMENT,
    .state_size = sizeof(struct rmm_binning),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = rmm_binning_alloc,
    .free = rmm_binning_free,
    .hear = rmm_binning_hear,
    .check = stream_pool_check,
};
