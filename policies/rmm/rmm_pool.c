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

static const struct frag_param params[] = {
    STREAM_POOL_PARAMS,
    {.name = NULL},
};

const struct frag_policy frag_policy_rmm_pool = {
    .name = "rmm_pool",
    .summary = "RAPIDS RMM's pool: best fit with a free list for each stream",
    .source = "rapidsai/rmm 26.10, pool_memory_resource",
    .needs = FRAG_HEARS_FREES,
    .quantum = FRAG_ALIGNMENT,
    .state_size = sizeof(struct stream_pool),
    .params = params,
    .init = stream_pool_init,
    .fini = stream_pool_fini,
    .alloc = stream_pool_alloc,
    .free = stream_pool_free,
    .hear = stream_pool_hear,
    .check = stream_pool_check,
};
