/* gather.h - best fit over pages that are remapped to where blocks need them.
 *
 * A request takes the tightest held tile, of equals the lowest, where
 * pages_addr says: that costs no call. If none is large enough, the block goes
 * where pages_place says, and the pages that are missing there come
 *   1. from pages that are mapped nowhere,
 *   2. from free pages anywhere in held memory, unmapped there and mapped here:
 *      first the tightest tile that has them all, else the largest tiles one
 *      after another, from each its highest pages,
 *   3. from partly used pages that can share memory, where the policy wants
 *      that (mechanism/mesh.h),
 *   4. or fewer are missing where the block's ends lodge in partly used pages
 *      (mechanism/lodge.h), if what is free in those is more than `slack` of
 *      all pages,
 *   5. from the device.
 * Where lodging is early a request of a page or more may do so before it takes
 * a tile: if it would then need fewer whole pages than the tile loses, at most
 * EARLY_PAGES, what is free in partly used pages is more than `slack`, and at
 * most one page of EARLY_SHARE is free, which is when a peak may be near. Its
 * pages come from steps 1 and 2.
 * Before a mapped page is taken away the device is waited for, once a request:
 * queued work may still use it. That also completes the frees that only waited,
 * and the request looks for a tile again. Live blocks keep their addresses, and
 * but for step 3 nothing is copied and what lives stays mapped.
 *
 * The state of a policy that is no more than this, and what its table needs.
 */
#ifndef FRAG_POLICIES_REMAP_GATHER_H
#define FRAG_POLICIES_REMAP_GATHER_H

#include "policies/mechanism/pages.h"

enum gather_lodge { LODGE_LATE, LODGE_EARLY };

/* Measured on recorded programs: longer blocks lodge at hardly a gain, and with
 * more pages free most that lodges is for no peak. */
enum { EARLY_PAGES = 2, EARLY_SHARE = 3 };

struct gather {
    struct pages pages;
    frag_size page, span; /* PAGE_PARAM, SPAN_PARAM */
    uint64_t budget; /* steps 2 to 4 move at most so many pages for a request
                        while the device has memory, any number when it refuses
                      */
    double slack;    /* step 4; a share of the pages */
    uint32_t lodge;  /* enum gather_lodge */
    bool mesh;       /* step 3; never on a busy backend */
};

enum frag_err gather_init(struct frag_heap *heap);
void gather_fini(struct frag_heap *heap);

/* A block of size, in whole quanta, for req; its node is its tile. The errors
 * of a policy's alloc. */
enum frag_err gather_alloc(struct frag_heap *heap,
                           const struct frag_request *req, frag_size size,
                           struct frag_block *out) FRAG_MUST_CHECK;
void gather_free(struct frag_heap *heap, const struct frag_block *block);
void gather_free_requested(struct frag_heap *heap,
                           const struct frag_block *block);

/* NULL, or what is broken. */
const char *gather_check(const struct frag_heap *heap);

/* Returns every whole free page. */
void gather_trim(struct frag_heap *heap);

#endif
