/* size_class.c - one free list per size class; blocks never split or coalesce.
 *
 * Sizes are rounded up to a class: powers of two, with each octave divided into
 * `subdivisions` equal parts. A request uses the free block of its class that
 * was freed last. If there is none, a block is carved from the start of the
 * unused rest of the current segment. When the rest of a segment is too small,
 * it is carved completely, largest class first, so that no byte is lost. A
 * class larger than `segment` has a segment for each block, and the rest of
 * that segment is carved in the same way. A block keeps its class until trim
 * returns its whole segment, and serves any stream.
 *
 * alloc and free of a class that has blocks are a pop and a push. The number of
 * free blocks in a segment is not maintained; trim counts them by walking the
 * lists.
 *
 * Source: simple segregated storage, Wilson et al., "Dynamic Storage
 * Allocation: A Survey and Critical Review", IWMM 1995, section 3.6; classes
 * spaced as in jemalloc.
 */
#include "policies/mechanism/classes.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/segments.h"

#include <stdlib.h>

enum {
    CLASSES = CLASSES_LEVELS << CLASSES_MAX_BITS,
    MAX_TAIL = 64, /* most chunks in the rest of a segment: each is more than
                      half of what is left */
};

struct class_segment {
    struct segment base; /* size 0: returned, during trim only */
    frag_size carved;    /* bytes at its start that are divided into chunks */
    uint32_t chunks;     /* number of these chunks */
    uint32_t idle;       /* number of free chunks; valid during trim only */
};

struct class_chunk {          /* a block, free or not */
    struct class_chunk *next; /* in its free list */
    struct class_segment *segment;
    frag_addr addr;
    uint32_t class;
};

struct size_class {
    frag_size segment;     /* parameter, bytes */
    uint32_t subdivisions; /* parameter; log2 of the classes per octave */
    struct class_segment
        *current; /* source of chunks of up to `segment` bytes */
    struct segment *segments;
    struct nodes nodes; /* records of chunks */
    struct class_chunk *idle[CLASSES];
};

/* Makes a chunk of the next `size` bytes of a segment, which must have them. */
static struct class_chunk *carve(struct size_class *p, struct class_segment *s,
                                 uint32_t class, frag_size size)
{
    struct class_chunk *c = nodes_take(&p->nodes);

    *c = (struct class_chunk){
        .segment = s, .addr = s->base.addr + s->carved, .class = class};
    s->carved += size;
    s->chunks++;
    return c;
}

/* Adds a chunk to the free list of its class. */
static void put(struct size_class *p, struct class_chunk *c)
{
    c->next = p->idle[c->class];
    p->idle[c->class] = c;
}

/* Carves the unused rest of a segment into free chunks; s may be NULL. */
static void finish(struct size_class *p, struct class_segment *s)
{
    while (s && s->base.size - s->carved >= FRAG_QUANTUM) {
        frag_size size = s->base.size - s->carved;
        const uint32_t class = class_below(p->subdivisions, &size);

        put(p, carve(p, s, class, size));
    }
}

static void count_idle(struct size_class *p)
{
    for (struct segment *s = p->segments; s; s = s->next)
        ((struct class_segment *)s)->idle = 0;
    for (size_t i = 0; i < CLASSES; i++)
        for (struct class_chunk *c = p->idle[i]; c; c = c->next)
            c->segment->idle++;
}

/* Removes the chunks of returned segments, which have size 0, from the lists.
 */
static void forget_chunks(struct size_class *p)
{
    for (size_t i = 0; i < CLASSES; i++) {
        struct class_chunk **link = &p->idle[i];

        while (*link) {
            struct class_chunk *c = *link;

            if (c->segment->base.size) {
                link = &c->next;
            } else {
                *link = c->next;
                nodes_put(&p->nodes, c);
            }
        }
    }
}

