/* lodge.h - a block whose ends lie in pages that others use in part.
 *
 * The first page of a new block's addresses may show the memory of a page whose
 * high end is free, its last page that of one whose low end is: guests from
 * their first moment, so nothing that lives is copied or unmapped. What lies
 * between are pages of the block's own. The block is apart from all others, in
 * three parts at most; its loans are where the holes were.
 *
 * Of the holes the LODGE_HOLES largest are looked at, and of their ends those
 * taken that leave the fewest pages to be created, then those of which least is
 * left over, then what is found first. Of two ends neither is taken where one
 * alone would do.
 *
 * Source: ours, after the meshes of Mesh (mesh.h) and the stitches of GMLake.
 */
#ifndef FRAG_POLICIES_REMAP_LODGE_H
#define FRAG_POLICIES_REMAP_LODGE_H

#include "policies/mechanism/pages.h"

enum { LODGE_HOLES = 64, LODGE_ENDS = 2 };

/* Which holes give how many bytes at which end of a block; 0: none. The head
 * is free up to the end of a page, the tail from the start of one. */
struct lodging {
    struct page_tile *head, *tail;
    frag_size head_size, tail_size;
    uint64_t pages; /* between them */
};

/* Where a block of size would lodge if `have` pages need not be created. False
 * where no hole is of use. */
bool lodge_find(const struct pages *p, frag_size size, uint64_t have,
                struct lodging *out);

/* Makes the block; its pages are spare. On error what was mapped is held or
 * lost and the rest as it was. NOMEM, DEVICE, and what va_reserve answers. */
enum frag_err lodge_block(struct frag_heap *heap, struct pages *p,
                          const struct lodging *l, frag_addr *addr,
                          struct page_tile **out) FRAG_MUST_CHECK;

#endif
