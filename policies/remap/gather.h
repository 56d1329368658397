/* gather.h - best fit over pages that are remapped to where blocks need them.
 * Private to policies/remap/.
 *
 * To gather: to collect free pages from several places and to map them under
 * one contiguous range of addresses. Words, from mechanism/pages.h: a span is a
 * range of reserved addresses; tiles divide it. A tile is used by a block, held
 * (free and mapped) or bare (free, without memory). A page is a unit of memory
 * that is mapped as a whole.
 *
 * A request gets the smallest held tile that fits, among equal sizes the one
 * with the lowest address. pages_addr says where in that tile the block lies.
 * This needs no driver call. If no held tile is large enough, pages_place
 * selects addresses for the block, and the pages that are missing there come
 * from these steps, in this order:
 *   1. Pages that are mapped nowhere (spare pages).
 *   2. Free pages anywhere in held tiles. They are unmapped there and mapped
 *      here. First choice is the smallest tile that has all missing pages; else
 *      the largest tiles, one after another, each from its highest page down.
 *   3. Page sharing (remap_share.h): the first and the last bytes of the block
 *      lie in the free bytes of pages that other blocks use in part, so the
 *      block needs fewer pages of its own. This step runs only
 *      if the free bytes in partly used pages are more than `slack` of the
 *      bytes of all pages.
 *   4. The device.
 *
 * With SHARE_EARLY a request may use page sharing before it uses a held tile
 * that fits. All of these must hold:
 *   - the request is of at least one page;
 *   - with page sharing it needs at most EARLY_PAGES whole pages, and fewer
 *     than the block would take from the held tile;
 *   - the free bytes in partly used pages are more than `slack`, as in step 3;
 *   - at most one page in EARLY_DIVISOR is free, which is when a peak may be
 *     near.
 * Its pages then come from steps 1 and 2.
 *
 * With PACK_FULL, steps 2 and 3 run only when the device is full, and
 * SHARE_EARLY has no effect. While the device has memory for the missing pages,
 * a request that no held tile can serve gets new pages at once: no page is
 * remapped or shared, and the policy does not wait. New pages are created in
 * chunks. A chunk costs as many driver calls as a page, but is also unmapped as
 * a whole, so it cannot be remapped while a part of it is in use. The size of a
 * chunk, in bytes, where C is the capacity, F the share of C that is still
 * available, P the bytes of all pages of the policy, and M the missing bytes of
 * the request:
 *
 *   chunk         F^3 C / `chunks`
 *   at least      one page
 *   at most       the larger of CHUNK_PAGES pages and P / CHUNK_GROWTH
 *   a long block  at least the smaller of M / CHUNKS_OF_BLOCK and
 *                 C / CHUNKS_OF_DEVICE, whatever the bounds above say
 *
 * A request that misses less than a chunk gets a whole chunk if the addresses
 * above the block are bare. So a program far from the capacity needs few calls,
 * and near the capacity new memory is single pages, except under very long
 * blocks. C is the bound of the backend (frag_backend_bound) until the device
 * refuses memory earlier; from then until the next trim it is the memory that
 * the policy had.
 *
 * Before the first unmap of a request, the policy waits for the device, because
 * queued work may still use the mapped page. The wait also completes the frees
 * that were pending, so the request then searches for a tile again. Live blocks
 * keep their addresses and stay mapped.
 */
#ifndef FRAG_POLICIES_REMAP_GATHER_H
#define FRAG_POLICIES_REMAP_GATHER_H

#include "policies/mechanism/pages.h"

enum gather_share { SHARE_LATE, SHARE_EARLY };

enum gather_pack { PACK_ALWAYS, PACK_FULL };

/* Upper bounds of a chunk, in pages and as a share of all pages. Ten pages of 2
 * MiB are a segment of PyTorch's allocator for requests of 1 to 10 MiB. */
enum { CHUNK_PAGES = 10, CHUNK_GROWTH = 4 };

/* Bounds of a chunk for a request that misses many pages, from measurements on
 * recorded programs: 3 of 17 recordings run at 1.02 times their peak with
 * CHUNKS_OF_DEVICE at 1536 and fail with 1024. */
enum { CHUNKS_OF_BLOCK = 32, CHUNKS_OF_DEVICE = 1536 };

/* Limits of SHARE_EARLY, from measurements on recorded programs. Page sharing
 * of longer blocks hardly reduces the peak. If more pages are free, most of the
 * sharing happens where no peak follows. */
enum { EARLY_PAGES = 2, EARLY_DIVISOR = 3 };

/* The state of a policy that consists of gathering only. */
struct gather {
    struct pages pages;
    frag_size page, span; /* bytes; set by PAGE_PARAM and SPAN_PARAM */
    uint64_t budget; /* most pages that steps 2 and 3 move for one request while
                        the device has memory; no limit once it refuses */
    double slack;    /* of step 3: a fraction of the bytes of all pages */
    uint32_t share;  /* when to share pages: enum gather_share */
    uint32_t pack;   /* when to do steps 2 and 3: enum gather_pack */
    uint64_t chunks; /* with PACK_FULL: into how many chunks the whole device is
                        divided while all of it is available */
    uint64_t full;   /* pages held when the device refused last, UINT64_MAX: it
                        did not since the last trim */
    uint64_t limit;  /* with PACK_FULL: pages that the device has, as far as
                        is known */
};

/* Start and end of a policy whose state is a struct gather with its parameters
 * set. */
enum frag_err gather_init(struct frag_heap *heap);
void gather_fini(struct frag_heap *heap);

/* Allocates a block of `size` bytes, whole quanta, for req; the block's node is
 * its tile. The errors are those of frag_policy.alloc. */
enum frag_err gather_alloc(struct frag_heap *heap,
                           const struct frag_request *req, frag_size size,
                           struct frag_block *out) FRAG_MUST_CHECK;
void gather_free(struct frag_heap *heap, const struct frag_block *block);
void gather_free_requested(struct frag_heap *heap,
                           const struct frag_block *block);

/* Returns NULL, or a text that names the broken invariant. */
const char *gather_check(const struct frag_heap *heap);

/* Returns every whole free page to the device. */
void gather_trim(struct frag_heap *heap);

#endif
