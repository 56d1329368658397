/* async_pages.c - the physical pages of the cuda_async policy: maps them under
 * blocks, collects free ones, and releases them. It does not decide where
 * blocks lie.
 */
#include "policies/cuda_async/async_state.h"

static frag_addr page_addr(const struct cuda_async *p, size_t i)
{
    return p->base + i * p->page;
}

/* Unmaps a page, which is then spare. */
static enum frag_err unmap_page(struct frag_heap *heap, size_t page)
{
    struct cuda_async *p = heap->state;

    FRAG_TRY(heap->mem->ops->unmap(heap->mem, page_addr(p, page), p->page));
    stock_add(&p->stock, p->phys.page[page], 1);
    p->phys.page[page] = 0;
    return FRAG_OK;
}

/* The pages that lie wholly in a block: from *from up to, but not including,
 * the result. */
static size_t whole_pages(const struct cuda_async *p,
                          const struct async_block *t, size_t *from)
{
    const size_t to = (size_t)((t->addr + t->node.size - p->base) / p->page);

    *from = (size_t)((t->addr - p->base + p->page - 1) / p->page);
    return to < p->phys.known ? to : p->phys.known;
}

/* ---- the sets of holes ---- */

/* Whether all pages that the block touches have memory. */
static bool has_memory(const struct cuda_async *p, const struct async_block *t)
{
    const size_t last =
        (size_t)((t->addr + t->node.size - 1 - p->base) / p->page);

    for (size_t i = (size_t)((t->addr - p->base) / p->page); i <= last; i++)
        if (!phys_of(&p->phys, i))
            return false;
    return true;
}

/* Links a hole of a stream as the newest one. */
static void link_newest(struct cuda_async *p, struct async_block *t)
{
    t->newer = NULL;
    t->older = p->newest;
    *(p->newest ? &p->newest->newer : &p->oldest) = t;
    p->newest = t;
}

static void unlink_aged(struct cuda_async *p, struct async_block *t)
{
    *(t->older ? &t->older->newer : &p->oldest) = t->newer;
    *(t->newer ? &t->newer->older : &p->newest) = t->older;
}

void cuda_async_file(struct cuda_async *p, struct async_block *t,
                     struct async_holes *home)
{
    t->home = home;
    if (home != &p->common)
        link_newest(p, t);
    t->is_backed = has_memory(p, t);
    free_set_insert(t->is_backed ? &home->backed : &home->partial, &t->node);
}

void cuda_async_unfile(struct cuda_async *p, struct async_block *t)
{
    if (t->home != &p->common)
        unlink_aged(p, t);
    free_set_remove(t->is_backed ? &t->home->backed : &t->home->partial,
                    &t->node);
    t->home = NULL;
}

static void refile(struct cuda_async *p, struct async_block *t)
{
    struct async_holes *home = t->home;

    if (!home || has_memory(p, t) == t->is_backed)
        return;
    cuda_async_unfile(p, t);
    cuda_async_file(p, t, home);
}

/* ---- pages for a block ---- */

/* The pages that a new block needs. */
struct async_need {
    size_t first, last;   /* pages that it touches, both included */
    size_t missing;       /* those of them without memory */
    bool is_counted_only; /* count the free pages, do not unmap them */
};

/* Unmaps whole pages of a free block, or counts them, up to `most`; pages that
 * the new block touches are left. Returns their number. */
static size_t collect_pages(struct frag_heap *heap,
                            const struct async_need *need,
                            const struct async_block *t, size_t most)
{
    struct cuda_async *p = heap->state;
    size_t from, collected = 0;

    for (size_t i = whole_pages(p, t, &from); i-- > from && collected < most;) {
        if (!p->phys.page[i] || (i >= need->first && i <= need->last))
            continue;
        if (!need->is_counted_only && unmap_page(heap, i) != FRAG_OK)
            break;
        collected++;
    }
    return collected;
}

/* The highest common hole below `addr` that is as large as a page, or NULL. Few
 * holes are that large, so this search is cheaper than a walk over all blocks.
 */
static struct async_block *large_hole_below(const struct cuda_async *p,
                                            frag_addr addr)
{
    const struct free_set *sets[] = {&p->common.backed, &p->common.partial};
    struct async_block *highest = NULL;

    for (size_t i = 0; i < 2; i++) {
        struct free_node *n = free_set_last(sets[i]);

        for (; n && n->size >= p->page; n = free_set_before(sets[i], n)) {
            struct async_block *t = (struct async_block *)n;

            if (t->addr < addr && (!highest || t->addr > highest->addr))
                highest = t;
        }
    }
    return highest;
}

/* Likewise from the end and all common holes, the highest first. A hole that
 * loses a page moves to another set. */
