/* state.h - the state of the torch policy, shared by its files. Private to
 * policies/torch/.
 *
 *   torch.c          requests: round, search, split, merge
 *   torch_segments.c memory: segments, garbage collection, releases, retries
 *   torch_expand.c   memory: expandable segments
 *   torch_blocks.c   where blocks and spaces come from
 *   torch_observe.c  counters and snapshots for validation
 *   check.c          whether the invariants hold
 *
 * Words are PyTorch's. A *space* is one of PyTorch's pools as one stream sees
 * it: no search and no merge ever leaves it, so each has a free set of its own.
 *
 * Invariants, checked by torch_check:
 *   - the blocks of a segment tile it, linked by prev and next in address
 * order;
 *   - no two neighbours that are both free are both mapped or both unmapped;
 *   - a block is in its space's free set iff it is mapped and not used, and in
 *     the list of holes iff it is not mapped.
 */
#ifndef FRAG_POLICIES_TORCH_STATE_H
#define FRAG_POLICIES_TORCH_STATE_H

#include "policies/mechanism/check.h"
#include "policies/mechanism/free_set.h"
#include "policies/torch/conf.h"
#include "policies/torch/torch.h"

/* 64 bytes, one cache line. A spare block has size 0. */
struct torch_block {
    struct free_node node; /* addr, size; its links are those of the free set,
                              or of the list of holes */
    struct torch_block *prev, *next; /* in the segment; NULL at its ends */
    frag_size requested; /* last size asked of this object; 0: never asked;
                            UINT64_MAX: not known */
    uint32_t born;       /* the pool's search count when it entered the free
                            set; its age is the count since */
    uint16_t space;      /* index in torch->spaces */
    bool used : 1;       /* allocated, or pending */
    bool pending : 1;    /* freed, but queued work still uses it */
    bool mapped : 1;     /* false: address space without memory */
    bool expandable : 1; /* part of an expandable segment */
};

/* The address space of one expandable segment. */
struct torch_reservation {
    struct torch_reservation *next; /* of the same space */
    frag_addr addr;
    frag_size size;   /* whole pages */
    frag_phys *pages; /* [size / page]: the memory behind each; 0: none */
};

struct torch_space {
    struct free_set free;
    struct free_node *holes; /* unmapped blocks, by address, through right */
    struct torch_reservation *reservations;
    uint32_t *searches; /* get_free_blocks_call_count of the pool: shared by its
                           streams */
    frag_size page;     /* of its expandable segments */
    frag_stream stream;
    frag_pool pool;
    bool is_small;
    uint16_t index; /* in torch->spaces */
};

enum { TORCH_LARGE, TORCH_SMALL, TORCH_SIZES };

/* The two pools of one pool id, by size; their spaces by stream, NULL where
 * the stream has not asked. */
struct torch_pool {
    struct torch_space **space[TORCH_SIZES];
    uint32_t *searches; /* [TORCH_SIZES] */
    uint32_t streams;
};

struct torch {
    struct torch_conf conf;
    frag_size limit;      /* FRAG_UNLIMITED if none */
    frag_size reserved;   /* ordinary segments and mapped bytes, all pools */
    bool counts_searches; /* a limit is set and garbage collection is on */

    struct torch_pool *pools;
    uint32_t pool_count;
    struct torch_space **spaces;
    uint32_t space_count;
    uint64_t space_room;

    struct torch_block *spare; /* linked by next */
    uint64_t spare_count, block_count;
    struct torch_slab *slabs;

    struct frag_torch_observer *observer; /* NULL: nothing is counted */
};

static inline struct torch_block *torch_block_of(const struct free_node *node)
{
    return (struct torch_block *)(uintptr_t)node; /* its first member */
}

static inline bool torch_is_split(const struct torch_block *b)
{
    return b->prev || b->next;
}

/* ---- torch_blocks.c ---- */

/* More spare blocks. NOMEM, and nothing changed. */
enum frag_err torch_add_slab(struct torch *t, uint64_t count);

