/* mesh.h - pages whose used bytes do not overlap share one page's memory.
 *
 * The used bytes of one page are copied to the same places of another one that
 * are free there, and its addresses then show the other's memory: blocks keep
 * their addresses and a page is spare. Who has nothing to lend or to give takes
 * part once: a guest stays one until all of it is free, a host becomes no
 * guest.
 *
 * The emptiest page goes first, of equals the lowest, to the fullest that has
 * its places free, of equals the highest. Places are told apart at CELLS to a
 * page; free ranges of less than a cell are not looked at, nor more than
 * MESH_PAGES pages, those of the largest free ranges. A page in more than
 * MESH_PIECES pieces stays where it is.
 *
 * Source: Powers, Tench, Berger and McGregor, "Mesh: Compacting Memory
 * Management for C/C++ Applications", PLDI 2019. There pages have blocks of one
 * size and pairs are found by chance; the order here is ours.
 */
#ifndef FRAG_POLICIES_REMAP_MESH_H
#define FRAG_POLICIES_REMAP_MESH_H

#include "policies/mechanism/pages.h"

enum { MESH_CELLS = 64, MESH_PAGES = 256, MESH_PIECES = 64 };

/* Meshes until `spot->pages` pages are spare or `budget` have been moved, and
 * says how many were; pages that a block of size at the spot touches stay as
 * they are. All work has been waited for and no free is pending; copies are
 * queued on `stream` and waited for, and nobody may queue other work in
 * between. NOMEM, DEVICE; then the pages meshed before stay so. */
enum frag_err mesh_pages(struct frag_heap *heap, struct pages *p,
                         const struct spot *spot, frag_size size,
                         uint64_t budget, frag_stream stream,
                         uint64_t *moved) FRAG_MUST_CHECK;

#endif
