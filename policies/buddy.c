/* buddy.c - a buddy system: a block splits into two halves, and each half
 * merges only with the other one.
 *
 * Block sizes are `unit` bytes times a power of two. A request is rounded up to
 * such a size, which is allocated. It uses a free block of the smallest size
 * that is large enough; among blocks of this size, the one that was freed,
 * split off or merged last. The block is halved while a half is large enough,
 * and the lower half is split on or allocated. A freed block is merged at once
 * with its other half if that is free and not split, and so on upwards. A freed
 * block serves any stream.
 *
 * A segment is one block: `segment` is rounded up to a size of a block, and a
 * larger request gets a segment of its own rounded size. Apart from that,
 * growth and trim follow mechanism/segments.h.
 *
 * Two halves share one record of one cache line. A block finds its buddy, and
 * both find the block that was split, without arithmetic on addresses.
 *
 * Source: Knowlton, "A Fast Storage Allocator", CACM 8(10), 1965; Peterson and
 * Norman, "Buddy Systems", CACM 20(6), 1977.
 */
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/ring.h"
#include "policies/mechanism/segments.h"

enum { CLASSES = 64 };

enum { LOW, HIGH };

enum state { USED, FREE, SPLIT };

/* A block, in use, free or split. */
struct buddy_part {
    struct ring link; /* while it is free */
    uint8_t class, side;
    uint8_t state;
};

/* The two halves of a split block; 64 bytes, one cache line. */
struct buddy_pair {
    struct buddy_part parts[2];
    struct buddy_part *whole;
    frag_addr addr;
};

/* A segment. Its block is the lower part of a pair whose other part is never
 * free. */
struct buddy_segment {
    struct segment base;
    struct buddy_pair pair;
};

struct buddy {
    frag_size segment, unit; /* the parameters */
    frag_size least;         /* bytes of a block of class 0 */
    struct segment *segments;
    struct nodes nodes; /* records of pairs */
    uint64_t used;      /* bit c: class c has free blocks */
    struct ring heads[CLASSES];
};

/* ---- classes ---- */

static frag_size size_of(const struct buddy *b, unsigned class)
{
    return b->least << class;
}

/* The smallest class of at least `size` bytes; size is > 0 and at most 2^63. */
static unsigned class_of(const struct buddy *b, frag_size size)
{
    unsigned c = 0;

    while (size_of(b, c) < size)
        c++;
    return c;
}

/* ---- free blocks ---- */

static void push(struct buddy *b, struct buddy_part *p)
{
    p->state = FREE;
    ring_push(&b->heads[p->class], &p->link);
    b->used |= (uint64_t)1 << p->class;
}

static void take_out(struct buddy *b, struct buddy_part *p)
{
    const uint64_t is_last =
        p->link.prev == p->link.next; /* both are the head */

    ring_drop(&p->link);
    b->used &= ~(is_last << p->class);
}

/* The first free block of the smallest class >= `class` that has a free block;
 * NULL if there is none. */
static struct buddy_part *first_from(const struct buddy *b, unsigned class)
{
    const uint64_t bits = b->used >> class << class;

    return bits ? (struct buddy_part *)b->heads[(unsigned)__builtin_ctzll(bits)]
                      .next
                : NULL;
}

static struct buddy_pair *pair_of(struct buddy_part *p)
{
    return (struct buddy_pair *)(p - p->side);
}

static frag_addr addr_of(const struct buddy *b, struct buddy_part *p)
{
    return pair_of(p)->addr + p->side * size_of(b, p->class);
}

static void set_part(struct buddy_part *p, unsigned class, unsigned side)
{
    p->class = (uint8_t) class;
    p->side = (uint8_t)side;
}

/* Splits a block, which is on no list, until one of the given class is left at
 * its address; returns that one. */
static struct buddy_part *split(struct buddy *b, struct buddy_part *p,
                                unsigned class)
{
    const frag_addr addr = addr_of(b, p);

    while (p->class > class) {
        struct buddy_pair *pair = nodes_take(&b->nodes);

        pair->whole = p;
        pair->addr = addr;
        set_part(&pair->parts[LOW], p->class - 1u, LOW);
        set_part(&pair->parts[HIGH], p->class - 1u, HIGH);
        p->state = SPLIT;
        push(b, &pair->parts[HIGH]);
        p = &pair->parts[LOW];
    }
    return p;
}

