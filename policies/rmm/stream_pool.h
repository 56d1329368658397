/* stream_pool.h - a growing pool of best fit with a free list per stream.
 *
 * What rmm_pool is, as a means: rmm_binning puts its bins on top of it. The
 * rules are those of RMM 26.08 (rapidsai/rmm at 5d50a37, cpp/include/rmm/mr/
 * detail/stream_ordered_memory_resource.hpp and coalescing_free_list.hpp,
 * cpp/src/mr/detail/pool_memory_resource_impl.cpp):
 *
 *   - A freed block goes to the list of its stream. It is coalesced with its
 *     neighbours of the same segment that are in the same list, and only those.
 *   - A request takes the smallest block of its own stream's list that is large
 *     enough, of equals the lowest; its low part is granted and the rest goes
 *     back to the list it came from.
 *   - If there is none, the other streams are asked in turn, and the first that
 *     has any gives its best fit; the rest stays with that stream.
 *   - If none has, their lists are merged into the requester's one after the
 *     other, coalescing, until a block is large enough.
 *   - If even then there is none, the pool grows, and the new block's rest goes
 *     to the requester's list. Without a maximum the device is asked for as
 *     much as the pool has, with one for half of what is left; for the request
 *     if that is more. Refused, it is asked for half as much, down to the
 *     request itself. A request beyond the maximum is refused outright.
 *   - Nothing is returned before the pool is closed.
 *
 * Sizes are rounded up to FRAG_ALIGNMENT, 256 bytes, as in the source.
 *
 * Invariants, checked by stream_pool_check: the blocks of a segment tile it; a
 * block is free iff it is in its stream's list; no two free neighbours of one
 * segment are of one stream.
 *
 * Where we differ: half of a size is rounded down to FRAG_ALIGNMENT, where the
 * source asks the device for it as it is. The order of the other streams is
 * that of stream numbers here, and of event handles there, which nothing
 * determines. A wait for another stream's event costs the device nothing that
 * the backend could be told. The source takes the initial pool when it is
 * constructed; here the first request does, and each request is refused until
 * it has been had.
 */
#ifndef FRAG_POLICIES_RMM_STREAM_POOL_H
#define FRAG_POLICIES_RMM_STREAM_POOL_H

#include "policies/mechanism/free_set.h"
#include "policies/mechanism/nodes.h"
#include "policies/policy.h"

struct pool_segment;

struct stream_pool {
    frag_size initial, maximum;    /* the parameters */
    frag_size held;                /* bytes in segments */
    bool started;                  /* the initial pool has been taken */
    struct pool_segment *segments; /* the newest first */
    struct free_set **lists;       /* by stream; NULL: never heard of */
    size_t list_count;
    struct nodes nodes; /* of blocks */
};

/* The parameter rows of a pool that is `member` of `state`. */
#define STREAM_POOL_PARAMS(state, member)                                     \
    {                                                                         \
        .name = "initial",                                                    \
        .kind = FRAG_PARAM_SIZE,                                              \
        .offset = offsetof(state, member.initial),                            \
        .init = "0",                                                          \
        .min = 0,                                                             \
        .max = 0x1p50,                                                        \
        .help = "bytes taken at the first request; RMM's Python binding "     \
                "takes half of the free memory, its replay all of it",        \
        .at_most = "maximum",                                                 \
    },                                                                        \
    {                                                                         \
        .name = "maximum", .kind = FRAG_PARAM_SIZE,                           \
        .offset = offsetof(state, member.maximum), .init = "inf", .min = 1,   \
        .max = 0x1p64,                                                        \
        .help = "bytes the pool may grow to; the growth rule is another one " \
                "with a maximum than without",                                \
    }

/* Starts from a zeroed pool with its parameters set. */
void stream_pool_init(struct stream_pool *pool);

/* Takes the initial pool, once; it is stream 0's. OOM, DEVICE, NOMEM: not taken
 * yet. */
enum frag_err stream_pool_start(struct frag_heap *heap,
                                struct stream_pool *pool) FRAG_MUST_CHECK;

/* Errors are those of frag_policy.alloc. size > 0, < 2^63. */
enum frag_err stream_pool_alloc(struct frag_heap *heap,
                                struct stream_pool *pool, frag_size size,
                                frag_stream stream,
                                struct frag_block *out) FRAG_MUST_CHECK;
void stream_pool_free(struct stream_pool *pool, const struct frag_block *block);

/* NULL, or what is broken. The state of a policy starts with its pool. */
const char *stream_pool_check(const struct frag_heap *heap);

/* Returns everything, live blocks included. */
void stream_pool_close(struct frag_heap *heap, struct stream_pool *pool);

#endif
