/* backing.h - memory under blocks in reserved address space.
 *
 * The policy decides where blocks lie; this file maps memory there, and unmaps
 * it where no block is. Memory is created in chunks of one or more pages of one
 * size. A chunk is mapped and unmapped as a whole. A chunk that is mapped
 * nowhere is spare. pages.h also places the blocks, among tiles with memory and
 * without; here the place of a block does not depend on memory.
 *
 * Invariants, checked by backing_check:
 *   - every page of a mapped chunk records the chunk and its memory;
 *   - `spare_pages` is the pages of the spare chunks;
 *   - `count` is the pages that are mapped or spare.
 */
#ifndef FRAG_POLICIES_MECHANISM_BACKING_H
#define FRAG_POLICIES_MECHANISM_BACKING_H

#include "policies/policy.h"

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

struct spare_chunk;

/* Starts zeroed except page. */
struct backing {
    frag_size page;            /* bytes, a multiple of the granularity */
    uint64_t chunk;            /* most pages of a new chunk; 0: 1 */
    struct spare_chunk *spare; /* stack */
    uint64_t spare_chunks, spare_room;
    uint64_t spare_pages;
    uint64_t count; /* pages created and not released */
};

static inline bool page_has_memory(const struct backed *r, uint64_t page)
{
    return page < r->known && r->pages[page].phys != 0;
}

/* The pages that an address range touches. */
static inline struct page_run pages_touched(const struct backing *b,
                                            struct backed *r, frag_addr addr,
                                            frag_size size)
{
    const frag_size low = addr - r->addr;

    return (struct page_run){r, low / b->page,
                             (low + size + b->page - 1) / b->page};
}

/* The whole pages of an address range; empty if there are none. */
static inline struct page_run pages_within(const struct backing *b,
                                           struct backed *r, frag_addr addr,
                                           frag_size size)
{
    const frag_size low = addr - r->addr;
    const uint64_t first = (low + b->page - 1) / b->page,
                   end = (low + size) / b->page;

    return (struct page_run){r, first, end > first ? end : first};
}

/* The number of pages in the run that have no memory. */
uint64_t backing_missing(const struct page_run *run);

/* Maps memory at the pages of the run that have none, from spare chunks and, if
 * these have fewer pages than are missing, new ones. Errors are OOM, also if
 * more than PAGES_AT_ONCE pages had to be created (mechanism/pages.h), DEVICE
 * and NOMEM; then what was created is spare or mapped in the run. */
enum frag_err backing_map(struct frag_heap *heap, struct backing *b,
                          struct page_run run) FRAG_MUST_CHECK;

/* Whether a whole chunk lies in the run. */
bool backing_can_strip(const struct page_run *run);

/* Unmaps whole chunks of the run, the highest first, until `wanted` pages are
 * spare or no chunk is left. False if the device refuses. */
bool backing_strip(struct frag_heap *heap, struct backing *b,
                   struct page_run run, uint64_t wanted);

/* Releases the spare chunks to the device until it refuses one. */
void backing_release(struct frag_heap *heap, struct backing *b);

/* Unmaps and releases the memory of a range, under live blocks too, and the
 * records of its pages. */
void backing_clear(struct frag_heap *heap, struct backing *b, struct backed *r);

/* Frees the records of spare memory. */
void backing_fini(struct backing *b);

/* Check the invariants. Return NULL or a text that names the fault. The first
 * one adds the pages with memory to *mapped, which the second one takes. */
const char *backed_check(const struct backed *r, uint64_t *mapped);
const char *backing_check(const struct backing *b, uint64_t mapped);

#endif
