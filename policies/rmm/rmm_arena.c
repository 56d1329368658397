/* rmm_arena.c - RAPIDS RMM's arenas: superblocks, passed between streams.
 *
 * All memory is taken at once and never grows. It is tiled by superblocks, each
 * tiled by blocks; a superblock belongs to the global arena or to the arena of
 * one stream. Everywhere the first fit by address serves, its low part.
 *
 *   - A request of at most `superblock` bytes is served by the first superblock
 *     of its stream's arena that has room. If none has, that arena acquires one
 *     from the global arena. A larger request is served inside the global
 * arena, from a superblock acquired likewise but left there.
 *   - What is acquired is the first superblock with room for the request. If it
 *     is wholly free, and large enough to leave another, it is cut to the
 *     request, at least `superblock` bytes; if not, it is taken as it is, and
 *     what may live in it goes along.
 *   - A freed block is coalesced with its neighbours inside the superblock. If
 *     that leaves a superblock of the global arena wholly free, it is coalesced
 *     with such neighbours. One of a stream's arena stays there, even so.
 *   - If a request fails, the device is synchronized, all superblocks of all
 *     streams go to the global arena, coalescing those that are wholly free,
 *     and the request is made once more.
 *
 * Sizes are rounded up to FRAG_ALIGNMENT, 256 bytes, as in the source.
 *
 * Where we differ: the source takes its memory when it is constructed; here the
 * first request does, and all are refused until it has been had, or if it is
 * less than a superblock. The source waits for the stream at each free of a
 * block that the global arena serves, and at each of a block that has changed
 * arenas; a backend has no such call. It keeps arenas by thread for the
 * per-thread default stream; a trace has streams only. A block is freed on the
 * stream that it was allocated on.
 *
 * Source: rapidsai/rmm 26.08 at 5d50a37, cpp/include/rmm/mr/detail/arena.hpp,
 * cpp/src/mr/detail/arena_memory_resource_impl.cpp, without the compile-time
 * option of size classes.
 */
#include "policies/mechanism/holes.h"
#include "policies/mechanism/nodes.h"
#include "policies/policy.h"

#include <stdlib.h>

struct superblock;

struct arena_block {
    struct hole hole; /* size and addr; the rest while it is free */
    struct arena_block *below,
        *above; /* neighbours; NULL at the superblock's ends */
    struct superblock *home;
    bool used;
};

/* Filed by address in its arena's tree as a hole whose size is that of its
 * largest free block: the lowest hole that is large enough is the first
 * superblock with room. A superblock without room is a hole of no size. */
struct superblock {
    struct hole rank;
    struct superblock *below, *above; /* neighbours; NULL at the ends */
    frag_size size;
    struct hole *holes;         /* its free blocks by address */
    struct stream_arena *arena; /* where it is filed */
    struct arena_block *lowest; /* its first block */
};

struct stream_arena {
    struct hole *tree; /* superblocks by address */
};

struct rmm_arena {
    frag_size size, superblock; /* the parameters */
    double fraction;
    frag_addr addr;
    frag_size held; /* bytes taken; 0: none yet */
    struct stream_arena global;
    struct stream_arena **arenas; /* by stream; NULL: never heard of */
    size_t arena_count;
    struct nodes blocks, superblocks;
};

/* ---- superblocks ---- */

static void file(struct superblock *s, struct stream_arena *arena)
{
    s->arena = arena;
    s->rank.node.size = s->holes ? s->holes->widest : 0;
    holes_insert(&arena->tree, &s->rank);
}

static void unfile(struct superblock *s)
{
    holes_remove(&s->arena->tree, &s->rank);
}

/* Its free blocks have changed. */
static void refile(struct superblock *s)
{
    const frag_size largest = s->holes ? s->holes->widest : 0;

    if (largest != s->rank.node.size)
        holes_resize(&s->arena->tree, &s->rank, s->rank.node.addr, largest);
}

static bool is_empty(const struct superblock *s)
{
    return !s->lowest->used && !s->lowest->above;
}

/* A superblock of one free block, above another (NULL: the first of all). */
static struct superblock *make(struct rmm_arena *p, struct superblock *below,
                               frag_addr addr, frag_size size)
{
    struct superblock *s = nodes_take(&p->superblocks);
    struct arena_block *b = nodes_take(&p->blocks);

    *b = (struct arena_block){.hole.node = {.addr = addr, .size = size},
                              .home = s};
    *s = (struct superblock){.rank.node.addr = addr,
                             .below = below,
                             .above = below ? below->above : NULL,
                             .size = size,
                             .lowest = b};
    if (s->above)
        s->above->below = s;
    if (below)
        below->above = s;
    holes_insert(&s->holes, &b->hole);
    return s;
}

