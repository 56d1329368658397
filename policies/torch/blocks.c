/* blocks.c - storage of the torch policy's blocks and spaces, and the split and
 * merge of blocks inside a segment.
 *
 * Records of blocks are allocated in slabs, which are freed when the heap is
 * closed and not before. A free and a release of memory must not fail. So each
 * alloc first reserves enough spare blocks for everything that can happen until
 * the next alloc.
 */
#include "policies/torch/state.h"
#include "traces/grow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct torch_slab {
    struct torch_slab *next;
    uint64_t count;
    _Alignas(64) struct torch_block blocks[]; /* one cache line each */
};

_Static_assert(sizeof(struct torch_block) == 64, "a block is a cache line");

enum frag_err torch_add_slab(struct torch *t, uint64_t count)
{
    struct torch_slab *slab = aligned_alloc(
        64, frag_round_up(sizeof(*slab) + count * sizeof(*slab->blocks), 64));

    if (!slab)
        return FRAG_NOMEM;
    memset(slab, 0, sizeof(*slab) + count * sizeof(*slab->blocks));
    slab->next = t->slabs;
    slab->count = count;
    t->slabs = slab;
    for (uint64_t i = count; i-- > 0;) {
        slab->blocks[i].next = t->spare;
        t->spare = &slab->blocks[i];
    }
    t->spare_count += count;
    return FRAG_OK;
}

struct torch_block *torch_new_block(struct torch *t)
{
    struct torch_block *b = t->spare;

    assert(b);
    t->spare = b->next;
    t->spare_count--;
    t->block_count++;
    *b = (struct torch_block){.mapped = true};
    return b;
}

void torch_drop_block(struct torch *t, struct torch_block *b)
{
    b->node.size = 0;
    b->next = t->spare;
    t->spare = b;
    t->spare_count++;
    t->block_count--;
}

static struct torch_block *scan(const struct torch_slab *slab, uint64_t from)
{
    for (; slab; slab = slab->next, from = 0)
        for (uint64_t i = from; i < slab->count; i++)
            if (slab->blocks[i].node.size)
                return (struct torch_block *)(uintptr_t)&slab->blocks[i];
    return NULL;
}

struct torch_block *torch_first_block(const struct torch *t)
{
    return scan(t->slabs, 0);
}

struct torch_block *torch_next_block(const struct torch *t,
                                     const struct torch_block *b)
{
    const struct torch_slab *slab = t->slabs;

    while (b < slab->blocks || b >= slab->blocks + slab->count)
        slab = slab->next;
    return scan(slab, (uint64_t)(b - slab->blocks) + 1);
}

/* ---- spaces ---- */

static enum frag_err add_pools(struct torch *t, uint32_t count)
{
    struct torch_pool *pools = realloc(t->pools, count * sizeof(*pools));

    if (!pools)
        return FRAG_NOMEM;
    t->pools = pools;
    while (t->pool_count < count) {
        uint32_t *searches = calloc(TORCH_SIZES, sizeof(*searches));

        if (!searches)
            return FRAG_NOMEM;
        pools[t->pool_count++] = (struct torch_pool){.searches = searches};
    }
    return FRAG_OK;
}

static enum frag_err add_streams(struct torch_pool *pool, uint32_t count)
{
    for (int k = 0; k < TORCH_SIZES; k++) {
        struct torch_space **spaces =
            realloc(pool->space[k], count * sizeof(struct torch_space *));

        if (!spaces)
            return FRAG_NOMEM;
        for (uint32_t i = pool->streams; i < count; i++)
            spaces[i] = NULL;
        pool->space[k] = spaces;
    }
    pool->streams = count;
    return FRAG_OK;
}

static enum frag_err add_space(struct torch *t, struct torch_space *space)
{
    if (t->space_count == UINT16_MAX)
        return FRAG_UNSUPPORTED;
    if (!GROW(t->spaces, t->space_room, t->space_count + (uint64_t)1))
        return FRAG_NOMEM;
    space->index = (uint16_t)t->space_count;
    t->spaces[t->space_count++] = space;
    return FRAG_OK;
}

