/* ledger.h - the proof that a policy keeps its contract.
 *
 * The ledger knows every live block and every range of memory that is held,
 * each from the outside: blocks from the policy's answers, memory from the
 * backend's. It shares no code with any policy. A fault is told in words, the
 * first one stays, and every later call answers FRAG_CONTRACT too.
 *
 * All calls are O(log n), but for a block over many maps and a memory with
 * many maps.
 */
#ifndef FRAG_SIM_METER_LEDGER_H
#define FRAG_SIM_METER_LEDGER_H

#include "policies/policy.h"

struct frag_ledger;

/* A ledger of at most `owners` live blocks, named 0 to owners - 1. NULL if the
 * host has no memory. */
struct frag_ledger *frag_ledger_open(uint32_t owners);
void frag_ledger_close(struct frag_ledger *l); /* NULL is fine */

/* Memory comes: a segment (group 0), or a map of all of the physical memory
 * that `memory` names in the reservation that `group` names; both are not 0
 * then. Maps of one group that touch count as one range, segments never do.
 * Maps of one memory show the same bytes. NOMEM, CONTRACT if it is held already
 * or shows a live block the bytes of another. */
enum frag_err frag_ledger_hold(struct frag_ledger *l, frag_addr addr,
                               frag_size size, uint64_t group,
                               uint64_t memory) FRAG_MUST_CHECK;
/* Memory goes, as whole ranges. CONTRACT if a live block lies in a segment that
 * goes, or if it is not held. A map may go from under a live block if one comes
 * back there before settle; that it shows what was there is not proved here. */
enum frag_err frag_ledger_drop(struct frag_ledger *l, frag_addr addr,
                               frag_size size) FRAG_MUST_CHECK;
/* The policy's call is over: every live block has memory. CONTRACT. */
enum frag_err frag_ledger_settle(struct frag_ledger *l) FRAG_MUST_CHECK;

/* The policy's answer to a request of `asked` bytes: on a multiple of
 * FRAG_ALIGNMENT, not smaller than asked, wholly inside one range of held
 * memory, over no live block, neither in addresses nor in memory. CONTRACT. */
enum frag_err frag_ledger_alloc(struct frag_ledger *l, uint32_t owner,
                                frag_size asked,
                                const struct frag_block *block) FRAG_MUST_CHECK;
/* The block goes back, as it was given, and not twice. CONTRACT. */
enum frag_err frag_ledger_free(struct frag_ledger *l, uint32_t owner,
                               const struct frag_block *block) FRAG_MUST_CHECK;
/* The block has a new place, as good as that of an answer. CONTRACT. */
enum frag_err frag_ledger_move(struct frag_ledger *l, uint32_t owner,
                               const struct frag_block *block) FRAG_MUST_CHECK;

/* Bytes were copied to held memory [dst, dst + size). */
void frag_ledger_copied(struct frag_ledger *l, frag_addr dst, frag_size size);

/* What can cost a live block its bytes, by the policy's calls alone. Memory
 * that is mapped a second time disturbs nobody: the first map stays. */
enum frag_disturbance {
    FRAG_UNDISTURBED,
    FRAG_COPIED_OVER, /* a copy went to its memory, at whatever address */
    FRAG_REMAPPED,    /* a map went from under it and another one came */
    FRAG_MOVED,
};

/* Takes a live block off those that were disturbed since they were handed out
 * or last taken, in no order that matters; by is the last that happened to it.
 * False if none is left. */
bool frag_ledger_disturbed(struct frag_ledger *l, uint32_t *owner,
                           enum frag_disturbance *by);

/* Notes a fault that somebody else found. Always CONTRACT. */
enum frag_err frag_ledger_blame(struct frag_ledger *l, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* The first fault in words; NULL while there is none. */
const char *frag_ledger_fault(const struct frag_ledger *l);

#endif
