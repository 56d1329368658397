/* block.c - search, split and merge of the chunks of one block of the vma
 * policy. block.h has the structure; the rules are VMA's, see vma.c.
 */
#include "policies/vma/block.h"

#include <assert.h>
#include <string.h>

enum { SMALL = 256, PART_BITS = 5 };

/* The number of the list for a size. Octave 0 is for sizes up to SMALL and uses
 * one list; octave o >= 1 is for sizes from 2^(o + 7) to 2^(o + 8) - 1. */
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

static bool is_used(const struct vma_chunk *chunk)
{
    return chunk->hole.node.left == &chunk->hole.node;
}

static void set_used(struct vma_chunk *chunk)
{
    chunk->hole.node.left = &chunk->hole.node;
}

void vma_block_init(struct vma_block *block, struct nodes *nodes,
                    frag_addr addr, frag_size size, enum vma_strategy strategy)
{
    memset(block, 0, vma_block_bytes(size));
    block->addr = addr;
    block->size = block->free = block->most = size;
    block->strategy = strategy;
    block->rest = nodes_take(nodes);
    *block->rest = (struct vma_chunk){.hole.node = {.addr = addr, .size = size},
                                      .block = block};
}

/* ---- free chunks in lists by size, or in one tree ---- */

/* Inserts a free chunk into its list or the tree. */
static void enlist(struct vma_block *block, struct vma_chunk *chunk)
{
    const unsigned list = list_of(chunk->hole.node.size);

    chunk->hole.node.left = NULL;
    if (block->strategy == VMA_MIN_OFFSET) {
        holes_insert(&block->holes, &chunk->hole);
        return;
    }
    vma_push(&block->lists[list], &chunk->hole);
    block->octaves |= (uint64_t)1 << (list / VMA_PARTS);
    block->parts[list / VMA_PARTS] |= (uint32_t)1 << (list % VMA_PARTS);
}

/* Removes a free chunk from its list or the tree. */
static void delist(struct vma_block *block, struct vma_chunk *chunk)
{
    const unsigned list = list_of(chunk->hole.node.size);
    const unsigned octave = list / VMA_PARTS;

    if (block->strategy == VMA_MIN_OFFSET) {
        holes_remove(&block->holes, &chunk->hole);
        return;
    }
    vma_drop(&block->lists[list], &chunk->hole);
    if (block->lists[list])
        return;
    block->parts[octave] &= ~((uint32_t)1 << (list % VMA_PARTS));
    if (!block->parts[octave])
        block->octaves &= ~((uint64_t)1 << octave);
}

/* The first chunk of the lowest list with chunks, from `list` on; NULL: none.
 */
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

/* The first chunk of a list that is large enough; NULL: none. */
static struct hole *walk(struct hole *hole, frag_size size)
{
    while (hole && hole->node.size < size)
        hole = hole->equal[1];
    return hole;
}

/* The chunk that the strategy prefers to the rest; NULL: none. */
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

/* The chunk that the strategy uses if the rest is too small; NULL: none. */
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

struct vma_chunk *vma_block_find(const struct vma_block *block, frag_size size)
{
    struct hole *found;

    if (size > block->free)
        return NULL;
    found = before_rest(block, size);
    if (!found && block->rest->hole.node.size >= size)
        return block->rest;
    return (struct vma_chunk *)(found ? found : after_rest(block, size));
}

/* Splits a chunk after `size` bytes; returns the new chunk above. */
static struct vma_chunk *split(struct nodes *nodes, struct vma_chunk *chunk,
                               frag_size size)
{
    struct vma_chunk *above = nodes_take(nodes);

    *above =
        (struct vma_chunk){.hole.node = {.addr = chunk->hole.node.addr + size,
                                         .size = chunk->hole.node.size - size},
                           .below = chunk,
                           .above = chunk->above,
                           .block = chunk->block};
    if (chunk->above)
        chunk->above->below = above;
    chunk->above = above;
    chunk->hole.node.size = size;
    return above;
}