enum frag_err torch_make_space(struct torch *t, frag_pool pool, bool is_small,
                               frag_stream stream, struct torch_space **out)
{
    struct torch_space *space;
    enum frag_err err;

    if (pool >= t->pool_count)
        FRAG_TRY(add_pools(t, pool + 1u));
    if (stream >= t->pools[pool].streams)
        FRAG_TRY(add_streams(&t->pools[pool], stream + 1u));
    space = calloc(1, sizeof(*space));
    if (!space)
        return FRAG_NOMEM;
    space->searches = &t->pools[pool].searches[is_small];
    space->page = is_small ? TORCH_SMALL_SEGMENT : t->conf.large_segment;
    space->stream = stream;
    space->pool = pool;
    space->is_small = is_small;
    err = add_space(t, space);
    if (err != FRAG_OK) {
        free(space);
        return err;
    }
    t->pools[pool].space[is_small][stream] = space;
    *out = space;
    return FRAG_OK;
}

void torch_blocks_fini(struct torch *t)
{
    for (uint32_t i = 0; i < t->space_count; i++) {
        free_set_fini(&t->spaces[i]->free);
        free(t->spaces[i]);
    }
    free(t->spaces);
    for (uint32_t i = 0; i < t->pool_count; i++) {
        free(t->pools[i].space[TORCH_LARGE]);
        free(t->pools[i].space[TORCH_SMALL]);
        free(t->pools[i].searches);
    }
    free(t->pools);
    while (t->slabs) {
        struct torch_slab *slab = t->slabs;

        t->slabs = slab->next;
        free(slab);
    }
}

/* ---- blocks in their segment ---- */

void torch_add_free(struct torch *t, struct torch_block *b)
{
    struct torch_space *space = t->spaces[b->space];

    b->born = *space->searches;
    free_set_insert(&space->free, &b->node);
}

void torch_hole_remove(struct torch_space *space, struct torch_block *b)
{
    struct free_node **link = &space->holes;

    while (*link != &b->node)
        link = &(*link)->right;
    *link = b->node.right;
}

frag_size torch_merge(struct torch *t, struct torch_block *dst,
                      struct torch_block *src)
{
    struct torch_space *space = t->spaces[dst->space];
    frag_size size;

    if (!src || src->used || src->mapped != dst->mapped)
        return 0;
    if (src->mapped)
        free_set_remove(&space->free, &src->node);
    else
        torch_hole_remove(space, src);
    if (src == dst->prev) {
        dst->node.addr = src->node.addr;
        dst->prev = src->prev;
        if (dst->prev)
            dst->prev->next = dst;
    } else {
        dst->next = src->next;
        if (dst->next)
            dst->next->prev = dst;
    }
    size = src->node.size;
    dst->node.size += size;
    torch_drop_block(t, src);
    return size;
}

static struct torch_block *new_part(struct torch *t,
                                    const struct torch_block *b)
{
    struct torch_block *part = torch_new_block(t);

    part->space = b->space;
    part->mapped = b->mapped;
    part->expandable = b->expandable;
    return part;
}

struct torch_block *torch_split_low(struct torch *t, struct torch_block *b,
                                    frag_size size)
{
    struct torch_block *low = new_part(t, b);

    assert(size > 0 && size < b->node.size);
    low->node.addr = b->node.addr;
    low->node.size = size;
    low->prev = b->prev;
    low->next = b;
    if (low->prev)
        low->prev->next = low;
    b->prev = low;
    b->node.addr += size;
    b->node.size -= size;
    return low;
}

struct torch_block *torch_split_high(struct torch *t, struct torch_block *b,
                                     frag_size size)
{
    struct torch_block *high = new_part(t, b);

    assert(size > 0 && size < b->node.size);
    b->node.size -= size;
    high->node.addr = b->node.addr + b->node.size;
    high->node.size = size;
    high->prev = b;
    high->next = b->next;
    if (high->next)
        high->next->prev = high;
    b->next = high;
    return high;
}
