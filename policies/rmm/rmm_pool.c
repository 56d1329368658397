/* rmm_pool.c - the rmm_pool policy: RAPIDS RMM's pool, coalescing best fit with
 * a free list for each stream.
 *
 * stream_pool.h has the rules, their source, and the differences.
 *
 * Source: rapidsai/rmm 26.08 at 5d50a37, with pull request 2470 of 26.10,
 * pool_memory_resource on stream_ordered_memory_resource and
 * coalescing_free_list.
 */
#include "policies/rmm/stream_pool.h"

struct rmm_pool {
    struct stream_pool pool;
};

static enum frag_err init(struct frag_heap *heap)
{
    struct rmm_pool *p = heap->state;

    stream_pool_init(&p->pool);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct rmm_pool *p = heap->state;

    stream_pool_close(heap, &p->pool);
}

static enum frag_err rmm_pool_alloc(struct frag_heap *heap,
                                    const struct frag_request *req,
                                    struct frag_block *out)
{
    struct rmm_pool *p = heap->state;

    return stream_pool_alloc(heap, &p->pool, req->size, req->stream, out);
}

static void rmm_pool_free(struct frag_heap *heap,
                          const struct frag_block *block)
{
    struct rmm_pool *p = heap->state;

    stream_pool_free(&p->pool, block);
}

static enum frag_err rmm_pool_hear(struct frag_heap *heap,
                                   const struct frag_heard *heard)
{
    struct rmm_pool *p = heap->state;

    return stream_pool_hear(&p->pool, heard);
}

static const struct frag_param params[] = {
    STREAM_POOL_PARAMS(struct rmm_pool, pool),
    {.name = NULL},
};

const struct frag_policy frag_policy_rmm_pool = {
    .name = "rmm_pool",
    .summary = "RAPIDS RMM's pool: best fit with a free list for each stream",
    .source = "rapidsai/rmm 26.10, pool_memory_resource",
    .needs = FRAG_HEARS_FREES,
    .quantum = FRAG_ALIGNMENT,
    .state_size = sizeof(struct rmm_pool),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = rmm_pool_alloc,
    .free = rmm_pool_free,
    .hear = rmm_pool_hear,
    .check = stream_pool_check,
};
