/* mesh.h - meshing: two pages whose used bytes do not overlap share the memory
 * of one page. Private to policies/remap/.
 *
 * The used bytes of one page, the guest, are copied to the same offsets of
 * another page, the host, where they are free. The guest's addresses are then
 * mapped to the host's memory. Blocks keep their addresses, and the guest's own
 * memory is spare. A guest stays a guest until all of it is free. A host can
 * receive more guests, but cannot itself be a guest.
 *
 * The page with the fewest used bytes is meshed first, among equals the one
 * with the lowest address. Its host is the page with the most used bytes whose
 * bytes at these offsets are free, among equals the one with the highest
 * address. A bitmap says which of the MESH_BITS equal slices of a page are
 * used. Free ranges smaller than a slice are ignored. At most MESH_PAGES pages
 * are compared, those with the largest free ranges. A page with more than
 * MESH_TILES used tiles is not moved.
 *
 * Source: Powers, Tench, Berger and McGregor, "Mesh: Compacting Memory
 * Management for C/C++ Applications", PLDI 2019. There all blocks of a page
 * have one size, and a random search finds the pairs; the order here is ours.
 */
#ifndef FRAG_POLICIES_REMAP_MESH_H
#define FRAG_POLICIES_REMAP_MESH_H

#include "policies/mechanism/pages.h"

enum {
    MESH_BITS = 64,   /* slices of a page */
    MESH_PAGES = 256, /* most pages that are compared */
    MESH_TILES = 64,  /* most used tiles of a page that is moved */
};

/* Meshes pages until spot->pages pages are spare or `budget` pages have been
 * moved; *moved is their number, set on failure too. Pages that a block of
 * `size` bytes at the spot would touch are not meshed. The caller has waited
 * for all queued work, and no free is pending. Copies are queued on `stream`
 * and waited for; no other work may be queued meanwhile. NOMEM, DEVICE: the
 * pages that were meshed before stay meshed. */
enum frag_err mesh_pages(struct frag_heap *heap, struct pages *p,
                         const struct spot *spot, frag_size size,
                         uint64_t budget, frag_stream stream,
                         uint64_t *moved) FRAG_MUST_CHECK;

#endif
