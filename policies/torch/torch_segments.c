/* torch_segments.c - how the torch policy obtains memory from the device and
 * returns it: segments, garbage collection, the retries before an OOM,
 * empty_cache. Expandable segments are in expand.c.
 */
#include "policies/torch/torch_state.h"

/* NULL: the stream has made no request to the pool. */
static struct torch_space *space_of(const struct torch_pool *pool,
                                    bool is_small, uint32_t stream)
{
    return stream < pool->streams ? pool->space[is_small][stream] : NULL;
}

/* Returns a free block, which is a whole ordinary segment, to the device.
 * UNSUPPORTED if the block is only part of a segment: PyTorch would pass an
 * interior address to cudaFree, which fails. Such a segment was adopted, and is
 * larger than max_split_size lets PyTorch split; DEVICE: or the settings have
 * changed since it was split. */
static enum frag_err release_block(struct frag_heap *heap,
                                   struct torch_space *space,
                                   struct torch_block *b)
{
    struct torch *t = heap->state;
    const frag_size size = b->node.size;

    if (torch_is_split(b))
        return t->first ? FRAG_DEVICE : FRAG_UNSUPPORTED;
    FRAG_TRY(heap->mem->ops->segment_free(heap->mem, b->node.addr, size));
    if (t->observer)
        torch_count_segment(t, space, FRAG_TORCH_SEGMENT_FREE, b->node.addr,
                            size);
    t->reserved -= size;
    free_set_remove(&space->free, &b->node);
    torch_drop_block(t, b);
    return FRAG_OK;
}

/* ---- garbage collection ---- */

/* Free whole segments of the default large pool: their number and the sum of
 * their ages, in searches. */
struct garbage {
    uint64_t count, total_age;
};

static uint32_t age(const struct torch_space *space,
                    const struct torch_block *b)
{
    return *space->searches - b->born;
}

static void sum_ages(const struct torch_space *space, struct garbage *g)
{
    for (struct free_node *n = free_set_first(&space->free); n;
         n = free_set_after(&space->free, n)) {
        if (torch_is_split(torch_block_of(n)))
            continue;
        g->count++;
        g->total_age += age(space, torch_block_of(n));
    }
}

/* Releases every unsplit free block whose age is at least `threshold`, and does
 * not stop when the target is reached. Returns the released bytes. */
static frag_size sweep(struct frag_heap *heap, struct torch_space *space,
                       double threshold, struct garbage *g)
{
    struct free_node *n = free_set_first(&space->free);
    frag_size swept = 0;

    while (n && g->count) {
        struct torch_block *b = torch_block_of(n);
        const uint32_t old = age(space, b);
        const frag_size size = b->node.size;

        n = free_set_after(&space->free, n);
        if (!torch_is_segment(b) || old < threshold)
            continue;
        if (release_block(heap, space, b) != FRAG_OK)
            break;
        swept += size;
        g->total_age -= old;
        g->count--;
    }
    return swept;
}

frag_size torch_limit_collected(const struct torch *t, struct frag_backend *mem)
{
    frag_size limit;

    if (t->conf.gc_threshold <= 0)
        return FRAG_UNLIMITED;
    limit = frag_backend_limit(mem);
    return t->limit < limit ? t->limit : limit;
}

/* Collects in the default large pool only, whatever pool the request is for.
 * Each round releases the blocks that are at least as old as the average. */
static void collect_garbage(struct frag_heap *heap, frag_size limit)
{
    struct torch *t = heap->state;
    const frag_size keep = (frag_size)(t->conf.gc_threshold * (double)limit);
    const struct torch_pool *pool = t->pools;
    struct garbage g = {0};
    frag_size target, swept = 0, round;

    if (t->reserved <= keep)
        return;
    target = t->reserved - keep;
    for (uint32_t i = 0; i < pool->streams; i++)
        if (space_of(pool, false, i))
            sum_ages(space_of(pool, false, i), &g);
    do {
        const double threshold =
            g.count ? (double)g.total_age / (double)g.count : 0;

        round = 0;
        for (uint32_t i = 0; g.count && i < pool->streams; i++)
            if (space_of(pool, false, i))
                round += sweep(heap, space_of(pool, false, i), threshold, &g);
        swept += round;
    } while (swept < target && round && g.count);
}

/* ---- releases ---- */

/* release_available_cached_blocks: works on the free blocks of this space of at
 * least max_split bytes. Releases the smallest one that is large enough for the
 * request; if there is none, releases from the largest down until the sum is
 * enough. Released blocks stay released even if *enough is false. DEVICE where
 * PyTorch before 2.5 meets an expandable block: its process ends there. */
