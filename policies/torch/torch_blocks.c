/* torch_blocks.c - storage of the torch policy's blocks and spaces, and the
 * split and merge of blocks inside a segment.
 *
 * Records of blocks are allocated in slabs, which are freed when the heap is
 * closed and not before. A free and a release of memory must not fail. So each
 * alloc first reserves enough spare blocks for everything that can happen until
 * the next alloc.
 */
#include "policies/torch/torch_state.h"
#include "traces/grow.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct torch_block) <= 64, "a block is in a cache line");
_Static_assert(sizeof(struct torch_slab) <= TORCH_SLAB_BYTES,
               "a slab has room between its multiples");

static enum frag_err add_slab(struct torch *t)
{
    struct torch_slab *slab = aligned_alloc(TORCH_SLAB_BYTES, TORCH_SLAB_BYTES);

    if (!slab)
        return FRAG_NOMEM;
    memset(slab, 0, sizeof(*slab));
    slab->next = t->slabs;
    t->slabs = slab;
    for (uint64_t i = TORCH_SLAB_BLOCKS; i-- > 0;) {
        slab->blocks[i].next = t->spare;
        t->spare = &slab->blocks[i];
    }
    t->spare_count += TORCH_SLAB_BLOCKS;
    t->record_count += TORCH_SLAB_BLOCKS;
    return FRAG_OK;
}

enum frag_err torch_add_spare(struct torch *t, uint64_t count)
{
    while (t->spare_count < count)
        FRAG_TRY(add_slab(t));
    return FRAG_OK;
}

struct torch_block *torch_walk_next(struct torch_walk *w)
{
    for (; w->slab; w->slab = w->slab->next, w->at = 0)
        while (w->at < TORCH_SLAB_BLOCKS) {
            const struct torch_block *b = &w->slab->blocks[w->at++];

            if (b->node.size)
                return (struct torch_block *)(uintptr_t)b;
        }
    return NULL;
}

/* ---- spaces ---- */

enum frag_err torch_add_pools(struct torch *t, uint32_t count)
{
    struct torch_pool *pools;

    if (count <= t->pool_count)
        return FRAG_OK;
    pools = realloc(t->pools, count * sizeof(*pools));
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

static uint64_t rank_of(const struct free_node *node)
{
    return *torch_rank(torch_block_of(node));
}

/* Creates a space that does not exist yet, in a pool and of a stream that do
 * exist. */
static enum frag_err make_space(struct torch *t, frag_pool pool, bool is_small,
                                frag_stream stream)
{
    struct torch_space *space = calloc(1, sizeof(*space));
    enum frag_err err;

    if (!space)
        return FRAG_NOMEM;
    space->searches = &t->pools[pool].searches[is_small];
    space->page = torch_page(t, is_small);
    space->stream = stream;
    space->pool = pool;
    space->is_small = is_small;
    space->whole = t->pools[pool].facts & FRAG_POOL_WHOLE;
    if (t->ranks_blocks || t->ranks_segments)
        space->free.rank = rank_of;
    err = add_space(t, space);
    if (err != FRAG_OK) {
        free(space);
        return err;
    }
    t->pools[pool].space[is_small][stream] = space;
    return FRAG_OK;
}

enum frag_err torch_change_lane(struct torch *t, frag_pool pool, bool is_small,
                                frag_stream stream, struct torch_space **out)
{
    struct torch_pool *p;

    FRAG_TRY(torch_add_pools(t, pool + 1u));
    p = &t->pools[pool];
    if (stream >= p->streams)
        FRAG_TRY(add_streams(p, stream + 1u));
    if (!p->space[is_small][stream])
        FRAG_TRY(make_space(t, pool, is_small, stream));
    t->latest = (struct torch_lane){
        stream,
        pool,
        {p->space[TORCH_LARGE][stream], p->space[TORCH_SMALL][stream]}};
    *out = t->latest.space[is_small];
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

void torch_hole_remove(struct torch_space *space, struct torch_block *b)
{
    struct free_node **link = &space->holes;

    while (*link != &b->node)
        link = &(*link)->right;
    *link = b->node.right;
}

struct torch_block *torch_split_high(struct torch *t, struct torch_block *b,
                                     frag_size size)
{
    const frag_size rest = b->node.size - size;
    struct torch_block *high = torch_new_part(t, b, b->node.addr + rest, size);

    high->prev = b;
    high->next = b->next;
    high->next->prev = high;
    b->next = high;
    b->node.size = rest;
    return high;
}
