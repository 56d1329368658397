/* remap_share.h - page sharing: the ends of a new block lie in pages that other
 * blocks use in part. Private to policies/remap/.
 *
 * The first page of a new block's addresses is mapped to the memory of a partly
 * used page whose high end is free, the last page to the memory of one whose
 * low end is free. Each is a guest page of mechanism/pages.h from the start, so
 * no live bytes are copied and no live page is unmapped. The pages between the
 * two ends are the block's own. The block's addresses are apart from all other
 * blocks; the block consists of at most three tiles, and its loans lie where
 * the free ends were.
 *
 * The search tests the ends of the SHARE_HOLES largest held tiles, here called
 * holes. It selects the ends for which the fewest pages must be created; among
 * equals those that leave the fewest bytes of the ends unused; then those found
 * first. It does not use two ends if one alone suffices.
 *
 * Source: ours, after the meshes of Mesh, PLDI 2019, and the stitches of
 * GMLake.
 */
#ifndef FRAG_POLICIES_REMAP_REMAP_SHARE_H
#define FRAG_POLICIES_REMAP_REMAP_SHARE_H

#include "policies/mechanism/pages.h"

enum {
    SHARE_HOLES = 64, /* holes that the search tests */
    SHARE_ENDS = 2,   /* most guest pages of one block */
};

/* The holes that hold the two ends of a block, and the bytes there; NULL and 0:
 * no such end. The block's head lies at the end of a page, its tail at the
 * start of a page. */
struct sharing {
    struct page_tile *head, *tail;
    frag_size head_size, tail_size;
    uint64_t pages; /* whole pages between head and tail */
};

/* Searches for the best sharing of a block of `size` bytes, if `have` pages
 * need not be created. False if no hole helps. */
bool share_find(const struct pages *p, frag_size size, uint64_t have,
                struct sharing *out);

/* Makes the block; its l->pages own pages must be spare. On error, pages that
 * were already mapped are held or lost, and everything else is as before.
 * NOMEM, DEVICE, and the errors of va_reserve. */
enum frag_err share_block(struct frag_heap *heap, struct pages *p,
                          const struct sharing *l, frag_addr *addr,
                          struct page_tile **out) FRAG_MUST_CHECK;

#endif