/* ---- segments ---- */

static bool is_idle(const struct segment *s)
{
    return ((const struct buddy_segment *)s)->pair.parts[LOW].state == FREE;
}

static void forget(struct frag_heap *heap, struct segment *s)
{
    take_out(heap->state, &((struct buddy_segment *)s)->pair.parts[LOW]);
}

/* Returns all segments without live blocks; true if any was returned. */
static bool return_segments(struct frag_heap *heap)
{
    struct buddy *b = heap->state;

    return segments_return(heap, &b->segments, is_idle, forget);
}

/* Allocates a new segment of at least the class; its block is on no list. */
static enum frag_err grow(struct frag_heap *heap, unsigned class,
                          struct buddy_part **out)
{
    struct buddy *b = heap->state;
    const unsigned usual = class_of(b, b->segment);
    const unsigned most = class > usual ? class : usual;
    struct buddy_pair *pair;

    FRAG_TRY(segments_add(heap, &b->segments, sizeof(struct buddy_segment),
                          size_of(b, most), return_segments));
    pair = &((struct buddy_segment *)b->segments)->pair;
    pair->addr = b->segments->addr;
    set_part(&pair->parts[LOW], most, LOW);
    set_part(&pair->parts[HIGH], 0, HIGH);
    *out = &pair->parts[LOW];
    return FRAG_OK;
}

/* ---- the policy ---- */

static enum frag_err buddy_alloc(struct frag_heap *heap,
                                 const struct frag_request *req,
                                 struct frag_block *out)
{
    struct buddy *b = heap->state;
    const unsigned class = class_of(b, req->size);
    struct buddy_part *p;

    FRAG_TRY(nodes_reserve(&b->nodes, CLASSES)); /* enough for all splits */
    p = first_from(b, class);
    if (p)
        take_out(b, p);
    else
        FRAG_TRY(grow(heap, class, &p));
    p = split(b, p, class);
    p->state = USED;
    *out = (struct frag_block){addr_of(b, p), size_of(b, class), p};
    return FRAG_OK;
}

static void buddy_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct buddy *b = heap->state;
    struct buddy_part *p = block->node;
    struct buddy_pair *pair = pair_of(p);

    while (pair->parts[!p->side].state == FREE) {
        take_out(b, &pair->parts[!p->side]);
        p = pair->whole;
        nodes_put(&b->nodes, pair);
        pair = pair_of(p);
    }
    push(b, p);
}

static void buddy_trim(struct frag_heap *heap)
{
    return_segments(heap);
}

static enum frag_err init(struct frag_heap *heap)
{
    struct buddy *b = heap->state;

    b->nodes.size = sizeof(struct buddy_pair);
    b->least = frag_round_up(b->unit, FRAG_QUANTUM);
    for (unsigned c = 0; c < CLASSES; c++)
        ring_init(&b->heads[c]);
    return FRAG_OK;
}

static void fini(struct frag_heap *heap)
{
    struct buddy *b = heap->state;

    segments_fini(heap, &b->segments);
    nodes_release(&b->nodes);
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(SIZE, "segment", struct buddy, segment, "20MiB", 512,
                     0x1p40,
                     "bytes allocated from the device at once, rounded up to a "
                     "block size; a larger request gets its own segment"),
    FRAG_RANGE_PARAM(SIZE, "unit", struct buddy, unit, "512", 512, 0x1p40,
                     "bytes of the smallest block, rounded up to 512"),
    {.name = NULL},
};

const struct frag_policy frag_policy_buddy = {
    .name = "buddy",
    .summary = "a block splits into two parts that merge only with each other",
    .source = "Knowlton, A Fast Storage Allocator, CACM 1965; Peterson and "
              "Norman, Buddy Systems, CACM 1977",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct buddy),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = buddy_alloc,
    .free = buddy_free,
    .trim = buddy_trim,
    .unchecked =
        "none was written; random requests and the ledger judge its answers",
};