static enum frag_err release_available(struct frag_heap *heap,
                                       struct torch_space *space,
                                       frag_size size, bool *enough)
{
    const struct torch *t = heap->state;
    const frag_size key = size > t->conf.max_split ? size : t->conf.max_split;
    struct free_node *n = free_set_fit(&space->free, key);
    const bool fails = torch_has_earlier(t->conf.version, TORCH_OVERSIZE_FAILS);
    frag_size released = 0;

    if (n && !torch_block_of(n)->expandable) {
        *enough = true;
        return release_block(heap, space, torch_block_of(n));
    }
    if (n && fails)
        return FRAG_DEVICE;
    n = n ? free_set_before(&space->free, n) : free_set_last(&space->free);
    while (released < key && n && n->size >= t->conf.max_split) {
        struct torch_block *b = torch_block_of(n);

        n = free_set_before(&space->free, n);
        if (b->expandable && fails)
            return FRAG_DEVICE;
        if (b->expandable)
            continue;
        released += b->node.size;
        FRAG_TRY(release_block(heap, space, b));
    }
    *enough = released >= key;
    return FRAG_OK;
}

static void release_segments(struct frag_heap *heap, struct torch_space *space)
{
    struct free_node *n = free_set_first(&space->free);

    while (n) {
        struct torch_block *b = torch_block_of(n);

        n = free_set_after(&space->free, n);
        if (torch_is_segment(b) && release_block(heap, space, b) != FRAG_OK)
            return;
    }
}

/* Repeats the releases of a space that the device refused before, then unmaps
 * all whole free pages. An unmap leaves parts at the head and the tail that are
 * smaller than their block, so this walk by ascending size does not meet
 * them. */
static void release_pages(struct frag_heap *heap, struct torch_space *space)
{
    struct free_node *n = free_set_first(&space->free);

    torch_repeat_releases(heap, space);
    while (n) {
        struct torch_block *b = torch_block_of(n);

        n = free_set_after(&space->free, n);
        if (b->expandable)
            torch_unmap(heap, space, b);
    }
}

static void release_pool(struct frag_heap *heap, const struct torch_pool *pool,
                         bool is_small)
{
    for (uint32_t i = 0; i < pool->streams; i++)
        if (space_of(pool, is_small, i))
            release_segments(heap, space_of(pool, is_small, i));
    for (uint32_t i = 0; i < pool->streams; i++)
        if (space_of(pool, is_small, i))
            release_pages(heap, space_of(pool, is_small, i));
}

/* Waits for pending frees. False if the device or the host refuses. */
static bool prepare_release(struct frag_heap *heap)
{
    struct torch *t = heap->state;

    if (t->observer)
        t->observer->counters.num_sync_all_streams++;
    if (heap->mem->ops->synchronize &&
        heap->mem->ops->synchronize(heap->mem) != FRAG_OK)
        return false;
    return torch_reserve(t) == FRAG_OK;
}

static void release_ended(struct frag_heap *heap, const struct torch_pool *pool)
{
    release_pool(heap, pool, true);
    release_pool(heap, pool, false);
}

/* The ended pool that comes after `last`; 0: there is none. */
static uint32_t next_ended(const struct torch *t, uint32_t last)
{
    uint32_t next = 0;

    for (uint32_t i = 1; i < t->pool_count; i++)
        if (t->pools[i].facts & FRAG_POOL_ENDED &&
            (!last || t->pools[i].order > t->pools[last].order) &&
            (!next || t->pools[i].order < t->pools[next].order))
            next = i;
    return next;
}

/* release_cached_blocks: waits for pending frees, then releases the large pool,
 * then the small pool, then the private pools that have ended, small before
 * large. The blocks of other private pools stay. */
void torch_release_cached(struct frag_heap *heap)
{
    struct torch *t = heap->state;

    if (!prepare_release(heap) || !t->pool_count)
        return;
    release_pool(heap, t->pools, false);
    release_pool(heap, t->pools, true);
    for (uint32_t i = next_ended(t, 0); i; i = next_ended(t, i))
        release_ended(heap, &t->pools[i]);
}

/* PyTorch keeps ended pools in a hash table, whose order is that of the numbers
 * times 2^64 divided by the golden ratio; entries of equal hash keep the order
 * in which they ended, which is not modelled. */
enum frag_err torch_hear(struct frag_heap *heap, const struct frag_heard *heard)
{
    struct torch *t = heap->state;

    FRAG_TRY(torch_add_pools(t, heard->pool + 1u));
    t->pools[heard->pool].facts |= heard->facts;
    t->pools[heard->pool].order = heard->number * 0x9e3779b97f4a7c15;
    if (heard->now && prepare_release(heap))
        release_ended(heap, &t->pools[heard->pool]);
    return FRAG_OK;
}

/* ---- new memory ---- */

/* Whether a space has expandable segments if the setting is on. */
static bool uses_pages(const struct torch *t, const struct torch_space *space)
{
    return !space->pool ||
           !torch_has_earlier(t->conf.version, TORCH_POOL_SEGMENTS);
}

/* throw_on_cudamalloc_oom: whether a segment of that size would exceed the
 * memory of the device, of which the setting per_process_memory_fraction leaves
 * a share. */
