/* torch_state.h - the state of the torch policy, shared by its files.
 * Private to policies/torch/.
 *
 *   torch.c           requests: rounding, search, split, merge
 *   torch_segments.c  memory: segments, garbage collection, releases, retries
 *   expand.c          memory: expandable segments
 *   torch_blocks.c    storage of blocks and spaces; split and merge of blocks
 *   torch_conf.c      PyTorch's settings
 *   observe.c         counters and snapshots for validation
 *   torch_check.c     the check of the invariants below
 *
 * The words are PyTorch's, with two additions. A *space* is the part of one of
 * PyTorch's pools that belongs to one stream. No search and no merge crosses
 * spaces, so each space has its own free set. A *hole* is an unmapped block of
 * an expandable segment.
 *
 * Invariants, checked by torch_check:
 *   - the blocks of a segment tile it; prev and next link them in address
 *     order; at its ends they lead to torch->edge, which is in use and merges
 *     with no block;
 *   - of two neighbours that are not in use, one is free and the other a hole;
 *   - a block is in its space's free set if and only if it is free; it is in
 *     the list of holes if and only if it is a hole.
 */
#ifndef FRAG_POLICIES_TORCH_TORCH_STATE_H
#define FRAG_POLICIES_TORCH_TORCH_STATE_H

#include <assert.h>

#include "policies/mechanism/check.h"
#include "policies/mechanism/free_set.h"
#include "policies/mechanism/phys_table.h"
#include "policies/torch/torch.h"
#include "policies/torch/torch_conf.h"

enum torch_use {
    TORCH_FREE,
    TORCH_HOLE, /* address space without memory */
    TORCH_USED,
    TORCH_PENDING, /* freed, but queued work still uses it */
};

/* 64 bytes, which is one cache line. A spare block (an unused record) and the
 * edge have size 0. */
struct torch_block {
    struct free_node node; /* addr and size; its links belong to the free set
                              or to the list of holes */
    struct torch_block *prev, *next; /* neighbours in the segment; the edge at
                                        its ends */
    frag_size requested; /* the last requested size of this record, in bytes; 0:
                            never requested; UINT64_MAX: unknown */
    uint32_t born;       /* the pool's search count when the block entered the
                            free set; its age is the searches since then */
    uint16_t space;      /* index in torch->spaces */
    uint8_t use;         /* enum torch_use */
    bool expandable;     /* belongs to an expandable segment */
};

/* A slab of blocks, with the rank of each (torch_rank) outside of its cache
 * line, since only ties between equal sizes need it. Slabs lie at multiples of
 * their size. */
enum { TORCH_SLAB_BYTES = 1 << 16, TORCH_SLAB_BLOCKS = 908 };

struct torch_slab {
    struct torch_slab *next;
    uint64_t ranks[TORCH_SLAB_BLOCKS];
    _Alignas(64) struct torch_block blocks[TORCH_SLAB_BLOCKS];
};

/* The rank of a block among free blocks of equal size, from PyTorch 2.12 on
 * (versions.h): the number of its segment, or, in 2.12, of its record. */
static inline uint64_t *torch_rank(const struct torch_block *b)
{
    struct torch_slab *slab =
        (struct torch_slab *)((uintptr_t)b &
                              ~(uintptr_t)(TORCH_SLAB_BYTES - 1));

    return &slab->ranks[b - slab->blocks];
}

#define TORCH_HELD UINT64_MAX

/* The address space of one expandable segment. */
struct torch_reservation {
    struct torch_reservation *next; /* the next one of the same space */
    frag_addr addr;
    frag_size size;          /* whole pages */
    frag_size page;          /* bytes */
    struct phys_table pages; /* the memory of each page; 0: none; TORCH_HELD:
                                adopted, its unmap frees the memory */
    bool refused; /* the device refused to take back memory that is no longer
                     mapped, or the addresses */
};

struct torch_space {
    struct free_set free;
    struct free_node *holes; /* unmapped blocks, by address, through right */
    struct torch_reservation *reservations;
    uint32_t *searches; /* get_free_blocks_call_count of the pool, which all
                           streams of the pool share */
    frag_size page;     /* page size of its next expandable segment, in bytes */
    frag_stream stream;
    frag_pool pool;
    bool is_small;
    bool whole;     /* blocks are not split: FRAG_POOL_WHOLE */
    uint16_t index; /* in torch->spaces */
};

