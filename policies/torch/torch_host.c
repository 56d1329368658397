/* torch_host.c - the torch_host policy: PyTorch's allocator of pinned host
 * memory (at::CachingHostAllocator).
 *
 * A request is rounded up to a power of two, and its block is a segment of its
 * own: blocks are neither split nor merged. A freed block goes to the end of
 * the bucket of its power of two, and the next request of that bucket takes the
 * last one. Nothing is returned but by empty_cache, bucket by bucket, and a
 * request that the host refuses is not tried again. A block that streams used
 * is free when their events have completed, which the trace shows.
 *
 * Three settings change this. A request above pinned_max_round_threshold_mb, or
 * above pinned_max_cached_size_mb, keeps its size; a bucket may then have
 * blocks of several sizes, and the search goes from the last one on to one that
 * is large enough. A freed block above pinned_max_cached_size_mb is returned at
 * once. With pinned_reserve_segment_size_mb, one segment is allocated at the
 * first request, and new blocks are cut from it while it has room; they are
 * never returned.
 *
 * The releases differ in two rules, which enum host_rule names. PyTorch 2.13
 * takes the last block of a bucket even if it is smaller than the request: a
 * fault that 2.14 corrected, and that the policy repeats. A check of the
 * contract therefore fails where that release writes beyond its block.
 *
 * Source: ATen/core/CachingHostAllocator.h of 2.6.0, 2.9.1, 2.10.0, 2.11.0,
 * 2.12.1, 2.13.0, 2.14.1 and 2.15.0, as published; the reserve segment, which
 * is not in that header, as seen in what these releases do
 * (tests/gpu/releases/host_scripts.py).
 */
#include "policies/mechanism/nodes.h"
#include "policies/torch/torch.h"
#include "policies/torch/torch_conf.h"

enum { BUCKETS = 64 };

#define RESERVE_UNIT ((frag_size)4096) /* bytes; of a block in the reserve */

/* The first release with each rule. */
enum host_rule {
    HAS_POOLS = 11, /* captures have pools of their own */
    FITS = 14,      /* a block of the bucket is taken only if it is large
                       enough */
};

/* A block is in the list of its bucket if it is free, else in that of the live
 * blocks. */
struct host_block {
    struct host_block *prev, *next;
    struct host_pool *pool;
    frag_addr addr;
    frag_size size, requested;             /* requested: by the last request */
    bool is_live, is_pending, is_reserved; /* reserved: part of the reserve */
};

/* In the order in which the blocks came. */
struct host_list {
    struct host_block *first, *last;
};

struct host_pool {
    struct host_pool *next;
    frag_pool pool;
    bool ended;     /* the program no longer has it */
    uint64_t order; /* in which empty_cache visits the ended pools */
    struct host_list buckets[BUCKETS];
};

struct host {
    struct torch_conf conf;
    unsigned version;
    struct nodes nodes;
    struct host_pool common; /* pool 0, the first of all pools */
    struct host_list live;
    struct torch_conf *first; /* the parameters, once they have changed */
    frag_addr reserve;        /* the segment; 0: not allocated yet */
    frag_size reserve_size;   /* bytes */
    frag_size reserve_used;   /* bytes of it */
    struct frag_torch_observer *observer;
};

static enum frag_err host_configure(void *state, const char *text,
                                    struct frag_error *e)
{
    struct host *h = state;

    FRAG_TRY(torch_conf_parse(&h->conf, text, e));
    h->version = h->conf.is_named ? h->conf.version : TORCH_MODEL_NEWEST;
    return FRAG_OK;
}

static void put_limit(FILE *out, const char *key, frag_size size)
{
    if (size != FRAG_UNLIMITED)
        fprintf(out, ",%s:%llu", key, (unsigned long long)(size / FRAG_MIB));
}

static void host_describe(const void *state, FILE *out)
{
    const struct host *h = state;

    fprintf(out, "torch_version:2.%u", h->version);
    put_limit(out, "pinned_max_round_threshold_mb", h->conf.pinned_round);
    put_limit(out, "pinned_max_cached_size_mb", h->conf.pinned_cached);
    if (h->conf.pinned_reserve)
        put_limit(out, "pinned_reserve_segment_size_mb",
                  h->conf.pinned_reserve);
    if (h->conf.follows)
        fprintf(out, "," TORCH_FOLLOWS_KEY ":True");
}