/* Makes sure that everything one call may need can be taken without malloc. An
 * unmap cuts a block in three, and every block there is may be unmapped in one
 * release; nothing else needs more than the margin. */
static inline enum frag_err torch_reserve(struct torch *t)
{
    enum { MARGIN = 8, MORE = 244 };
    uint64_t needed = MARGIN;

    if (t->conf.expandable_segments)
        needed += 2 * t->block_count;
    if (t->spare_count >= needed)
        return FRAG_OK;
    return torch_add_slab(t, needed + MORE);
}

struct torch_block *torch_take_block(struct torch *t);
void torch_drop_block(struct torch *t, struct torch_block *b);

/* The first and the next block of those in use, in no useful order. */
struct torch_block *torch_first_block(const struct torch *t);
struct torch_block *torch_next_block(const struct torch *t,
                                     const struct torch_block *b);

enum frag_err torch_make_space(struct torch *t, frag_pool pool, bool is_small,
                               frag_stream stream, struct torch_space **out);

/* The space of a pool, size and stream, made if it is new. NOMEM. */
static inline enum frag_err torch_space(struct torch *t, frag_pool pool,
                                        bool is_small, frag_stream stream,
                                        struct torch_space **out)
{
    if (pool < t->pool_count && stream < t->pools[pool].streams) {
        *out = t->pools[pool].space[is_small][stream];
        if (*out)
            return FRAG_OK;
    }
    return torch_make_space(t, pool, is_small, stream, out);
}

void torch_blocks_fini(struct torch *t);

/* Into the free set, as young as can be. */
void torch_give(struct torch *t, struct torch_block *b);
/* dst takes src, a neighbour, over; 0 bytes if it may not. */
frag_size torch_merge(struct torch *t, struct torch_block *dst,
                      struct torch_block *src);
/* Out of the list of holes of its space. */
void torch_hole_remove(struct torch_space *space, struct torch_block *b);
/* A fresh block of `size` bytes is cut off b's low or high end and linked. */
struct torch_block *torch_cut_low(struct torch *t, struct torch_block *b,
                                  frag_size size);
struct torch_block *torch_cut_high(struct torch *t, struct torch_block *b,
                                   frag_size size);

/* ---- torch_segments.c ---- */

/* A block of at least `size` rounded bytes from new memory, in no free set:
 * the whole chain from garbage collection to the last retry. OOM. */
enum frag_err torch_grow(struct frag_heap *heap, struct torch_space *space,
                         frag_size size, struct torch_block **out);
/* empty_cache. */
void torch_release_cached(struct frag_heap *heap);
void torch_segments_fini(struct frag_heap *heap);

/* ---- torch_expand.c ---- */

enum frag_err torch_expand(struct frag_heap *heap, struct torch_space *space,
                           frag_size size, struct torch_block **out);
/* Gives the whole pages inside a free block back. */
void torch_unmap(struct frag_heap *heap, struct torch_space *space,
                 struct torch_block *b);
void torch_expand_fini(struct frag_heap *heap, struct torch_space *space);

/* ---- check.c ---- */

/* NULL, or what is broken. A device that refuses to take memory back leaves
 * pages behind holes, which the check takes for broken. */
const char *torch_check(const struct frag_heap *heap);

/* ---- torch_observe.c: none of them is called without an observer ---- */

void torch_count_up(struct torch *t, enum frag_torch_stat stat, bool is_small,
                    uint64_t by);
void torch_count_down(struct torch *t, enum frag_torch_stat stat, bool is_small,
                      uint64_t by);
void torch_count_handed_out(struct torch *t, const struct torch_space *space,
                            const struct torch_block *b);
void torch_count_free_requested(struct torch *t,
                                const struct torch_space *space,
                                const struct torch_block *b);
void torch_count_segment(struct torch *t, const struct torch_space *space,
                         enum frag_torch_action action, frag_addr addr,
                         frag_size size);

#endif
