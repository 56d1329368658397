/* rmm_binning.c - RAPIDS RMM's bins of one size each, on top of its pool.
 *
 * There is a bin for `smallest` bytes and for each doubling of it up to
 * `largest`. A request takes a whole block of the smallest bin that is large
 * enough, however small the request; one that is larger than all bins is the
 * pool's, whose rules are in mechanism/stream_pool.h.
 *
 * A bin keeps a queue per stream: freed last, taken last. When the stream's own
 * is empty, the others are asked in the order of stream numbers (of event
 * handles in the source, which nothing determines). When all are empty,
 * `blocks` more blocks are cut from one block of the pool that is taken on the
 * requester's stream, and queued in the order of addresses; if the pool cannot
 * give that much, the request is refused. What a bin has it keeps.
 *
 * Each bin starts with so many blocks in the queue of stream 0. The source
 * takes them when it is constructed, smallest bin first; here the first request
 * does, and each request is refused until all have been had.
 *
 * Source: rapidsai/rmm 26.08 at 5d50a37, cpp/src/mr/detail/
 * binning_memory_resource_impl.cpp, fixed_size_memory_resource_impl.cpp; the
 * default bins are those of cpp/benchmarks/replay/replay.cpp.
 */
#include "policies/rmm/stream_pool.h"

#include <stdlib.h>

enum { MAX_BINS = 48 };

struct bin_cell { /* a block of a bin */
    struct bin_cell *next;
    struct bin *bin;
    frag_addr addr;
    frag_stream stream; /* whose queue it is in or will go to */
};

struct bin_queue {
    struct bin_cell *first, *last; /* last means nothing while first is NULL */
};

struct bin {
    frag_size size;
    bool stocked;
    struct bin_queue *queues; /* by stream */
};

struct rmm_binning {
    struct stream_pool pool;
    frag_size smallest, largest; /* the parameters */
    uint64_t blocks;
    bool ready; /* all bins are stocked */
    size_t bin_count, queue_count;
    struct nodes nodes; /* of cells */
    struct bin bins[MAX_BINS];
};

static void push(struct bin_queue *q, struct bin_cell *c)
{
    c->next = NULL;
    if (q->first)
        q->last->next = c;
    else
        q->first = c;
    q->last = c;
}

static struct bin_cell *pop(struct bin_queue *q)
{
    struct bin_cell *c = q->first;

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

static enum frag_err meet_stream(struct rmm_binning *p, frag_stream stream)
{
    const size_t count = (size_t)stream + 1;

    if (count <= p->queue_count)
        return FRAG_OK;
    for (size_t i = 0; i < p->bin_count; i++)
        FRAG_TRY(widen(&p->bins[i], p->queue_count, count));
    p->queue_count = count;
    return FRAG_OK;
}

/* A chunk from the pool, cut into cells on the stream's queue. */
static enum frag_err stock(struct frag_heap *heap, struct bin *bin,
                           frag_stream stream)
{
    struct rmm_binning *p = heap->state;
    struct frag_block chunk;

    FRAG_TRY(nodes_reserve(&p->nodes, p->blocks));
    FRAG_TRY(stream_pool_alloc(heap, &p->pool, bin->size * p->blocks, stream,
                               &chunk));
    for (uint64_t i = 0; i < p->blocks; i++) {
        struct bin_cell *c = nodes_take(&p->nodes);

        *c = (struct bin_cell){.bin = bin, .addr = chunk.addr + i * bin->size};
        push(&bin->queues[stream], c);
    }
    bin->stocked = true;
    return FRAG_OK;
}

static enum frag_err start(struct frag_heap *heap)
{
    struct rmm_binning *p = heap->state;

    if (p->ready)
        return FRAG_OK;
    FRAG_TRY(stream_pool_start(heap, &p->pool));
    FRAG_TRY(meet_stream(p, 0));
    for (size_t i = 0; i < p->bin_count; i++)
        if (!p->bins[i].stocked)
            FRAG_TRY(stock(heap, &p->bins[i], 0));
    p->ready = true;
    return FRAG_OK;
}

static struct bin_cell *from_queues(struct rmm_binning *p, struct bin *bin,
                                    frag_stream stream)
{
    struct bin_cell *c = pop(&bin->queues[stream]);

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
    struct bin_cell *c;

    FRAG_TRY(start(heap));
    if (req->size > p->bins[p->bin_count - 1].size)
        return stream_pool_alloc(heap, &p->pool, req->size, req->stream, out);

    FRAG_TRY(meet_stream(p, req->stream));
    bin = bin_for(p, req->size);
    c = from_queues(p, bin, req->stream);
    if (!c) {
        FRAG_TRY(stock(heap, bin, req->stream));
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
    struct bin_cell *c = block->node;

    if (block->size > p->bins[p->bin_count - 1].size)
        stream_pool_free(&p->pool, block);
    else
        push(&c->bin->queues[c->stream], c);
}

static enum frag_err init(struct frag_heap *heap)
{
    struct rmm_binning *p = heap->state;

    for (frag_size size = frag_round_up(p->smallest, FRAG_ALIGNMENT);
         p->bin_count < MAX_BINS && (!p->bin_count || size <= p->largest);
         size *= 2)
        p->bins[p->bin_count++].size = size;
    p->nodes.size = sizeof(struct bin_cell);
    stream_pool_init(&p->pool);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct rmm_binning *p = heap->state;

    for (size_t i = 0; i < p->bin_count; i++)
        free(p->bins[i].queues);
    nodes_release(&p->nodes);
    stream_pool_close(heap, &p->pool);
}

static const struct frag_param params[] = {
    {
        .name = "smallest",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct rmm_binning, smallest),
        .init = "256KiB",
        .min = 1,
        .max = 0x1p40,
        .help = "bytes of a block of the smallest bin",
        .at_most = "largest",
    },
    {
        .name = "largest",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct rmm_binning, largest),
        .init = "4MiB",
        .min = 1,
        .max = 0x1p40,
        .help = "bytes that no bin's blocks exceed",
    },
    {
        .name = "blocks",
        .kind = FRAG_PARAM_NUMBER,
        .offset = offsetof(struct rmm_binning, blocks),
        .init = "128",
        .min = 1,
        .max = 0x1p16,
        .help = "blocks that a bin takes from the pool at once",
    },
    STREAM_POOL_PARAMS(struct rmm_binning, pool),
    {.name = NULL},
};

const struct frag_policy frag_policy_rmm_binning = {
    .name = "rmm_binning",
    .summary = "RAPIDS RMM's bins of fixed sizes over its pool",
    .source = "rapidsai/rmm 26.08 (5d50a37), binning_memory_resource",
    .state_size = sizeof(struct rmm_binning),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = rmm_binning_alloc,
    .free = rmm_binning_free,
};
