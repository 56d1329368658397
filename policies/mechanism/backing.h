/* backing.h - memory under blocks in reserved address space.
 *
 * The policy decides where blocks lie; this file maps chunks of its stock
 * (stock.h) there, and unmaps them where no block is. Unlike pages.h, which
 * divides addresses into tiles with memory and without, it knows no blocks.
 *
 * Invariant, checked by backed_check: all pages of a mapped chunk record the
 * chunk and its memory.
 */
#ifndef FRAG_POLICIES_MECHANISM_BACKING_H
#define FRAG_POLICIES_MECHANISM_BACKING_H

#include "policies/mechanism/stock.h"

/* A page of addresses. */
struct backed_page {
    frag_phys phys;      /* 0: no memory */
    uint32_t first, end; /* the pages of its chunk; valid with memory */
};

/* A reserved range of addresses. Starts zeroed except addr. */
struct backed {
    frag_addr addr;
    struct backed_page *pages; /* [known]; pages above have no memory */
    uint64_t known, room;
};

/* The pages [first, end) of a range. */
struct page_run {
    struct backed *range;
    uint64_t first, end;
};

static inline bool page_has_memory(const struct backed *r, uint64_t page)
{
    return page < r->known && r->pages[page].phys != 0;
}

/* The pages that addresses of a range touch. */
static inline struct page_run pages_touched(const struct stock *s,
                                            struct backed *r, frag_addr addr,
                                            frag_size size)
{
    const frag_size low = addr - r->addr;

    return (struct page_run){r, low / s->page,
                             (low + size + s->page - 1) / s->page};
}

/* The whole pages in addresses of a range; empty if there are none. */
static inline struct page_run pages_within(const struct stock *s,
                                           struct backed *r, frag_addr addr,
                                           frag_size size)
{
    const frag_size low = addr - r->addr;
    const uint64_t first = (low + s->page - 1) / s->page,
                   end = (low + size) / s->page;

    return (struct page_run){r, first, end > first ? end : first};
}

/* The number of pages in the run that have no memory. */
uint64_t backing_missing(const struct page_run *run);

/* Maps memory at the pages of the run that have none, from spare chunks of a
 * fitting size (stock_supply) and new ones. Errors are those of stock_create
 * and stock_supply, and DEVICE; then what was created and not released again is
 * spare or mapped in the run. */
enum frag_err backing_map(struct frag_heap *heap, struct stock *s,
                          struct page_run run) FRAG_MUST_CHECK;

/* Whether a whole chunk lies in the run. */
bool backing_can_strip(const struct page_run *run);

/* Unmaps whole chunks of the run, the highest first, until the stock has
 * `wanted` spare pages or no chunk is left. False if the device refuses; what
 * was unmapped before is spare. */
bool backing_strip(struct frag_heap *heap, struct stock *s, struct page_run run,
                   uint64_t wanted);

/* Unmaps the memory of a range, under live blocks too; it is spare then. Frees
 * the records of the range, which must not be used any more. */
void backing_clear(struct frag_heap *heap, struct stock *s, struct backed *r);

/* Checks the invariant, and adds the pages with memory to *mapped. Returns NULL
 * or a text that names the fault. */
const char *backed_check(const struct backed *r, uint64_t *mapped);

#endif
