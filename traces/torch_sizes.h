/* torch_sizes.h - how PyTorch's caching allocator rounds.
 *
 * Only what a reader needs to judge a recording: which segment a failed or
 * retried request would have needed, and how large a block whose size nobody
 * wrote down must have been.
 *
 * Source: PyTorch 2.11, round_size and get_allocation_size, as read and as
 * recorded.
 */
#ifndef FRAG_TRACES_TORCH_SIZES_H
#define FRAG_TRACES_TORCH_SIZES_H

#include "traces/base.h"

#define TORCH_MIN_BLOCK     ((frag_size)512)
#define TORCH_SMALL_SIZE    FRAG_MIB
#define TORCH_SMALL_SEGMENT (2 * FRAG_MIB)
#define TORCH_MIN_LARGE     (10 * FRAG_MIB)
#define TORCH_LARGE_SEGMENT (20 * FRAG_MIB)
#define TORCH_ROUND_LARGE   (2 * FRAG_MIB)

static inline unsigned torch_log2(frag_size n)
{
    unsigned k = 0;

    while (n >>= 1)
        k++;
    return k;
}

/* The block that n bytes need. n in 1 .. 2^63 - 1; divisions: log2 of
 * roundup_power2_divisions for each octave from 1 MiB (the first serves all
 * below, the last all above), 0 where there are none. */
static inline frag_size torch_round(frag_size n, const uint8_t divisions[16])
{
    unsigned top = torch_log2(n);
    unsigned octave = top < 20 ? 0 : top - 20;
    unsigned split = divisions[octave < 15 ? octave : 15];

    if (n < TORCH_MIN_BLOCK)
        return TORCH_MIN_BLOCK;
    if (split && split < 54 && n > TORCH_MIN_BLOCK << split)
        return frag_round_up(n, (frag_size)1 << (top - split));
    return frag_round_up(n, TORCH_MIN_BLOCK);
}

/* The segment that a miss of a rounded size takes. */
static inline frag_size torch_segment_size(frag_size rounded)
{
    if (rounded <= TORCH_SMALL_SIZE)
        return TORCH_SMALL_SEGMENT;
    if (rounded < TORCH_MIN_LARGE)
        return TORCH_LARGE_SEGMENT;
    return frag_round_up(rounded, TORCH_ROUND_LARGE);
}

#endif
