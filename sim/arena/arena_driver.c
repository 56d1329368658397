/* arena_driver.c - the address rule of the driver, as measured on an H200
 * (driver 580.159.04).
 *
 * cudaMalloc cuts units of 2 MiB from chunks of 32 MiB. A request below 2 MiB
 * cuts units of 512 bytes from chunks of 2 MiB. The same rule thus works on two
 * levels, coarse and fine. A reservation is a chunk of its own in another part
 * of the address space; cudaMalloc also uses the free tail of such a chunk,
 * which remains because its size is rounded up.
 */
#include <stdlib.h>

#include "sim/arena/arena_parts.h"

#define CHUNK    (32 * FRAG_MIB)
#define UNIT     (2 * FRAG_MIB)
#define TINY     ((frag_size)512)
#define TERA     ((frag_addr)1 << 40)
#define VA_FIRST ((frag_addr)0x302000000) /* above the driver's own area */

/* The base of the chunk of the context. The real base differs between
 * processes, within 0x7e.. to 0x7f... This one lies below that range, so that
 * recorded addresses never overlap it. */
#define CONTEXT    ((frag_addr)0x700000000000)
#define HIGH_FIRST ((frag_addr)1 << 46)
#define HIGH_LAST  (CONTEXT - 480 * FRAG_MIB)

/* The local memory of all threads, with which a context begins, has a chunk of
 * its own at HIGH_LAST. It leaves one unit of the chunk free. */
#define LOCAL_CHUNK (416 * FRAG_MIB)

struct driver_chunk {
    struct range by_age; /* must be the first member; see struct level */
    struct ranges free;  /* of struct arena_range */
    uint64_t in_use;     /* number of ranges that were cut and not returned */
    frag_addr at;
    frag_size size;
    struct level *level;      /* NULL until add_to_level */
    struct space *space;      /* address space of the chunk; unused with home */
    struct range *hole;       /* node for the return of the chunk to space */
    struct arena_range *home; /* the coarse range that holds a fine chunk */
};

static struct range *new_range(uint64_t at, uint64_t size)
{
    struct range *r = calloc(1, sizeof(*r));

    if (r) {
        r->at = at;
        r->size = size;
    }
    return r;
}

/* Cuts `size` bytes from the top or the bottom end of the hole. Returns a node
 * with which coalesce_hole can return them: the hole itself if all of it was
 * cut. NULL if the host has no memory. */
static struct range *cut_hole(struct space *s, struct range *hole, bool top,
                              frag_size size)
{
    struct range *storage;

    if (hole->size == size) {
        ranges_remove(&s->holes, hole);
        return hole;
    }
    storage = new_range(top ? hole->at + hole->size - size : hole->at, size);
    if (!storage)
        return NULL;
    ranges_remove(&s->holes, hole);
    hole->at += top ? 0 : size;
    hole->size -= size;
    ranges_add(&s->holes, hole);
    return storage;
}

/* Adds a hole and coalesces it with adjacent holes. */
static void coalesce_hole(struct space *s, struct range *hole)
{
    struct range *before = ranges_upto(&s->holes, hole->at);
    struct range *after = ranges_from(&s->holes, hole->at);

    if (after && hole->at + hole->size == after->at) {
        ranges_remove(&s->holes, after);
        hole->size += after->size;
        free(after);
    }
    if (before && before->at + before->size == hole->at) {
        ranges_resize(&s->holes, before, before->size + hole->size);
        free(hole);
    } else {
        ranges_add(&s->holes, hole);
    }
}

static void add_to_level(struct driver_chunk *c, struct level *level)
{
    c->level = level;
    c->by_age.at = ++level->ages;
    c->by_age.size = ranges_widest(&c->free);
    ranges_add(&level->by_age, &c->by_age);
}

static void update_widest(struct driver_chunk *c)
{
    ranges_resize(&c->level->by_age, &c->by_age, ranges_widest(&c->free));
}

/* Makes a chunk with one free range. It has no address and no level yet. NULL
 * if the host has no memory. */
