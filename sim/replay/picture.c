/* picture.c - takes a picture: sorts the live blocks by address and walks over
 * the held ranges and the blocks in parallel. */
#include "sim/replay/picture.h"

#include <stdlib.h>

/* Bits of a digit. Most pictures have a few hundred blocks, for which counters
 * of wider digits cost more than a further pass. */
enum { PICTURE_DIGIT = 8, PICTURE_VALUES = 1 << PICTURE_DIGIT };

enum frag_err picture_open(struct picture *p, uint32_t room)
{
    *p = (struct picture){0};
    p->blocks = malloc((room + (size_t)1) * sizeof(*p->blocks));
    p->spare = malloc((room + (size_t)1) * sizeof(*p->spare));
    if (p->blocks && p->spare)
        return FRAG_OK;
    picture_close(p);
    return FRAG_NOMEM;
}

void picture_close(struct picture *p)
{
    free(p->blocks);
    free(p->spare);
    *p = (struct picture){0};
}

static size_t digit(frag_addr addr, unsigned shift)
{
    return (size_t)(addr >> shift) & (PICTURE_VALUES - 1);
}

/* One pass of a radix sort. */
static void sort_by_digit(struct picture *p, unsigned shift)
{
    uint64_t first[PICTURE_VALUES] = {0}, sum = 0;
    struct live_block *sorted = p->spare;

    for (uint64_t i = 0; i < p->count; i++)
        first[digit(p->blocks[i].addr, shift)]++;
    for (size_t v = 0; v < PICTURE_VALUES; v++) {
        uint64_t here = first[v];

        first[v] = sum;
        sum += here;
    }
    for (uint64_t i = 0; i < p->count; i++)
        sorted[first[digit(p->blocks[i].addr, shift)]++] = p->blocks[i];
    p->spare = p->blocks;
    p->blocks = sorted;
}

/* A pass for each digit in which two addresses differ. The bits below the
 * lowest one that differs belong to no digit. */
static void sort_blocks(struct picture *p)
{
    frag_addr differ = 0;
    unsigned shift;

    for (uint64_t i = 1; i < p->count; i++)
        differ |= p->blocks[i].addr ^ p->blocks[0].addr;
    if (!differ)
        return;
    shift = (unsigned)__builtin_ctzll(differ);
    for (; shift < 64 && differ >> shift; shift += PICTURE_DIGIT)
        if (digit(differ, shift))
            sort_by_digit(p, shift);
}

/* A walk over the held ranges, for a request of (stream, pool). */
struct picture_walk {
    struct picture *picture;
    const struct meter *meter;
    frag_stream stream;
    frag_pool pool;
    uint64_t next; /* index of the next block */
};

/* The part of the picture that counts the free bytes of segment g. */
static frag_size *free_bytes_of(const struct picture_walk *w,
                                const struct segment *g)
{
    struct picture *p = w->picture;

    if (g->has_owner && g->pool != w->pool)
        return &p->other_pool;
    if (g->has_owner && g->stream != w->stream)
        return &p->other_stream;
    return &p->here;
}

static void count_gap(const struct picture_walk *w, const struct extent *x,
                      frag_size gap)
{
    struct picture *p = w->picture;

    if (gap < p->quantum)
        p->unusable += gap;
    else
        *free_bytes_of(w, &w->meter->segments[x->segment]) += gap;
    if (gap > p->largest)
        p->largest = gap;
}

/* Measures the blocks and gaps of an extent. Blocks before it lie in no held
 * range and are skipped. */
static void measure(struct picture_walk *w, struct extent *x)
{
    const struct picture *p = w->picture;
    frag_addr at = x->addr, end = x->addr + x->size;

    while (w->next < p->count && p->blocks[w->next].addr < x->addr)
        w->next++;
    for (; w->next < p->count && p->blocks[w->next].addr < end; w->next++) {
        const struct live_block *b = &p->blocks[w->next];

        if (b->addr > at)
            count_gap(w, x, b->addr - at);
        at = b->addr + b->size;
        x->allocated += b->size;
        x->blocks++;
    }
    if (at < end)
        count_gap(w, x, end - at);
}

/* The extent that starts with range r. Sets *next to the range after it. */
static struct extent extent_from(const struct meter *m, const struct range *r,
                                 const struct range **next)
{
    const struct held_range *h = (const struct held_range *)r;
    struct extent x = {.addr = r->at,
                       .size = r->size,
                       .segment = h->segment,
                       .is_mapped = h->phys != NULL};

    for (;;) {
        r = ranges_from(&m->held, r->at + 1);
        h = (const struct held_range *)r;
        if (!r || !h->phys || h->segment != x.segment ||
            r->at != x.addr + x.size)
            break;
        x.size += r->size;
    }
    *next = r;
    return x;
}

/* Subtracts up to *excess bytes from *from, and from *excess. */
static void reduce(frag_size *from, frag_size *excess)
{
    frag_size cut = *from < *excess ? *from : *excess;

    *from -= cut;
    *excess -= cut;
}

/* Makes the free parts sum to `free` bytes. */
static void balance(struct picture *p, frag_size free)
{
    frag_size sum = p->here + p->other_stream + p->other_pool + p->unusable;
    frag_size excess = sum > free ? sum - free : 0;

    if (sum < free)
        p->unusable += free - sum;
    reduce(&p->here, &excess);
    reduce(&p->other_stream, &excess);
    reduce(&p->other_pool, &excess);
    reduce(&p->unusable, &excess);
}

enum frag_err picture_take(struct picture *p, const struct meter *m,
                           frag_stream stream, frag_pool pool, frag_size free,
                           enum frag_err (*each)(void *user,
                                                 const struct extent *x),
                           void *user)
{
    struct picture_walk w = {p, m, stream, pool, 0};
    const struct range *r = ranges_from(&m->held, 0);

    p->largest = p->here = p->other_stream = p->other_pool = p->unusable = 0;
    sort_blocks(p);
    while (r) {
        struct extent x = extent_from(m, r, &r);

        measure(&w, &x);
        if (each)
            FRAG_TRY(each(user, &x));
    }
    balance(p, free);
    return FRAG_OK;
}