static void forget_segments(struct size_class *p)
{
    struct segment **link = &p->segments;

    if (p->current && !p->current->base.size)
        p->current = NULL;
    while (*link) {
        struct segment *s = *link;

        if (s->size) {
            link = &s->next;
        } else {
            *link = s->next;
            free(s);
        }
    }
}

static bool is_idle(const struct segment *segment)
{
    const struct class_segment *s = (const struct class_segment *)segment;

    return s->idle == s->chunks;
}

/* Returns all segments without live blocks; true if any was returned. A segment
 * that the device refuses to free stays as it was. */
static bool return_segments(struct frag_heap *heap)
{
    struct size_class *p = heap->state;
    bool any = false;

    count_idle(p);
    for (struct segment *s = p->segments; s; s = s->next) {
        if (!is_idle(s) || heap->mem->ops->segment_free(heap->mem, s->addr,
                                                        s->size) != FRAG_OK)
            continue;
        s->size = 0;
        any = true;
    }
    if (any) {
        forget_chunks(p);
        forget_segments(p);
    }
    return any;
}

/* Allocates a new segment with room for `size` bytes. */
static enum frag_err grow(struct frag_heap *heap, frag_size size,
                          struct class_segment **out)
{
    struct size_class *p = heap->state;

    FRAG_TRY(segments_add(heap, &p->segments, sizeof(**out),
                          segment_size(heap->mem, p->segment, size),
                          return_segments));
    *out = (struct class_segment *)p->segments;
    return FRAG_OK;
}

/* Carves a chunk of a class that has no free one. All steps that can fail come
 * first. */
static enum frag_err fresh_chunk(struct frag_heap *heap, uint32_t class,
                                 frag_size size, struct class_chunk **out)
{
    struct size_class *p = heap->state;
    struct class_segment *s = p->current;

    FRAG_TRY(nodes_reserve(&p->nodes, 1 + MAX_TAIL));
    if (!s || s->base.size - s->carved < size)
        FRAG_TRY(grow(heap, size, &s));

    *out = carve(p, s, class, size);
    if (s == p->current)
        return FRAG_OK;
    if (size > frag_round_up(p->segment, FRAG_QUANTUM)) {
        finish(p, s);
    } else {
        finish(p, p->current);
        p->current = s;
    }
    return FRAG_OK;
}

static enum frag_err size_class_alloc(struct frag_heap *heap,
                                      const struct frag_request *req,
                                      struct frag_block *out)
{
    struct size_class *p = heap->state;
    frag_size size = frag_round_up(req->size, FRAG_QUANTUM);
    const uint32_t class = class_above(p->subdivisions, &size);
    struct class_chunk *c = p->idle[class];

    if (c)
        p->idle[class] = c->next;
    else
        FRAG_TRY(fresh_chunk(heap, class, size, &c));
    *out = (struct frag_block){c->addr, size, c};
    return FRAG_OK;
}

static void size_class_free(struct frag_heap *heap,
                            const struct frag_block *block)
{
    put(heap->state, block->node);
}

static void size_class_trim(struct frag_heap *heap)
{
    return_segments(heap);
}

static enum frag_err init(struct frag_heap *heap)
{
    struct size_class *p = heap->state;

    p->nodes.size = sizeof(struct class_chunk);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct size_class *p = heap->state;

    segments_fini(heap, &p->segments);
    nodes_release(&p->nodes);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct size_class, segment),
    FRAG_CHOICE_PARAM("subdivisions", struct size_class, subdivisions, "4",
                      "1|2|4|8|16|32|64", "size classes per power of two"),
    {.name = NULL},
};

const struct frag_policy frag_policy_size_class = {
    .name = "size_class",
    .summary = "a free list per size class; blocks never split or coalesce",
    .source = "Wilson et al., Dynamic Storage Allocation: A Survey and "
              "Critical Review, 1995, section 3.6",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct size_class),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = size_class_alloc,
    .free = size_class_free,
    .trim = size_class_trim,
    .unchecked =
        "none was written; random requests and the ledger judge its answers",
};
