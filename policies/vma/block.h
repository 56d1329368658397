/* block.h - one block of the vma policy: TLSF (two-level segregated fit) over
 * the bytes of a segment. Private to policies/vma/.
 *
 * A block is divided into chunks, used or free. Free chunks are in lists by
 * size: each octave (a power of two) is divided into VMA_PARTS ranges of sizes,
 * and the first list is for sizes up to 256 bytes. In each list the chunk that
 * was inserted last comes first. The chunk at the end of the block, `rest`, is
 * in no list. It is always there and always free, and its size may be 0. With
 * strategy min_offset, which selects the lowest chunk, all free chunks but the
 * rest are in one tree by address instead of the lists.
 *
 * Sizes and addresses are multiples of 256, so every chunk is aligned.
 *
 * Invariants, checked by vma_block_check:
 *   - the chunks of a block tile it, and `rest` is the topmost;
 *   - no two neighbours are both free;
 *   - a chunk is in the lists or the tree if and only if it is free and is not
 *     the rest;
 *   - the bitmaps say which lists have chunks.
 */
#ifndef FRAG_POLICIES_VMA_BLOCK_H
#define FRAG_POLICIES_VMA_BLOCK_H

#include "policies/mechanism/holes.h"
#include "policies/mechanism/nodes.h"
#include "policies/policy.h"

enum vma_strategy {
    VMA_DEFAULT,
    VMA_MIN_MEMORY,
    VMA_MIN_TIME,
    VMA_MIN_OFFSET,
};

/* A range of a block, or a dedicated segment. The left link of a used chunk
 * points to the chunk itself, which no tree does. Lists use the links `equal`.
 */
struct vma_chunk {
    struct hole hole; /* size and addr; links while the chunk is free */
    struct vma_chunk *below,
        *above;              /* neighbours by address; NULL at the ends */
    struct vma_block *block; /* NULL: dedicated memory */
};

enum { VMA_OCTAVES = 57, VMA_PARTS = 32 };

struct vma_block {
    frag_addr addr;
    frag_size size;
    frag_size free;              /* free bytes, the rest included */
    frag_size most;              /* no free chunk is larger */
    size_t place;                /* the policy's: see vma_order.h */
    struct vma_chunk *rest;      /* the topmost chunk, always free */
    enum vma_strategy strategy;  /* how vma_block_find searches */
    struct hole *holes;          /* with min_offset: the tree by address */
    uint64_t octaves;            /* bit o: parts[o] is not 0 */
    uint32_t parts[VMA_OCTAVES]; /* bit k: list k of the octave has chunks */
    struct hole *lists[VMA_OCTAVES * VMA_PARTS]; /* as many as `size` needs */
};

/* Inserts a hole at the front of a list. */
static inline void vma_push(struct hole **list, struct hole *hole)
{
    hole->equal[0] = NULL;
    hole->equal[1] = *list;
    if (*list)
        (*list)->equal[0] = hole;
    *list = hole;
}

/* Removes a hole from its list. */
static inline void vma_drop(struct hole **list, const struct hole *hole)
{
    struct hole *before = hole->equal[0], *after = hole->equal[1];

    if (before)
        before->equal[1] = after;
    else
        *list = after;
    if (after)
        after->equal[0] = before;
}

/* Bytes of the struct vma_block of a block of `size` bytes. */
size_t vma_block_bytes(frag_size size);

/* Initializes a block that consists of its rest only. Uses one record of
 * `nodes`. */
void vma_block_init(struct vma_block *block, struct nodes *nodes,
                    frag_addr addr, frag_size size, enum vma_strategy strategy);

/* Finds the chunk for a request, and leaves it free; NULL if none is large
 * enough. */
struct vma_chunk *vma_block_find(const struct vma_block *block, frag_size size);

/* Marks the low `size` bytes of a chunk as used and splits off the others. Uses
 * at most one record of `nodes`. */
void vma_block_alloc(struct vma_block *block, struct nodes *nodes,
                     struct vma_chunk *chunk, frag_size size);

/* Frees a chunk and merges it with its free neighbours. */
void vma_block_free(struct vma_block *block, struct nodes *nodes,
                    struct vma_chunk *chunk);

/* Returns NULL, or a text that names the broken invariant. */
const char *vma_block_check(const struct vma_block *block);

/* Likewise for all blocks of a heap of the vma policy. Defined in vma.c. */
const char *vma_check(const struct frag_heap *heap);

static inline bool vma_block_is_empty(const struct vma_block *block)
{
    return block->free == block->size;
}

#endif
