/* bfc.c - best fit with coalescing, as TensorFlow, XLA and JAX run it.
 *
 * Requests are rounded up to 256 bytes and get the smallest hole that is large
 * enough, of equals the one with the lowest address. A hole is cut, its low
 * part granted, only if it is at least twice the request or if what would be
 * left is at least `split`; otherwise it is granted whole and the excess is
 * internal waste. A freed block merges with its free neighbours in its region,
 * and serves any stream at once.
 *
 * Growth: a request that no hole serves takes a new region. The size starts at
 * `region`; it is doubled until the request fits, and, if that was not needed,
 * once the region is taken. A region never takes the pool past its limit. What
 * the device refuses is tried again at 0.9 of the size, in single precision as
 * the source has it, rounded up to 256, down to the request. If nothing is left
 * to try, and what is in wholly free regions could make up for it, those are
 * returned and growth is tried once more (`gc`). Memory goes back in no other
 * way: there is no empty_cache, so there is no trim.
 *
 * The source keeps holes in 21 bins, of 256 B << k, each ordered by size and
 * address, and searches them upwards. That is the order of one set by size and
 * address, which is what is kept here; bins are its index.
 *
 * Source: openxla/xla at 00df9ee, xla/tsl/framework/bfc_allocator.{h,cc} (also
 * TensorFlow's), with its defaults; `gc` is on as in TensorFlow's
 * gpu_bfc_allocator.h. JAX takes 0.75 of the device at once:
 * "preallocate=yes,fraction=0.75". Not modelled: timestamped frees, regions
 * merged by a virtual-memory sub-allocator, spatial partitioning, waiting for
 * another thread's free; all are off by default or need what a trace lacks.
 */
#include "policies/checks.h"
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
    tiles_init(&p->tiles);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct bfc *p = heap->state;

    tiles_fini(heap, &p->tiles);
}

/* The next size to try after the device refused one. */
static frag_size step_down(frag_size bytes)
{
    const frag_size less = whole_units((frag_size)((float)bytes * 0.9F));

    return less < bytes ? less : bytes - UNIT;
}

/* A new region with room for size. */
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

/* Returns the wholly free regions if that could help a request of size. */
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
    tiles_take(&p->tiles, t,
               whole / 2 >= size || whole - size >= p->split ? size : whole);
    *out = (struct frag_block){tile_addr(t), t->node.size, t};
    return FRAG_OK;
}

static void bfc_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct bfc *p = heap->state;

    tiles_give(&p->tiles, block->node);
}

const char *bfc_check(const struct frag_heap *heap)
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
    {
        .name = "region",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct bfc, region),
        .init = "2MiB",
        .min = UNIT,
        .max = 0x1p40,
        .help = "bytes of the first region; each later one is twice as large",
    },
    {
        .name = "split",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct bfc, split),
        .init = "128MiB",
        .min = UNIT,
        .max = 0x1p62,
        .help = "a hole less than twice the request is cut if it leaves so "
                "many bytes",
    },
    {
        .name = "fragmentation",
        .kind = FRAG_PARAM_RATIO,
        .offset = offsetof(struct bfc, fragmentation),
        .init = "0",
        .min = 0,
        .max = 1,
        .help = "share of the limit that stands in for split; 0: split does",
    },
    POOL_LIMIT_PARAMS(struct bfc, limit, fraction),
    {
        .name = "preallocate",
        .kind = FRAG_PARAM_SWITCH,
        .offset = offsetof(struct bfc, preallocate),
        .init = "no",
        .help = "take all that the limit allows as the first region",
    },
    {
        .name = "gc",
        .kind = FRAG_PARAM_SWITCH,
        .offset = offsetof(struct bfc, gc),
        .init = "yes",
        .help = "return wholly free regions before a request fails",
    },
    {.name = NULL},
};

const struct frag_policy frag_policy_bfc = {
    .name = "bfc",
    .summary = "TensorFlow, XLA and JAX: best fit in regions that double",
    .source = "openxla/xla 00df9ee, xla/tsl/framework/bfc_allocator.cc",
    .state_size = sizeof(struct bfc),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = bfc_alloc,
    .free = bfc_free,
};