void vma_block_alloc(struct vma_block *block, struct nodes *nodes,
                     struct vma_chunk *chunk, frag_size size)
{
    assert(!is_used(chunk) && size > 0 && size <= chunk->hole.node.size);
    block->free -= size;
    if (chunk == block->rest) {
        block->rest = split(nodes, chunk, size);
    } else {
        delist(block, chunk);
        if (chunk->hole.node.size > size)
            enlist(block, split(nodes, chunk, size));
    }
    set_used(chunk);
}

/* Merges `low` into `high`, its neighbour above; the record of `low` is freed.
 */
static struct vma_chunk *merge(struct nodes *nodes, struct vma_chunk *low,
                               struct vma_chunk *high)
{
    high->hole.node.addr = low->hole.node.addr;
    high->hole.node.size += low->hole.node.size;
    high->below = low->below;
    if (high->below)
        high->below->above = high;
    nodes_put(nodes, low);
    return high;
}

void vma_block_free(struct vma_block *block, struct nodes *nodes,
                    struct vma_chunk *chunk)
{
    assert(is_used(chunk) && chunk->block == block);
    block->free += chunk->hole.node.size;
    if (chunk->below && !is_used(chunk->below)) {
        delist(block, chunk->below);
        chunk = merge(nodes, chunk->below, chunk);
    }
    if (chunk->above == block->rest) {
        chunk = merge(nodes, chunk, block->rest);
    } else if (!is_used(chunk->above)) {
        delist(block, chunk->above);
        chunk = merge(nodes, chunk, chunk->above);
    }
    if (chunk->hole.node.size > block->most)
        block->most = chunk->hole.node.size;
    if (chunk != block->rest)
        enlist(block, chunk);
}

/* ---- the check ---- */

/* The largest size in a list. */
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
          "the bitmap does not say which octaves have chunks");
    CHECK(is_marked == (block->lists[list] != NULL),
          "the bitmaps do not say which lists have chunks");
    for (const struct hole *h = block->lists[list]; h; h = h->equal[1]) {
        CHECK(met_add(met, h, NULL), "a list has more chunks than are free");
        CHECK(h->equal[0] == before, "a chunk does not know its neighbour");
        CHECK(h->node.size <= most_of(list) &&
                  (list == 0 || h->node.size > most_of(list - 1) ||
                   list == VMA_PARTS),
              "a chunk is not in the list of its size");
        before = h;
    }
    return NULL;
}

/* Adds the free chunks except the rest to `met`, and the bytes of all free
 * chunks to *free. */
static const char *check_chunks(const struct vma_block *block, struct met *met,
                                frag_size *free)
{
    const struct vma_chunk *above = NULL;
    frag_addr end = block->addr + block->size;

    for (const struct vma_chunk *t = block->rest; t; above = t, t = t->below) {
        const frag_size size = t->hole.node.size;

        CHECK(t->above == above, "a chunk does not know the one above it");
        CHECK(t->block == block, "a chunk does not know its block");
        CHECK(size > 0 || t == block->rest, "a chunk is empty");
        CHECK(is_used(t) || size <= block->most,
              "a free chunk is larger than `most`");
        CHECK(size <= end - block->addr && t->hole.node.addr == end - size,
              "a chunk does not end where the one above it begins");
        CHECK(!above || is_used(t) || is_used(above),
              "two neighbours are both free");
        if (!is_used(t) && t != block->rest)
            met_add(met, t, NULL);
        *free += is_used(t) ? 0 : size;
        end -= size;
    }
    CHECK(end == block->addr, "the chunks of a block do not fill it");
    return NULL;
}

const char *vma_block_check(const struct vma_block *block)
{
    const unsigned lists = list_of(block->size) + 1;
    struct met chunks = {.most = SIZE_MAX}, kept = {0};
    frag_size free = 0;

    CHECK(!is_used(block->rest), "the rest of a block is used");
    CHECK_ALL(check_chunks(block, &chunks, &free));
    CHECK(free == block->free, "`free` is not the bytes of the free chunks");
    kept.most = chunks.count;
    CHECK_ALL(holes_check(block->holes, NULL, &kept));
    for (unsigned list = 0; list < lists; list++)
        CHECK_ALL(check_list(block, list, &kept));
    CHECK(met_are_equal(&chunks, &kept),
          "what the lists and the tree have are not the free chunks");
    return NULL;
}