enum { TORCH_LARGE, TORCH_SMALL, TORCH_SIZES };

/* The large and the small pool of one pool id. */
struct torch_pool {
    struct torch_space **space[TORCH_SIZES]; /* by stream; NULL: no request of
                                                that stream yet */
    uint32_t *searches;                      /* [TORCH_SIZES] */
    uint32_t streams; /* entries of space[0] and of space[1] */
    unsigned facts;   /* enum frag_pool_fact */
    uint64_t order;   /* among pools that have ended */
};

/* The spaces of one pool id and stream; NULL: not known yet. */
struct torch_lane {
    frag_stream stream;
    frag_pool pool;
    struct torch_space *space[TORCH_SIZES];
};

struct torch {
    struct torch_conf conf;
    frag_size limit;    /* of the settings, in bytes; FRAG_UNLIMITED: none */
    frag_size reserved; /* bytes of ordinary segments and of mapped pages, of
                           all pools */
    bool rejected; /* throw_on_cudamalloc_oom has refused the current request */
    struct torch_conf *first; /* the parameters, once they have changed */
    bool counts_searches;     /* a limit is set and garbage collection is on */
    bool unmaps;              /* there may be expandable segments */
    bool ranks_blocks, ranks_segments; /* torch_rank is in use */
    uint64_t ranked;                   /* ranks given so far */

    struct torch_lane latest; /* of the latest request: most have the same */
    struct torch_pool *pools;
    uint32_t pool_count;
    struct torch_space **spaces;
    uint32_t space_count;
    uint64_t space_room;

    struct torch_block *spare;          /* linked by next */
    uint64_t spare_count, record_count; /* the rest of the records are blocks */
    struct torch_slab *slabs;

    struct frag_torch_observer *observer; /* NULL: nothing is counted */

    struct torch_block edge; /* stands for the missing neighbours of all first
                                and last blocks; its links have no meaning */
};

static inline struct torch_block *torch_block_of(const struct free_node *node)
{
    return (struct torch_block *)(uintptr_t)node; /* its first member */
}

/* Whether the walk over the blocks of a segment has left the segment. */
static inline bool torch_is_edge(const struct torch_block *b)
{
    return !b->node.size;
}

static inline bool torch_is_used(const struct torch_block *b)
{
    return b->use == TORCH_USED || b->use == TORCH_PENDING;
}

static inline bool torch_is_split(const struct torch_block *b)
{
    return !torch_is_edge(b->prev) || !torch_is_edge(b->next);
}

/* Whether a block is a whole ordinary segment. */
static inline bool torch_is_segment(const struct torch_block *b)
{
    return !torch_is_split(b) && !b->expandable;
}

/* The page size of new expandable segments of a pool. */
static inline frag_size torch_page(const struct torch *t, bool is_small)
{
    return is_small || t->conf.experiments & TORCH_SMALL_PAGES
               ? TORCH_SMALL_SEGMENT
               : t->conf.large_segment;
}

/* ---- torch_blocks.c ---- */

/* Makes sure that there are `count` spare blocks. NOMEM. */
enum frag_err torch_add_spare(struct torch *t, uint64_t count);

/* Makes sure that one call of the policy has enough spare blocks, so that it
 * needs no malloc. An unmap splits a block into three, and one release may
 * unmap every block; nothing else needs more than MARGIN. NOMEM. */
static inline enum frag_err torch_reserve(struct torch *t)
{
    enum { MARGIN = 8 };
    uint64_t needed = MARGIN;

    if (t->unmaps)
        needed += 2 * (t->record_count - t->spare_count);
    if (t->spare_count >= needed)
        return FRAG_OK;
    return torch_add_spare(t, needed);
}

/* Allocates a block from the spare ones, of which there must be one. The block
 * is in no segment; its contents are arbitrary. */
static inline struct torch_block *torch_new_block(struct torch *t)
{
    struct torch_block *b = t->spare;

    assert(b);
    t->spare = b->next;
    t->spare_count--;
    if (t->ranks_blocks | t->ranks_segments)
        *torch_rank(b) = ++t->ranked;
    return b;
}

/* Returns a block that is in no segment to the spare ones. */
static inline void torch_drop_block(struct torch *t, struct torch_block *b)
{
    b->node.size = 0;
    b->next = t->spare;
    t->spare = b;
    t->spare_count++;
}

