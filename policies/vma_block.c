#include "policies/vma_block.h"

#include <string.h>

enum { SMALL = 256, PART_BITS = 5 };

/* Octave 0 is for small sizes and uses one list; octave o from 1 up has the
 * larger ones from 2^(o + 7). */
static unsigned list_of(frag_size size)
{
    unsigned top, octave;

    if (size <= SMALL)
        return 0;
    top = 63 - (unsigned)__builtin_clzll(size);
    octave = top - 7;
    return octave * VMA_PARTS +
           ((unsigned)(size >> (top - PART_BITS)) & (VMA_PARTS - 1));
}

size_t vma_block_bytes(frag_size size)
{
    return offsetof(struct vma_block, lists) +
           (list_of(size) + 1) * sizeof(struct vma_piece *);
}

void vma_block_init(struct vma_block *block, struct nodes *nodes,
                    frag_addr addr, frag_size size)
{
    memset(block, 0, vma_block_bytes(size));
    block->addr = addr;
    block->size = block->free = size;
    block->rest = nodes_take(nodes);
    *block->rest =
        (struct vma_piece){.addr = addr, .size = size, .block = block};
}

static void enlist(struct vma_block *block, struct vma_piece *piece)
{
    const unsigned list = list_of(piece->size);

    piece->prev = NULL;
    piece->next = block->lists[list];
    if (piece->next)
        piece->next->prev = piece;
    block->lists[list] = piece;
    block->octaves |= (uint64_t)1 << (list / VMA_PARTS);
    block->parts[list / VMA_PARTS] |= (uint32_t)1 << (list % VMA_PARTS);
}

static void delist(struct vma_block *block, const struct vma_piece *piece)
{
    const unsigned list = list_of(piece->size), octave = list / VMA_PARTS;

    if (piece->next)
        piece->next->prev = piece->prev;
    if (piece->prev) {
        piece->prev->next = piece->next;
        return;
    }
    block->lists[list] = piece->next;
    if (piece->next)
        return;
    block->parts[octave] &= ~((uint32_t)1 << (list % VMA_PARTS));
    if (!block->parts[octave])
        block->octaves &= ~((uint64_t)1 << octave);
}

/* The first piece of the lowest list in use from `list` up. */
static struct vma_piece *first_from(const struct vma_block *block,
                                    unsigned list)
{
    unsigned octave = list / VMA_PARTS;
    uint32_t parts =
        block->parts[octave] & (~(uint32_t)0 << (list % VMA_PARTS));

    if (!parts) {
        const uint64_t above = block->octaves & (~(uint64_t)1 << octave);

        if (!above)
            return NULL;
        octave = (unsigned)__builtin_ctzll(above);
        parts = block->parts[octave];
    }
    return block->lists[octave * VMA_PARTS + (unsigned)__builtin_ctz(parts)];
}

/* The first of a list that is large enough. */
static struct vma_piece *walk(struct vma_piece *piece, frag_size size)
{
    while (piece && piece->size < size)
        piece = piece->next;
    return piece;
}

/* The lowest free piece below the rest that is large enough. */
static struct vma_piece *lowest(const struct vma_block *block, frag_size size)
{
    struct vma_piece *best = NULL;

    for (struct vma_piece *p = block->rest->below; p; p = p->below)
        if (!p->used && p->size >= size)
            best = p;
    return best;
}

struct vma_piece *vma_block_find(const struct vma_block *block, frag_size size,
                                 enum vma_strategy strategy)
{
    struct vma_piece *rest = block->rest->size >= size ? block->rest : NULL;
    const unsigned list = list_of(size);
    struct vma_piece *found;

    if (size > block->free)
        return NULL;
    if (strategy == VMA_MIN_OFFSET) {
        found = lowest(block, size);
        return found ? found : rest;
    }
    if (strategy == VMA_MIN_MEMORY) {
        found = walk(first_from(block, list), size);
        if (found || rest)
            return found ? found : rest;
        return first_from(block, list + 1);
    }
    found = first_from(block, list + 1);
    if (found || rest)
        return found ? found : rest;
    return walk(first_from(block, list), size);
}

/* Cuts [addr + size, ...) off a piece, as its new neighbour above. */
static struct vma_piece *cut(struct nodes *nodes, struct vma_piece *piece,
                             frag_size size)
{
    struct vma_piece *above = nodes_take(nodes);

    *above = (struct vma_piece){.addr = piece->addr + size,
                                .size = piece->size - size,
                                .below = piece,
                                .above = piece->above,
                                .block = piece->block};
    if (piece->above)
        piece->above->below = above;
    piece->above = above;
    piece->size = size;
    return above;
}

void vma_block_take(struct vma_block *block, struct nodes *nodes,
                    struct vma_piece *piece, frag_size size)
{
    block->free -= size;
    piece->used = true;
    if (piece == block->rest) {
        block->rest = cut(nodes, piece, size);
        return;
    }
    delist(block, piece);
    if (piece->size > size)
        enlist(block, cut(nodes, piece, size));
}

/* Adds a piece to the one below it, which goes. */
static struct vma_piece *merge(struct nodes *nodes, struct vma_piece *low,
                               struct vma_piece *high)
{
    high->addr = low->addr;
    high->size += low->size;
    high->below = low->below;
    if (high->below)
        high->below->above = high;
    nodes_give(nodes, low);
    return high;
}

void vma_block_give(struct vma_block *block, struct nodes *nodes,
                    struct vma_piece *piece)
{
    block->free += piece->size;
    piece->used = false;
    if (piece->below && !piece->below->used) {
        delist(block, piece->below);
        piece = merge(nodes, piece->below, piece);
    }
    if (piece->above == block->rest) {
        merge(nodes, piece, block->rest);
        return;
    }
    if (!piece->above->used) {
        delist(block, piece->above);
        piece = merge(nodes, piece, piece->above);
    }
    enlist(block, piece);
}
