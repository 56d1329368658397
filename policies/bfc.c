/* bfc.c - best fit with coalescing, as in TensorFlow, XLA and JAX.
 *
 * Requests are rounded up to 256 bytes and use the smallest hole that is large
 * enough; among equal sizes the one in the oldest region, and in that region
 * the lowest: the source takes the lowest address, and a new region of JAX lies
 * above the older ones (20 of 20 recordings on an H100). The hole is split, and
 * its low part allocated, only if the hole is at least twice as large as the
 * request or if the rest would be at least `split` bytes. Otherwise the whole
 * hole is allocated, and the excess is internal fragmentation. A freed block is
 * coalesced with its free neighbours in its region, and serves any stream at
 * once.
 *
 * Growth: a request that no hole can serve causes a new region. The size of the
 * next region starts at `region`. It is doubled until the request fits; if no
 * doubling was needed, it is doubled after the region is allocated. A region
 * never takes the pool above its limit. If the device refuses a size, 0.9 of it
 * is tried, computed in single precision as in the source and rounded up to
 * 256, down to the size of the request. If all sizes are refused, and the
 * regions without live blocks are large enough to help, these regions are
 * returned and growth is tried once more (`gc`). Memory returns to the device
 * in no other way: the source has no empty_cache, so this policy has no trim.
 *
 * The source keeps holes in 21 bins of 256 B << k, each ordered by size and
 * address, and searches the bins upwards. This is the order of one set by size
 * and address, which this file uses; the bins are only an index.
 *
 * Source: openxla/xla at 00df9ee, xla/tsl/framework/bfc_allocator.{h,cc} (also
 * TensorFlow's), with its defaults; `gc` is on as in TensorFlow's
 * gpu_bfc_allocator.h. JAX allocates 0.75 of the device at once:
 * "preallocate=yes,fraction=0.75". Not modelled: timestamped frees, regions
 * merged by a virtual-memory sub-allocator, spatial partitioning, waiting for
 * the free of another thread. All of these are off by default or need data that
 * a trace lacks.
 */
#include "policies/mechanism/segments.h"
#include "policies/mechanism/tiles.h"

enum { UNIT = 256 };

struct bfc {
    frag_size region, split, limit; /* the parameters */
    double fraction, fragmentation;
    bool preallocate, gc;
    frag_size next; /* bytes of the next region, by the growth rule */
    struct tiles tiles;
    struct free_set holes;
};

static frag_size whole_units(frag_size size)
{
    return (size + UNIT - 1) & ~((frag_size)UNIT - 1);
}

static frag_size share(frag_size bytes, double fraction)
{
    return (frag_size)((double)bytes * fraction);
}

static enum frag_err init(struct frag_heap *heap)
{
    struct bfc *p = heap->state;
    const frag_size total = frag_backend_total(heap->mem);
    frag_size bound;

    p->limit = pool_limit(heap->mem, p->limit, p->fraction);
    bound = p->limit < total ? p->limit : total;
    p->next =
        whole_units(p->preallocate || bound < p->region ? bound : p->region);
    if (p->fragmentation > 0)
        p->split = share(bound, p->fragmentation);
    p->tiles.by_age = true;
    tiles_init(&p->tiles);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct bfc *p = heap->state;

    tiles_fini(heap, &p->tiles);
    free_set_fini(&p->holes);
}

/* The next size to try after the device has refused `bytes`. */
static frag_size step_down(frag_size bytes)
{
    const frag_size less = whole_units((frag_size)((float)bytes * 0.9F));

    return less < bytes ? less : bytes - UNIT;
}

/* Allocates a new region with room for `size` bytes, all of it one tile. OOM if
 * the limit or the device does not allow one. */
static enum frag_err extend(struct frag_heap *heap, frag_size size,
                            struct tile **out)
{
    struct bfc *p = heap->state;
    const frag_size room = (p->limit - p->tiles.held) / UNIT * UNIT;
    bool doubled = false;
    frag_size bytes;
    enum frag_err err;