static struct driver_chunk *new_chunk(frag_size size)
{
    struct driver_chunk *c = calloc(1, sizeof(*c));
    struct arena_range *all = calloc(1, sizeof(*all));

    if (!c || !all) {
        free(c);
        free(all);
        return NULL;
    }
    c->size = size;
    all->chunk = c;
    all->range.size = size;
    ranges_add(&c->free, &all->range);
    return c;
}

static void free_chunk(struct driver_chunk *c)
{
    for (struct range *r = ranges_pop(&c->free); r; r = ranges_pop(&c->free))
        free(r);
    free(c->hole);
    free(c);
}

static void place(struct driver_chunk *c, frag_addr at)
{
    struct range *all = ranges_pop(&c->free);

    c->at = all->at = at;
    ranges_add(&c->free, all);
}

static enum frag_err chunk_from_space(struct space *s, frag_size size,
                                      struct driver_chunk **out)
{
    struct range *hole = s->from_top
                             ? ranges_highest_fit(&s->holes, size + s->spare)
                             : ranges_lowest_fit(&s->holes, size + s->spare);
    struct driver_chunk *c;

    if (!hole)
        return FRAG_OOM;
    c = new_chunk(size);
    if (!c)
        return FRAG_NOMEM;
    c->hole = cut_hole(s, hole, s->from_top, size);
    if (!c->hole) {
        free_chunk(c);
        return FRAG_NOMEM;
    }
    c->space = s;
    place(c, c->hole->at);
    *out = c;
    return FRAG_OK;
}

/* Cuts the first `size` bytes of the smallest free range of the chunk that has
 * them. There is such a range. NULL if the host has no memory. */
static struct arena_range *cut(struct driver_chunk *c, frag_size size)
{
    struct range *r = ranges_best_fit(&c->free, size);
    struct arena_range *p;

    if (r->size == size) {
        ranges_remove(&c->free, r);
        p = (struct arena_range *)r;
    } else {
        p = calloc(1, sizeof(*p));
        if (!p)
            return NULL;
        *p = (struct arena_range){.range = {.at = r->at, .size = size},
                                  .chunk = c};
        ranges_remove(&c->free, r);
        r->at += size;
        r->size -= size;
        ranges_add(&c->free, r);
    }
    c->in_use++;
    if (c->level)
        update_widest(c);
    return p;
}

/* Returns the memory or addresses of an empty chunk, and frees the struct. */
static void return_chunk(struct arena *a, struct driver_chunk *c)
{
    ranges_remove(&c->level->by_age, &c->by_age);
    if (c->home) {
        driver_free(a, c->home);
    } else {
        coalesce_hole(c->space, c->hole);
        c->hole = NULL;
    }
    free_chunk(c);
}

static struct range *absorb(struct driver_chunk *c, struct range *low,
                            struct range *high)
{
    ranges_remove(&c->free, high);
    ranges_resize(&c->free, low, low->size + high->size);
    free(high);
    return low;
}

/* Returns a range to its chunk and coalesces it. If the chunk is empty then,
 * the chunk is returned too. */
static void return_to_chunk(struct arena *a, struct arena_range *p)
{
    struct driver_chunk *c = p->chunk;
    struct range *r = &p->range;
    struct range *low = ranges_upto(&c->free, r->at);
    struct range *high = ranges_from(&c->free, r->at);

    ranges_add(&c->free, r);
    if (high && r->at + r->size == high->at)
        absorb(c, r, high);
    if (low && low->at + low->size == r->at)
        absorb(c, low, r);
    if (--c->in_use == 0)
        return_chunk(a, c);
    else
        update_widest(c);
}

static enum frag_err level_alloc(struct arena *a, struct level *level,
                                 frag_size size, struct arena_range **out);

/* Makes a new chunk that has room for `size` bytes. A fine chunk is itself
 * device memory, allocated on the coarse level; a coarse chunk is only address
 * space. */
