#include "policies/vma/block.h"

#include <assert.h>
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
           (list_of(size) + 1) * sizeof(struct hole *);
}

static bool is_used(const struct vma_piece *piece)
{
    return piece->hole.node.left == &piece->hole.node;
}

static void set_used(struct vma_piece *piece)
{
    piece->hole.node.left = &piece->hole.node;
}

void vma_block_init(struct vma_block *block, struct nodes *nodes,
                    frag_addr addr, frag_size size, enum vma_strategy strategy)
{
    memset(block, 0, vma_block_bytes(size));
    block->addr = addr;
    block->size = block->free = size;
    block->strategy = strategy;
    block->rest = nodes_take(nodes);
    *block->rest = (struct vma_piece){.hole.node = {.addr = addr, .size = size},
                                      .block = block};
}

/* ---- free pieces in lists by size, or in one tree ---- */

static void enlist(struct vma_block *block, struct vma_piece *piece)
{
    const unsigned list = list_of(piece->hole.node.size);

    piece->hole.node.left = NULL;
    if (block->strategy == VMA_MIN_OFFSET) {
        holes_insert(&block->holes, &piece->hole);
        return;
    }
    vma_push(&block->lists[list], &piece->hole);
    block->octaves |= (uint64_t)1 << (list / VMA_PARTS);
    block->parts[list / VMA_PARTS] |= (uint32_t)1 << (list % VMA_PARTS);
}

static void delist(struct vma_block *block, struct vma_piece *piece)
{
    const unsigned list = list_of(piece->hole.node.size);
    const unsigned octave = list / VMA_PARTS;

    if (block->strategy == VMA_MIN_OFFSET) {
        holes_remove(&block->holes, &piece->hole);
        return;
    }
    vma_drop(&block->lists[list], &piece->hole);
    if (block->lists[list])
        return;
    block->parts[octave] &= ~((uint32_t)1 << (list % VMA_PARTS));
    if (!block->parts[octave])
        block->octaves &= ~((uint64_t)1 << octave);
}

/* The first piece of the lowest list in use from `list` up. */
static struct hole *first_from(const struct vma_block *block, unsigned list)
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
static struct hole *walk(struct hole *hole, frag_size size)
{
    while (hole && hole->node.size < size)
        hole = hole->equal[1];
    return hole;
}

/* What each strategy looks for, the rest aside, before and after it. */
static struct hole *before_rest(const struct vma_block *block, frag_size size)
{
    switch (block->strategy) {
    case VMA_MIN_OFFSET:
        return holes_lowest(block->holes, size, 0);
    case VMA_MIN_MEMORY:
        return walk(first_from(block, list_of(size)), size);
    default:
        return first_from(block, list_of(size) + 1);
    }
}

static struct hole *after_rest(const struct vma_block *block, frag_size size)
{
    switch (block->strategy) {
    case VMA_MIN_OFFSET:
        return NULL;
    case VMA_MIN_MEMORY:
        return first_from(block, list_of(size) + 1);
    default:
        return walk(first_from(block, list_of(size)), size);
    }
}

struct vma_piece *vma_block_find(const struct vma_block *block, frag_size size)
{
    struct hole *found;

    if (size > block->free)
        return NULL;
    found = before_rest(block, size);
    if (!found && block->rest->hole.node.size >= size)
        return block->rest;
    return (struct vma_piece *)(found ? found : after_rest(block, size));
}

/* Cuts [addr + size, ...) off a piece, as its new neighbour above. */
static struct vma_piece *cut(struct nodes *nodes, struct vma_piece *piece,
                             frag_size size)
{
    struct vma_piece *above = nodes_take(nodes);

    *above =
        (struct vma_piece){.hole.node = {.addr = piece->hole.node.addr + size,
                                         .size = piece->hole.node.size - size},
                           .below = piece,
                           .above = piece->above,
                           .block = piece->block};
    if (piece->above)
        piece->above->below = above;
    piece->above = above;
    piece->hole.node.size = size;
    return above;
}

void vma_block_take(struct vma_block *block, struct nodes *nodes,
                    struct vma_piece *piece, frag_size size)
{
    assert(!is_used(piece) && size > 0 && size <= piece->hole.node.size);
    block->free -= size;
    if (piece == block->rest) {
        block->rest = cut(nodes, piece, size);
    } else {
        delist(block, piece);
        if (piece->hole.node.size > size)
            enlist(block, cut(nodes, piece, size));
    }
    set_used(piece);
}