static enum frag_err host_init(struct frag_heap *heap)
{
    struct host *h = heap->state;

    h->nodes.size = sizeof(struct host_block);
    return FRAG_OK;
}

/* A block keeps its size; whether it is cached when it is freed is decided by
 * the setting of that moment, as is the size of a request. */
static enum frag_err host_set(struct frag_heap *heap,
                              const struct frag_setting *setting)
{
    struct host *h = heap->state;

    return torch_conf_follow(&h->conf, &h->first, setting);
}

/* ---- lists ---- */

static void append(struct host_list *list, struct host_block *b)
{
    b->next = NULL;
    b->prev = list->last;
    *(b->prev ? &b->prev->next : &list->first) = b;
    list->last = b;
}

static void drop(struct host_list *list, struct host_block *b)
{
    *(b->prev ? &b->prev->next : &list->first) = b->next;
    *(b->next ? &b->next->prev : &list->last) = b->prev;
}

/* The binary logarithm of a size, rounded up. */
static unsigned bucket_of(frag_size size)
{
    return size > 1 ? torch_log2(size - 1) + 1 : 0;
}

static struct host_pool *pool_of(struct host *h, frag_pool number)
{
    struct host_pool *pool = &h->common;

    if (h->version < HAS_POOLS)
        number = 0;
    while (pool->pool != number && pool->next)
        pool = pool->next;
    if (pool->pool == number)
        return pool;
    pool->next = calloc(1, sizeof(*pool->next));
    if (pool->next)
        pool->next->pool = number;
    return pool->next;
}

/* ---- memory ---- */

static void count(struct host *h, enum frag_torch_action action,
                  const struct host_block *b)
{
    struct frag_torch_observer *o = h->observer;
    struct frag_torch_count *held;

    if (!o)
        return;
    held = &o->counters.stat[FRAG_TORCH_RESERVED_BYTES][FRAG_TORCH_ALL];
    if (action == FRAG_TORCH_SEGMENT_ALLOC) {
        held->current += b->size;
        held->peak = held->peak > held->current ? held->peak : held->current;
    } else {
        held->current -= b->size;
    }
    if (o->action)
        o->action(o->user, action, b->addr, b->size, 0);
}

/* Cuts a block from the reserve; false if it has no room. */
static bool cut(struct host *h, struct host_block *b)
{
    const frag_size whole = torch_round_up(b->size, RESERVE_UNIT);

    if (whole > h->reserve_size - h->reserve_used)
        return false;
    b->addr = h->reserve + h->reserve_used;
    b->is_reserved = true;
    h->reserve_used += whole;
    return true;
}

static enum frag_err find_memory(struct frag_heap *heap, struct host_block *b)
{
    const struct frag_backend_ops *ops = heap->mem->ops;
    struct host *h = heap->state;

    if (h->conf.pinned_reserve && !h->reserve) {
        h->reserve_size = h->conf.pinned_reserve;
        FRAG_TRY(ops->segment_alloc(heap->mem, h->reserve_size, &h->reserve));
    }
    if (h->reserve && cut(h, b))
        return FRAG_OK;
    return ops->segment_alloc(heap->mem, b->size, &b->addr);
}

static struct host_list *bucket(struct host_block *b)
{
    return &b->pool->buckets[bucket_of(b->size)];
}

/* Returns the memory of a block that is in no list. If the host refuses, the
 * block is free instead. */
static void destroy(struct frag_heap *heap, struct host_block *b)
{
    struct host *h = heap->state;

    if (!b->is_reserved &&
        heap->mem->ops->segment_free(heap->mem, b->addr, b->size) != FRAG_OK) {
        append(bucket(b), b);
        return;
    }
    count(h, FRAG_TORCH_SEGMENT_FREE, b);
    nodes_put(&h->nodes, b);
}

static void destroy_all(struct frag_heap *heap, struct host_list *list)
{
    struct host_list all = *list;

    *list = (struct host_list){NULL, NULL};
    while (all.first) {
        struct host_block *b = all.first;

        drop(&all, b);
        destroy(heap, b);
    }
}

/* ---- requests ---- */

static frag_size rounded(const struct host *h, frag_size size)
{
    if (size > h->conf.pinned_round || size > h->conf.pinned_cached)
        return size;
    return (frag_size)1 << bucket_of(size);
}

static struct host_block *take_free(const struct host *h,
                                    struct host_list *list, frag_size size)
{
    struct host_block *b = list->last;