static enum frag_err chunk_for(struct arena *a, struct level *level,
                               frag_size size, struct driver_chunk **out)
{
    struct arena_range *home;

    if (level == &a->coarse)
        return chunk_from_space(&a->high, frag_round_up(size, level->chunk),
                                out);
    FRAG_TRY(level_alloc(a, &a->coarse, level->chunk, &home));
    *out = new_chunk(level->chunk);
    if (!*out) {
        driver_free(a, home);
        return FRAG_NOMEM;
    }
    (*out)->home = home;
    place(*out, home->range.at);
    return FRAG_OK;
}

static enum frag_err level_alloc(struct arena *a, struct level *level,
                                 frag_size size, struct arena_range **out)
{
    frag_size whole = frag_round_up(size, level->unit);
    const bool uses_units =
        level == &a->coarse && a->opts.rule != FRAG_RULE_EXACT;
    struct range *newest = ranges_highest_fit(&level->by_age, whole);
    struct driver_chunk *c =
        (struct driver_chunk *)newest; /* by_age is its first member */

    if (uses_units && arena_refuses(a, whole))
        return FRAG_OOM;
    if (!c)
        FRAG_TRY(chunk_for(a, level, whole, &c));
    *out = cut(c, whole);
    if (!newest)
        add_to_level(c, level);
    if (!*out) {
        if (!newest)
            return_chunk(a, c);
        return FRAG_NOMEM;
    }
    if (uses_units) {
        (*out)->charge = whole;
        arena_add_used(a, whole);
    }
    return FRAG_OK;
}

enum frag_err driver_alloc(struct arena *a, frag_size size,
                           struct arena_range **out)
{
    return level_alloc(a, size < UNIT ? &a->fine : &a->coarse, size, out);
}

enum frag_err driver_reserve(struct arena *a, frag_size size,
                             struct arena_range **out)
{
    struct driver_chunk *c;

    FRAG_TRY(chunk_from_space(&a->low, frag_round_up(size, CHUNK), &c));
    *out = cut(c, size);
    add_to_level(c, &a->coarse);
    if (*out)
        return FRAG_OK;
    return_chunk(a, c);
    return FRAG_NOMEM;
}

void driver_free(struct arena *a, struct arena_range *range)
{
    a->used -= range->charge;
    range->charge = 0;
    if (range->chunk)
        return_to_chunk(a, range);
    else
        free(range);
}

/* Removes the addresses [at, at + size) from a hole that overlaps them. */
static enum frag_err punch(struct space *s, struct range *hole, frag_addr at,
                           frag_size size)
{
    frag_addr end = at + size, hole_end = hole->at + hole->size;
    struct range *rest = NULL;

    if (hole_end > end && hole->at < at) {
        rest = new_range(end, hole_end - end);
        if (!rest)
            return FRAG_NOMEM;
    }
    ranges_remove(&s->holes, hole);
    if (rest)
        ranges_add(&s->holes, rest);
    if (hole->at < at) {
        hole->size = at - hole->at;
        ranges_add(&s->holes, hole);
    } else if (hole_end > end) {
        hole->at = end;
        hole->size = hole_end - end;
        ranges_add(&s->holes, hole);
    } else {
        free(hole);
    }
    return FRAG_OK;
}

/* Whether a chunk of the level overlaps [at, at + size). */
static bool meets_chunk(const struct level *level, frag_addr at, frag_size size)
{
    for (const struct range *r = ranges_from(&level->by_age, 0); r;
         r = ranges_from(&level->by_age, r->at + 1)) {
        const struct driver_chunk *c = (const struct driver_chunk *)r;

        if (c->at < at + size && at < c->at + c->size)
            return true;
    }
    return false;
}

static bool clear_of_spaces(frag_addr at, frag_size size)
{
    return at >= CONTEXT + CHUNK || at + size <= VA_FIRST;
}

enum frag_err driver_withdraw(struct arena *a, frag_addr addr, frag_size size)
{
    frag_addr at = addr / CHUNK * CHUNK;
    frag_size whole = frag_round_up(addr + size, CHUNK) - at;
    struct space *const spaces[] = {&a->low, &a->high};

