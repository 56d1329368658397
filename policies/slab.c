/* slab.c - slabs that serve one size class at a time and change class when
 * empty.
 *
 * Requests are rounded up to a class: powers of two, with each octave divided
 * into `subdivisions` equal parts. A slab has `slab` bytes and serves one class
 * with as many objects as fit; the rest at its end is waste. A request uses an
 * object of the first slab of its class that has a free object. The first slab
 * is the one that was assigned to the class, or stopped being full, last. In
 * the slab, the object that was freed last is used; if there is none, the
 * lowest object that was never used. A slab without objects in use returns to
 * the pool at once, where any class can use it; the slab that returned last is
 * used first. Therefore, unlike in size_class, memory does not stay with one
 * class.
 *
 * A class larger than `slab` has slabs of its own size with one object, each a
 * segment; such slabs keep their class. If the pool is empty, a segment is
 * allocated and divided into slabs, of which the lowest is used first;
 * `segment` is rounded up to whole slabs. Trim returns segments without objects
 * in use, and so does a request that the device refuses.
 *
 * The original also colours its slabs and constructs its objects; neither has a
 * meaning for device memory.
 *
 * Source: Bonwick, "The Slab Allocator: An Object-Caching Kernel Memory
 * Allocator", USENIX Summer 1994.
 */
#include "policies/mechanism/classes.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/ring.h"
#include "policies/mechanism/segments.h"

struct slab {
    struct ring link;    /* in the ring of its class, while it has a free
                            object, or in the pool */
    struct object *free; /* freed objects, the last freed first */
    struct slab_segment *segment;
    frag_addr addr;
    frag_size size; /* bytes of an object */
    uint32_t class;
    uint32_t room;   /* number of objects that fit */
    uint32_t carved; /* number of objects that were ever used */
    uint32_t used;   /* number of objects in use */
};

struct object {
    struct object *next; /* while it is free */
    struct slab *slab;
    frag_addr addr;
};

struct slab_segment {
    struct segment base;
    size_t busy; /* number of slabs with objects in use */
    size_t count;
    struct slab slabs[];
};

enum { CLASSES = CLASSES_LEVELS << CLASSES_MAX_BITS };

struct slabs {
    frag_size segment, slab; /* parameters, bytes; rounded up by init */
    uint32_t subdivisions;   /* parameter; log2 of the classes per octave */
    struct segment *segments;
    struct nodes nodes;           /* records of objects */
    struct ring pool;             /* slabs that serve no class */
    struct ring partial[CLASSES]; /* slabs with free objects, by class */
};

/* True if the slab can return to the pool and serve other classes. */
static bool is_shared(const struct slabs *p, const struct slab *s)
{
    return s->size <= p->slab;
}

/* Frees the records of all objects of a slab that has none in use. */
static void forget_objects(struct slabs *p, struct slab *s)
{
    while (s->free) {
        struct object *o = s->free;

        s->free = o->next;
        nodes_put(&p->nodes, o);
    }
    s->carved = 0;
}

/* ---- segments ---- */

static bool is_idle(const struct segment *s)
{
    return !((const struct slab_segment *)s)->busy;
}

static void forget(struct frag_heap *heap, struct segment *s)
{
    struct slab_segment *segment = (struct slab_segment *)s;

    for (size_t i = 0; i < segment->count; i++) {
        forget_objects(heap->state, &segment->slabs[i]);
        ring_drop(&segment->slabs[i].link);
    }
}

/* Returns all segments without objects in use; true if any was returned. */
static bool return_segments(struct frag_heap *heap)
{
    struct slabs *p = heap->state;

    return segments_return(heap, &p->segments, is_idle, forget);
}

/* Allocates a segment of `count` slabs of `size` bytes and adds the slabs to
 * the pool. */
static enum frag_err grow(struct frag_heap *heap, frag_size size, size_t count)
{
    struct slabs *p = heap->state;
    struct slab_segment *segment;

    if (count > (SIZE_MAX - sizeof(*segment)) / sizeof(struct slab))
        return FRAG_NOMEM;
    FRAG_TRY(segments_add(heap, &p->segments,
                          sizeof(*segment) + count * sizeof(struct slab),
                          size * count, return_segments));
    segment = (struct slab_segment *)p->segments;
    segment->count = count;
    for (size_t i = count; i-- > 0;) {
        segment->slabs[i].segment = segment;
        segment->slabs[i].addr = segment->base.addr + i * size;
        ring_push(&p->pool, &segment->slabs[i].link);
    }
    return FRAG_OK;
}

