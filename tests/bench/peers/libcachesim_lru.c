/* libcachesim_lru.c - drives the LRU cache of libCacheSim: a request is a miss
 * that inserts an object, and a free removes it. It stores sizes and allocates
 * no addresses: a hash table and a list for each event. */
#include "tests/bench/peers/peer.h"

#include <stdlib.h>

#include <libCacheSim/evictionAlgo.h>

struct heap {
    cache_t *cache;
    request_t request;
};

void *libcachesim_lru_open(void)
{
    common_cache_params_t params = default_common_cache_params();
    struct heap *h = calloc(1, sizeof(*h));

    params.cache_size = PEER_ROOM;
    if (h) {
        h->cache = LRU_init(params, NULL);
        h->request.op = OP_GET;
        h->request.valid = true;
    }
    return h;
}

void libcachesim_lru_close(void *heap)
{
    struct heap *h = heap;

    h->cache->cache_free(h->cache);
    free(h);
}

bool libcachesim_lru_alloc(void *heap, uint64_t bytes, uint64_t *offset,
                           void **handle)
{
    struct heap *h = heap;

    h->request.obj_id++;
    h->request.clock_time++;
    h->request.obj_size = (int64_t)bytes;
    *offset = 0;
    *handle = (void *)(uintptr_t)h->request.obj_id;
    return !h->cache->get(h->cache, &h->request);
}

void libcachesim_lru_free(void *heap, uint64_t offset, void *handle)
{
    struct heap *h = heap;

    (void)offset;
    h->cache->remove(h->cache, (obj_id_t)(uintptr_t)handle);
}
