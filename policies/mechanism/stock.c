/* stock.c - creates and releases chunks of pages. See stock.h. */
#include "policies/mechanism/stock.h"

#include <stdlib.h>

#include "policies/mechanism/check.h"
#include "traces/grow.h"

void stock_add(struct stock *s, frag_phys phys, uint64_t pages)
{
    s->spare[s->spare_chunks++] = (struct spare_chunk){phys, (uint32_t)pages};
    s->spare_pages += pages;
}

struct spare_chunk stock_take(struct stock *s)
{
    const struct spare_chunk c = s->spare[--s->spare_chunks];

    s->spare_pages -= c.pages;
    return c;
}

/* Creates a chunk of at most `most` pages. */
static enum frag_err create(struct frag_heap *heap, struct stock *s,
                            uint64_t most)
{
    const uint64_t chunk = s->chunk ? s->chunk : 1;
    const uint64_t pages = most < chunk ? most : chunk;
    frag_phys phys;

    if (!GROW(s->spare, s->spare_room, s->count + 1))
        return FRAG_NOMEM;
    FRAG_TRY(heap->mem->ops->phys_create(heap->mem, pages * s->page, &phys));
    stock_add(s, phys, pages);
    s->count += pages;
    return FRAG_OK;
}

enum frag_err stock_create(struct frag_heap *heap, struct stock *s,
                           uint64_t pages)
{
    if (pages > s->spare_pages && pages - s->spare_pages > PAGES_AT_ONCE)
        return FRAG_OOM;
    while (s->spare_pages < pages)
        FRAG_TRY(create(heap, s, pages - s->spare_pages));
    return FRAG_OK;
}

bool stock_release_top(struct frag_heap *heap, struct stock *s)
{
    const struct spare_chunk c = stock_top(s);

    if (heap->mem->ops->phys_release(heap->mem, c.phys, c.pages * s->page) !=
        FRAG_OK)
        return false;
    s->count -= stock_take(s).pages;
    return true;
}

bool stock_release(struct frag_heap *heap, struct stock *s)
{
    bool any = false;

    while (s->spare_chunks && stock_release_top(heap, s))
        any = true;
    return any;
}

enum frag_err stock_supply(struct frag_heap *heap, struct stock *s,
                           uint64_t most)
{
    const uint64_t chunk = s->chunk ? s->chunk : 1;
    const uint64_t least = most < chunk ? most : chunk;

    for (uint64_t i = s->spare_chunks; i > 0; i--) {
        const struct spare_chunk c = s->spare[i - 1];

        if (c.pages >= least && c.pages <= most) {
            s->spare[i - 1] = stock_top(s);
            s->spare[s->spare_chunks - 1] = c;
            return FRAG_OK;
        }
    }
    for (uint64_t pages = 0; s->spare_chunks && pages < least;) {
        pages += stock_top(s).pages;
        if (!stock_release_top(heap, s))
            return FRAG_DEVICE;
    }
    return create(heap, s, most);
}

void stock_fini(struct stock *s)
{
    free(s->spare);
    s->spare = NULL;
}

const char *stock_check(const struct stock *s, uint64_t mapped)
{
    uint64_t spare = 0;

    for (uint64_t i = 0; i < s->spare_chunks; i++)
        spare += s->spare[i].pages;
    CHECK(spare == s->spare_pages,
          "`spare_pages` is not the pages of the spare chunks");
    CHECK(mapped + spare == s->count,
          "`count` is not the pages that are mapped or spare");
    return NULL;
}
