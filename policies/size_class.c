/* size_class.c - one free list per size class, nothing split or merged.
 *
 * Sizes are rounded up to a class: powers of two, each octave cut into equal
 * `subdivisions`. A free block of the class is taken if there is one, the most
 * recently freed first; otherwise the next bytes of the current segment are
 * carved. A segment that has too little left is cut to the end, largest class
 * first, so that no byte of it is out of reach. A class larger than `segment`
 * gets a segment per block, cut to the end likewise. A block stays of its class
 * until trim returns its whole segment, and serves any stream.
 *
 * alloc and free of a known class are a pop and a push. What a segment has in
 * use is not counted as they go but found by trim, which walks the lists.
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
    MAX_TAIL = 64, /* each piece of a tail is more than half of what is left */
};

struct class_span { /* a segment */
    struct class_span *next;
    frag_addr addr;
    frag_size size;
    frag_size carved; /* bytes from the start that are chunks by now */
    uint32_t chunks;  /* so many */
    uint32_t idle;    /* of them free; trim's */
};

struct class_chunk {          /* a block, free or not */
    struct class_chunk *next; /* on its free list */
    struct class_span *span;
    frag_addr addr;
    uint32_t class;
};

struct size_class {
    frag_size segment; /* the parameters; subdivisions as an exponent */
    uint32_t subdivisions;
    struct class_span *current; /* carved for the classes up to `segment` */
    struct class_span *spans;   /* the newest first */
    struct nodes nodes;         /* of chunks */
    struct class_chunk *idle[CLASSES];
};

/* The next bytes of a span that has them, as a chunk. */
static struct class_chunk *carve(struct size_class *p, struct class_span *s,
                                 uint32_t class, frag_size size)
{
    struct class_chunk *c = nodes_take(&p->nodes);

    *c = (struct class_chunk){
        .span = s, .addr = s->addr + s->carved, .class = class};
    s->carved += size;
    s->chunks++;
    return c;
}

static void put(struct size_class *p, struct class_chunk *c)
{
    c->next = p->idle[c->class];
    p->idle[c->class] = c;
}

/* Carves what is left of a span; s may be NULL. */
static void finish(struct size_class *p, struct class_span *s)
{
    while (s && s->size - s->carved >= FRAG_QUANTUM) {
        frag_size size = s->size - s->carved;
        const uint32_t class = class_below(p->subdivisions, &size);

        put(p, carve(p, s, class, size));
    }
}

static void count_idle(struct size_class *p)
{
    for (struct class_span *s = p->spans; s; s = s->next)
        s->idle = 0;
    for (size_t i = 0; i < CLASSES; i++)
        for (struct class_chunk *c = p->idle[i]; c; c = c->next)
            c->span->idle++;
}

/* Takes the chunks of returned spans, which have size 0, off the lists. */
static void forget_chunks(struct size_class *p)
{
    for (size_t i = 0; i < CLASSES; i++) {
        struct class_chunk **link = &p->idle[i];

        while (*link) {
            struct class_chunk *c = *link;

            if (c->span->size) {
                link = &c->next;
            } else {
                *link = c->next;
                nodes_give(&p->nodes, c);
            }
        }
    }
}

static void forget_spans(struct size_class *p)
{
    struct class_span **link = &p->spans;

    if (p->current && !p->current->size)
        p->current = NULL;
    while (*link) {
        struct class_span *s = *link;

        if (s->size) {
            link = &s->next;
        } else {
            *link = s->next;
            free(s);
        }
    }
}

/* A span that the device refuses to take back stays, as free as before. */
static bool give_back(struct frag_heap *heap)
{
    struct size_class *p = heap->state;
    bool any = false;

    count_idle(p);
    for (struct class_span *s = p->spans; s; s = s->next) {
        if (s->idle != s->chunks || heap->mem->ops->segment_free(
                                        heap->mem, s->addr, s->size) != FRAG_OK)
            continue;
        s->size = 0;
        any = true;
    }
    if (any) {
        forget_chunks(p);
        forget_spans(p);
    }
    return any;
}

/* A new span with room for size. */
static enum frag_err grow(struct frag_heap *heap, frag_size size,
                          struct class_span **out)
{
    struct size_class *p = heap->state;
    struct class_span *s = malloc(sizeof(*s));
    enum frag_err err;

    if (!s)
        return FRAG_NOMEM;
    *s = (struct class_span){.size = segment_size(heap->mem, p->segment, size)};
    err = segment_take(heap, s->size, give_back, &s->addr);
    if (err != FRAG_OK) {
        free(s);
        return err;
    }
    s->next = p->spans;
    p->spans = s;
    *out = s;
    return FRAG_OK;
}

/* A chunk of a class that has none free. All that can fail comes first. */
static enum frag_err fresh_chunk(struct frag_heap *heap, uint32_t class,
                                 frag_size size, struct class_chunk **out)
{
    struct size_class *p = heap->state;
    struct class_span *s = p->current;

    FRAG_TRY(nodes_reserve(&p->nodes, 1 + MAX_TAIL));
    if (!s || s->size - s->carved < size)
        FRAG_TRY(grow(heap, size, &s));

    *out = carve(p, s, class, size);
    if (s == p->current)
        return FRAG_OK;
    if (size > whole_quanta(p->segment)) {
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
    frag_size size = whole_quanta(req->size);
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
    give_back(heap);
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

    while (p->spans) {
        struct class_span *s = p->spans;

        heap->mem->ops->segment_free(heap->mem, s->addr, s->size);
        p->spans = s->next;
        free(s);
    }
    nodes_release(&p->nodes);
}

static const struct frag_param params[] = {
    SEGMENT_PARAM(struct size_class, segment),
    {
        .name = "subdivisions",
        .kind = FRAG_PARAM_CHOICE,
        .offset = offsetof(struct size_class, subdivisions),
        .init = "4",
        .choices = "1|2|4|8|16|32|64",
        .help = "classes per power of two",
    },
    {.name = NULL},
};

const struct frag_policy frag_policy_size_class = {
    .name = "size_class",
    .summary = "a free list per size class, nothing split or merged",
    .source = "Wilson et al., Dynamic Storage Allocation: A Survey and "
              "Critical Review, 1995, section 3.6",
    .state_size = sizeof(struct size_class),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = size_class_alloc,
    .free = size_class_free,
    .trim = size_class_trim,
};