    if (clear_of_spaces(at, whole))
        return FRAG_OK;
    if (meets_chunk(&a->coarse, at, whole))
        return FRAG_INVALID;
    for (size_t i = 0; i < 2; i++)
        for (;;) {
            struct range *hole = ranges_overlap(&spaces[i]->holes, at, whole);

            if (!hole)
                break;
            FRAG_TRY(punch(spaces[i], hole, at, whole));
        }
    return FRAG_OK;
}

/* Allocates memory of other users, at the address that any request would get.
 * It is not part of the capacity. NULL if the host has no memory. */
static struct arena_range *uncharged_alloc(struct arena *a, frag_size size)
{
    frag_size used = a->used, peak = a->base.peak;
    frag_size capacity = a->base.capacity;
    struct arena_range *p = NULL;

    a->base.capacity = FRAG_UNLIMITED;
    if (level_alloc(a, &a->coarse, size, &p) == FRAG_OK)
        p->charge = 0;
    a->base.capacity = capacity;
    a->used = used;
    a->base.peak = peak;
    return p;
}

/* PyTorch creates 32 streams when it uses the first one. The driver allocates 2
 * MiB for every two streams. */
void driver_side_streams(struct arena *a)
{
    enum { HIDDEN = 16 };

    for (int i = 0; i < HIDDEN; i++)
        free(uncharged_alloc(a, UNIT)); /* never returned: its chunk still
                                           counts it */
}

static bool open_space(struct space *s, frag_addr first, frag_addr end)
{
    struct range *hole = new_range(first, end - first);

    if (hole)
        ranges_add(&s->holes, hole);
    return hole != NULL;
}

/* Adds a chunk of the context, whose first `taken` bytes are never returned.
 * False: the host has no memory. */
static bool open_chunk(struct arena *a, frag_addr at, frag_size size,
                       frag_size taken)
{
    struct driver_chunk *c = new_chunk(size);
    struct arena_range *p;

    if (!c)
        return false;
    c->space = &a->high;
    c->hole = new_range(at, size);
    place(c, at);
    p = c->hole ? cut(c, taken) : NULL;
    add_to_level(c, &a->coarse);
    free(p);
    return p != NULL;
}

/* The chunks that the context makes: one for itself, and one for the local
 * memory of all threads. */
static bool open_context(struct arena *a)
{
    return open_chunk(a, CONTEXT, CHUNK, 8 * FRAG_MIB) &&
           open_chunk(a, HIGH_LAST, LOCAL_CHUNK, LOCAL_CHUNK - UNIT);
}

enum frag_err driver_open(struct arena *a)
{
    a->high.from_top = true;
    a->high.spare = CHUNK;
    a->coarse.unit = UNIT;
    a->coarse.chunk = CHUNK;
    a->fine.unit = TINY;
    a->fine.chunk = UNIT;
    return open_space(&a->high, HIGH_FIRST, HIGH_LAST) &&
                   open_space(&a->low, VA_FIRST, TERA) &&
                   open_space(&a->low, TERA + 2 * CHUNK, HIGH_FIRST) &&
                   (a->opts.rule == FRAG_RULE_ANCHORED || open_context(a))
               ? FRAG_OK
               : FRAG_NOMEM;
}

static void close_level(struct level *level)
{
    for (struct range *r = ranges_pop(&level->by_age); r;
         r = ranges_pop(&level->by_age)) {
        struct driver_chunk *c = (struct driver_chunk *)r;

        free(c->home);
        free_chunk(c);
    }
}

static void close_space(struct space *s)
{
    for (struct range *r = ranges_pop(&s->holes); r; r = ranges_pop(&s->holes))
        free(r);
}

void driver_close(struct arena *a)
{
    close_level(&a->fine);
    close_level(&a->coarse);
    close_space(&a->high);
    close_space(&a->low);
}