/* ---- slabs ---- */

/* Assigns a slab to a class that has no slab with a free object. */
static enum frag_err assign_slab(struct frag_heap *heap, uint32_t class,
                                 frag_size size, struct slab **out)
{
    struct slabs *p = heap->state;
    struct slab *s;

    if (size > p->slab)
        FRAG_TRY(grow(heap, size, 1));
    else if (ring_is_empty(&p->pool))
        FRAG_TRY(grow(heap, p->slab, p->segment / p->slab));

    s = (struct slab *)p->pool.next;
    ring_drop(&s->link);
    ring_push(&p->partial[class], &s->link);
    s->class = class;
    s->size = size;
    s->room = size > p->slab ? 1 : (uint32_t)(p->slab / size);
    *out = s;
    return FRAG_OK;
}

/* Takes an object of a slab that has a free one. */
static struct object *take_object(struct slabs *p, struct slab *s)
{
    struct object *o = s->free;

    if (o) {
        s->free = o->next;
    } else {
        o = nodes_take(&p->nodes);
        *o = (struct object){.slab = s, .addr = s->addr + s->carved * s->size};
        s->carved++;
    }
    s->segment->busy += s->used == 0;
    if (++s->used == s->room)
        ring_drop(&s->link);
    return o;
}

/* Returns a slab to the pool after its last object was freed. */
static void release_slab(struct slabs *p, struct slab *s)
{
    s->segment->busy--;
    if (!is_shared(p, s))
        return;
    forget_objects(p, s);
    ring_drop(&s->link);
    ring_push(&p->pool, &s->link);
}

/* ---- the policy ---- */

static enum frag_err slab_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out)
{
    struct slabs *p = heap->state;
    frag_size size = frag_round_up(req->size, FRAG_QUANTUM);
    const uint32_t class = class_above(p->subdivisions, &size);
    struct slab *s = (struct slab *)p->partial[class].next;
    struct object *o;

    FRAG_TRY(nodes_reserve(&p->nodes, 1));
    if (ring_is_empty(&p->partial[class]))
        FRAG_TRY(assign_slab(heap, class, size, &s));
    o = take_object(p, s);
    *out = (struct frag_block){o->addr, size, o};
    return FRAG_OK;
}

static void slab_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct slabs *p = heap->state;
    struct object *o = block->node;
    struct slab *s = o->slab;

    o->next = s->free;
    s->free = o;
    if (s->used == s->room)
        ring_push(&p->partial[s->class], &s->link);
    if (--s->used == 0)
        release_slab(p, s);
}

static void slab_trim(struct frag_heap *heap)
{
    return_segments(heap);
}

static enum frag_err init(struct frag_heap *heap)
{
    struct slabs *p = heap->state;

    p->slab = frag_round_up(p->slab, FRAG_QUANTUM);
    p->segment = frag_round_up(p->segment, p->slab);
    p->nodes.size = sizeof(struct object);
    ring_init(&p->pool);
    for (size_t i = 0; i < CLASSES; i++)
        ring_init(&p->partial[i]);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct slabs *p = heap->state;

    segments_fini(heap, &p->segments);
    nodes_release(&p->nodes);
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(
        SIZE, "segment", struct slabs, segment, "20MiB", 512, 0x1p40,
        "bytes allocated from the device at once, rounded up to whole slabs"),
    FRAG_RANGE_PARAM(SIZE, "slab", struct slabs, slab, "2MiB", 512, 0x1p40,
                     "bytes of a slab, rounded up to 512; a size class larger "
                     "than a slab has a segment per object"),
    FRAG_CHOICE_PARAM("subdivisions", struct slabs, subdivisions, "4",
                      "1|2|4|8|16|32|64", "size classes per power of two"),
    {.name = NULL},
};

const struct frag_policy frag_policy_slab = {
    .name = "slab",
    .summary = "slabs of one size class each; an empty slab can change class",
    .source = "Bonwick, The Slab Allocator: An Object-Caching Kernel Memory "
              "Allocator, USENIX Summer 1994",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct slabs),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = slab_alloc,
    .free = slab_free,
    .trim = slab_trim,
    .unchecked =
        "none was written; random requests and the ledger judge its answers",
};
