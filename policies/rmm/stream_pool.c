/* stream_pool.c - lists, growth and search of RMM's pool. stream_pool.h has the
 * rules and their source.
 */
#include "policies/rmm/stream_pool.h"

#include <assert.h>
#include <stdlib.h>

struct pool_block {
    struct free_node node;            /* size and addr; links while free */
    struct pool_block *below, *above; /* neighbours, or the segment's ends */
    frag_stream stream; /* in the list of this stream, or used by it */
    bool used;
};

/* The blocks of a segment form a ring. `ends` closes the ring and counts as
 * used. */
struct pool_segment {
    struct segment base;
    struct pool_block ends;
};

static frag_size rounded_up(frag_size size)
{
    return frag_round_up(size, FRAG_ALIGNMENT);
}

enum frag_err stream_pool_init(struct frag_heap *heap)
{
    ((struct stream_pool *)heap->state)->nodes.size = sizeof(struct pool_block);
    return FRAG_OK;
}

void stream_pool_fini(struct frag_heap *heap)
{
    struct stream_pool *pool = heap->state;

    segments_fini(heap, &pool->segments);
    for (size_t i = 0; i < pool->list_count; i++) {
        if (pool->lists[i])
            free_set_fini(pool->lists[i]);
        free(pool->lists[i]);
    }
    free(pool->lists);
    nodes_release(&pool->nodes);
}

/* ---- lists ---- */

static enum frag_err reserve_lists(struct stream_pool *pool, size_t count)
{
    struct free_set **lists;

    if (count <= pool->list_count)
        return FRAG_OK;
    lists = realloc(pool->lists, count * sizeof(*lists));
    if (!lists)
        return FRAG_NOMEM;
    for (size_t i = pool->list_count; i < count; i++)
        lists[i] = NULL;
    pool->lists = lists;
    pool->list_count = count;
    return FRAG_OK;
}

/* Makes sure that the stream has a list, because a free must not fail. NOMEM.
 */
static enum frag_err ensure_list(struct stream_pool *pool, frag_stream stream)
{
    FRAG_TRY(reserve_lists(pool, (size_t)stream + 1));
    if (!pool->lists[stream])
        pool->lists[stream] = calloc(1, sizeof(**pool->lists));
    return pool->lists[stream] ? FRAG_OK : FRAG_NOMEM;
}

/* Sets or clears the bit of a stream after its list has changed. */
static void mark(struct stream_pool *pool, size_t stream)
{
    uint64_t *word = &pool->filled[stream / 64];
    uint64_t *above = &pool->words[stream / 64 / 64];

    if (free_set_first(pool->lists[stream])) {
        *word |= (uint64_t)1 << stream % 64;
        *above |= (uint64_t)1 << stream / 64 % 64;
        return;
    }
    *word &= ~((uint64_t)1 << stream % 64);
    if (!*word)
        *above &= ~((uint64_t)1 << stream / 64 % 64);
}

/* The first stream from `stream` up whose list is not empty; SIZE_MAX: none. */
static size_t next_filled(const struct stream_pool *pool, size_t stream)
{
    size_t word = stream / 64, above;
    uint64_t bits;

    if (stream > UINT16_MAX)
        return SIZE_MAX;
    bits = pool->filled[word] & ~(uint64_t)0 << stream % 64;
    if (bits)
        return word * 64 + (size_t)__builtin_ctzll(bits);
    above = ++word / 64;
    bits = above < 16 ? pool->words[above] & ~(uint64_t)0 << word % 64 : 0;
    while (!bits && ++above < 16)
        bits = pool->words[above];
    if (!bits)
        return SIZE_MAX;
    word = above * 64 + (size_t)__builtin_ctzll(bits);
    return word * 64 + (size_t)__builtin_ctzll(pool->filled[word]);
}

/* Whether `a` is free and in the list of b's stream. */
static bool mates(const struct pool_block *a, const struct pool_block *b)
{
    return !a->used && a->stream == b->stream;
}

/* Unlinks a block that a neighbour has absorbed, and frees its record. */
static void drop_record(struct stream_pool *pool, struct pool_block *b)
{
    b->below->above = b->above;
    b->above->below = b->below;
    nodes_put(&pool->nodes, b);
}

/* Inserts a block that is in no list into its stream's list, coalesced. */
static void insert(struct stream_pool *pool, struct pool_block *b)
{
    struct free_set *list = pool->lists[b->stream];
    struct pool_block *below = b->below, *above = b->above;

    b->used = false;
    if (mates(above, b)) {
        free_set_remove(list, &above->node);
        b->node.size += above->node.size;
        drop_record(pool, above);
    }
    if (mates(below, b)) {
        free_set_remove(list, &below->node);
        below->node.size += b->node.size;
        drop_record(pool, b);
        b = below;
    }
    free_set_insert(list, &b->node);
    mark(pool, b->stream);
}

