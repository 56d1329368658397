/* vma_block.h - one block of vma: TLSF over the bytes of a segment.
 *
 * Free pieces are in lists by size: the octave, cut into 32 parts; the first
 * list is for up to 256 bytes. The last freed of a list comes first. The end of
 * the block that was never handed out, or has come back to it, is in no list:
 * `rest`, always there, of size 0 at times.
 *
 * Sizes and addresses are multiples of 256, so alignment is never at stake.
 */
#ifndef FRAG_VMA_BLOCK_H
#define FRAG_VMA_BLOCK_H

#include "policies/mechanism/nodes.h"

enum vma_strategy {
    VMA_DEFAULT,
    VMA_MIN_MEMORY,
    VMA_MIN_TIME,
    VMA_MIN_OFFSET,
};

struct vma_piece {
    frag_addr addr;
    frag_size size;
    struct vma_piece *below, *above; /* neighbours by address, NULL at ends */
    struct vma_piece *prev, *next;   /* in a list */
    struct vma_block *block;         /* NULL: memory of its own */
    bool used;
};

enum { VMA_OCTAVES = 57, VMA_PARTS = 32 };

struct vma_block {
    frag_addr addr;
    frag_size size;
    frag_size free;         /* bytes, those of rest included */
    struct vma_piece *rest; /* the topmost piece */
    uint64_t octaves;       /* bit o: parts[o] is not 0 */
    uint32_t parts[VMA_OCTAVES];
    struct vma_piece
        *lists[VMA_OCTAVES * VMA_PARTS]; /* as many as size needs */
};

/* Bytes of the record of a block of that size. */
size_t vma_block_bytes(frag_size size);

/* All of the block is the rest, a record of which is taken from nodes. */
void vma_block_init(struct vma_block *block, struct nodes *nodes,
                    frag_addr addr, frag_size size);

/* The piece that a request gets, still free; NULL if none is large enough. */
struct vma_piece *vma_block_find(const struct vma_block *block, frag_size size,
                                 enum vma_strategy strategy);

/* Uses a piece, cut to size, its low part. Takes at most one record. */
void vma_block_take(struct vma_block *block, struct nodes *nodes,
                    struct vma_piece *piece, frag_size size);

/* Frees a piece and merges it with its free neighbours. */
void vma_block_give(struct vma_block *block, struct nodes *nodes,
                    struct vma_piece *piece);

static inline bool vma_block_is_empty(const struct vma_block *block)
{
    return block->free == block->size;
}

#endif
