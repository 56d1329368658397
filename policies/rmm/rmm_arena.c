/* rmm_arena.c - the rmm_arena policy: RAPIDS RMM's arenas, whose superblocks
 * move between streams.
 *
 * The policy allocates all memory at once and never grows. Superblocks tile
 * this memory, and blocks tile each superblock. A superblock belongs to the
 * global arena or to the arena of one stream. Every search is first fit by
 * address, and the low part of what it finds is used.
 *
 *   - A request of at most `superblock` bytes gets a block in the first
 *     superblock of its stream's arena that has room. If none has, that arena
 *     acquires a superblock from the global arena. A larger request gets a
 *     block in a superblock that is acquired likewise, but stays in the global
 *     arena.
 *   - The acquired superblock is the first one of the global arena with room
 *     for the request. If it is wholly free, and large enough to leave another
 *     superblock, it is split to the size of the request, at least `superblock`
 *     bytes. Otherwise it is acquired whole, live blocks included.
 *   - A freed block is coalesced with its neighbours inside the superblock. If
 *     a superblock of the global arena is then wholly free, it is coalesced
 *     with wholly free neighbours of the global arena. A superblock of a
 *     stream's arena stays there even if it is wholly free.
 *   - If a request fails, the device is synchronized, and all superblocks of
 *     all streams move to the global arena, where those that are wholly free
 *     are coalesced. Then the request is tried once more.
 *
 * Sizes are rounded up to FRAG_ALIGNMENT, 256 bytes, as in RMM.
 *
 * Differences from RMM: RMM allocates its memory when it is constructed. Here
 * the first request does, and every request is refused until that has
 * succeeded, and always if the memory is less than a superblock. RMM waits for
 * the stream at each free of a block that the global arena serves, and of a
 * block that has changed arenas; a backend has no such call. RMM keeps arenas
 * by thread for the per-thread default stream; a trace has streams only. The
 * stream of a free needs no member hear: it decides only for which stream
 * RMM waits, and the block returns to the superblock that it was taken from.
 *
 * Source: rapidsai/rmm 26.08 at 5d50a37, cpp/include/rmm/mr/detail/arena.hpp,
 * cpp/src/mr/detail/arena_memory_resource_impl.cpp, without the compile-time
 * option of size classes.
 */
#include "policies/mechanism/holes.h"
#include "policies/mechanism/lanes.h"
#include "policies/mechanism/nodes.h"
#include "policies/policy.h"

struct superblock;

struct arena_block {
    struct hole hole; /* size and addr; the links while it is free */
    struct arena_block *below,
        *above; /* neighbours; NULL at the superblock's ends */
    struct superblock *home;
    bool used;
};

/* Its arena's tree has it by address, as a hole (`rank`) of the size of its
 * largest free block, 0 if it has none. So the lowest hole that is large enough
 * is the first superblock with room. */
struct superblock {
    struct hole rank;
    struct superblock *below, *above; /* neighbours; NULL at the ends */
    frag_size size;
    struct hole *holes;         /* its free blocks, by address */
    struct stream_arena *arena; /* the arena that it belongs to */
    struct arena_block *lowest; /* its first block */
};

struct stream_arena {
    struct lane lane;  /* of the stream, in pool 0 */
    struct hole *tree; /* its superblocks, by address */
};

struct rmm_arena {
    frag_size size, superblock; /* parameters, in bytes */
    double fraction;            /* parameter */
    frag_addr addr;             /* of all memory */
    frag_size held;             /* bytes allocated; 0: none yet */
    struct stream_arena global;
    struct lanes arenas; /* of the streams */
    struct nodes blocks, superblocks;
};

/* ---- superblocks ---- */

/* Inserts a superblock that is in no arena into one. */
static void insert_superblock(struct superblock *s, struct stream_arena *arena)
{
    s->arena = arena;
    s->rank.node.size = s->holes ? s->holes->widest : 0;
    holes_insert(&arena->tree, &s->rank);
}

