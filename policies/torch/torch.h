/* torch.h - the internals of the torch policy that validation compares with a
 * recording of PyTorch.
 *
 * A policy reports nothing about itself to the engine. Validation is the
 * exception: it attaches an observer, which receives the counters of PyTorch's
 * memory_stats, the entries of PyTorch's trace, and the blocks of PyTorch's
 * snapshot. Without an observer the policy counts nothing.
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

/* Each statistic is kept for all pools, the large pools and the small pools. */
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
    uint64_t num_oom_rejections; /* they are no OOMs */
    uint64_t num_device_alloc, num_device_free;
};

/* The entries of PyTorch's trace that the allocator makes itself, not the
 * program's requests and frees. */
enum frag_torch_action {
    FRAG_TORCH_SEGMENT_ALLOC,
    FRAG_TORCH_SEGMENT_FREE,
    FRAG_TORCH_SEGMENT_MAP,
    FRAG_TORCH_SEGMENT_UNMAP,
    FRAG_TORCH_OOM, /* addr is 0, size is the rounded size */
};

/* A tracked statistic of one pool, by frag_torch_pools. */
struct frag_torch_pool_count {
    struct frag_torch_count of[FRAG_TORCH_POOLS_COUNT];
};

struct frag_torch_observer {
    struct frag_torch_counters counters;
    struct frag_torch_pool_count *reserved; /* by pool, from the caller; NULL:
                                               not counted */
    void (*action)(void *user, enum frag_torch_action action, frag_addr addr,
                   frag_size size, frag_stream stream);
    void *user;
};

/* Attaches an observer to a heap of the torch policy. From now on the policy
 * updates observer->counters and calls observer->action, which may be NULL.
 * Call it before the first alloc or adopt. The heap borrows the observer until
 * the heap is closed. */
void frag_torch_observe(struct frag_heap *heap,
                        struct frag_torch_observer *observer);

/* One block as PyTorch's snapshot shows it. */
struct frag_torch_block {
    frag_addr segment; /* start of the contiguous mapped range */
    frag_addr addr;
    frag_size size;
    frag_size requested; /* a stale value if the block is inactive; UINT64_MAX
                            if it is unknown */
    frag_stream stream;
    frag_pool pool;
    bool is_small, is_expandable, allocated, pending;
};

/* Calls `block` once for each block. The blocks of one segment come in address
 * order; the segments come in no defined order. Unmapped address space is left
 * out. */
void frag_torch_snapshot(const struct frag_heap *heap,
                         void (*block)(void *user,
                                       const struct frag_torch_block *b),
                         void *user);

#endif