/* Resizes a wholly free superblock that is filed nowhere. */
static void resize(struct superblock *s, frag_size size)
{
    s->size = size;
    holes_resize(&s->holes, &s->lowest->hole, s->rank.node.addr, size);
}

/* Adds a wholly free superblock to the one below it; both are filed nowhere. */
static void absorb(struct rmm_arena *p, struct superblock *s,
                   struct superblock *above)
{
    resize(s, s->size + above->size);
    s->above = above->above;
    if (s->above)
        s->above->below = s;
    nodes_put(&p->blocks, above->lowest);
    nodes_put(&p->superblocks, above);
}

static bool can_merge(struct rmm_arena *p, const struct superblock *s)
{
    return s && s->arena == &p->global && is_empty(s);
}

/* Files a superblock that is filed nowhere in the global arena. */
static void release(struct rmm_arena *p, struct superblock *s)
{
    if (is_empty(s) && can_merge(p, s->above)) {
        unfile(s->above);
        absorb(p, s, s->above);
    }
    if (is_empty(s) && can_merge(p, s->below)) {
        struct superblock *below = s->below;

        unfile(below);
        absorb(p, below, s);
        s = below;
    }
    file(s, &p->global);
}

static void clean(struct rmm_arena *p, struct stream_arena *arena)
{
    while (arena->tree) {
        struct superblock *s = (struct superblock *)arena->tree;

        unfile(s);
        release(p, s);
    }
}

/* The first superblock of the global arena with room, moved to `arena`; NULL if
 * there is none. May use a node of each kind, which the caller has reserved. */
static struct superblock *acquire(struct rmm_arena *p, frag_size size,
                                  struct stream_arena *arena)
{
    const frag_size least = size > p->superblock ? size : p->superblock;
    struct hole *rank = holes_lowest(p->global.tree, size, 0);
    struct superblock *s = (struct superblock *)rank;

    if (!s)
        return NULL;
    unfile(s);
    if (is_empty(s) && s->size >= least + p->superblock) {
        const frag_addr end = rank->node.addr + least;

        file(make(p, s, end, s->size - least), &p->global);
        resize(s, least);
    }
    file(s, arena);
    return s;
}

/* ---- blocks ---- */

/* The first block of a superblock that has room, cut to size. Uses a node. */
static struct arena_block *carve(struct rmm_arena *p, struct superblock *s,
                                 frag_size size)
{
    struct hole *hole = holes_lowest(s->holes, size, 0);
    struct arena_block *b = (struct arena_block *)hole;

    if (hole->node.size > size) {
        struct arena_block *front = nodes_take(&p->blocks);

        *front = (struct arena_block){.hole.node = {.addr = hole->node.addr},
                                      .below = b->below,
                                      .above = b,
                                      .home = s};
        *(front->below ? &front->below->above : &s->lowest) = front;
        b->below = front;
        holes_resize(&s->holes, hole, hole->node.addr + size,
                     hole->node.size - size);
        b = front;
        b->hole.node.size = size;
    } else {
        holes_remove(&s->holes, hole);
    }
    b->used = true;
    refile(s);
    return b;
}

/* Adds the block above to b; neither is among the holes. */
static void fuse(struct rmm_arena *p, struct arena_block *b)
{
    struct arena_block *above = b->above;

    b->hole.node.size += above->hole.node.size;
    b->above = above->above;
    if (b->above)
        b->above->below = b;
    nodes_put(&p->blocks, above);
}

static struct arena_block *coalesce(struct rmm_arena *p, struct superblock *s,
                                    struct arena_block *b)
{
    if (b->above && !b->above->used) {
        holes_remove(&s->holes, &b->above->hole);
        fuse(p, b);
    }
    if (b->below && !b->below->used) {
        b = b->below;
        holes_remove(&s->holes, &b->hole);
        fuse(p, b);
    }
    return b;
}

/* ---- the policy ---- */

static frag_size size_to_take(const struct frag_heap *heap)
{
    const struct rmm_arena *p = heap->state;
    frag_size size = p->size;

    if (!size) {
        const frag_size capacity = frag_backend_capacity(heap->mem);
        const frag_size total = frag_backend_total(heap->mem);
        const frag_size all = capacity < total ? capacity : total;

        size = (frag_size)((double)all * p->fraction);
    }
    return size - size % FRAG_ALIGNMENT;
}

static enum frag_err start(struct frag_heap *heap)
{
    struct rmm_arena *p = heap->state;
    const frag_size size = size_to_take(heap);

    if (size < p->superblock)
        return FRAG_OOM;
    FRAG_TRY(nodes_reserve(&p->superblocks, 1));
    FRAG_TRY(nodes_reserve(&p->blocks, 1));
    FRAG_TRY(heap->mem->ops->segment_alloc(heap->mem, size, &p->addr));
    p->held = size;
    file(make(p, NULL, p->addr, size), &p->global);
    return FRAG_OK;
}