    while (b && b->size < size && h->version >= FITS)
        b = b->prev;
    if (b)
        drop(list, b);
    return b;
}

static enum frag_err make(struct frag_heap *heap, struct host_pool *pool,
                          frag_size size, struct host_block **out)
{
    struct host *h = heap->state;
    struct host_block made = {.pool = pool, .size = size};

    FRAG_TRY(nodes_reserve(&h->nodes, 1));
    FRAG_TRY(find_memory(heap, &made));
    *out = nodes_take(&h->nodes);
    **out = made;
    count(h, FRAG_TORCH_SEGMENT_ALLOC, *out);
    return FRAG_OK;
}

static enum frag_err host_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out)
{
    struct host *h = heap->state;
    const frag_size size = rounded(h, req->size);
    struct host_pool *pool = pool_of(h, req->pool);
    struct host_block *b;

    if (!pool)
        return FRAG_NOMEM;
    b = take_free(h, &pool->buckets[bucket_of(size)], size);
    if (!b)
        FRAG_TRY(make(heap, pool, size, &b));
    append(&h->live, b);
    b->is_live = true;
    b->is_pending = false;
    b->requested = req->size;
    *out = (struct frag_block){b->addr, b->size, b};
    return FRAG_OK;
}

static void host_free_requested(struct frag_heap *heap,
                                const struct frag_block *block)
{
    struct host_block *b = block->node;

    (void)heap;
    b->is_pending = true;
}

static void host_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct host *h = heap->state;
    struct host_block *b = block->node;

    drop(&h->live, b);
    b->is_live = false;
    if (b->size > h->conf.pinned_cached)
        destroy(heap, b);
    else
        append(bucket(b), b);
}

static void empty(struct frag_heap *heap, struct host_pool *pool)
{
    for (int k = 0; k < BUCKETS; k++)
        destroy_all(heap, &pool->buckets[k]);
}

/* The ended pool that comes after `last`, or the first; NULL: there is none. */
static struct host_pool *next_ended(struct host *h,
                                    const struct host_pool *last)
{
    struct host_pool *next = NULL;

    for (struct host_pool *p = &h->common; p; p = p->next)
        if (p->ended && (!last || p->order > last->order) &&
            (!next || p->order < next->order))
            next = p;
    return next;
}

/* A private pool keeps its blocks until it has ended. */
static void host_trim(struct frag_heap *heap)
{
    struct host *h = heap->state;

    empty(heap, &h->common);
    for (struct host_pool *p = next_ended(h, NULL); p; p = next_ended(h, p))
        empty(heap, p);
}

/* PyTorch keeps ended pools in the order of torch_hear (torch_segments.c). */
static enum frag_err host_hear(struct frag_heap *heap,
                               const struct frag_heard *heard)
{
    struct host_pool *pool = pool_of(heap->state, heard->pool);

    if (!pool)
        return FRAG_NOMEM;
    if (pool->pool)
        pool->ended |= heard->facts & FRAG_POOL_ENDED;
    pool->order = heard->number * 0x9e3779b97f4a7c15;
    if (heard->now)
        empty(heap, pool);
    return FRAG_OK;
}

static void host_fini(struct frag_heap *heap)
{
    struct host *h = heap->state;
    struct host_pool *pool = &h->common;

    h->observer = NULL;
    destroy_all(heap, &h->live);
    for (struct host_pool *next; pool; pool = next) {
        next = pool->next;
        empty(heap, pool);
        if (pool != &h->common)
            free(pool);
    }
    if (h->reserve)
        (void)heap->mem->ops->segment_free(heap->mem, h->reserve,
                                           h->reserve_size);
    free(h->first);
    nodes_release(&h->nodes);
}

/* Each segment of a layout is one block. The order in which its free blocks
 * were freed is not known; they are taken as in the order of addresses. */