static bool rejects(struct torch *t, struct frag_backend *mem,
                    frag_size segment)
{
    if (!t->conf.throws)
        return false;
    t->rejected = (double)(t->reserved + segment) >
                  t->conf.memory_fraction * (double)frag_backend_total(mem);
    return t->rejected;
}

/* alloc_block. The limit test uses the ordinary segment's size, in expandable
 * mode too, but under TORCH_MAPPED_LIMIT. It comes before all calls of the
 * device. */
static enum frag_err new_memory(struct frag_heap *heap,
                                struct torch_space *space, frag_size size,
                                struct torch_block **out)
{
    struct torch *t = heap->state;
    const frag_size segment = torch_segment_size(size, t->conf.large_segment);
    const bool expands = t->conf.expandable_segments && uses_pages(t, space);
    struct torch_block *b;
    frag_addr addr;

    if (!(expands && t->conf.experiments & TORCH_MAPPED_LIMIT) &&
        (torch_exceeds_limit(t, heap->mem, segment) ||
         rejects(t, heap->mem, segment)))
        return FRAG_OOM;
    if (expands)
        return torch_expand(heap, space, size, out);
    FRAG_TRY(heap->mem->ops->segment_alloc(heap->mem, segment, &addr));
    t->reserved += segment;
    if (t->observer)
        torch_count_segment(t, space, FRAG_TORCH_SEGMENT_ALLOC, addr, segment);
    b = torch_new_block(t);
    *b = (struct torch_block){.node = {.addr = addr, .size = segment},
                              .prev = &t->edge,
                              .next = &t->edge,
                              .space = space->index};
    *out = b;
    return FRAG_OK;
}

/* Counts the OOM and returns FRAG_OOM. */
static enum frag_err report_oom(struct torch *t,
                                const struct torch_space *space, frag_size size)
{
    struct frag_torch_observer *o = t->observer;

    if (o && t->rejected) {
        o->counters.num_oom_rejections++;
    } else if (o) {
        o->counters.num_ooms++;
        if (o->action)
            o->action(o->user, FRAG_TORCH_OOM, 0, size, space->stream);
    }
    t->rejected = false;
    return FRAG_OOM;
}

/* Whether a request of the space may return cached memory to the device. Up to
 * 2.12 no request of a private pool may, from 2.13 on none of a capture. */
static bool may_release(const struct torch *t, const struct torch_space *space)
{
    if (!space->pool)
        return true;
    return !torch_has_earlier(t->conf.version, TORCH_POOL_RELEASES) &&
           !(t->pools[space->pool].facts & FRAG_POOL_CAPTURE);
}

/* The last attempt. As in PyTorch, the free blocks are not searched again after
 * the release, but under TORCH_PR_191302. A block that became free in it helps
 * only if its memory was returned to the device. */
static enum frag_err retry(struct frag_heap *heap, struct torch_space *space,
                           frag_size size, torch_search_fn *search,
                           struct torch_block **out)
{
    struct torch *t = heap->state;

    torch_release_cached(heap);
    FRAG_TRY(torch_reserve(t));
    if (t->observer)
        t->observer->counters.num_alloc_retries++;
    if (t->conf.experiments & TORCH_PR_191302) {
        *out = search(t, space, size);
        if (*out)
            return FRAG_OK;
    }
    return new_memory(heap, space, size, out);
}

enum frag_err torch_grow(struct frag_heap *heap, struct torch_space *space,
                         frag_size size, torch_search_fn *search,
                         struct torch_block **out)
{
    struct torch *t = heap->state;
    const frag_size limit = torch_limit_collected(t, heap->mem);
    bool enough = false;
    enum frag_err err;

    t->counts_searches = limit != FRAG_UNLIMITED;
    if (t->counts_searches)
        collect_garbage(heap, limit);
    err = new_memory(heap, space, size, out);
    if (err == FRAG_OOM && !t->rejected && t->conf.max_split != FRAG_UNLIMITED)
        FRAG_TRY(release_available(heap, space, size, &enough));
    if (enough)
        err = new_memory(heap, space, size, out);
    if (err == FRAG_OOM && !t->rejected && may_release(t, space))
        err = retry(heap, space, size, search, out);
    return err == FRAG_OOM ? report_oom(t, space, size) : err;
}

/* ---- the end ---- */

static frag_size chain_size(const struct torch_block *b)
{
    frag_size size = 0;

    for (; !torch_is_edge(b); b = b->next)
        size += b->node.size;
    return size;
}

void torch_segments_fini(struct frag_heap *heap)
{
    struct torch *t = heap->state;
    struct torch_walk walk = {t->slabs, 0};
    struct torch_block *b;

    while ((b = torch_walk_next(&walk)))
        if (torch_is_edge(b->prev) && !b->expandable)
            (void)heap->mem->ops->segment_free(heap->mem, b->node.addr,
                                               chain_size(b));
    for (uint32_t i = 0; i < t->space_count; i++)
        torch_expand_fini(heap, t->spaces[i]);
}
