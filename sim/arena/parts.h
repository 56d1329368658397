/* parts.h - what the files of the arena share. Private to sim/arena/.
 *
 * Each file calls only those below it:
 * arena.c    open, close, the table of functions, segments
 * vmm.c      reservations, physical memory, maps
 * driver.c   the addresses that the driver chooses
 * account.c  the memory in use, the time that calls take
 */
#ifndef FRAG_SIM_ARENA_PARTS_H
#define FRAG_SIM_ARENA_PARTS_H

#include "sim/arena/arena.h"
#include "sim/ranges.h"

/* Address space that nothing occupies, as holes. Chunks are cut from the top
 * end of the highest hole that leaves `spare` bytes, or from the bottom of the
 * lowest. */
struct space {
    struct ranges holes;
    frag_size spare;
    bool from_top;
};

/* A range in use: a segment, a reservation, or memory for smaller ranges. */
struct arena_piece {
    struct range range;         /* first: a piece is found by its range */
    struct driver_chunk *chunk; /* it was cut from; NULL: from no chunk */
    frag_size asked;            /* of a segment: the size it was asked with */
    frag_size charge;           /* bytes of device memory it uses */
};

/* Chunks of one unit, by age, the newest highest. */
struct level {
    struct ranges by_age; /* ranges of age and widest free range */
    uint64_t ages;
    frag_size unit, chunk;
};

/* Where the hostile rule starts, up and down, and the end of all addresses. */
#define HOSTILE_MID ((frag_addr)1 << 46)
#define ADDRESS_END ((frag_addr)1 << 47)

struct phys {
    frag_size size; /* 0: this entry is free */
    uint64_t maps;
    bool released;
    uint32_t next_free; /* index + 1 */
};

struct arena {
    struct frag_backend base;
    struct frag_arena_options opts;
    frag_size used, reserved_va;
    frag_size used_max, refused_min; /* see frag_arena_same_for */
    frag_time clock;
    uint64_t given; /* segment_allocs answered */
    bool side_streams;

    struct ranges segments, reservations, maps;

    struct space high, low; /* of the driver's rule: cudaMalloc; reservations */
    struct level coarse, fine;

    frag_addr up, down; /* of the hostile rule */
    bool upwards;

    struct phys *phys;
    uint32_t phys_count, phys_room, phys_free;
};

static inline struct arena *arena_of(const struct frag_backend *mem)
{
    return (struct arena *)(uintptr_t)mem;
}

/* Time passes by what a call costs. */
void arena_tick(struct arena *a, enum frag_driver_call call, frag_size size);
/* Takes device memory: OOM if it does not fit. */
enum frag_err arena_charge(struct arena *a, frag_size size);
/* The two halves of it. */
bool arena_refuses(struct arena *a, frag_size size);
void arena_take(struct arena *a, frag_size size);

/* Address space without chunks: an untouched driver at its first call. */
enum frag_err driver_open(struct arena *a);
void driver_close(struct arena *a);
/* A range of `size` bytes as cudaMalloc gives it, charged. OOM, NOMEM. */
enum frag_err driver_alloc(struct arena *a, frag_size size,
                           struct arena_piece **out);
/* An address range as cuMemAddressReserve gives it. OOM, NOMEM. */
enum frag_err driver_reserve(struct arena *a, frag_size size,
                             struct arena_piece **out);
/* Back to the driver, memory and address; frees the piece. */
void driver_free(struct arena *a, struct arena_piece *piece);
/* Withdraws addresses for good, so that the driver gives them to nobody.
 * INVALID if it has given some of them already, NOMEM. */
enum frag_err driver_withdraw(struct arena *a, frag_addr addr, frag_size size);
void driver_side_streams(struct arena *a);

/* The virtual-memory calls of the table, and what they leave at the end. */
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
/* A reservation at a given address, mapped granule by granule with memory that
 * goes when it is unmapped. */
enum frag_err vmm_hold(struct arena *a, frag_addr addr, frag_size size);
void vmm_close(struct arena *a);

#endif