static enum frag_err host_adopt(struct frag_heap *heap,
                                const struct frag_held_segment *segments,
                                size_t segment_count, void **nodes)
{
    struct host *h = heap->state;

    for (size_t i = 0; i < segment_count; i++) {
        const struct frag_held_block *from = segments[i].blocks;
        struct host_pool *pool = pool_of(h, segments[i].pool);
        struct host_block *b;

        if (segments[i].block_count != 1)
            return FRAG_UNSUPPORTED;
        if (!pool)
            return FRAG_NOMEM;
        FRAG_TRY(nodes_reserve(&h->nodes, 1));
        b = nodes_take(&h->nodes);
        *b = (struct host_block){.pool = pool,
                                 .addr = from->addr,
                                 .size = from->size,
                                 .requested = from->requested,
                                 .is_live = from->live};
        append(from->live ? &h->live : bucket(b), b);
        if (from->live)
            *nodes++ = b;
        count(h, FRAG_TORCH_SEGMENT_ALLOC, b);
    }
    return FRAG_OK;
}

/* ---- what validation and tests see ---- */

void frag_torch_host_observe(struct frag_heap *heap,
                             struct frag_torch_observer *observer)
{
    struct host *h = heap->state;

    h->observer = observer;
}

static void show(const struct host_list *list,
                 void (*block)(void *, const struct frag_torch_block *),
                 void *user)
{
    for (const struct host_block *b = list->first; b; b = b->next)
        block(user, &(struct frag_torch_block){
                        .segment = b->addr,
                        .addr = b->addr,
                        .size = b->size,
                        .requested = b->requested,
                        .pool = b->pool->pool,
                        .is_small = true, /* as PyTorch's snapshot says */
                        .allocated = b->is_live && !b->is_pending,
                        .pending = b->is_live && b->is_pending,
                    });
}

void frag_torch_host_snapshot(const struct frag_heap *heap,
                              void (*block)(void *user,
                                            const struct frag_torch_block *b),
                              void *user)
{
    const struct host *h = heap->state;

    show(&h->live, block, user);
    for (const struct host_pool *p = &h->common; p; p = p->next)
        for (int k = 0; k < BUCKETS; k++)
            show(&p->buckets[k], block, user);
}

static const char *check_list(const struct host_list *list, bool is_live,
                              int bucket)
{
    const struct host_block *before = NULL;

    for (const struct host_block *b = list->first; b; b = b->next) {
        CHECK(b->prev == before, "a list of blocks is not linked both ways");
        CHECK(b->is_live == is_live, "a block is in the list of another state");
        CHECK(is_live || bucket_of(b->size) == (unsigned)bucket,
              "a free block is in the bucket of another size");
        before = b;
    }
    CHECK(list->last == before, "a list does not end with its last block");
    return NULL;
}

static const char *host_check(const struct frag_heap *heap)
{
    const struct host *h = heap->state;

    CHECK_ALL(check_list(&h->live, true, 0));
    for (const struct host_pool *p = &h->common; p; p = p->next)
        for (int k = 0; k < BUCKETS; k++)
            CHECK_ALL(check_list(&p->buckets[k], false, k));
    CHECK(h->reserve_used <= h->reserve_size,
          "the blocks of the reserve exceed it");
    return NULL;
}

static const struct frag_param host_params[] = {
    {.name = "torch_version",
     .init = "2.15",
     .help = "the release of PyTorch whose rules and settings hold, from 2.1 "
             "to 2.15; torch_host@2.13:... is short for "
             "torch_host:torch_version:2.13,..."},
    {.name = "pinned_max_round_threshold_mb",
     .init = NULL,
     .help = "a larger request is not rounded up to a power of two (MiB, since "
             "2.13)"},
    {.name = "pinned_max_cached_size_mb",
     .init = NULL,
     .help = "a larger block is not rounded and is returned when it is freed "
             "(MiB, since 2.13)"},
    {.name = "pinned_reserve_segment_size_mb",
     .init = NULL,
     .help = "one segment is allocated at the start, and blocks are cut from "
             "it (MiB, since 2.10); other settings of PyTorch have no effect"},
    {.name = NULL},
};

const struct frag_policy frag_policy_torch_host = {
    .name = "torch_host",
    .summary = "PyTorch's allocator of pinned host memory: powers of two",
    .source = "PyTorch 2.15, ATen/core/CachingHostAllocator.h",
    .needs = FRAG_HEARS_POOLS,
    .quantum = 1,
    .state_size = sizeof(struct host),
    .params = host_params,
    .configure = host_configure,
    .describe = host_describe,
    .init = host_init,
    .fini = host_fini,
    .alloc = host_alloc,
    .free = host_free,
    .free_requested = host_free_requested,
    .trim = host_trim,
    .hear = host_hear,
    .set = host_set,
    .adopt = host_adopt,
    .check = host_check,
};
