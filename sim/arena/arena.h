/* arena.h - the simulated device: a backend (policies/device/backend.h) that
 * computes addresses and holds no memory.
 *
 * The arena accepts nothing that a real device rejects. It models the capacity,
 * the addresses that the driver chooses and the time that each call takes; it
 * has no contents, so a copy only takes time.
 *
 * Source of the driver's address rule and its numbers: recordings of PyTorch
 * 2.11 and probes on an H200, driver 580.159.04.
 */
#ifndef FRAG_SIM_ARENA_ARENA_H
#define FRAG_SIM_ARENA_ARENA_H

#include "policies/device/backend.h"
#include "policies/device/costs.h"

FRAG_BEGIN_DECLS

/* How the arena chooses addresses. */
enum frag_address_rule {
    /* As cudaMalloc and cuMemAddressReserve do. cudaMalloc cuts segments from
     * chunks of 32 MiB, which it reserves from the top of the address space
     * downwards. It selects the newest chunk that has room and the smallest
     * free range in it that fits. Reservations are placed from the bottom of
     * the address space upwards. */
    FRAG_RULE_DRIVER,
    /* For tests: segments touch each other, and no address is used twice. A
     * policy that relies on gaps or on equal addresses fails. */
    FRAG_RULE_HOSTILE,
    /* The addresses of the driver's rule, but a segment uses exactly its own
     * bytes of the device, not units of 2 MiB. For the comparison with an
     * allocator that was recorded on a device that counts in this way. */
    FRAG_RULE_EXACT,
    /* Segments get recorded base addresses (`bases` below). */
    FRAG_RULE_ANCHORED
};

/* Bytes. The simulated device allocates in this unit, and capacities that must
 * be tried one by one are this far apart. */
#define FRAG_CAPACITY_STEP (2 * FRAG_MIB)

/* Bytes of an H200, as torch.cuda.get_device_properties reports them. */
#define FRAG_H200_TOTAL ((frag_size)150109880320)
/* More than any device has. Policies reserve addresses in proportion to the
 * total, and of a larger one the address space cannot hold some. */
#define FRAG_TOTAL_MOST ((frag_size)4 << 40)

struct frag_arena_options {
    frag_size capacity; /* bytes that the device can provide, or
                           FRAG_UNLIMITED */
    frag_size total;    /* bytes that the device reports as its size. 0 selects
                           `capacity`, or FRAG_H200_TOTAL if `capacity` is
                           unlimited. At most FRAG_TOTAL_MOST is reported */
    frag_size limit;    /* of the process (frag_backend.limit); 0: none */
    enum frag_address_rule rule;
    /* For FRAG_RULE_ANCHORED: bases[i] is the address of the i-th segment that
     * segment_alloc allocates. The driver's rule applies instead if there is no
     * i-th base, if sizes[i] is not the requested size, or if that range is
     * occupied. Both arrays have base_count elements and are borrowed. */
    const frag_addr *bases;
    const frag_size *sizes;
    uint64_t base_count;
    /* The same for reservations: range_bases[i] is the address of the i-th
     * reservation of range_sizes[i] bytes that va_reserve makes; range_count
     * elements, borrowed. A row of another size is left for a later call. */
    const frag_addr *range_bases;
    const frag_size *range_sizes;
    uint64_t range_count;
    const struct frag_costs *costs; /* time of each call; NULL selects
                                       frag_costs_h200. Borrowed. */
};

/* Opens an arena; NULL if the host has no memory. The options are copied. The
 * backend belongs to the arena: close every heap on it before the arena. */
struct frag_backend *frag_arena_open(const struct frag_arena_options *opts);
void frag_arena_close(struct frag_backend *arena); /* NULL is allowed */

/* Marks memory as held before the first call, for frag_policy.adopt: an
 * ordinary segment, a reservation, or maps of single granules in a reservation.
 * INVALID if the range is empty, is not below 2^62, overlaps held memory of the
 * same kind or a chunk of the simulated driver, or, except for a segment, is
 * not whole granules; OOM; NOMEM. On error no memory is held, but from then on
 * the arena might not choose these addresses for a segment. */
enum frag_err frag_arena_hold(struct frag_backend *arena, frag_addr addr,
                              frag_size size, enum frag_holding what);

/* Bytes of device memory in use. This is 0 again after a policy's fini. */
frag_size frag_arena_used(const struct frag_backend *arena);

/* The range of capacities at which the arena would have answered every call so
 * far in the same way: *least <= capacity < *below. *least is the largest
 * number of bytes that were in use at one time. *below is the smallest capacity
 * that would have served a refused request, or FRAG_UNLIMITED if no request was
 * refused. A whole run is the same at all these capacities if its policy read
 * neither the capacity nor a total that depends on it (frag_backend.asked). */
void frag_arena_same_for(const struct frag_backend *arena, frag_size *least,
                         frag_size *below);

/* Bytes of address space that are reserved through va_reserve. */
frag_size frag_arena_reserved_va(const struct frag_backend *arena);

FRAG_END_DECLS

#endif
