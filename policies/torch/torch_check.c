/* torch_check.c - the check of the torch policy's invariants, which
 * torch_state.h lists. Tests call it; the policy does not.
 */
#include "policies/torch/torch_state.h"

/* The records that a walk over all blocks met, each with its space as home, and
 * the sums of the walk. */
struct seen {
    struct met free, holes;
    uint64_t blocks;
    frag_size reserved;
};

/* ---- one block ---- */

static const char *check_block(const struct torch *t,
                               const struct torch_block *b)
{
    CHECK(b->node.size > 0, "a block of a segment is a spare one");
    CHECK(b->space < t->space_count, "a block is of a space that is not there");
    CHECK(b->use != TORCH_HOLE || b->expandable,
          "address space without memory is not expandable");
    return NULL;
}

static const char *check_neighbours(const struct torch_block *low,
                                    const struct torch_block *high)
{
    CHECK(high->prev == low, "a block does not know the one below it");
    CHECK(high->node.addr == low->node.addr + low->node.size,
          "a block does not begin where the one below it ends");
    CHECK(high->space == low->space && high->expandable == low->expandable,
          "two blocks of one segment are not of one kind");
    CHECK(torch_is_used(low) || low->use != high->use,
          "two free neighbours are both mapped or both unmapped");
    return NULL;
}

/* ---- segments ---- */

/* No page of a hole has memory; every page that another block touches has. */
static const char *check_pages(const struct torch_block *b,
                               const struct torch_reservation *r,
                               frag_size page)
{
    const frag_size low = b->node.addr - r->addr, end = low + b->node.size;

    CHECK(b->use != TORCH_HOLE || (low % page == 0 && end % page == 0),
          "a hole is not whole pages");
    for (uint64_t i = low / page; i * page < end; i++)
        CHECK((b->use != TORCH_HOLE) == (phys_of(&r->pages, i) != 0),
              "the pages of a block are not those that have memory");
    return NULL;
}

/* The blocks of an expandable segment fill its reservation. */
static const char *check_reservation(const struct torch_space *space,
                                     const struct torch_block *first,
                                     frag_size size)
{
    const struct torch_reservation *r = space->reservations;

    while (r && r->addr != first->node.addr)
        r = r->next;
    CHECK(r && r->size == size, "the blocks of a reservation do not fill it");
    for (const struct torch_block *b = first; !torch_is_edge(b); b = b->next)
        CHECK_ALL(check_pages(b, r, r->page));
    return NULL;
}

/* Checks the segment whose first block is `first`. */
static const char *check_segment(const struct torch *t,
                                 const struct torch_block *first,
                                 struct seen *seen)
{
    const struct torch_space *space = NULL;
    frag_size size = 0;

    for (const struct torch_block *b = first; b != &t->edge; b = b->next) {
        CHECK_ALL(check_block(t, b));
        CHECK(++seen->blocks <= t->record_count - t->spare_count,
              "segments have more blocks than there are");
        if (b->next != &t->edge)
            CHECK_ALL(check_neighbours(b, b->next));
        space = t->spaces[b->space];
        if (b->use == TORCH_FREE)
            met_add(&seen->free, b, space);
        if (b->use == TORCH_HOLE)
            met_add(&seen->holes, b, space);
        seen->reserved += b->use != TORCH_HOLE ? b->node.size : 0;
        size += b->node.size;
    }
    return first->expandable ? check_reservation(space, first, size) : NULL;
}

/* ---- spaces ---- */

static const char *check_holes(const struct torch_space *space,
                               struct met *holes)
{
    const struct free_node *below = NULL;

    for (const struct free_node *n = space->holes; n; n = n->right) {
        CHECK(!below || below->addr < n->addr,
              "the holes of a space are not in the order of addresses");
        CHECK(met_add(holes, n, space),
              "a space has more holes than there are");
        below = n;
    }
    return NULL;
}

static const char *check_spaces(const struct torch *t, const struct seen *seen)
{
    struct met free = {.most = seen->free.count};
    struct met holes = {.most = seen->holes.count};

    for (uint32_t i = 0; i < t->space_count; i++) {
        CHECK(t->spaces[i]->index == i, "a space does not know its index");
        CHECK_ALL(free_set_check(&t->spaces[i]->free, t->spaces[i], &free));
        CHECK_ALL(check_holes(t->spaces[i], &holes));
    }
    CHECK(met_are_equal(&free, &seen->free),
          "the free sets are not the free blocks of their spaces");
    CHECK(met_are_equal(&holes, &seen->holes),
          "the lists of holes are not the unmapped blocks of their spaces");
    return NULL;
}

static const char *check_spares(const struct torch *t)
{
    uint64_t count = 0;

    for (const struct torch_block *b = t->spare; b; b = b->next) {
        CHECK(b->node.size == 0, "a spare block is in use");
        CHECK(++count <= t->spare_count,
              "there are more spare blocks than known");
    }
    CHECK(count == t->spare_count, "there are fewer spare blocks than known");
    return NULL;
}

const char *torch_check(const struct frag_heap *heap)
{
    const struct torch *t = heap->state;
    struct torch_walk walk = {t->slabs, 0};
    const struct torch_block *b;
    struct seen seen = {0};

    CHECK_ALL(check_spares(t));
    while ((b = torch_walk_next(&walk)))
        if (b->prev == &t->edge)
            CHECK_ALL(check_segment(t, b, &seen));
    CHECK(seen.blocks == t->record_count - t->spare_count,
          "a block is in no segment");
    CHECK(seen.reserved == t->reserved,
          "`reserved` is not the bytes of segments and mapped pages");
    return check_spaces(t, &seen);
}
