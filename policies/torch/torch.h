/* torch.h - what validation may see of the torch policy.
 *
 * A policy reports nothing about itself to the engine. To hold this one against
 * a recording, though, its counters have to be PyTorch's own (memory_stats),
 * its actions those of PyTorch's trace, its blocks those of PyTorch's snapshot.
 * An observer sees them; without one, nothing is counted.
 */
#ifndef FRAG_POLICIES_TORCH_TORCH_H
#define FRAG_POLICIES_TORCH_TORCH_H

#include "policies/policy.h"

/* The tracked statistics of torch.cuda.memory_stats(). One line each. */
#define FRAG_TORCH_STATS(X)               \
    X(ALLOCATION, "allocation")           \
    X(ALLOCATED_BYTES, "allocated_bytes") \
    X(REQUESTED_BYTES, "requested_bytes") \
    X(ACTIVE, "active")                   \
    X(ACTIVE_BYTES, "active_bytes")       \
    X(SEGMENT, "segment")                 \
    X(RESERVED_BYTES, "reserved_bytes")   \
    X(INACTIVE_SPLIT, "inactive_split")   \
    X(INACTIVE_SPLIT_BYTES, "inactive_split_bytes")

enum frag_torch_stat {
#define X(name, text) FRAG_TORCH_##name,
    FRAG_TORCH_STATS(X)
#undef X
        FRAG_TORCH_STAT_COUNT
};

/* Of each: over all pools, the large ones, the small ones. */
enum frag_torch_pools {
    FRAG_TORCH_ALL,
    FRAG_TORCH_LARGE,
    FRAG_TORCH_SMALL,
    FRAG_TORCH_POOLS_COUNT
};

struct frag_torch_count {
    uint64_t current, peak, allocated, freed;
};

struct frag_torch_counters {
    struct frag_torch_count stat[FRAG_TORCH_STAT_COUNT][FRAG_TORCH_POOLS_COUNT];
    struct frag_torch_count oversize_allocations, oversize_segments;
    uint64_t num_alloc_retries, num_ooms, num_sync_all_streams;
    uint64_t num_device_alloc, num_device_free;
};

/* The entries of PyTorch's trace that are not the client's. */
enum frag_torch_action {
    FRAG_TORCH_SEGMENT_ALLOC,
    FRAG_TORCH_SEGMENT_FREE,
    FRAG_TORCH_SEGMENT_MAP,
    FRAG_TORCH_SEGMENT_UNMAP,
    FRAG_TORCH_OOM, /* addr 0, size as rounded */
};

struct frag_torch_observer {
    struct frag_torch_counters counters;
    void (*action)(void *user, enum frag_torch_action action, frag_addr addr,
                   frag_size size, frag_stream stream);
    void *user;
};

/* From now on the heap's torch policy counts into the observer and calls it
 * (action may be NULL). Before the first alloc or adopt; borrowed until the
 * heap is closed. */
void frag_torch_observe(struct frag_heap *heap,
                        struct frag_torch_observer *observer);

/* The whole state as PyTorch's snapshot shows it: a call for each block, in
 * address order inside a segment; segments in no order. Unmapped address space
 * is left out. `segment` is the start of the contiguous mapped range. */
struct frag_torch_block {
    frag_addr segment, addr;
    frag_size size, requested; /* requested: stale if inactive; UINT64_MAX if
                                  nobody knows */
    frag_stream stream;
    frag_pool pool;
    bool is_small, is_expandable, allocated, pending;
};
void frag_torch_snapshot(const struct frag_heap *heap,
                         void (*block)(void *user,
                                       const struct frag_torch_block *b),
                         void *user);

#endif