/* Adds a piece to the one below it, which goes. */
static struct vma_piece *merge(struct nodes *nodes, struct vma_piece *low,
                               struct vma_piece *high)
{
    high->hole.node.addr = low->hole.node.addr;
    high->hole.node.size += low->hole.node.size;
    high->below = low->below;
    if (high->below)
        high->below->above = high;
    nodes_put(nodes, low);
    return high;
}

void vma_block_give(struct vma_block *block, struct nodes *nodes,
                    struct vma_piece *piece)
{
    assert(is_used(piece) && piece->block == block);
    block->free += piece->hole.node.size;
    if (piece->below && !is_used(piece->below)) {
        delist(block, piece->below);
        piece = merge(nodes, piece->below, piece);
    }
    if (piece->above == block->rest) {
        merge(nodes, piece, block->rest);
        return;
    }
    if (!is_used(piece->above)) {
        delist(block, piece->above);
        piece = merge(nodes, piece, piece->above);
    }
    enlist(block, piece);
}

/* ---- the check ---- */

/* The largest size of a list. */
static frag_size most_of(unsigned list)
{
    const unsigned octave = list / VMA_PARTS, part = list % VMA_PARTS;

    if (octave == 0)
        return SMALL;
    return ((frag_size)(VMA_PARTS + part + 1) << (octave + 2)) - 1;
}

static const char *check_list(const struct vma_block *block, unsigned list,
                              struct met *met)
{
    const unsigned octave = list / VMA_PARTS;
    const bool is_marked = block->octaves >> octave & 1 &&
                           block->parts[octave] >> (list % VMA_PARTS) & 1;
    const struct hole *before = NULL;

    CHECK((block->octaves >> octave & 1) == (block->parts[octave] != 0),
          "the bitmap does not say which octaves have pieces");
    CHECK(is_marked == (block->lists[list] != NULL),
          "the bitmaps do not say which lists have pieces");
    for (const struct hole *h = block->lists[list]; h; h = h->equal[1]) {
        CHECK(met_add(met, h, NULL), "a list has more pieces than are free");
        CHECK(h->equal[0] == before, "a piece does not know its neighbour");
        CHECK(h->node.size <= most_of(list) &&
                  (list == 0 || h->node.size > most_of(list - 1) ||
                   list == VMA_PARTS),
              "a piece is not in the list of its size");
        before = h;
    }
    return NULL;
}

/* Adds the free pieces but the rest to `met`; *free is the bytes of all. */
static const char *check_pieces(const struct vma_block *block, struct met *met,
                                frag_size *free)
{
    const struct vma_piece *above = NULL;
    frag_addr end = block->addr + block->size;

    for (const struct vma_piece *t = block->rest; t; above = t, t = t->below) {
        const frag_size size = t->hole.node.size;

        CHECK(t->above == above, "a piece does not know the one above it");
        CHECK(t->block == block, "a piece does not know its block");
        CHECK(size > 0 || t == block->rest, "a piece is empty");
        CHECK(size <= end - block->addr && t->hole.node.addr == end - size,
              "a piece does not end where the one above it begins");
        CHECK(!above || is_used(t) || is_used(above),
              "two neighbours are both free");
        if (!is_used(t) && t != block->rest)
            met_add(met, t, NULL);
        *free += is_used(t) ? 0 : size;
        end -= size;
    }
    CHECK(end == block->addr, "the pieces of a block do not fill it");
    return NULL;
}

const char *vma_block_check(const struct vma_block *block)
{
    const unsigned lists = list_of(block->size) + 1;
    struct met pieces = {.most = SIZE_MAX}, kept = {0};
    frag_size free = 0;

    CHECK(!is_used(block->rest), "the rest of a block is used");
    CHECK_ALL(check_pieces(block, &pieces, &free));
    CHECK(free == block->free, "`free` is not the bytes of the free pieces");
    kept.most = pieces.count;
    CHECK_ALL(holes_check(block->holes, NULL, &kept));
    for (unsigned list = 0; list < lists; list++)
        CHECK_ALL(check_list(block, list, &kept));
    CHECK(met_are_equal(&pieces, &kept),
          "what the lists and the tree have are not the free pieces");
    return NULL;
}
