/* slab.c - slabs of one size class each, which go from class to class.
 *
 * Requests are rounded up to a class: powers of two, each octave cut into equal
 * `subdivisions`. A slab is `slab` bytes that serve one class, as many objects
 * as fit; what is left over at its end is waste. A request takes an object of
 * the first slab of its class that has room: the one that was taken or that
 * stopped to be full last. In it, the object that was freed last; if none was,
 * the lowest that was never used. A slab without objects in use goes back to
 * the pool at once, where any class finds it, the one that came last first. So
 * unlike in size_class memory does not stay with the class that had it once.
 *
 * A class larger than `slab` has slabs of its own size with one object, each a
 * segment; they stay with their class. A pool without a slab takes a segment,
 * the lowest slab of it first; `segment` is rounded up to whole slabs. Trim,
 * and a device that is full, return segments that have no object in use.
 *
 * The original colours its slabs and constructs its objects: the device knows
 * neither.
 *
 * Source: Bonwick, "The Slab Allocator: An Object-Caching Kernel Memory
 * Allocator", USENIX Summer 1994.
 */
#include "policies/mechanism/classes.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/ring.h"
#include "policies/mechanism/segments.h"

#include <stdlib.h>

struct slab {
    struct ring link;    /* of the class, while it has room; of the pool */
    struct object *free; /* freed objects, the last one first */
    struct slab_span *span;
    frag_addr addr;
    frag_size size; /* of its objects */
    uint32_t class;
    uint32_t room;   /* how many fit */
    uint32_t carved; /* of them were used so far, */
    uint32_t used;   /* are in use */
};

struct object {
    struct object *next; /* while it is free */
    struct slab *slab;
    frag_addr addr;
};

struct slab_span { /* a segment */
    struct slab_span *next;
    frag_addr addr;
    frag_size size;
    size_t busy; /* slabs with objects in use */
    size_t count;
    struct slab slabs[];
};

enum { CLASSES = CLASSES_LEVELS << CLASSES_MAX_BITS };

struct slabs {
    frag_size segment, slab; /* the parameters, made whole by init; */
    uint32_t subdivisions;   /* as an exponent */
    struct slab_span *spans; /* the newest first */
    struct nodes nodes;      /* of objects */
    struct ring pool;
    struct ring partial[CLASSES];
};

/* Whether a slab of the class can serve others. */
static bool is_shared(const struct slabs *p, const struct slab *s)
{
    return s->size <= p->slab;
}

/* All objects of a slab, none of which is in use, become records again. */
static void forget_objects(struct slabs *p, struct slab *s)
{
    while (s->free) {
        struct object *o = s->free;

        s->free = o->next;
        nodes_give(&p->nodes, o);
    }
    s->carved = 0;
}

/* ---- segments ---- */

static void forget_span(struct slabs *p, struct slab_span *span)
{
    for (size_t i = 0; i < span->count; i++) {
        forget_objects(p, &span->slabs[i]);
        ring_drop(&span->slabs[i].link);
    }
    free(span);
}

/* A span that the device will not take back stays, as free as before. */
static bool give_back(struct frag_heap *heap)
{
    struct slabs *p = heap->state;
    struct slab_span **link = &p->spans;
    bool any = false;

    while (*link) {
        struct slab_span *span = *link;

        if (span->busy || heap->mem->ops->segment_free(heap->mem, span->addr,
                                                       span->size) != FRAG_OK) {
            link = &span->next;
            continue;
        }
        *link = span->next;
        forget_span(p, span);
        any = true;
    }
    return any;
}

/* A new span of `count` slabs of `size` bytes, all of them in the pool. */
static enum frag_err grow(struct frag_heap *heap, frag_size size, size_t count)
{
    struct slabs *p = heap->state;
    struct slab_span *span;
    enum frag_err err;

    if (count > (SIZE_MAX - sizeof(*span)) / sizeof(struct slab))
        return FRAG_NOMEM;
    span = malloc(sizeof(*span) + count * sizeof(struct slab));
    if (!span)
        return FRAG_NOMEM;
    err = segment_take(heap, size * count, give_back, &span->addr);
    if (err != FRAG_OK) {
        free(span);
        return err;
    }
    span->size = size * count;
    span->busy = 0;
    span->count = count;
    span->next = p->spans;
    p->spans = span;
    for (size_t i = count; i-- > 0;) {
        span->slabs[i] =
            (struct slab){.span = span, .addr = span->addr + i * size};
        ring_push(&p->pool, &span->slabs[i].link);
    }
    return FRAG_OK;
}

/* ---- slabs ---- */

/* A slab for a class that has none with room. */
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
    s->span->busy += s->used == 0;
    if (++s->used == s->room)
        ring_drop(&s->link);
    return o;
}

/* The last object of a slab was freed. */
static void release_slab(struct slabs *p, struct slab *s)
{
    s->span->busy--;
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
    frag_size size = whole_quanta(req->size);
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
    give_back(heap);
}

static enum frag_err init(struct frag_heap *heap)
{
    struct slabs *p = heap->state;

    p->slab = whole_quanta(p->slab);
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

    while (p->spans) {
        struct slab_span *span = p->spans;

        heap->mem->ops->segment_free(heap->mem, span->addr, span->size);
        p->spans = span->next;
        free(span);
    }
    nodes_release(&p->nodes);
}

static const struct frag_param params[] = {
    {
        .name = "segment",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct slabs, segment),
        .init = "20MiB",
        .min = 512,
        .max = 0x1p40,
        .help = "bytes taken from the device at once, rounded up to slabs",
    },
    {
        .name = "slab",
        .kind = FRAG_PARAM_SIZE,
        .offset = offsetof(struct slabs, slab),
        .init = "2MiB",
        .min = 512,
        .max = 0x1p40,
        .help = "bytes that serve one class at a time, rounded up to 512; a "
                "larger class has a segment per object",
    },
    {
        .name = "subdivisions",
        .kind = FRAG_PARAM_CHOICE,
        .offset = offsetof(struct slabs, subdivisions),
        .init = "4",
        .choices = "1|2|4|8|16|32|64",
        .help = "classes per power of two",
    },
    {.name = NULL},
};

const struct frag_policy frag_policy_slab = {
    .name = "slab",
    .summary = "slabs of one size class each, which go from class to class",
    .source = "Bonwick, The Slab Allocator: An Object-Caching Kernel Memory "
              "Allocator, USENIX Summer 1994",
    .state_size = sizeof(struct slabs),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = slab_alloc,
    .free = slab_free,
    .trim = slab_trim,
};