/* Moves all blocks of a list into the stream's list, coalesced. */
static void merge(struct stream_pool *pool, size_t other, frag_stream stream)
{
    struct free_set *from = pool->lists[other];
    struct free_node *n;

    while ((n = free_set_first(from))) {
        free_set_remove(from, n);
        ((struct pool_block *)n)->stream = stream;
        insert(pool, (struct pool_block *)n);
    }
    mark(pool, other);
}

/* ---- growing ---- */

/* The bytes that the pool requests first; 0: the request exceeds the maximum.
 */
static frag_size growth(const struct stream_pool *pool, frag_size size)
{
    frag_size wish = pool->held;

    if (pool->maximum != FRAG_UNLIMITED) {
        const frag_size left = pool->maximum > pool->held
                                   ? rounded_up(pool->maximum - pool->held)
                                   : 0;

        if (size > left)
            return 0;
        wish = left / 2;
    }
    return wish > size ? wish : size;
}

/* Allocates a segment of `wish` bytes; while the device refuses, of half as
 * much, at least `least`. */
static enum frag_err request_segment(struct frag_backend *mem, frag_size wish,
                                     frag_size least, struct segment *s)
{
    enum frag_err err = mem->ops->segment_alloc(mem, wish, &s->addr);

    while (err == FRAG_OOM && wish > least) {
        wish /= 2;
        wish = wish > least ? wish : least;
        err = mem->ops->segment_alloc(mem, wish, &s->addr);
    }
    s->size = wish;
    return err;
}

/* Allocates a segment of at least `least` bytes; *out is one block of all of
 * it, in no list. Uses one record, which the caller has reserved. */
static enum frag_err grow(struct frag_heap *heap, frag_size wish,
                          frag_size least, frag_stream stream,
                          struct pool_block **out)
{
    struct stream_pool *pool = heap->state;
    struct pool_segment *s = malloc(sizeof(*s));
    struct pool_block *b;
    enum frag_err err;

    if (!s)
        return FRAG_NOMEM;
    err = request_segment(heap->mem, wish, least, &s->base);
    if (err != FRAG_OK) {
        free(s);
        return err;
    }

    b = nodes_take(&pool->nodes);
    *b = (struct pool_block){
        .node = {.addr = s->base.addr, .size = s->base.size},
        .below = &s->ends,
        .above = &s->ends,
        .stream = stream};
    s->ends = (struct pool_block){.below = b, .above = b, .used = true};
    s->base.next = pool->segments;
    pool->segments = &s->base;
    pool->held += s->base.size;
    *out = b;
    return FRAG_OK;
}

enum frag_err stream_pool_start(struct frag_heap *heap)
{
    struct stream_pool *pool = heap->state;
    const frag_size size = rounded_up(pool->initial);
    struct pool_block *b;

    if (!pool->started && size) {
        FRAG_TRY(ensure_list(pool, 0));
        FRAG_TRY(nodes_reserve(&pool->nodes, 1));
        FRAG_TRY(grow(heap, size, size, 0, &b));
        insert(pool, b);
    }
    pool->started = true;
    return FRAG_OK;
}

/* ---- serving ---- */

/* Removes the best fit from a stream's list; NULL: no block fits. */
static struct pool_block *remove_best_fit(struct stream_pool *pool,
                                          size_t stream, frag_size size)
{
    struct free_set *list = pool->lists[stream];
    struct free_node *n = list ? free_set_fit(list, size) : NULL;

    if (n) {
        free_set_remove(list, n);
        mark(pool, stream);
    }
    return (struct pool_block *)n;
}

/* A block of another stream's list; if no block fits, a block of the merged
 * lists. It is in no list. NULL: no block fits. */
static struct pool_block *alloc_from_others(struct stream_pool *pool,
                                            frag_size size, frag_stream stream)
{
    struct pool_block *b = NULL;

    for (size_t i = next_filled(pool, 0); !b && i != SIZE_MAX;
         i = next_filled(pool, i + 1))
        if (i != stream)
            b = remove_best_fit(pool, i, size);
    for (size_t i = next_filled(pool, 0); !b && i != SIZE_MAX;
         i = next_filled(pool, i + 1)) {
        if (i == stream)
            continue;
        merge(pool, i, stream);
        b = remove_best_fit(pool, stream, size);
    }
    return b;
}

/* Returns the lowest segment that is one free block, and the link to it; NULL:
 * there is none. */
static struct segment **find_unused(struct stream_pool *pool)
{
    struct segment **lowest = NULL;

    for (struct segment **link = &pool->segments; *link;
         link = &(*link)->next) {
        const struct pool_block *ends = &((struct pool_segment *)*link)->ends;

        if (ends->above == ends->below && !ends->above->used &&
            (!lowest || (*link)->addr < (*lowest)->addr))
            lowest = link;
    }
    return lowest;
}

/* Returns unused segments to the device, the lowest first, until the maximum
 * allows `size` more bytes. All free blocks are in one list. */
