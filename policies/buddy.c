/* buddy.c - buddy systems: a block splits into two parts, and each part merges
 * only with the other one.
 *
 * Block sizes form a series in which each size is the sum of two earlier ones.
 * `kind` selects the series, in units of `unit` bytes:
 *   binary     1 2 4 8 16 ...        two halves
 *   fibonacci  1 2 3 5 8 13 ...      the sum of the two sizes before
 *   weighted   1 2 3 4 6 8 12 16 ... 4n = 3n + n, 3n = 2n + n
 * A request is rounded up to a size of the series, which is allocated. It uses
 * a free block of the smallest size that is large enough; among blocks of this
 * size, the one that was freed, split off or merged last. The block is split
 * while one of its two parts is large enough. The larger part has the lower
 * addresses. The smaller part that is large enough is split on or allocated; of
 * equal parts, the lower one. A freed block is merged at once with its other
 * part if that is free and not split, and so on upwards. A freed block serves
 * any stream.
 *
 * A segment is one block: `segment` is rounded up to a size of the series, and
 * a larger request gets a segment of its own rounded size. Apart from that,
 * growth and trim follow mechanism/segments.h.
 *
 * Two parts share one record of one cache line. A block finds its buddy, and
 * both find the block that was split, without arithmetic on addresses, so all
 * three series cost the same.
 *
 * Source: Knowlton, "A Fast Storage Allocator", CACM 8(10), 1965 (binary);
 * Hirschberg, "A Class of Dynamic Memory Allocation Algorithms", CACM 16(10),
 * 1973 (Fibonacci); Shen and Peterson, "A Weighted Buddy Method for Dynamic
 * Storage Allocation", CACM 17(10), 1974; their common form, Peterson and
 * Norman, "Buddy Systems", CACM 20(6), 1977.
 */
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/ring.h"
#include "policies/mechanism/segments.h"

enum { CLASSES = 128, WORDS = CLASSES / 64 };

enum { LOW, HIGH };

enum state { USED, FREE, SPLIT };

/* A block, in use, free or split. */
struct buddy_part {
    struct ring link; /* while it is free */
    uint8_t class, side;
    uint8_t state;
};

/* The two parts of a split block; 64 bytes, one cache line. */
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
    uint32_t kind;
    uint32_t classes;
    struct segment *segments;
    struct nodes nodes;   /* records of pairs */
    uint64_t used[WORDS]; /* bit c: class c has free blocks */
    struct ring heads[CLASSES];
    frag_size sizes[CLASSES];
    uint8_t smaller[CLASSES]; /* class of the smaller part of a block; the
                                 larger part of class c has class c - 1 */
    uint8_t above[65]; /* [k]: the smallest class of more than 2^(k-1) bytes */
};

/* ---- the series ---- */

/* For each kind: the class of a block minus the class of its smaller part, for
 * even and for odd classes. A result below class 0 means class 0. */
static const uint8_t steps_down[][2] = {{1, 1}, {2, 2}, {3, 4}};

static void make_series(struct buddy *b)
{
    const uint8_t *down = steps_down[b->kind];
    uint8_t c = 0;
    unsigned k = 0;

    b->sizes[0] = frag_round_up(b->unit, FRAG_QUANTUM);
    while (b->sizes[c] >> 63 == 0) {
        const uint8_t back = down[++c % 2];

        b->smaller[c] = c > back ? (uint8_t)(c - back) : 0;
        b->sizes[c] = b->sizes[c - 1] + b->sizes[b->smaller[c]];
    }
    b->classes = c + 1u;
    for (c = 0; c < b->classes; c++)
        while (k <= 64 && (k == 0 || b->sizes[c] > (frag_size)1 << (k - 1)))
            b->above[k++] = c;
}

/* The smallest class of at least `size` bytes; size is > 0 and at most 2^63. */
static unsigned class_of(const struct buddy *b, frag_size size)
{
    unsigned c = b->above[64 - (unsigned)__builtin_clzll((size - 1) | 1)];

    while (b->sizes[c] < size)
        c++;
    return c;
}

/* ---- free blocks ---- */

static void push(struct buddy *b, struct buddy_part *p)
{
    p->state = FREE;
    ring_push(&b->heads[p->class], &p->link);
    b->used[p->class / 64] |= (uint64_t)1 << (p->class % 64);
}

static void take_out(struct buddy *b, struct buddy_part *p)
{
    const uint64_t is_last =
        p->link.prev == p->link.next; /* both are the head */

    ring_drop(&p->link);
    b->used[p->class / 64] &= ~(is_last << (p->class % 64));
}

/* The first free block of the smallest class >= `class` that has a free block;
 * NULL if there is none. */
static struct buddy_part *first_from(const struct buddy *b, unsigned class)
{
    unsigned word = class / 64;
    uint64_t bits = b->used[word] & (~(uint64_t)0 << (class % 64));

    while (!bits && ++word < WORDS)
        bits = b->used[word];
    if (!bits)
        return NULL;
    return (struct buddy_part *)b
        ->heads[word * 64 + (unsigned)__builtin_ctzll(bits)]
        .next;
}

static struct buddy_pair *pair_of(struct buddy_part *p)
{
    return (struct buddy_pair *)(p - p->side);
}

static frag_addr addr_of(const struct buddy *b, struct buddy_part *p)
{
    const struct buddy_pair *pair = pair_of(p);

    return pair->addr +
           (p->side == HIGH ? b->sizes[pair->parts[LOW].class] : 0);
}

static void set_part(struct buddy_part *p, unsigned class, unsigned side)
{
    p->class = (uint8_t) class;
    p->side = (uint8_t)side;
}

/* Splits a block at *addr, which is on no list, until a part of the given class
 * is left; returns that part and sets *addr to its address. */
static struct buddy_part *split(struct buddy *b, struct buddy_part *p,
                                unsigned class, frag_addr *addr)
{
    while (p->class > class) {
        const unsigned larger = p->class - 1u, smaller = b->smaller[p->class];
        const unsigned side = smaller >= class && smaller < larger ? HIGH : LOW;
        struct buddy_pair *pair = nodes_take(&b->nodes);

        pair->whole = p;
        pair->addr = *addr;
        set_part(&pair->parts[LOW], larger, LOW);
        set_part(&pair->parts[HIGH], smaller, HIGH);
        p->state = SPLIT;
        push(b, &pair->parts[!side]);
        p = &pair->parts[side];
        *addr += side == HIGH ? b->sizes[larger] : 0;
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
                          b->sizes[most], return_segments));
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
    frag_addr addr;

    FRAG_TRY(nodes_reserve(&b->nodes, CLASSES)); /* enough for all splits */
    p = first_from(b, class);
    if (p)
        take_out(b, p);
    else
        FRAG_TRY(grow(heap, class, &p));

    addr = addr_of(b, p);
    p = split(b, p, class, &addr);
    p->state = USED;
    *out = (struct frag_block){addr, b->sizes[class], p};
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
    make_series(b);
    for (unsigned c = 0; c < b->classes; c++)
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
    FRAG_CHOICE_PARAM("kind", struct buddy, kind, "binary",
                      "binary|fibonacci|weighted", "the series of block sizes"),
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
