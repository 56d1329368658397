/* async_check.c - the check of the cuda_async policy's invariants, which
 * async_state.h states. Tests call it; the policy does not.
 */
#include "policies/cuda_async/async_state.h"

static bool is_free(const struct cuda_async *p, const struct async_block *t)
{
    return t == p->end || t->home;
}

/* The holes that a free block is in; the end counts as a common hole. */
static const struct async_holes *home_of(const struct cuda_async *p,
                                         const struct async_block *t)
{
    return t == p->end ? &p->common : t->home;
}

/* All of a used block has memory, and a hole is in the set of its kind. */
static const char *check_memory(const struct cuda_async *p,
                                const struct async_block *t)
{
    const frag_size low = t->addr - p->base, end = low + t->node.size;
    bool is_backed = true;

    for (uint64_t i = low / p->page; i * p->page < end; i++)
        is_backed = is_backed && phys_of(&p->phys, i);
    CHECK(is_free(p, t) || is_backed, "a used block has no memory");
    CHECK(!t->home || t->is_backed == is_backed,
          "a hole is in the wrong set for its memory");
    return NULL;
}

/* Walks from the end downwards, and adds the holes to `met`. */
static const char *check_blocks(const struct cuda_async *p, struct met *met)
{
    const struct async_block *above = NULL;
    frag_addr end = p->base + p->span;
    frag_size requested = 0;

    for (const struct async_block *t = p->end; t; above = t, t = t->below) {
        CHECK(t->above == above, "a block does not know the one above it");
        CHECK(t->node.size > 0 || t == p->end, "a block is empty");
        CHECK(t->node.size <= end - p->base && t->addr == end - t->node.size,
              "a block does not end where the one above it begins");
        CHECK(!above || !is_free(p, t) || !is_free(p, above) ||
                  home_of(p, t) != home_of(p, above),
              "two free neighbours are in the same holes");
        CHECK_ALL(check_memory(p, t));
        if (is_free(p, t) && t != p->end)
            met_add(met, t, t->home);
        requested += is_free(p, t) ? 0 : t->requested;
        end -= t->node.size;
    }
    CHECK(end == p->base, "the blocks do not fill the address space");
    CHECK(requested == p->requested,
          "`requested` is not the bytes of the live requests");
    return NULL;
}

static const char *check_holes(const struct cuda_async *p,
                               const struct met *free)
{
    struct met kept = {.most = free->count};

    CHECK_ALL(free_set_check(&p->common.backed, &p->common, &kept));
    CHECK_ALL(free_set_check(&p->common.partial, &p->common, &kept));
    for (const struct lane *l = p->streams.first; l; l = l->next) {
        const struct async_holes *h = (const struct async_holes *)l;

        CHECK_ALL(free_set_check(&h->backed, h, &kept));
        CHECK(!free_set_first(&h->partial), "a stream's hole has no memory");
    }
    CHECK(met_are_equal(free, &kept), "the holes are not the free blocks");
    return NULL;
}

/* The holes of streams, from the oldest to the newest. */
static const char *check_ages(const struct cuda_async *p)
{
    const struct async_block *older = NULL;
    size_t listed = 0;

    for (const struct async_block *t = p->oldest; t; older = t, t = t->newer) {
        CHECK(t->older == older && t->home && t->home != &p->common,
              "the list of the streams' holes is not linked");
        CHECK(!older || older->node.addr < t->node.addr,
              "the streams' holes are not in the order of their ages");
        listed++;
    }
    CHECK(p->newest == older, "the newest hole is not the last of the list");
    for (const struct async_block *t = p->end; t; t = t->below)
        listed -= t->home && t->home != &p->common;
    CHECK(!listed, "the list has not all holes of streams");
    return NULL;
}

const char *cuda_async_check(const struct frag_heap *heap)
{
    const struct cuda_async *p = heap->state;
    struct met free = {.most = SIZE_MAX};
    uint64_t mapped = 0;

    if (p->base)
        CHECK_ALL(check_blocks(p, &free));
    CHECK_ALL(check_holes(p, &free));
    CHECK_ALL(check_ages(p));
    for (size_t i = 0; i < p->phys.known; i++)
        mapped += p->phys.page[i] != 0;
    CHECK_ALL(stock_check(&p->stock, mapped));
    return nodes_check(&p->nodes);
}