/* Removes a superblock from its arena. */
static void remove_superblock(struct superblock *s)
{
    holes_remove(&s->arena->tree, &s->rank);
}

/* Updates its rank after its free blocks have changed. */
static void update_superblock(struct superblock *s)
{
    const frag_size largest = s->holes ? s->holes->widest : 0;

    if (largest != s->rank.node.size)
        holes_resize(&s->arena->tree, &s->rank, s->rank.node.addr, largest);
}

static bool is_empty(const struct superblock *s)
{
    return !s->lowest->used && !s->lowest->above;
}

/* Creates a superblock of one free block above `below` (NULL: the first one).
 * It is in no arena. */
static struct superblock *make_superblock(struct rmm_arena *p,
                                          struct superblock *below,
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

/* Resizes a wholly free superblock that is in no arena. */
static void resize(struct superblock *s, frag_size size)
{
    s->size = size;
    holes_resize(&s->holes, &s->lowest->hole, s->rank.node.addr, size);
}

/* Merges the wholly free superblock `above` into `s`, which is below it and
 * also wholly free; both are in no arena. */
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

/* Inserts a superblock that is in no arena into the global arena, coalesced if
 * it is wholly free. */
static void release_superblock(struct rmm_arena *p, struct superblock *s)
{
    if (is_empty(s) && can_merge(p, s->above)) {
        remove_superblock(s->above);
        absorb(p, s, s->above);
    }
    if (is_empty(s) && can_merge(p, s->below)) {
        struct superblock *below = s->below;

        remove_superblock(below);
        absorb(p, below, s);
        s = below;
    }
    insert_superblock(s, &p->global);
}

/* Moves all superblocks of a stream's arena to the global arena. */
static void release_all(struct rmm_arena *p, struct stream_arena *arena)
{
    while (arena->tree) {
        struct superblock *s = (struct superblock *)arena->tree;

        remove_superblock(s);
        release_superblock(p, s);
    }
}

/* Moves the first superblock of the global arena with room to `arena`; NULL if
 * there is none. Uses at most one record of each kind, which the caller has
 * reserved. */
static struct superblock *acquire(struct rmm_arena *p, frag_size size,
                                  struct stream_arena *arena)
{
    const frag_size least = size > p->superblock ? size : p->superblock;
    struct hole *rank = holes_lowest(p->global.tree, size, 0);
    struct superblock *s = (struct superblock *)rank;

    if (!s)
        return NULL;
    remove_superblock(s);
    if (is_empty(s) && s->size >= least + p->superblock) {
        const frag_addr end = rank->node.addr + least;

        insert_superblock(make_superblock(p, s, end, s->size - least),
                          &p->global);
        resize(s, least);
    }
    insert_superblock(s, arena);
    return s;
}

/* ---- blocks ---- */

/* Allocates from the first free block of a superblock that fits; there must be
 * one. Uses at most one record. */
static struct arena_block *alloc_inside(struct rmm_arena *p,
                                        struct superblock *s, frag_size size)
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
    update_superblock(s);
    return b;
}

/* Merges the block above b into b; neither is among the holes. */
static void absorb_above(struct rmm_arena *p, struct arena_block *b)
{
    struct arena_block *above = b->above;

    b->hole.node.size += above->hole.node.size;
    b->above = above->above;
    if (b->above)
        b->above->below = b;
    nodes_put(&p->blocks, above);
}

/* Merges a block with its free neighbours; the result is not among the holes.
 */
static struct arena_block *coalesce(struct rmm_arena *p, struct superblock *s,
                                    struct arena_block *b)
{
    if (b->above && !b->above->used) {
        holes_remove(&s->holes, &b->above->hole);
        absorb_above(p, b);
    }
    if (b->below && !b->below->used) {
        b = b->below;
        holes_remove(&s->holes, &b->hole);
        absorb_above(p, b);
    }
    return b;
}

