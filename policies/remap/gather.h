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
 * Before the first unmap of a request, the policy waits for the device, because
 * queued work may still use the mapped page. The wait also completes the frees
 * that were pending, so the request then searches for a tile again. Live blocks
 * keep their addresses and stay mapped.
 */
#ifndef FRAG_POLICIES_REMAP_GATHER_H
#define FRAG_POLICIES_REMAP_GATHER_H

#include "policies/mechanism/pages.h"

/* The state of a policy that consists of gathering only. */
struct gather {
    struct pages pages;
    frag_size page, span; /* bytes; set by PAGE_PARAM and SPAN_PARAM */
    uint64_t budget; /* most pages that steps 2 and 3 move for one request while
                        the device has memory; no limit once it refuses */
    double slack;    /* of step 3: a fraction of the bytes of all pages */
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
