/* backing.c - maps and unmaps chunks, and checks the records. See backing.h. */
#include "policies/mechanism/backing.h"

#include <stdlib.h>
#include <string.h>

#include "policies/mechanism/check.h"
#include "traces/grow.h"

/* ---- mapping ---- */

uint64_t backing_missing(const struct page_run *run)
{
    uint64_t count = 0;

    for (uint64_t i = run->first; i < run->end; i++)
        count += !page_has_memory(run->range, i);
    return count;
}

/* Makes sure that the range has records of its first pages. */
static enum frag_err know(struct backed *r, uint64_t pages)
{
    if (pages <= r->known)
        return FRAG_OK;
    if (!GROW(r->pages, r->room, pages))
        return FRAG_NOMEM;
    memset(r->pages + r->known, 0,
           (size_t)(pages - r->known) * sizeof(*r->pages));
    r->known = pages;
    return FRAG_OK;
}

/* Maps the spare chunk on top at the first pages of the run. */
static enum frag_err map_top(struct frag_heap *heap, struct stock *s,
                             const struct page_run *run)
{
    const struct spare_chunk c = stock_top(s);
    const uint64_t end = run->first + c.pages;

    FRAG_TRY(heap->mem->ops->map(heap->mem,
                                 run->range->addr + run->first * s->page,
                                 c.pages * s->page, c.phys));
    stock_take(s);
    for (uint64_t i = run->first; i < end; i++)
        run->range->pages[i] =
            (struct backed_page){c.phys, (uint32_t)run->first, (uint32_t)end};
    return FRAG_OK;
}

/* Maps memory at all pages of a run that has none. */
static enum frag_err map_gap(struct frag_heap *heap, struct stock *s,
                             struct page_run gap)
{
    while (gap.first < gap.end) {
        FRAG_TRY(stock_supply(heap, s, gap.end - gap.first));
        FRAG_TRY(map_top(heap, s, &gap));
        gap.first = gap.range->pages[gap.first].end;
    }
    return FRAG_OK;
}

enum frag_err backing_map(struct frag_heap *heap, struct stock *s,
                          struct page_run run)
{
    FRAG_TRY(stock_create(heap, s, backing_missing(&run)));
    FRAG_TRY(know(run.range, run.end));
    while (run.first < run.end) {
        struct page_run gap = {run.range, run.first, run.first};

        while (gap.end < run.end && !page_has_memory(gap.range, gap.end))
            gap.end++;
        FRAG_TRY(map_gap(heap, s, gap));
        run.first = gap.end + 1;
    }
    return FRAG_OK;
}

/* ---- unmapping ---- */

/* The end of the highest whole chunk in the run; run->first if there is none.
 */
static uint64_t highest_end(const struct page_run *run)
{
    const struct backed_page *pages = run->range->pages;
    const uint64_t known = run->range->known;
    uint64_t end = run->end < known ? run->end : known;

    while (end > run->first) {
        const struct backed_page *p = &pages[end - 1];

        if (p->phys && p->end <= run->end)
            return p->first >= run->first ? end : run->first;
        end = p->phys ? p->first : end - 1;
    }
    return run->first;
}

/* The highest adjacent whole chunks in the run, of at least `least` pages if
 * there are so many; empty if there is none. */
static struct page_run highest(const struct page_run *run, uint64_t least)
{
    const struct backed_page *pages = run->range->pages;
    struct page_run top = {run->range, 0, highest_end(run)};

    top.first = top.end;
    while (top.first > run->first && top.end - top.first < least &&
           pages[top.first - 1].phys &&
           pages[top.first - 1].first >= run->first)
        top.first = pages[top.first - 1].first;
    return top;
}

bool backing_can_strip(const struct page_run *run)
{
    return highest_end(run) > run->first;
}

/* Unmaps adjacent whole chunks; false if the device refuses. */
static bool unmap(struct frag_heap *heap, struct stock *s,
                  const struct page_run *run)
{
    struct backed_page *pages = run->range->pages;

    if (heap->mem->ops->unmap(heap->mem,
                              run->range->addr + run->first * s->page,
                              (run->end - run->first) * s->page) != FRAG_OK)
        return false;
    for (uint64_t i = run->first; i < run->end; i = pages[i].end)
        stock_add(s, pages[i].phys, pages[i].end - i);
    for (uint64_t i = run->first; i < run->end; i++)
        pages[i].phys = 0;
    return true;
}

bool backing_strip(struct frag_heap *heap, struct stock *s, struct page_run run,
                   uint64_t wanted)
{
    while (s->spare_pages < wanted) {
        const struct page_run top = highest(&run, wanted - s->spare_pages);

        if (top.first == top.end)
            return true;
        if (!unmap(heap, s, &top))
            return false;
        run.end = top.first;
    }
    return true;
}

void backing_clear(struct frag_heap *heap, struct stock *s, struct backed *r)
{
    (void)backing_strip(heap, s, (struct page_run){r, 0, r->known}, UINT64_MAX);
    free(r->pages);
}

/* ---- the check ---- */

static bool are_equal(const struct backed_page *a, const struct backed_page *b)
{
    return a->phys == b->phys && a->first == b->first && a->end == b->end;
}

const char *backed_check(const struct backed *r, uint64_t *mapped)
{
    for (uint64_t i = 0; i < r->known; i++) {
        const struct backed_page *p = &r->pages[i];

        if (!p->phys)
            continue;
        CHECK(p->first <= i && i < p->end && p->end <= r->known,
              "a page is not in its chunk");
        CHECK(are_equal(p, &r->pages[p->first]) &&
                  are_equal(p, &r->pages[i + 1 < p->end ? i + 1 : i]),
              "two pages of a chunk differ in their chunk or memory");
        (*mapped)++;
    }
    return NULL;
}