static void reclaim(struct frag_heap *heap, struct stream_pool *pool,
                    frag_size size)
{
    struct segment **link;

    if (size > pool->maximum)
        return;
    while (pool->maximum - pool->held < size && (link = find_unused(pool))) {
        struct segment *s = *link;
        struct pool_block *b = ((struct pool_segment *)s)->ends.above;

        *link = s->next;
        free_set_remove(pool->lists[b->stream], &b->node);
        mark(pool, b->stream);
        nodes_put(&pool->nodes, b);
        pool->held -= s->size;
        heap->mem->ops->segment_free(heap->mem, s->addr, s->size);
        free(s);
    }
}

/* Grows the pool for a request. OOM also if the maximum refuses it. */
static enum frag_err extend(struct frag_heap *heap, frag_size size,
                            frag_stream stream, struct pool_block **out)
{
    struct stream_pool *pool = heap->state;
    frag_size wish = growth(pool, size);

    if (!wish && pool->reclaim) {
        reclaim(heap, pool, size);
        wish = growth(pool, size);
    }
    if (!wish)
        return FRAG_OOM;
    FRAG_TRY(nodes_reserve(&pool->nodes, 2));
    return grow(heap, wish, size, stream, out);
}

/* Splits a block; the remainder joins the list that the block was in. */
static void split(struct stream_pool *pool, struct pool_block *b,
                  frag_size size)
{
    struct pool_block *rest = nodes_take(&pool->nodes);

    *rest = (struct pool_block){
        .node = {.addr = b->node.addr + size, .size = b->node.size - size},
        .below = b,
        .above = b->above,
        .stream = b->stream};
    b->above->below = rest;
    b->above = rest;
    b->node.size = size;
    free_set_insert(pool->lists[b->stream], &rest->node);
    mark(pool, b->stream);
}

enum frag_err stream_pool_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out)
{
    struct stream_pool *pool = heap->state;
    const frag_size size = rounded_up(req->size);
    const frag_stream stream = req->stream;
    struct pool_block *b;

    assert(size > 0 && size >> 63 == 0);
    FRAG_TRY(stream_pool_start(heap));
    FRAG_TRY(ensure_list(pool, stream));
    FRAG_TRY(nodes_reserve(&pool->nodes, 1));
    b = remove_best_fit(pool, stream, size);
    if (!b)
        b = alloc_from_others(pool, size, stream);
    if (!b)
        FRAG_TRY(extend(heap, size, stream, &b));

    b->used = true;
    if (b->node.size > size)
        split(pool, b, size);
    b->stream = stream;
    *out = (struct frag_block){b->node.addr, size, b};
    return FRAG_OK;
}

enum frag_err stream_pool_hear(struct frag_heap *heap,
                               const struct frag_heard *heard)
{
    struct pool_block *b = heard->block->node;

    FRAG_TRY(ensure_list(heap->state, heard->stream));
    b->stream = heard->stream;
    return FRAG_OK;
}

void stream_pool_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct pool_block *b = block->node;

    assert(b->used);
    insert(heap->state, b);
}

/* ---- the check ---- */

static const char *check_segment(const struct stream_pool *pool,
                                 const struct pool_segment *s, struct met *met)
{
    const struct pool_block *below = &s->ends;
    frag_addr addr = s->base.addr;

    CHECK(s->ends.used, "the ends of a segment are free");
    for (const struct pool_block *b = below->above; b != &s->ends;
         b = b->above) {
        CHECK(b->below == below, "a block does not know the one below it");
        CHECK(b->node.addr == addr,
              "a block does not begin where the one below it ends");
        CHECK(b->node.size > 0 &&
                  b->node.size <= s->base.size - (addr - s->base.addr),
              "a block is empty or reaches beyond its segment");
        CHECK(b->stream < pool->list_count && pool->lists[b->stream],
              "a block is of a stream without a list");
        CHECK(b->used || below->used || b->stream != below->stream,
              "two free neighbours are of one stream");
        if (!b->used)
            met_add(met, b, pool->lists[b->stream]);
        addr += b->node.size;
        below = b;
    }
    CHECK(s->ends.below == below, "a segment does not know its last block");
    CHECK(addr - s->base.addr == s->base.size,
          "the blocks of a segment do not fill it");
    return NULL;
}

const char *stream_pool_check(const struct frag_heap *heap)
{
    const struct stream_pool *pool = heap->state;
    struct met free = {.most = SIZE_MAX}, kept = {0};
    frag_size held = 0;

    for (const struct segment *s = pool->segments; s; s = s->next) {
        CHECK_ALL(check_segment(pool, (const struct pool_segment *)s, &free));
        held += s->size;
    }
    kept.most = free.count;
    for (size_t i = 0; i < pool->list_count; i++)
        if (pool->lists[i])
            CHECK_ALL(free_set_check(pool->lists[i], pool->lists[i], &kept));
    CHECK(met_are_equal(&free, &kept),
          "the lists are not the free blocks of their streams");
    for (size_t i = 0; i < pool->list_count; i++)
        CHECK((pool->filled[i / 64] >> i % 64 & 1) ==
                  (pool->lists[i] && free_set_first(pool->lists[i])),
              "`filled` is not the streams with a free block");
    CHECK(held == pool->held, "`held` is not the bytes of all segments");
    return nodes_check(&pool->nodes);
}
