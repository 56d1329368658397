/* segments.h - how a policy without rules of its own takes memory.
 *
 * Growth: a request that no held memory serves gets a segment of the settable
 * size, or, if it is larger, one of its own size in whole granules. When the
 * device refuses, wholly free segments are returned and the request is made
 * once more if that returned any.
 */
#ifndef FRAG_POLICIES_MECHANISM_SEGMENTS_H
#define FRAG_POLICIES_MECHANISM_SEGMENTS_H

#include "policies/policy.h"

#include <stddef.h>

/* The parameter row "segment"; `state` has the value in `member`. */
#define SEGMENT_PARAM(state, member)                                       \
    {                                                                      \
        .name = "segment", .kind = FRAG_PARAM_SIZE,                        \
        .offset = offsetof(state, member), .init = "20MiB", .min = 512,    \
        .max = 0x1p40,                                                     \
        .help = "bytes taken from the device at once, rounded up to 512; " \
                "a larger request gets its own segment",                   \
    }

/* The parameter rows "limit" and "fraction" of a pool that bounds itself. */
#define POOL_LIMIT_PARAMS(state, bytes, share)                                 \
    {                                                                          \
        .name = "limit",                                                       \
        .kind = FRAG_PARAM_SIZE,                                               \
        .offset = offsetof(state, bytes),                                      \
        .init = "inf",                                                         \
        .min = 512,                                                            \
        .max = 0x1p64,                                                         \
        .help = "bytes that the pool never takes more of",                     \
    },                                                                         \
    {                                                                          \
        .name = "fraction", .kind = FRAG_PARAM_RATIO,                          \
        .offset = offsetof(state, share), .init = "1", .min = 0.001, .max = 1, \
        .help = "share of the device's memory that limits the pool; "          \
                "1: it does not",                                              \
    }

/* The lower of the two limits, FRAG_UNLIMITED if there is none. */
static inline frag_size pool_limit(struct frag_backend *mem, frag_size limit,
                                   double fraction)
{
    const frag_size share =
        fraction < 1 ? (frag_size)((double)frag_backend_total(mem) * fraction)
                     : FRAG_UNLIMITED;

    return share < limit ? share : limit;
}

/* A request in whole quanta: size > 0, < 2^63. */
static inline frag_size whole_quanta(frag_size size)
{
    return (size + FRAG_QUANTUM - 1) & ~((frag_size)FRAG_QUANTUM - 1);
}

/* Bytes of the segment that a block of `size` calls for. */
static inline frag_size segment_size(const struct frag_backend *mem,
                                     frag_size segment, frag_size size)
{
    const frag_size usual = whole_quanta(segment);

    return size <= usual ? usual : frag_round_up(size, mem->granularity);
}

/* Takes a segment from the device. give_back returns what the heap can spare
 * and answers whether that was anything. Errors are the backend's. */
enum frag_err segment_take(struct frag_heap *heap, frag_size size,
                           bool (*give_back)(struct frag_heap *heap),
                           frag_addr *addr) FRAG_MUST_CHECK;

#endif
