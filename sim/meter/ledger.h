/* ledger.h - checks that a policy keeps its contract (policies/policy.h).
 *
 * The ledger records every live block, from the answers of the policy, and
 * every range of held memory, from the answers of the backend. It shares no
 * code with any policy. It stores a description of the first fault; every later
 * call that returns an error code then returns FRAG_CONTRACT.
 *
 * All calls are O(log n), except for a block that spans many maps and for a
 * physical memory that is mapped many times.
 */
#ifndef FRAG_SIM_METER_LEDGER_H
#define FRAG_SIM_METER_LEDGER_H

#include "policies/policy.h"

struct frag_ledger;

/* Opens a ledger for at most `owners` live blocks, named 0 to owners - 1. NULL
 * if the host has no memory. */
struct frag_ledger *frag_ledger_open(uint32_t owners);
/* Makes room for more owners. NOMEM; then the ledger is unchanged. */
enum frag_err frag_ledger_grow(struct frag_ledger *l,
                               uint32_t owners) FRAG_MUST_CHECK;
void frag_ledger_close(struct frag_ledger *l); /* NULL is allowed */

/* Records memory that is held from now on. Either a segment: group and memory
 * are 0. Or a map: `memory` names the physical memory, all of which is mapped,
 * and `group` names the reservation; neither is 0. Adjacent maps of one group
 * count as one range; adjacent segments do not. Maps of the same memory share
 * their bytes. NOMEM; CONTRACT if the range is held already, or if the map
 * makes two live blocks share bytes. */
enum frag_err frag_ledger_hold(struct frag_ledger *l, frag_addr addr,
                               frag_size size, uint64_t group,
                               uint64_t memory) FRAG_MUST_CHECK;
/* Removes held memory, as one or several whole ranges. CONTRACT if the memory
 * is not held, or if a live block lies in a segment that is removed. A map
 * under a live block may be removed if another map replaces it before
 * frag_ledger_settle; the ledger does not check that the new map has the same
 * contents. */
enum frag_err frag_ledger_drop(struct frag_ledger *l, frag_addr addr,
                               frag_size size) FRAG_MUST_CHECK;
/* The policy's call is over. CONTRACT if a live block lies on memory that was
 * removed and not replaced. */
enum frag_err frag_ledger_settle(struct frag_ledger *l) FRAG_MUST_CHECK;

/* Checks and records the block that the policy allocated for a request of
 * `requested` bytes. CONTRACT unless the block begins at a multiple of
 * FRAG_ALIGNMENT, has at least the requested size, lies inside one range of
 * held memory, and shares neither addresses nor physical memory with a live
 * block. */
enum frag_err frag_ledger_alloc(struct frag_ledger *l, uint32_t owner,
                                frag_size requested,
                                const struct frag_block *block) FRAG_MUST_CHECK;
/* Removes a block that is freed. CONTRACT if `owner` has no live block, or if
 * the block differs from the one that was allocated. */
enum frag_err frag_ledger_free(struct frag_ledger *l, uint32_t owner,
                               const struct frag_block *block) FRAG_MUST_CHECK;
/* Records the new place of a block that the policy moved. CONTRACT if `owner`
 * has no live block, or if frag_ledger_alloc would reject the new place. */
enum frag_err frag_ledger_move(struct frag_ledger *l, uint32_t owner,
                               const struct frag_block *block) FRAG_MUST_CHECK;

/* Records that bytes were copied to the held memory [dst, dst + size). */
void frag_ledger_copied(struct frag_ledger *l, frag_addr dst, frag_size size);

/* The calls of a policy that may destroy the contents of a live block. A second
 * map of the same memory is none of them, because the first map stays. */
enum frag_disturbance {
    FRAG_UNDISTURBED,
    FRAG_COPIED_OVER, /* a copy wrote to the block's memory, at any address */
    FRAG_REMAPPED,    /* a map under the block was replaced by another map */
    FRAG_MOVED,
};

/* Removes one block from the list of disturbed live blocks. Sets *owner to its
 * owner and *by to its latest disturbance. The order is unspecified. False if
 * the list is empty. A block enters the list when it is disturbed. */
bool frag_ledger_disturbed(struct frag_ledger *l, uint32_t *owner,
                           enum frag_disturbance *by);

/* Records a fault that the caller found, unless the ledger has one already.
 * Always returns CONTRACT. */
enum frag_err frag_ledger_blame(struct frag_ledger *l, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* The description of the first fault; NULL if there is none. */
const char *frag_ledger_fault(const struct frag_ledger *l);

#endif