/* ---- the policy ---- */

/* Bytes that the policy allocates at the start. */
static frag_size start_size(const struct frag_heap *heap)
{
    const struct rmm_arena *p = heap->state;
    frag_size size = p->size;

    if (!size) {
        const frag_size all = frag_backend_bound(heap->mem);

        size = (frag_size)((double)all * p->fraction);
    }
    return size - size % FRAG_ALIGNMENT;
}

static enum frag_err start(struct frag_heap *heap)
{
    struct rmm_arena *p = heap->state;
    const frag_size size = start_size(heap);

    if (size < p->superblock)
        return FRAG_OOM;
    FRAG_TRY(nodes_reserve(&p->superblocks, 1));
    FRAG_TRY(nodes_reserve(&p->blocks, 1));
    FRAG_TRY(heap->mem->ops->segment_alloc(heap->mem, size, &p->addr));
    p->held = size;
    insert_superblock(make_superblock(p, NULL, p->addr, size), &p->global);
    return FRAG_OK;
}

/* Serves a request; NULL: there is no room. Uses at most the records of one
 * superblock and two blocks, which the caller has reserved. */
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
    return s ? alloc_inside(p, s, size) : NULL;
}

/* Waits for the device, then moves all superblocks of all streams to the global
 * arena. */
static enum frag_err defragment(struct frag_heap *heap)
{
    struct rmm_arena *p = heap->state;

    FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
    for (struct lane *a = p->arenas.first; a; a = a->next)
        release_all(p, (struct stream_arena *)a);
    return FRAG_OK;
}

static enum frag_err rmm_arena_alloc(struct frag_heap *heap,
                                     const struct frag_request *req,
                                     struct frag_block *out)
{
    struct rmm_arena *p = heap->state;
    const frag_size size = frag_round_up(req->size, FRAG_ALIGNMENT);
    struct stream_arena *arena;
    struct arena_block *b;

    if (!p->held)
        FRAG_TRY(start(heap));
    arena = lanes_get(&p->arenas, 0, req->stream, sizeof(*arena));
    if (!arena)
        return FRAG_NOMEM;
    FRAG_TRY(nodes_reserve(&p->superblocks, 1));
    FRAG_TRY(nodes_reserve(&p->blocks, 2));
    b = serve(p, size, arena);
    if (!b) {
        FRAG_TRY(defragment(heap));
        b = serve(p, size, arena);
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
    update_superblock(s);
    if (s->arena == &p->global && is_empty(s)) {
        remove_superblock(s);
        release_superblock(p, s);
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
    lanes_fini(&p->arenas);
    nodes_release(&p->blocks);
    nodes_release(&p->superblocks);
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(
        SIZE, "size", struct rmm_arena, size, "0", 0, 0x1p50,
        "bytes of all arenas together; 0: `fraction` of the device"),
    FRAG_RANGE_PARAM(
        RATIO, "fraction", struct rmm_arena, fraction, "0.5", 0, 1,
        "fraction of the device's bytes that is allocated if `size` is 0"),
    FRAG_RANGE_PARAM(SIZE, "superblock", struct rmm_arena, superblock, "1MiB",
                     256, 0x1p40,
                     "bytes of the smallest superblock, rounded up to 256; the "
                     "global arena serves larger requests"),
    {.name = NULL},
};

const struct frag_policy frag_policy_rmm_arena = {
    .name = "rmm_arena",
    .summary = "RAPIDS RMM's arenas: superblocks move between streams",
    .source = "rapidsai/rmm 26.08 (5d50a37), arena_memory_resource",
    .quantum = FRAG_ALIGNMENT,
    .state_size = sizeof(struct rmm_arena),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = rmm_arena_alloc,
    .free = rmm_arena_free,
    .unchecked = "it is compared with RMM's own code, call by call",
};
