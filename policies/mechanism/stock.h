/* stock.h - the memory that a policy has created by pages and mapped nowhere.
 *
 * Memory is created in chunks. A chunk has one or more pages and is created,
 * mapped, unmapped and released as a whole; a page always has `page` bytes. A
 * chunk that is mapped nowhere is spare. pages.h, backing.h and cuda_async map
 * them.
 */
#ifndef FRAG_POLICIES_MECHANISM_STOCK_H
#define FRAG_POLICIES_MECHANISM_STOCK_H

#include "policies/policy.h"

/* The most pages that one request creates: 1 TiB of 2 MiB each, which no device
 * has. A larger request is out of memory at once, so that the records of its
 * pages do not fill the host when the simulated device is unlimited. */
#define PAGES_AT_ONCE ((uint64_t)1 << 19)

struct spare_chunk {
    frag_phys phys;
    uint32_t pages;
};

/* Starts zeroed except page. */
struct stock {
    frag_size page; /* bytes of a page, a multiple of the granularity */
    uint64_t chunk; /* most pages of a new chunk; 0: 1 */
    uint64_t count; /* pages created and not released */
    struct spare_chunk *spare; /* stack */
    uint64_t spare_chunks, spare_room;
    uint64_t spare_pages; /* in all spare chunks */
};

/* Creates chunks until `pages` pages are spare. OOM, DEVICE, NOMEM; the chunks
 * that were created before the error stay spare. OOM without a chunk if more
 * than PAGES_AT_ONCE pages are missing. */
enum frag_err stock_create(struct frag_heap *heap, struct stock *s,
                           uint64_t pages) FRAG_MUST_CHECK;

/* Puts a chunk of at most `most` pages, and at least the lesser of `most` and
 * `chunk`, on top of the spare ones. If no spare chunk has such a size, as many
 * are released as a new one needs. By the calls of an H200 (device/costs.h),
 * releasing three chunks of a page and creating and mapping one takes as long
 * as mapping the three, and the next unmap and map are one call. Errors are
 * DEVICE, also if a release is refused, OOM and NOMEM; chunks may have been
 * released then. */
enum frag_err stock_supply(struct frag_heap *heap, struct stock *s,
                           uint64_t most) FRAG_MUST_CHECK;

/* The chunk on top, and taking it away to be mapped. */
static inline struct spare_chunk stock_top(const struct stock *s)
{
    return s->spare[s->spare_chunks - 1];
}
struct spare_chunk stock_take(struct stock *s);

/* Makes a chunk that was unmapped spare. There is room for all memory to be
 * spare at once, so this never needs host memory. */
void stock_add(struct stock *s, frag_phys phys, uint64_t pages);

/* Releases the chunk on top to the device; false if it refuses. */
bool stock_release_top(struct frag_heap *heap, struct stock *s);

/* Releases spare chunks to the device until it refuses one; true if any was
 * released. */
bool stock_release(struct frag_heap *heap, struct stock *s);

/* Frees the records. */
void stock_fini(struct stock *s);

/* Checks that the counts are right if `mapped` pages are mapped. Returns NULL
 * or a text that names the fault. */
const char *stock_check(const struct stock *s, uint64_t mapped);

#endif
