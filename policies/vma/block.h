/* block.h - one block of vma: TLSF over the bytes of a segment.
 *
 * Free pieces are in lists by size: the octave, cut into 32 parts; the first
 * list is for up to 256 bytes. The last freed of a list comes first. The end of
 * the block that was never handed out, or has come back to it, is in no list:
 * `rest`, always there, of size 0 at times. Where the strategy asks for the
 * lowest piece, all are in one tree by address instead of the lists.
 *
 * Sizes and addresses are multiples of 256, so alignment is never at stake.
 *
 * Invariants, checked by vma_block_check: the pieces of a block tile it, `rest`
 * is the topmost; no two neighbours are both free; a piece is in the lists or
 * the tree iff it is free and not the rest; the bitmaps say which lists have
 * pieces.
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

/* In use it links to itself on the left, which no tree does; lists use
 * `equal`. */
struct vma_piece {
    struct hole hole;                /* size and addr; links while it is free */
    struct vma_piece *below, *above; /* neighbours by address, NULL at ends */
    struct vma_block *block;         /* NULL: memory of its own */
};

enum { VMA_OCTAVES = 57, VMA_PARTS = 32 };

struct vma_block {
    frag_addr addr;
    frag_size size;
    frag_size free;             /* bytes, those of rest included */
    struct vma_piece *rest;     /* the topmost piece */
    enum vma_strategy strategy; /* of the search */
    struct hole *holes;         /* the tree by address */
    uint64_t octaves;           /* bit o: parts[o] is not 0 */
    uint32_t parts[VMA_OCTAVES];
    struct hole *lists[VMA_OCTAVES * VMA_PARTS]; /* as many as size needs */
};

/* A list of pieces, the last pushed first. */
static inline void vma_push(struct hole **list, struct hole *hole)
{
    hole->equal[0] = NULL;
    hole->equal[1] = *list;
    if (*list)
        (*list)->equal[0] = hole;
    *list = hole;
}

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

/* Bytes of the record of a block of that size. */
size_t vma_block_bytes(frag_size size);

/* All of the block is the rest, a record of which is taken from nodes. */
void vma_block_init(struct vma_block *block, struct nodes *nodes,
                    frag_addr addr, frag_size size, enum vma_strategy strategy);

/* The piece that a request gets, still free; NULL if none is large enough. */
struct vma_piece *vma_block_find(const struct vma_block *block, frag_size size);

/* Uses a piece, cut to size, its low part. Takes at most one record. */
void vma_block_take(struct vma_block *block, struct nodes *nodes,
                    struct vma_piece *piece, frag_size size);

/* Frees a piece and merges it with its free neighbours. */
void vma_block_give(struct vma_block *block, struct nodes *nodes,
                    struct vma_piece *piece);

/* NULL, or what is broken. */
const char *vma_block_check(const struct vma_block *block);

/* The same of all blocks of the vma policy. */
const char *vma_check(const struct frag_heap *heap);

static inline bool vma_block_is_empty(const struct vma_block *block)
{
    return block->free == block->size;
}

#endif