    if (size > room)
        return FRAG_OOM;
    for (; p->next < size; doubled = true)
        p->next *= 2;
    bytes = p->next < room ? p->next : room;
    err = tiles_grow(heap, &p->tiles, &p->holes, bytes, out);
    while (err == FRAG_OOM && (bytes = step_down(bytes)) >= size)
        err = tiles_grow(heap, &p->tiles, &p->holes, bytes, out);
    if (err == FRAG_OK && !doubled && p->next <= FRAG_UNLIMITED / 2)
        p->next *= 2;
    return err;
}

/* Returns the regions without live blocks, if that could help a request of
 * `size` bytes; true if any was returned. */
static bool collect(struct frag_heap *heap, frag_size size)
{
    struct bfc *p = heap->state;
    frag_size idle = 0;

    if (!p->gc)
        return false;
    for (const struct tiled *s = p->tiles.segments; s; s = s->next)
        idle += tiled_is_free(s) ? s->size : 0;
    return size <= p->limit - (p->tiles.held - idle) &&
           tiles_return_all(heap, &p->tiles);
}

static enum frag_err find(struct frag_heap *heap, frag_size size,
                          struct tile **out)
{
    struct bfc *p = heap->state;
    enum frag_err err;

    *out = (struct tile *)free_set_fit(&p->holes, size);
    if (*out)
        return nodes_reserve(&p->tiles.nodes, 1);
    err = extend(heap, size, out);
    if (err == FRAG_OOM && collect(heap, size))
        err = extend(heap, size, out);
    return err;
}

static enum frag_err bfc_alloc(struct frag_heap *heap,
                               const struct frag_request *req,
                               struct frag_block *out)
{
    struct bfc *p = heap->state;
    const frag_size size = whole_units(req->size);
    struct tile *t;
    frag_size whole;

    FRAG_TRY(find(heap, size, &t));
    whole = t->node.size;
    tiles_allocate(&p->tiles, t,
                   whole / 2 >= size || whole - size >= p->split ? size
                                                                 : whole);
    *out = (struct frag_block){tile_addr(t), t->node.size, t};
    return FRAG_OK;
}

static void bfc_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct bfc *p = heap->state;

    tiles_free(&p->tiles, block->node);
}

static const char *bfc_check(const struct frag_heap *heap)
{
    const struct bfc *p = heap->state;
    struct met free = {.most = SIZE_MAX}, kept = {0};

    CHECK_ALL(tiles_check(&p->tiles, &free));
    kept.most = free.count;
    CHECK_ALL(free_set_check(&p->holes, &p->holes, &kept));
    CHECK(met_are_equal(&free, &kept), "the set does not have the free tiles");
    return NULL;
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(
        SIZE, "region", struct bfc, region, "2MiB", UNIT, 0x1p40,
        "bytes of the first region; each later one is twice as large"),
    FRAG_RANGE_PARAM(SIZE, "split", struct bfc, split, "128MiB", UNIT, 0x1p62,
                     "a hole of less than twice the request is split only if "
                     "the rest has so many bytes"),
    FRAG_RANGE_PARAM(RATIO, "fragmentation", struct bfc, fragmentation, "0", 0,
                     1, "if not 0, replaces split: this share of the limit"),
    POOL_LIMIT_PARAMS(struct bfc, limit, fraction),
    FRAG_SWITCH_PARAM("preallocate", struct bfc, preallocate, "no",
                      "allocate all that the limit allows as the first region"),
    FRAG_SWITCH_PARAM(
        "gc", struct bfc, gc, "yes",
        "return regions without live blocks before a request fails"),
    {.name = NULL},
};

const struct frag_policy frag_policy_bfc = {
    .name = "bfc",
    .summary = "TensorFlow, XLA and JAX: best fit in regions that double",
    .source = "openxla/xla 00df9ee, xla/tsl/framework/bfc_allocator.cc",
    .quantum = UNIT,
    .state_size = sizeof(struct bfc),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = bfc_alloc,
    .free = bfc_free,
    .check = bfc_check,
};
