/* arena_parts.h - declarations that the files of the arena share. Private to
 * sim/arena/.
 *
 * Each file calls only the files below it in this list:
 * arena.c         open, close, the table of functions, segments
 * arena_vmm.c     reservations, physical memory, maps
 * arena_driver.c  the addresses that the driver chooses
 * account.c       the memory in use, the time that calls take
 */
#ifndef FRAG_SIM_ARENA_ARENA_PARTS_H
#define FRAG_SIM_ARENA_ARENA_PARTS_H

#include "sim/arena/arena.h"
#include "sim/ranges.h"

/* Free address space, as a set of holes. A chunk is cut from a hole that is at
 * least `spare` bytes larger than the chunk: from the top end of the highest
 * such hole, or from the bottom end of the lowest. */
struct space {
    struct ranges holes;
    frag_size spare;
    bool from_top;
};

/* A range in use: a segment, a reservation, or memory for smaller ranges. */
struct arena_range {
    struct range range;         /* must be the first member */
    struct driver_chunk *chunk; /* the chunk that contains it; NULL: none */
    frag_size requested;        /* requested size, of a segment */
    frag_size charge;           /* bytes of device memory that it uses */
};

/* All chunks that have the same unit of allocation. */
struct level {
    struct ranges by_age;  /* one range for each chunk: `at` is its number,
                              which is highest for the newest chunk; `size` is
                              its widest free range */
    uint64_t ages;         /* number of the newest chunk */
    frag_size unit, chunk; /* bytes of a unit and of a chunk */
};

/* The address from which the hostile rule goes up and down, and the end of all
 * addresses. */
#define HOSTILE_MID ((frag_addr)1 << 46)
#define ADDRESS_END ((frag_addr)1 << 47)

/* A physical allocation. Its handle is its index in arena.phys, plus 1. */
struct phys {
    frag_size size;     /* bytes; 0: this entry is free */
    uint64_t maps;      /* number of maps that use it */
    bool released;      /* the handle was released */
    uint32_t next_free; /* index of the next free entry, plus 1; 0: none */
};

struct arena {
    struct frag_backend base;
    struct frag_arena_options opts;
    frag_size used;           /* bytes of device memory in use */
    frag_size reserved_va;    /* bytes of reserved address space */
    frag_size refused_min;    /* see frag_arena_same_for */
    frag_time clock;          /* ns that all calls have taken */
    uint64_t segments_served; /* segments allocated so far */
    uint64_t range_next;      /* first row of opts.range_bases that may
                                 be unused */
    bool *range_used;         /* [opts.range_count] */
    bool side_streams;        /* a stream other than index 0 was used */

    struct ranges segments, reservations, maps;

    /* The driver's rule: address space of cudaMalloc (high) and of reservations
     * (low); chunks of 2 MiB units (coarse) and of 512-byte units (fine). */
    struct space high, low;
    struct level coarse, fine;

    /* The hostile rule: used addresses are [down, up); the next segment goes
     * above or below them. */
    frag_addr up, down;
    bool upwards;

    struct phys *phys;
    uint32_t phys_count, phys_room;
    uint32_t phys_free; /* index of the first free entry, plus 1; 0: none */
};

static inline struct arena *arena_of(const struct frag_backend *mem)
{
    return (struct arena *)(uintptr_t)mem;
}

/* Advances the clock by the cost of a call. */
void arena_tick(struct arena *a, enum frag_driver_call call, frag_size size);
/* Adds `size` bytes to the memory in use: OOM if that exceeds the capacity. */
enum frag_err arena_charge(struct arena *a, frag_size size);
/* The two steps of arena_charge: the check, which records a refusal, and the
 * addition. */
bool arena_refuses(struct arena *a, frag_size size);
void arena_add_used(struct arena *a, frag_size size);

/* Sets up the address space of a driver at its first call, with the chunks that
 * belong to its context. NOMEM. */
enum frag_err driver_open(struct arena *a);
void driver_close(struct arena *a);
/* Allocates and charges a range of `size` bytes, as cudaMalloc does. OOM,
 * NOMEM. */
enum frag_err driver_alloc(struct arena *a, frag_size size,
                           struct arena_range **out);
/* Reserves a range of addresses, as cuMemAddressReserve does. OOM, NOMEM. */
enum frag_err driver_reserve(struct arena *a, frag_size size,
                             struct arena_range **out);
/* Returns the memory and the addresses of a range, and frees the struct. */
void driver_free(struct arena *a, struct arena_range *range);
/* Withdraws addresses permanently, so that the driver never allocates them.
 * INVALID if one of its chunks contains some of them; NOMEM. */
enum frag_err driver_withdraw(struct arena *a, frag_addr addr, frag_size size);
/* Allocates the memory that the driver itself uses for further streams. */
void driver_side_streams(struct arena *a);

/* The virtual-memory calls of frag_backend_ops. */
enum frag_err vmm_reserve(struct frag_backend *mem, frag_size size,
                          frag_addr *addr);
enum frag_err vmm_free(struct frag_backend *mem, frag_addr addr,
                       frag_size size);
enum frag_err vmm_create(struct frag_backend *mem, frag_size size,
                         frag_phys *phys);
enum frag_err vmm_release(struct frag_backend *mem, frag_phys phys,
                          frag_size size);
enum frag_err vmm_map(struct frag_backend *mem, frag_addr addr, frag_size size,
                      frag_phys phys);
enum frag_err vmm_unmap(struct frag_backend *mem, frag_addr addr,
                        frag_size size);
/* Makes a reservation at this address, which nothing overlaps. INVALID,
 * NOMEM. */
enum frag_err vmm_hold(struct arena *a, frag_addr addr, frag_size size);
/* Maps each granule of a range of a reservation. The handles are released, so
 * the memory is freed when it is unmapped. INVALID, OOM, NOMEM. */
enum frag_err vmm_hold_maps(struct arena *a, frag_addr addr, frag_size size);
/* Frees all reservations, maps and physical memory. */
void vmm_close(struct arena *a);

#endif
