/* meter.h - a backend that passes every call on to another backend and counts
 * calls and bytes.
 *
 * The meter is placed between a policy and the arena or a device. The memory
 * that a policy holds is therefore measured without the policy's help.
 *
 * `reserved` is physical memory: segments, and physical allocations from their
 * creation until they are both released and not mapped anywhere. The peak of
 * `reserved` is updated after each successful segment_alloc and map, and by
 * meter_settle at the end of each call of the policy. Memory that was created
 * for a map that then fails is therefore not part of the peak, as in PyTorch's
 * counters.
 *
 * If the host has no memory, a call returns NOMEM, and the device is unchanged.
 */
#ifndef FRAG_SIM_METER_METER_H
#define FRAG_SIM_METER_METER_H

#include "policies/device/relay.h"
#include "policies/policy.h"
#include "sim/measures.h"
#include "sim/meter/ledger.h"
#include "sim/ranges.h"

/* A segment, or a reservation with the maps in it. */
struct segment {
    frag_addr addr;
    frag_size size;
    frag_size split_mask; /* all ones for a segment, 0 for a reservation: the
                             free bytes of a reservation never count as inactive
                             split */
    uint32_t live;        /* live blocks in it; maintained by the engine */
    bool has_owner;       /* a block was allocated in it */
    frag_stream stream;   /* of the first block */
    frag_pool pool;       /* of the first block */
    uint32_t next_free;   /* next free entry of the table of segments */
};

/* A range of held memory: a segment, or one map of a reservation. */
struct held_range {
    struct range range;    /* must be the first member */
    uint32_t segment;      /* index in meter.segments */
    struct phys_use *phys; /* the mapped memory; NULL for a segment */
};

enum {
    METER_GRANULE_BITS = 21,
    METER_LEAF_BITS = 13,
    METER_ROOT_BITS = 13,
    METER_ADDRESS_BITS = 47, /* the sum of the three */
    METER_NOWHERE = 0        /* segment index of an address that is not held */
};
#define METER_SHARED                                        \
    UINT32_MAX /* index entry of a granule with two or more \
                  segments */

struct meter {
    union { /* base is that of the relay */
        struct frag_relay relay;
        struct frag_backend base;
    };
    struct frag_ledger *ledger; /* NULL: answers are not checked */
    bool guards_limit; /* refuses what exceeds base.limit, for a policy without
                          FRAG_OWNS_LIMIT */

    /* Called by synchronize before it returns; may be NULL. */
    void (*synchronized)(void *user);
    void *user;
    /* Called before the set of held ranges changes, except if a range is added
     * that raises reserved_peak. May be NULL. */
    void (*rearranges)(void *run);
    void *run;
    /* Called after a segment or a map was added or removed: `call` is
     * SEGMENT_ALLOC, SEGMENT_FREE, MAP or UNMAP. `same` is the address of the
     * first map of the memory if a MAP is a further one, else 0. May be
     * NULL. */
    void (*changed)(void *listener, enum frag_call call, frag_addr addr,
                    frag_size size, frag_addr same);
    void *listener;

    uint64_t changes; /* incremented by each call that may change a number */
    frag_size reserved, reserved_peak;
    frag_size acquired; /* sum of all growth of `reserved` */
    uint64_t segments_now, segments_peak;
    uint64_t calls[FRAG_CALL_COUNT]; /* successful calls */
    frag_size bytes_moved, reserved_va;
    frag_time spent; /* ns by the clock of `under`, over all calls */

    /* The events since the last meter_settle: the device refused memory;
     * the policy requested memory again after that; the policy waited for the
     * device; after the wait, it returned memory; after the wait, it mapped or
     * copied memory. */
    bool refused, retried, waited, returned, rearranged;

    bool has_aliases; /* some memory was mapped at two addresses at one time */

    struct segment *segments; /* entry 0 is METER_NOWHERE */
    uint32_t segment_count, segment_room;
    uint32_t segment_free;      /* first free entry; 0: none */
    struct ranges held;         /* of struct held_range */
    struct ranges reservations; /* of struct held_range */
    struct ranges phys;         /* of struct phys_use, by handle, unreleased */
    uint32_t **index;           /* [root][leaf]: the segment of a granule */
};

/* Opens a meter on `under`, which is borrowed, as is the ledger. NOMEM; then
 * the meter need not be closed. */
enum frag_err meter_open(struct meter *m, struct frag_backend *under,
                         struct frag_ledger *ledger);
/* Returns all memory that is still held to `under`, adds the policy's
 * `asked` flags and the answers of its limit to those of `under`, and frees the
 * books. */
void meter_close(struct meter *m);

/* Set what is called from now on, see above, and the bound that the policy
 * reads. */
static inline void meter_on_wait(struct meter *m,
                                 void (*synchronized)(void *user), void *user)
{
    m->synchronized = synchronized;
    m->user = user;
}

static inline void meter_on_change(struct meter *m,
                                   void (*changed)(void *, enum frag_call,
                                                   frag_addr, frag_size,
                                                   frag_addr),
                                   void *listener)
{
    m->changed = changed;
    m->listener = listener;
}

static inline void meter_set_bound(struct meter *m, struct frag_bound bound)
{
    *(bound.kind == FRAG_BOUND_LIMIT ? &m->base.limit : &m->base.capacity) =
        bound.bytes;
}

/* Marks a segment as held before the first call, for frag_policy.adopt.
 * UNSUPPORTED if `under` has no hold(); INVALID, OOM, NOMEM. */
enum frag_err meter_hold(struct meter *m, const struct frag_held_segment *s);

/* Ends a call of the policy: updates the peak and resets the flags above.
 * Returns whether the policy retried in that call: memory was requested again
 * after a refusal, or the policy waited for the device. A wait does not count
 * if the policy only mapped or copied memory after it and returned none. */
bool meter_settle(struct meter *m);

/* As meter_find, by a search in the set of held ranges: O(log n). */
uint32_t meter_find_slowly(const struct meter *m, frag_addr addr);

/* Index of the segment or reservation that holds the address; METER_NOWHERE if
 * the address is not held. */
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