/* Makes sure that the stream has an arena. */
static enum frag_err meet_stream(struct rmm_arena *p, frag_stream stream)
{
    if (stream >= p->arena_count) {
        const size_t count = (size_t)stream + 1;
        struct stream_arena **arenas =
            realloc(p->arenas, count * sizeof(*arenas));

        if (!arenas)
            return FRAG_NOMEM;
        for (size_t i = p->arena_count; i < count; i++)
            arenas[i] = NULL;
        p->arenas = arenas;
        p->arena_count = count;
    }
    if (!p->arenas[stream])
        p->arenas[stream] = calloc(1, sizeof(**p->arenas));
    return p->arenas[stream] ? FRAG_OK : FRAG_NOMEM;
}

/* Uses at most a superblock and two blocks, which the caller has reserved. */
static struct arena_block *serve(struct rmm_arena *p, frag_size size,
                                 struct stream_arena *arena)
{
    struct superblock *s = NULL;

    if (size > p->superblock)
        arena = &p->global;
    else
        s = (struct superblock *)holes_lowest(arena->tree, size, 0);
    if (!s)
        s = acquire(p, size, arena);
    return s ? carve(p, s, size) : NULL;
}

/* All superblocks of all streams go to the global arena. */
static enum frag_err defragment(struct frag_heap *heap)
{
    struct rmm_arena *p = heap->state;

    FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
    for (size_t i = 0; i < p->arena_count; i++)
        if (p->arenas[i])
            clean(p, p->arenas[i]);
    return FRAG_OK;
}

static enum frag_err rmm_arena_alloc(struct frag_heap *heap,
                                     const struct frag_request *req,
                                     struct frag_block *out)
{
    struct rmm_arena *p = heap->state;
    const frag_size size = frag_round_up(req->size, FRAG_ALIGNMENT);
    struct arena_block *b;

    if (!p->held)
        FRAG_TRY(start(heap));
    FRAG_TRY(meet_stream(p, req->stream));
    FRAG_TRY(nodes_reserve(&p->superblocks, 1));
    FRAG_TRY(nodes_reserve(&p->blocks, 2));
    b = serve(p, size, p->arenas[req->stream]);
    if (!b) {
        FRAG_TRY(defragment(heap));
        b = serve(p, size, p->arenas[req->stream]);
    }
    if (!b)
        return FRAG_OOM;
    *out = (struct frag_block){b->hole.node.addr, size, b};
    return FRAG_OK;
}

static void rmm_arena_free(struct frag_heap *heap,
                           const struct frag_block *block)
{
    struct rmm_arena *p = heap->state;
    struct arena_block *b = block->node;
    struct superblock *s = b->home;

    b->used = false;
    b = coalesce(p, s, b);
    holes_insert(&s->holes, &b->hole);
    refile(s);
    if (s->arena == &p->global && is_empty(s)) {
        unfile(s);
        release(p, s);
    }
}

static enum frag_err init(struct frag_heap *heap)
{
    struct rmm_arena *p = heap->state;

    p->superblock = frag_round_up(p->superblock, FRAG_ALIGNMENT);
    p->blocks.size = sizeof(struct arena_block);
    p->superblocks.size = sizeof(struct superblock);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct rmm_arena *p = heap->state;

    if (p->held)
        heap->mem->ops->segment_free(heap->mem, p->addr, p->held);
    for (size_t i = 0; i < p->arena_count; i++)
        free(p->arenas[i]);
    free(p->arenas);
    nodes_release(&p->blocks);
    nodes_release(&p->superblocks);
}

static const struct frag_param params[] = {
    {
        .name = "size",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct rmm_arena, size),
        .init = "0",
        .min = 0,
        .max = 0x1p50,
        .help = "bytes of all arenas together; 0: a fraction of the device",
    },
    {
        .name = "fraction",
        .kind = FRAG_PARAM_RATIO,
        .offset = offsetof(struct rmm_arena, fraction),
        .init = "0.5",
        .min = 0,
        .max = 1,
        .help = "of the device's bytes, where no size is given",
    },
    {
        .name = "superblock",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct rmm_arena, superblock),
        .init = "1MiB",
        .min = 256,
        .max = 0x1p40,
        .help = "bytes of the smallest superblock, rounded up to 256; larger "
                "requests are the global arena's",
    },
    {.name = NULL},
};

const struct frag_policy frag_policy_rmm_arena = {
    .name = "rmm_arena",
    .summary = "RAPIDS RMM's arenas: superblocks passed between streams",
    .source = "rapidsai/rmm 26.08 (5d50a37), arena_memory_resource",
    .state_size = sizeof(struct rmm_arena),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = rmm_arena_alloc,
    .free = rmm_arena_free,
};
