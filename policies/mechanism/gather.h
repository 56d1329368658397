/* gather.h - best fit over pages that are remapped to where blocks need them.
 *
 * A request takes the tightest held tile, of equals the lowest, where
 * pages_seat says: that costs no call. If none is large enough, the block goes
 * where pages_place says, and the pages that are missing there come
 *   1. from pages that are mapped nowhere,
 *   2. from free pages anywhere in held memory, unmapped there and mapped here:
 *      first the tightest tile that has them all, else the largest tiles one
 *      after another, from each its highest pages,
 *   3. from the device.
 * Before a mapped page is taken away the device is waited for, once a request:
 * queued work may still use it. That also completes the frees that only waited,
 * and the request looks for a tile again. Live blocks keep their addresses and
 * nothing is copied.
 */
#ifndef FRAG_GATHER_H
#define FRAG_GATHER_H

#include "policies/mechanism/pages.h"

/* A block of size, in whole quanta; its node is its tile. Step 2 takes at most
 * `budget` pages while the device has memory, any number when it refuses. The
 * errors of a policy's alloc. */
enum frag_err gather_alloc(struct frag_heap *heap, struct pages *p,
                           frag_size size, uint64_t budget,
                           struct frag_block *out) FRAG_MUST_CHECK;

/* Returns every whole free page. */
void gather_trim(struct frag_heap *heap, struct pages *p);

#endif
