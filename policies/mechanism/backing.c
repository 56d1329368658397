/* backing.c - maps, unmaps and releases the memory of pages, and checks the
 * records. See backing.h.
 */
#include "policies/mechanism/backing.h"

#include <stdlib.h>
#include <string.h>

#include "policies/mechanism/check.h"
#include "policies/mechanism/pages.h"
#include "traces/grow.h"

/* ---- spare chunks ---- */

static void add_spare(struct backing *b, frag_phys phys, uint64_t pages)
{
    b->spare[b->spare_chunks++] = (struct spare_chunk){phys, (uint32_t)pages};
    b->spare_pages += pages;
}

static struct spare_chunk take_top(struct backing *b)
{
    const struct spare_chunk c = b->spare[--b->spare_chunks];

    b->spare_pages -= c.pages;
    return c;
}

/* Creates a spare chunk of at most `most` pages. There is room for all memory
 * to be spare at once, so unmapping never needs host memory. */
static enum frag_err create(struct frag_heap *heap, struct backing *b,
                            uint64_t most)
{
    const uint64_t chunk = b->chunk ? b->chunk : 1;
    const uint64_t pages = most < chunk ? most : chunk;
    frag_phys phys;

    if (!GROW(b->spare, b->spare_room, b->count + 1))
        return FRAG_NOMEM;
    FRAG_TRY(heap->mem->ops->phys_create(heap->mem, pages * b->page, &phys));
    add_spare(b, phys, pages);
    b->count += pages;
    return FRAG_OK;
}

/* Creates chunks until `pages` pages are spare. */
static enum frag_err provide(struct frag_heap *heap, struct backing *b,
                             uint64_t pages)
{
    if (pages > b->spare_pages && pages - b->spare_pages > PAGES_AT_ONCE)
        return FRAG_OOM;
    while (b->spare_pages < pages)
        FRAG_TRY(create(heap, b, pages - b->spare_pages));
    return FRAG_OK;
}

/* Releases the spare chunk on top; false if the device refuses. */
static bool release_top(struct frag_heap *heap, struct backing *b)
{
    const struct spare_chunk *c = &b->spare[b->spare_chunks - 1];

    if (heap->mem->ops->phys_release(heap->mem, c->phys, c->pages * b->page) !=
        FRAG_OK)
        return false;
    b->count -= take_top(b).pages;
    return true;
}

void backing_release(struct frag_heap *heap, struct backing *b)
{
    while (b->spare_chunks && release_top(heap, b))
        ;
}

/* Puts a spare chunk of at most `most` pages on top. If all are larger, one is
 * released for a new one. */
static enum frag_err supply(struct frag_heap *heap, struct backing *b,
                            uint64_t most)
{
    for (uint64_t i = b->spare_chunks; i > 0; i--)
        if (b->spare[i - 1].pages <= most) {
            const struct spare_chunk c = b->spare[i - 1];

            b->spare[i - 1] = b->spare[b->spare_chunks - 1];
            b->spare[b->spare_chunks - 1] = c;
            return FRAG_OK;
        }
    if (b->spare_chunks && !release_top(heap, b))
        return FRAG_DEVICE;
    return create(heap, b, most);
}

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
static enum frag_err map_top(struct frag_heap *heap, struct backing *b,
                             const struct page_run *run)
{
    const struct spare_chunk c = b->spare[b->spare_chunks - 1];
    const uint64_t end = run->first + c.pages;

    FRAG_TRY(heap->mem->ops->map(heap->mem,
                                 run->range->addr + run->first * b->page,
                                 c.pages * b->page, c.phys));
    take_top(b);
    for (uint64_t i = run->first; i < end; i++)
        run->range->pages[i] =
            (struct backed_page){c.phys, (uint32_t)run->first, (uint32_t)end};
    return FRAG_OK;
}

/* Maps memory at all pages of a run that has none. */
static enum frag_err map_gap(struct frag_heap *heap, struct backing *b,
                             struct page_run gap)
{
    while (gap.first < gap.end) {
        FRAG_TRY(supply(heap, b, gap.end - gap.first));
        FRAG_TRY(map_top(heap, b, &gap));
        gap.first = gap.range->pages[gap.first].end;
    }
    return FRAG_OK;
}

enum frag_err backing_map(struct frag_heap *heap, struct backing *b,
                          struct page_run run)
{
    FRAG_TRY(provide(heap, b, backing_missing(&run)));
    FRAG_TRY(know(run.range, run.end));
    while (run.first < run.end) {
        struct page_run gap = {run.range, run.first, run.first};

        while (gap.end < run.end && !page_has_memory(gap.range, gap.end))
            gap.end++;
        FRAG_TRY(map_gap(heap, b, gap));
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

/* The highest adjacent whole chunks in the run, of at least `most` pages if
 * there are so many; empty if there is none. */
static struct page_run highest(const struct page_run *run, uint64_t most)
{
    const struct backed_page *pages = run->range->pages;
    struct page_run top = {run->range, 0, highest_end(run)};

    top.first = top.end;
    while (top.first > run->first && top.end - top.first < most &&
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
static bool unmap(struct frag_heap *heap, struct backing *b,
                  const struct page_run *run)
{
    struct backed_page *pages = run->range->pages;

    if (heap->mem->ops->unmap(heap->mem,
                              run->range->addr + run->first * b->page,
                              (run->end - run->first) * b->page) != FRAG_OK)
        return false;
    for (uint64_t i = run->first; i < run->end; i = pages[i].end)
        add_spare(b, pages[i].phys, pages[i].end - i);
    for (uint64_t i = run->first; i < run->end; i++)
        pages[i].phys = 0;
    return true;
}

bool backing_strip(struct frag_heap *heap, struct backing *b,
                   struct page_run run, uint64_t wanted)
{
    while (b->spare_pages < wanted && backing_can_strip(&run)) {
        const struct page_run top = highest(&run, wanted - b->spare_pages);

        if (!unmap(heap, b, &top))
            return false;
        run.end = top.first;
    }
    return true;
}

void backing_clear(struct frag_heap *heap, struct backing *b, struct backed *r)
{
    (void)backing_strip(heap, b, (struct page_run){r, 0, r->known}, UINT64_MAX);
    backing_release(heap, b);
    free(r->pages);
}

void backing_fini(struct backing *b)
{
    free(b->spare);
}

/* ---- the checks ---- */

const char *backed_check(const struct backed *r, uint64_t *mapped)
{
    for (uint64_t i = 0; i < r->known; i++) {
        const struct backed_page *p = &r->pages[i];

        if (!p->phys)
            continue;
        CHECK(p->first <= i && i < p->end && p->end <= r->known,
              "a page is not in its chunk");
        CHECK(r->pages[p->first].phys == p->phys &&
                  r->pages[p->end - 1].phys == p->phys,
              "the pages of a chunk differ in their memory");
        (*mapped)++;
    }
    return NULL;
}

const char *backing_check(const struct backing *b, uint64_t mapped)
{
    uint64_t spare = 0;

    for (uint64_t i = 0; i < b->spare_chunks; i++)
        spare += b->spare[i].pages;
    CHECK(spare == b->spare_pages,
          "`spare_pages` is not the pages of the spare chunks");
    CHECK(mapped + spare == b->count,
          "`count` is not the pages that are mapped or spare");
    return NULL;
}