static size_t collect_anywhere(struct frag_heap *heap,
                               const struct async_need *need, size_t most)
{
    struct cuda_async *p = heap->state;
    size_t collected = 0;

    for (struct async_block *t = p->end; t && collected < most;
         t = large_hole_below(p, t->addr)) {
        collected += collect_pages(heap, need, t, most - collected);
        refile(p, t);
    }
    return collected;
}

/* Makes as many pages spare as are missing. New pages are created before free
 * ones are unmapped, because only the creation can fail for lack of memory. */
static enum frag_err find_pages(struct frag_heap *heap, struct async_need *need)
{
    struct cuda_async *p = heap->state;
    struct stock *stock = &p->stock;
    size_t idle = 0;
    enum frag_err err = FRAG_OK;

    if (stock->spare_pages < need->missing) {
        need->is_counted_only = true;
        idle = collect_anywhere(heap, need, need->missing - stock->spare_pages);
    }
    while (err == FRAG_OK && stock->spare_pages + idle < need->missing)
        err = stock_create(heap, stock, stock->spare_pages + 1);
    if (err != FRAG_OK) {
        stock_release(heap, stock);
        return err;
    }
    need->is_counted_only = false;
    if (stock->spare_pages < need->missing)
        collect_anywhere(heap, need, need->missing - stock->spare_pages);
    return stock->spare_pages < need->missing ? FRAG_DEVICE : FRAG_OK;
}

enum frag_err cuda_async_back(struct frag_heap *heap, frag_addr addr,
                              frag_size size)
{
    struct cuda_async *p = heap->state;
    struct async_need need = {
        .first = (size_t)((addr - p->base) / p->page),
        .last = (size_t)((addr + size - 1 - p->base) / p->page),
    };

    FRAG_TRY(phys_reserve(&p->phys, need.last + 1));
    for (size_t i = need.first; i <= need.last; i++)
        need.missing += !p->phys.page[i];
    if (!need.missing)
        return FRAG_OK;
    FRAG_TRY(find_pages(heap, &need));
    for (size_t i = need.first; i <= need.last; i++) {
        if (p->phys.page[i])
            continue;
        FRAG_TRY(heap->mem->ops->map(heap->mem, page_addr(p, i), p->page,
                                     stock_top(&p->stock).phys));
        p->phys.page[i] = stock_take(&p->stock).phys;
    }
    return FRAG_OK;
}

/* Whether a whole page of a free block has memory. */
static bool has_whole_page(const struct cuda_async *p,
                           const struct async_block *t)
{
    size_t from;

    for (size_t i = whole_pages(p, t, &from); i-- > from;)
        if (p->phys.page[i])
            return true;
    return false;
}

/* Whether a hole of the set has a whole page with memory. Few holes are large
 * enough, so this test is cheaper than a walk over all blocks. */
static bool has_free_page(const struct cuda_async *p,
                          const struct free_set *set)
{
    const struct free_node *n = free_set_last(set);

    for (; n && n->size >= p->page; n = free_set_before(set, n))
        if (has_whole_page(p, (const struct async_block *)n))
            return true;
    return false;
}

static bool is_any_page_free(const struct cuda_async *p)
{
    return has_free_page(p, &p->common.backed) ||
           has_free_page(p, &p->common.partial) || has_whole_page(p, p->end);
}

/* Whether the pool has more than `keep` bytes. */
static bool exceeds(const struct cuda_async *p, frag_size keep)
{
    return p->stock.count * p->page > keep;
}

/* Releases the whole free pages of a free block, the highest first, while the
 * pool has more than `keep` bytes. False if none may follow. */
static bool shrink_block(struct frag_heap *heap, struct async_block *t,
                         frag_size keep)
{
    struct cuda_async *p = heap->state;
    bool goes_on = true;
    size_t from;

    for (size_t i = whole_pages(p, t, &from); goes_on && i-- > from;)
        if (p->phys.page[i])
            goes_on = exceeds(p, keep) && unmap_page(heap, i) == FRAG_OK &&
                      stock_release_top(heap, &p->stock);
    refile(p, t);
    return goes_on;
}

void cuda_async_shrink(struct frag_heap *heap, frag_size keep)
{
    struct cuda_async *p = heap->state;

    while (p->stock.spare_pages && exceeds(p, keep) &&
           stock_release_top(heap, &p->stock))
        ;
    if (!exceeds(p, keep) || !is_any_page_free(p))
        return;
    for (struct async_block *t = p->end; t; t = t->below)
        if ((t == p->end || t->home == &p->common) &&
            !shrink_block(heap, t, keep))
            return;
}

void cuda_async_return_all(struct frag_heap *heap)
{
    struct cuda_async *p = heap->state;

    for (size_t i = 0; i < p->phys.known; i++)
        if (p->phys.page[i] && unmap_page(heap, i) == FRAG_OK)
            (void)stock_release_top(heap, &p->stock);
    stock_release(heap, &p->stock);
    stock_fini(&p->stock);
    phys_fini(&p->phys);
}