/* A walk over all blocks, in no defined order; spare blocks are skipped. */
struct torch_walk {
    const struct torch_slab *slab;
    uint64_t at; /* record of the slab that comes next */
};

/* The next block of a walk, which begins as {t->slabs, 0}. NULL at the end. */
struct torch_block *torch_walk_next(struct torch_walk *w);

/* Makes sure that there are `count` pools. NOMEM. */
enum frag_err torch_add_pools(struct torch *t, uint32_t count);

/* As torch_space, but the latest request had another pool or stream, or no
 * space of this size was known. */
enum frag_err torch_change_lane(struct torch *t, frag_pool pool, bool is_small,
                                frag_stream stream, struct torch_space **out);

/* Finds the space of a pool, size and stream, or creates it. NOMEM; UNSUPPORTED
 * if there are UINT16_MAX spaces. */
static inline enum frag_err torch_space(struct torch *t, frag_pool pool,
                                        bool is_small, frag_stream stream,
                                        struct torch_space **out)
{
    *out = t->latest.space[is_small];
    if (*out && pool == t->latest.pool && stream == t->latest.stream)
        return FRAG_OK;
    return torch_change_lane(t, pool, is_small, stream, out);
}

void torch_blocks_fini(struct torch *t);

/* Inserts a block into the free set of its space. Its age restarts at 0. */
FREE_STEP void torch_add_free(struct torch_space *space, struct torch_block *b)
{
    b->born = *space->searches;
    free_set_insert(&space->free, &b->node);
}

/* Removes a block from the list of holes of its space. */
void torch_hole_remove(struct torch_space *space, struct torch_block *b);

/* Whether a block that is not used merges with its neighbour `other`. */
static inline bool torch_merges(const struct torch_block *b,
                                const struct torch_block *other)
{
    return other->use == b->use;
}

/* Adds the bytes of src, a neighbour that dst merges with and that is no longer
 * linked, to dst. Returns their number. */
static inline frag_size torch_absorb(struct torch *t, struct torch_space *space,
                                     struct torch_block *dst,
                                     struct torch_block *src)
{
    const frag_size size = src->node.size;

    if (src->use == TORCH_FREE)
        free_set_remove(&space->free, &src->node);
    else
        torch_hole_remove(space, src);
    dst->node.size += size;
    torch_drop_block(t, src);
    return size;
}

struct torch_merged {
    frag_size bytes;
    unsigned count; /* of neighbours */
};

/* Merges a free block or a hole, which is in no free set or list, with its
 * neighbours on both sides, where they are of the same kind. Returns what the
 * block gained. */
static inline struct torch_merged
torch_merge(struct torch *t, struct torch_space *space, struct torch_block *b)
{
    struct torch_block *low = b->prev, *high = b->next;
    struct torch_merged gain = {0};

    if (torch_merges(b, low)) {
        b->node.addr = low->node.addr;
        b->prev = low->prev;
        b->prev->next = b;
        gain.bytes += torch_absorb(t, space, b, low);
        gain.count++;
    }
    if (torch_merges(b, high)) {
        b->next = high->next;
        b->next->prev = b;
        gain.bytes += torch_absorb(t, space, b, high);
        gain.count++;
    }
    return gain;
}

/* A new neighbour of b of `size` bytes at `addr`, in no free set and not linked
 * yet; 0 < size < b's size. b is not in use. */
static inline struct torch_block *torch_new_part(struct torch *t,
                                                 const struct torch_block *b,
                                                 frag_addr addr, frag_size size)
{
    struct torch_block *part = torch_new_block(t);

    assert(size > 0 && size < b->node.size && !torch_is_used(b));
    part->node.addr = addr;
    part->node.size = size;
    part->requested = 0;
    part->space = b->space;
    part->use = b->use;
    part->expandable = b->expandable;
    if (t->ranks_segments)
        *torch_rank(part) = *torch_rank(b);
    return part;
}

/* Splits `size` bytes off the low or the high end of b. The result is a new
 * block, linked as b's neighbour and in no free set; 0 < size < b's size. */
static inline struct torch_block *
torch_split_low(struct torch *t, struct torch_block *b, frag_size size)
{
    struct torch_block *low = torch_new_part(t, b, b->node.addr, size);

    low->prev = b->prev;
    low->next = b;
    low->prev->next = low;
    b->prev = low;
    b->node.addr += size;
    b->node.size -= size;
    return low;
}
struct torch_block *torch_split_high(struct torch *t, struct torch_block *b,
                                     frag_size size);

