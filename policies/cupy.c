/* cupy.c - CuPy's memory pool: best fit per stream over segments of exact size.
 *
 * Requests are rounded up to 512 bytes. Each stream of each pool (a MemoryPool
 * object) has an arena of its own, and a hole serves only requests of its
 * arena. A request uses the smallest hole that is large enough; the hole is
 * always split to the size of the request, and its low part is allocated. A
 * freed block returns to its arena and is coalesced with its free neighbours in
 * its segment.
 *
 * Growth: a request that no hole can serve causes a segment of exactly its
 * size. If the segment would exceed the limit, or if the device refuses it, the
 * segments without live blocks of all arenas are returned (free_all_blocks,
 * also the effect of trim) and the segment is requested again.
 *
 * Two rules differ from the source. Among holes of equal size, CuPy takes one
 * out of a Python set, whose order depends on the addresses of objects in host
 * memory: equal runs of the real pool have different peaks. Here it is the hole
 * in the oldest segment, and in that segment the lowest, so that the addresses
 * of segments have no effect. With a seed it is a pseudo-random one: the
 * results of several seeds show the spread. After free_all_blocks the source
 * requests the segment twice more, the second time after Python's garbage
 * collection. Here it is requested once, and only if a segment was returned,
 * because nothing else can have changed.
 *
 * Source: cupy/cupy 15.0.0a1 (6b6d956), cupy/cuda/memory.pyx, _Arena and
 * SingleDeviceMemoryPool.
 */
#include "policies/mechanism/lanes.h"
#include "policies/mechanism/segments.h"
#include "policies/mechanism/tiles.h"

struct cupy_arena {
    struct lane lane;
    struct free_set holes;
};

struct cupy {
    frag_size limit; /* the parameters */
    double fraction;
    uint64_t seed;
    uint64_t random;    /* state of the generator */
    struct lanes lanes; /* the arenas */
    struct tiles tiles;
};

static enum frag_err init(struct frag_heap *heap)
{
    struct cupy *p = heap->state;

    p->limit = pool_limit(heap->mem, p->limit, p->fraction);
    p->random = p->seed;
    p->tiles.by_age = true;
    tiles_init(&p->tiles);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct cupy *p = heap->state;

    tiles_fini(heap, &p->tiles);
    for (struct lane *a = p->lanes.first; a; a = a->next)
        free_set_fini(&((struct cupy_arena *)a)->holes);
    lanes_fini(&p->lanes);
}

static bool is_within_limit(const struct cupy *p, frag_size size)
{
    return size <= p->limit && p->tiles.held <= p->limit - size;
}

static enum frag_err grow(struct frag_heap *heap, struct cupy_arena *a,
                          frag_size size, struct tile **out)
{
    struct cupy *p = heap->state;
    enum frag_err err;

    if (size > p->limit)
        return FRAG_OOM;
    if (!is_within_limit(p, size)) {
        tiles_return_all(heap, &p->tiles);
        if (!is_within_limit(p, size))
            return FRAG_OOM;
    }
    err = tiles_grow(heap, &p->tiles, &a->holes, size, out);
    if (err != FRAG_OOM || !tiles_return_all(heap, &p->tiles))
        return err;
    return tiles_grow(heap, &p->tiles, &a->holes, size, out);
}

/* The next number of the generator splitmix64 (Steele, Lea, Flood: Fast
 * Splittable Pseudorandom Number Generators, 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* The smallest hole that fits; NULL: there is none. */
static struct tile *find_hole(struct cupy *p, const struct free_set *holes,
                              frag_size size)
{
    struct free_node *n = free_set_fit(holes, size), *chosen = n;
    uint64_t equals = 1;

    if (!p->seed || !n)
        return (struct tile *)n;
    while ((n = free_set_after(holes, n)) && n->size == chosen->size)
        if (next_random(&p->random) % ++equals == 0)
            chosen = n;
    return (struct tile *)chosen;
}

static enum frag_err cupy_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out)
{
    struct cupy *p = heap->state;
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);
    struct cupy_arena *a =
        lanes_get(&p->lanes, req->pool, req->stream, sizeof(*a));
    struct tile *t;

    if (!a)
        return FRAG_NOMEM;
    FRAG_TRY(nodes_reserve(&p->tiles.nodes, 1));
    t = find_hole(p, &a->holes, size);
    if (!t)
        FRAG_TRY(grow(heap, a, size, &t));
    tiles_allocate(&p->tiles, t, size);
    *out = (struct frag_block){tile_addr(t), size, t};
    return FRAG_OK;
}

static void cupy_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct cupy *p = heap->state;

    tiles_free(&p->tiles, block->node);
}

static void cupy_trim(struct frag_heap *heap)
{
    struct cupy *p = heap->state;

    tiles_return_all(heap, &p->tiles);
}

static const char *cupy_check(const struct frag_heap *heap)
{
    const struct cupy *p = heap->state;
    struct met free = {.most = SIZE_MAX}, kept = {0};

    CHECK_ALL(tiles_check(&p->tiles, &free));
    kept.most = free.count;
    for (const struct lane *a = p->lanes.first; a; a = a->next) {
        const struct free_set *holes = &((const struct cupy_arena *)a)->holes;

        CHECK_ALL(free_set_check(holes, holes, &kept));
    }
    CHECK(met_are_equal(&free, &kept),
          "the arenas do not have the free tiles of their segments");
    return NULL;
}

static const struct frag_param params[] = {
    POOL_LIMIT_PARAMS(struct cupy, limit, fraction),
    FRAG_RANGE_PARAM(NUMBER, "seed", struct cupy, seed, "0", 0, 0x1p32,
                     "0: of holes of equal size the one in the oldest segment; "
                     "else a pseudo-random one. CuPy's own choice differs from "
                     "run to run: several seeds show the spread"),
    {.name = NULL},
};

const struct frag_policy frag_policy_cupy = {
    .name = "cupy",
    .summary = "CuPy: best fit per stream over segments of exact size",
    .source = "cupy/cupy 15.0.0a1, cupy/cuda/memory.pyx",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct cupy),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = cupy_alloc,
    .free = cupy_free,
    .trim = cupy_trim,
    .check = cupy_check,
};
