/* arena.h - the simulated device: a backend of arithmetic.
 *
 * Never kinder than a device. Two address rules: `driver` is what cudaMalloc
 * and cuMemAddressReserve of driver 580 do on an H200 (found from recordings:
 * 32 MiB chunks from the top of the address space down, best fit inside the
 * most recent chunk that has room; reservations from the bottom up), `hostile`
 * is for tests: segments touch and addresses are never reused.
 *
 * Source of the rule and its numbers: recordings of PyTorch 2.11 and probes on
 * an H200, driver 580.159.04.
 */
#ifndef FRAG_SIM_ARENA_ARENA_H
#define FRAG_SIM_ARENA_ARENA_H

#include "policies/device/backend.h"
#include "policies/device/costs.h"

FRAG_BEGIN_DECLS

enum frag_address_rule {
    FRAG_RULE_DRIVER,
    FRAG_RULE_HOSTILE,
    FRAG_RULE_ANCHORED
};

/* An H200 as torch.cuda.get_device_properties sees it. */
#define FRAG_H200_TOTAL ((frag_size)150109880320)

struct frag_arena_options {
    frag_size capacity; /* what the device can give, FRAG_UNLIMITED */
    frag_size total; /* as reported; 0: capacity, or an H200's if unlimited */
    enum frag_address_rule rule;
    /* FRAG_RULE_ANCHORED: bases[i] is the address of the i-th segment_alloc, as
     * recorded; once they are used up or where sizes[i] is not the size asked,
     * the driver's rule takes over. Borrowed. */
    const frag_addr *bases;
    const frag_size *sizes;
    uint64_t base_count;
    const struct frag_costs *costs; /* of calls; NULL: an H200's. Borrowed. */
};

/* NULL if the host has no memory. The backend is the arena's; close it after
 * the heap. */
struct frag_backend *frag_arena_open(const struct frag_arena_options *opts);
void frag_arena_close(struct frag_backend *arena); /* NULL is fine */

/* Memory that was held before the first call, for frag_policy.adopt: an
 * ordinary segment, or a mapped range of an expandable one. INVALID if it
 * overlaps what is held, OOM, NOMEM. */
enum frag_err frag_arena_hold(struct frag_backend *arena, frag_addr addr,
                              frag_size size, bool expandable);

/* Bytes of device memory in use; what a fini has to bring back to 0. */
frag_size frag_arena_used(const struct frag_backend *arena);
/* The capacities at which every answer so far would have been the same, *least
 * to *below - 1: from the most bytes that were in use at once to what the least
 * refused request would have needed, FRAG_UNLIMITED if none was refused. A run
 * is the same on all of them if its policy did not ask for the capacity, nor
 * for a total that goes with it (frag_backend.asked). */
void frag_arena_same_for(const struct frag_backend *arena, frag_size *least,
                         frag_size *below);
/* Bytes of address space reserved through va_reserve. */
frag_size frag_arena_reserved_va(const struct frag_backend *arena);

FRAG_END_DECLS

#endif
