/* stream_pool.h - RMM's growing best-fit pool with a free list for each stream.
 * Private to policies/rmm/.
 *
 * Policy rmm_pool is this pool; rmm_binning uses it for its bins. The rules are
 * those of RMM 26.08 (rapidsai/rmm at 5d50a37, cpp/include/rmm/mr/detail/
 * stream_ordered_memory_resource.hpp and coalescing_free_list.hpp,
 * cpp/src/mr/detail/pool_memory_resource_impl.cpp):
 *
 *   - A freed block joins the list of the stream on which it is freed. It is
 * coalesced only with neighbours of the same segment that are in the same list.
 *   - A request gets the smallest block that fits from the list of its own
 *     stream, among equals the lowest one. The low part of the block is
 *     allocated, and the remainder returns to the list that the block was in.
 *   - If that list has no such block, the lists of the other streams are
 *     searched in turn. The first list with a block that fits supplies its best
 *     fit, and the remainder stays in that list.
 *   - If no list has one, the lists of the other streams are merged into the
 *     requesting stream's list, one after another, with coalescing, until a
 *     block is large enough.
 *   - If there is still none, the pool grows; the remainder of the new block
 *     joins the requesting stream's list. Without a maximum the pool requests
 *     as many bytes as it has; with a maximum it requests half of what is left;
 *     in both cases at least the size of the request. If the device refuses,
 *     the pool requests half as much, and so on down to the size of the
 *     request. A half is not rounded, so a block can have any size.
 *   - If the maximum does not allow the request, the pool returns segments
 *     without live blocks to the device, in the order of their addresses, until
 *     it does, and grows (since RMM 26.10, rapidsai/rmm pull request 2470). A
 *     request beyond the maximum itself is refused at once.
 *   - Otherwise the pool returns nothing to the device before it is closed.
 *
 * Sizes are rounded up to FRAG_ALIGNMENT, 256 bytes, as in RMM.
 *
 * Invariants, checked by stream_pool_check: the blocks of a segment tile it; a
 * block is free if and only if it is in its stream's list; no two free
 * neighbours of one segment belong to the same stream.
 *
 * Differences from RMM: the other streams are searched in the order of their
 * numbers here, and of their event handles in RMM, whose order is not defined.
 * A wait for another stream's event is not modelled, because a backend has no
 * such call. RMM allocates the initial pool when it is constructed; here the
 * first request allocates it, and every request is refused until that has
 * succeeded.
 */
#ifndef FRAG_POLICIES_RMM_STREAM_POOL_H
#define FRAG_POLICIES_RMM_STREAM_POOL_H

#include "policies/mechanism/free_set.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/segments.h"

struct stream_pool {
    frag_size initial, maximum; /* parameters, in bytes */
    bool reclaim;               /* parameter */
    frag_size held;             /* bytes of all segments */
    bool started;               /* the initial pool is allocated */
    struct segment *segments;
    struct free_set **lists; /* by stream; NULL: no request of it yet */
    size_t list_count;
    uint64_t filled[1 << 10]; /* bit s: the list of stream s is not empty */
    uint64_t words[1 << 4];   /* bit w: filled[w] is not 0 */
    struct nodes nodes;       /* records of blocks */
};

/* The rows of the pool's parameters, for a state that starts with it. */
#define STREAM_POOL_PARAMS                                                    \
    {                                                                         \
        .name = "initial",                                                    \
        .kind = FRAG_PARAM_SIZE,                                              \
        .offset = offsetof(struct stream_pool, initial),                      \
        .init = "0",                                                          \
        .min = 0,                                                             \
        .max = 0x1p50,                                                        \
        .help = "bytes allocated at the first request; RMM's Python binding " \
                "allocates half of the free memory, its replay all of it",    \
        .at_most = "maximum",                                                 \
    },                                                                        \
        FRAG_RANGE_PARAM(                                                     \
            SIZE, "maximum", struct stream_pool, maximum, "inf", 1, 0x1p64,   \
            "most bytes of the pool; with a maximum the pool grows by half "  \
            "of the bytes left, without one it doubles"),                     \
        FRAG_SWITCH_PARAM(                                                    \
            "reclaim", struct stream_pool, reclaim, "yes",                    \
            "when the maximum refuses a request, return segments without "    \
            "live blocks to the device and grow again; RMM before 26.10: no")

/* Allocates the initial pool for stream 0, unless that is done. OOM, DEVICE,
 * NOMEM: it is not allocated, and the next call tries again. */
enum frag_err stream_pool_start(struct frag_heap *heap) FRAG_MUST_CHECK;

/* The functions of a policy whose state starts with the pool. */
enum frag_err stream_pool_init(struct frag_heap *heap);
void stream_pool_fini(struct frag_heap *heap);
enum frag_err stream_pool_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out) FRAG_MUST_CHECK;
void stream_pool_free(struct frag_heap *heap, const struct frag_block *block);
enum frag_err stream_pool_hear(struct frag_heap *heap,
                               const struct frag_heard *heard) FRAG_MUST_CHECK;
const char *stream_pool_check(const struct frag_heap *heap);

#endif
