/* meter.h - a backend that passes every call on and keeps the books.
 *
 * It stands between a policy and the arena or a device, so that what a policy
 * holds is measured where it is taken, and no policy can flatter itself.
 *
 * `reserved` is physical memory: segments, and physical allocations from their
 * creation until they are released and mapped nowhere. Its peak is taken when a
 * segment or a map has succeeded and by meter_settle, at the end of each call
 * of the policy: memory created for a map that then fails is no peak, as in
 * PyTorch's counters.
 *
 * Failure of the host is answered with NOMEM, with the device as it was.
 */
#ifndef FRAG_SIM_METER_METER_H
#define FRAG_SIM_METER_METER_H

#include "policies/policy.h"
#include "sim/measures.h"
#include "sim/meter/ledger.h"
#include "sim/ranges.h"

/* A segment, or a reservation with what is mapped in it. */
struct segment {
    frag_addr addr;
    frag_size size;
    frag_size split_mask; /* all ones for a segment, 0 for a reservation, whose
                             free bytes are never counted as inactive split */
    uint32_t live;        /* blocks in it; kept by the engine */
    bool has_owner;       /* a block was handed out in it */
    frag_stream stream;   /* of the first one */
    frag_pool pool;
    uint32_t next_free;
};

/* A range of held memory: a segment, or one map of a reservation. */
struct held_range {
    struct range range; /* first */
    uint32_t segment;   /* index */
    struct phys_use *phys;
};

enum {
    METER_GRANULE_BITS = 21,
    METER_LEAF_BITS = 13,
    METER_ROOT_BITS = 13,
    METER_ADDRESS_BITS = 47, /* the sum */
    METER_NOWHERE = 0        /* segment index of an address that is not held */
};
#define METER_SHARED UINT32_MAX /* a granule with several ranges */

struct meter {
    struct frag_backend base;
    struct frag_backend_ops ops; /* with NULL where `under` has NULL */
    struct frag_backend *under;
    struct frag_ledger *ledger; /* NULL: no proof */

    /* Called by synchronize before it returns. */
    void (*synchronized)(void *user);
    void *user;
    /* Called before a held range comes or goes, but for one that comes and
     * makes reserved_peak higher. NULL: nobody asks. */
    void (*rearranges)(void *run);
    void *run;

    uint64_t changes; /* goes up with each call that could matter to a number */
    frag_size reserved, reserved_peak;
    uint64_t segments_now, segments_peak;
    uint64_t calls[FRAG_CALL_COUNT];
    frag_size bytes_moved, reserved_va;
    frag_time spent; /* ns by the clock of `under`, over all calls */

    /* Since the last settle: the device refused; it was asked again after
     * that; the policy waited for the device; after that it gave memory back,
     * or mapped or copied some. */
    bool refused, asked_again, waited, gave_back, rearranged;

    bool has_aliases; /* memory was mapped at a second address at some time */

    struct segment *segments; /* [0] is nowhere */
    uint32_t segment_count, segment_room, segment_free;
    struct ranges held;         /* of struct held_range */
    struct ranges reservations; /* of struct held_range */
    struct ranges phys;         /* of struct phys_use, by handle, unreleased */
    uint32_t **index;           /* [root][leaf]: the segment of a granule */
};

/* Starts on `under`, which is borrowed. NOMEM, then nothing is to be closed. */
enum frag_err meter_open(struct meter *m, struct frag_backend *under,
                         struct frag_ledger *ledger);
/* Gives back to `under` whatever is still held, tells it what the policy asked
 * for, and frees the books. */
void meter_close(struct meter *m);

/* Memory held before the first call: for adopt. UNSUPPORTED if `under` cannot;
 * INVALID, OOM, NOMEM. */
enum frag_err meter_hold(struct meter *m, const struct frag_held_segment *s);

/* The policy's call is over: takes the peak, and says whether in that call the
 * device had refused and was asked again or the policy waited for it, unless
 * that was only to map or copy what it held. */
bool meter_settle(struct meter *m);

uint32_t meter_find_slowly(const struct meter *m, frag_addr addr);

/* Index of the segment or reservation that holds the address;
 * METER_NOWHERE if none does. */
static inline uint32_t meter_find(const struct meter *m, frag_addr addr)
{
    uint64_t granule = addr >> METER_GRANULE_BITS;
    uint64_t root = granule >> METER_LEAF_BITS;
    const uint32_t *leaf;
    uint32_t found;

    if (__builtin_expect(root >> METER_ROOT_BITS != 0, 0) || !m->index[root])
        return meter_find_slowly(m, addr);
    leaf = m->index[root];
    found = leaf[granule & ((1u << METER_LEAF_BITS) - 1)];
    return __builtin_expect(found == METER_SHARED, 0)
               ? meter_find_slowly(m, addr)
               : found;
}

#endif