/* ---- torch_segments.c ---- */

/* The limit, of the settings or of the program, that starts garbage collection;
 * FRAG_UNLIMITED: nothing is collected. */
frag_size torch_limit_collected(const struct torch *t,
                                struct frag_backend *mem);

/* Finds a free block in a space, and removes it from the free set. */
typedef struct torch_block *torch_search_fn(const struct torch *t,
                                            struct torch_space *space,
                                            frag_size size);

/* Obtains a block of at least `size` rounded bytes from new memory, by the
 * whole chain from garbage collection to the last retry, before which `search`
 * is called under TORCH_PR_191302. The block is in no free set. OOM, DEVICE,
 * NOMEM. */
enum frag_err torch_grow(struct frag_heap *heap, struct torch_space *space,
                         frag_size size, torch_search_fn *search,
                         struct torch_block **out);
/* empty_cache: returns all free memory of the default pools, and of private
 * pools that have ended, to the device. */
void torch_release_cached(struct frag_heap *heap);
/* See struct frag_policy. */
enum frag_err torch_hear(struct frag_heap *heap,
                         const struct frag_heard *heard);
/* Whether that much more memory would exceed the limit of the settings or that
 * of the program. */
static inline bool torch_exceeds_limit(const struct torch *t,
                                       struct frag_backend *mem,
                                       frag_size segment)
{
    const frag_size sum = t->reserved + segment;

    return sum > t->limit || !frag_backend_admits(mem, sum);
}
/* Returns everything to the device, live blocks included. */
void torch_segments_fini(struct frag_heap *heap);

/* ---- expand.c ---- */

/* Maps memory for a block of at least `size` rounded bytes, which is in no free
 * set. Blocks mapped before a failure stay mapped and free. OOM, DEVICE, NOMEM.
 */
enum frag_err torch_expand(struct frag_heap *heap, struct torch_space *space,
                           frag_size size, struct torch_block **out);
/* Adopts a segment of an expandable segment: makes one mapped block of it, in
 * no free set. Of all blocks, only the first segment of a reservation adds its
 * unmapped rest. UNSUPPORTED if the pages of the space do not fit; NOMEM. */
enum frag_err torch_expand_adopt(struct torch *t, struct torch_space *space,
                                 const struct frag_held_segment *held,
                                 struct torch_block **out);
/* Unmaps the whole pages inside a free block and returns their memory to the
 * device. Drops the reservation if nothing of it is mapped any more. */
void torch_unmap(struct frag_heap *heap, struct torch_space *space,
                 struct torch_block *b);
/* Repeats the releases of memory and addresses that the device refused after
 * their unmap. */
void torch_repeat_releases(struct frag_heap *heap, struct torch_space *space);
/* Returns all pages and reservations of a space, live blocks included. */
void torch_expand_fini(struct frag_heap *heap, struct torch_space *space);

/* ---- torch_check.c ---- */

/* Returns NULL, or a text that names the broken invariant. If the device fails
 * to release memory, holes keep pages, and the check reports that as broken. */
const char *torch_check(const struct frag_heap *heap);

/* ---- observe.c: call these only if t->observer is set ---- */

/* Adds `by` to a statistic, or subtracts it, for all pools and for the small or
 * large ones. */
void torch_count_up(struct torch *t, enum frag_torch_stat stat, bool is_small,
                    uint64_t by);
/* Counts reserved bytes, also of their pool. */
void torch_count_reserved(struct torch *t, frag_pool pool, bool is_small,
                          frag_size size, bool is_up);
void torch_count_down(struct torch *t, enum frag_torch_stat stat, bool is_small,
                      uint64_t by);
/* b is now allocated, with b->requested set. */
void torch_count_handed_out(struct torch *t, const struct torch_space *space,
                            const struct torch_block *b);
/* The program has freed b; queued work may still use it. */
void torch_count_free_requested(struct torch *t,
                                const struct torch_space *space,
                                const struct torch_block *b);
/* Counts a segment action and reports it to observer->action. */
void torch_count_segment(struct torch *t, const struct torch_space *space,
                         enum frag_torch_action action, frag_addr addr,
                         frag_size size);

#endif
