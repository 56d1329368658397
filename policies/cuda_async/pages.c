#include "policies/cuda_async/state.h"

#include <stdlib.h>
#include <string.h>

static frag_addr page_addr(const struct cuda_async *p, size_t i)
{
    return p->base + i * p->page;
}

/* Room for the pages below `count` and for as many spare ones. */
static enum frag_err know_pages(struct cuda_async *p, size_t count)
{
    const size_t room = 2 * count;
    frag_phys *grown;

    if (count <= p->known)
        return FRAG_OK;
    grown = realloc(p->spare, room * sizeof(*grown));
    if (!grown)
        return FRAG_NOMEM;
    p->spare = grown;
    grown = realloc(p->phys, room * sizeof(*grown));
    if (!grown)
        return FRAG_NOMEM;
    memset(grown + p->known, 0, (room - p->known) * sizeof(*grown));
    p->phys = grown;
    p->known = room;
    return FRAG_OK;
}

static enum frag_err strip(struct frag_heap *heap, size_t page)
{
    struct cuda_async *p = heap->state;

    FRAG_TRY(heap->mem->ops->unmap(heap->mem, page_addr(p, page), p->page));
    p->spare[p->spares++] = p->phys[page];
    p->phys[page] = 0;
    return FRAG_OK;
}

static bool release_spare(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    if (heap->mem->ops->phys_release(heap->mem, p->spare[p->spares - 1],
                                     p->page) != FRAG_OK)
        return false;
    p->spares--;
    p->pages--;
    return true;
}

static enum frag_err create_spare(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    FRAG_TRY(
        heap->mem->ops->phys_create(heap->mem, p->page, &p->spare[p->spares]));
    p->spares++;
    p->pages++;
    return FRAG_OK;
}

/* The pages that lie wholly in a piece: [*from, answer). */
static size_t whole_pages(const struct cuda_async *p,
                          const struct async_piece *t, size_t *from)
{
    const size_t to =
        (size_t)((t->node.addr + t->node.size - p->base) / p->page);

    *from = (size_t)((t->node.addr - p->base + p->page - 1) / p->page);
    return to < p->known ? to : p->known;
}

/* What a block calls for: memory for the pages [first, last], and so many more
 * than there are spare. */
struct async_need {
    size_t first, last;
    size_t missing;
    const struct holes_of *holes; /* of the stream that asks */
    bool is_counted_only;
};

/* Takes from a free piece the pages that the need is short of, or counts them;
 * answers how many. */
static size_t take_pages(struct frag_heap *heap, const struct async_need *need,
                         const struct async_piece *t, size_t most)
{
    struct cuda_async *p = heap->state;
    size_t from, taken = 0;

    for (size_t i = whole_pages(p, t, &from); i-- > from && taken < most;) {
        if (!p->phys[i] || (i >= need->first && i <= need->last))
            continue;
        if (!need->is_counted_only && strip(heap, i) != FRAG_OK)
            break;
        taken++;
    }
    return taken;
}

static size_t take_from_set(struct frag_heap *heap,
                            const struct async_need *need,
                            const struct free_set *set, size_t most)
{
    const struct free_node *n = free_set_last(set);
    size_t taken = 0;

    for (; n && taken < most; n = free_set_before(set, n))
        taken +=
            take_pages(heap, need, (const struct async_piece *)n, most - taken);
    return taken;
}

/* Up to `most` pages from wherever the stream may take them. */
static size_t take_anywhere(struct frag_heap *heap,
                            const struct async_need *need, size_t most)
{
    struct cuda_async *p = heap->state;
    size_t taken = take_pages(heap, need, p->end, most);

    taken += take_from_set(heap, need, &need->holes->set, most - taken);
    if (need->holes != &p->common)
        taken += take_from_set(heap, need, &p->common.set, most - taken);
    return taken;
}

/* Makes as many pages spare as the need has missing; what is new comes first,
 * since only that can be refused for lack of memory. */
static enum frag_err find_pages(struct frag_heap *heap, struct async_need *need)
{
    struct cuda_async *p = heap->state;
    size_t idle = 0;
    enum frag_err err = FRAG_OK;

    if (p->spares < need->missing) {
        need->is_counted_only = true;
        idle = take_anywhere(heap, need, need->missing - p->spares);
    }
    while (err == FRAG_OK && p->spares + idle < need->missing)
        err = create_spare(heap);
    if (err != FRAG_OK) {
        while (p->spares && release_spare(heap))
            ;
        return err;
    }
    need->is_counted_only = false;
    if (p->spares < need->missing)
        take_anywhere(heap, need, need->missing - p->spares);
    return p->spares < need->missing ? FRAG_DEVICE : FRAG_OK;
}

enum frag_err cuda_async_back(struct frag_heap *heap,
                              const struct holes_of *holes, frag_addr addr,
                              frag_size size)
{
    struct cuda_async *p = heap->state;
    struct async_need need = {
        .first = (size_t)((addr - p->base) / p->page),
        .last = (size_t)((addr + size - 1 - p->base) / p->page),
        .holes = holes,
    };

    FRAG_TRY(know_pages(p, need.last + 1));
    for (size_t i = need.first; i <= need.last; i++)
        need.missing += !p->phys[i];
    if (!need.missing)
        return FRAG_OK;
    FRAG_TRY(find_pages(heap, &need));
    for (size_t i = need.first; i <= need.last; i++) {
        if (p->phys[i])
            continue;
        FRAG_TRY(heap->mem->ops->map(heap->mem, page_addr(p, i), p->page,
                                     p->spare[p->spares - 1]));
        p->phys[i] = p->spare[--p->spares];
    }
    return FRAG_OK;
}

static bool has_whole_page(const struct cuda_async *p,
                           const struct async_piece *t)
{
    size_t from;

    for (size_t i = whole_pages(p, t, &from); i-- > from;)
        if (p->phys[i])
            return true;
    return false;
}

/* Whether a free piece has a whole page. Few are large enough to, and to ask
 * them is less than to go through all pieces in the order of addresses. */
static bool is_any_page_free(const struct cuda_async *p)
{
    const struct free_node *n = free_set_last(&p->common.set);

    for (; n && n->size >= p->page; n = free_set_before(&p->common.set, n))
        if (has_whole_page(p, (const struct async_piece *)n))
            return true;
    return has_whole_page(p, p->end);
}

void cuda_async_shrink(struct frag_heap *heap, frag_size keep)
{
    struct cuda_async *p = heap->state;

    while (p->spares && p->pages * p->page > keep && release_spare(heap))
        ;
    if (p->pages * p->page <= keep || !is_any_page_free(p))
        return;
    for (const struct async_piece *t = p->end; t; t = t->below) {
        size_t from, i;

        if (t != p->end && !t->home)
            continue;
        for (i = whole_pages(p, t, &from); i-- > from;)
            if (p->phys[i] &&
                (p->pages * p->page <= keep || strip(heap, i) != FRAG_OK ||
                 !release_spare(heap)))
                return;
    }
}

void cuda_async_return_all(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    for (size_t i = 0; i < p->known; i++)
        if (p->phys[i] && strip(heap, i) == FRAG_OK)
            release_spare(heap);
    while (p->spares && release_spare(heap))
        ;
    free(p->phys);
    free(p->spare);
}
