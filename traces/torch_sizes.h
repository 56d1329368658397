/* torch_sizes.h - how PyTorch's caching allocator rounds. Readers judge a
 * recording by it (which segment a failed or retried request would have needed,
 * how large a block whose size nobody wrote down must have been), and the torch
 * policy allocates by it.
 *
 * Source: PyTorch 2.11, round_size and get_allocation_size, as read and as
 * recorded; every rule probed on an H200.
 */
#ifndef FRAG_TRACES_TORCH_SIZES_H
#define FRAG_TRACES_TORCH_SIZES_H

#include "traces/base.h"

#define TORCH_MIN_BLOCK     ((frag_size)512)
#define TORCH_SMALL_SIZE    FRAG_MIB        /* up to here: the small pool */
#define TORCH_SMALL_SEGMENT (2 * FRAG_MIB)  /* segment of the small pool */
#define TORCH_MIN_LARGE     (10 * FRAG_MIB) /* from here: a segment of its own */
#define TORCH_LARGE_SEGMENT (20 * FRAG_MIB) /* segment below, unless set */
#define TORCH_ROUND_LARGE   (2 * FRAG_MIB)  /* segments are rounded up to it */

/* Entries of roundup_power2_divisions: entry k is for sizes of [2^k, 2^(k+1))
 * MiB, 0 for those below it too, the last for those above it too. */
enum { TORCH_DIVISIONS = 16 };

/* Of n > 0, rounded down. */
static inline unsigned torch_log2(uint64_t n)
{
    return 63 - (unsigned)__builtin_clzll(n);
}

/* The smallest multiple of a power of two that is at least n. */
static inline frag_size torch_round_up(frag_size n, frag_size power)
{
    return (n + power - 1) & ~(power - 1);
}

/* The block that a request of n bytes needs, n in 1 .. 2^63 - 1: a multiple of
 * 512, or the next of d equal steps between two powers of two. divisions:
 * powers of two, 0 and 1 are none; NULL: all are none. */
static inline frag_size torch_round_size(frag_size n, const uint64_t *divisions)
{
    if (n < TORCH_MIN_BLOCK)
        return TORCH_MIN_BLOCK;
    if (divisions) {
        const unsigned top = torch_log2(n);
        const unsigned octave = top < 20 ? 0 : top - 20;
        const uint64_t d =
            divisions[octave < TORCH_DIVISIONS ? octave : TORCH_DIVISIONS - 1];
        const unsigned split = d ? torch_log2(d) : 0;

        if (split && split < 54 && n > TORCH_MIN_BLOCK << split)
            return torch_round_up(n, (frag_size)1 << (top - split));
    }
    return torch_round_up(n, TORCH_MIN_BLOCK);
}

/* The segment that is taken for a block of a rounded size where none is free;
 * large_segment: that of blocks of 1 to 10 MiB. */
static inline frag_size torch_segment_size(frag_size rounded,
                                           frag_size large_segment)
{
    if (rounded <= TORCH_SMALL_SIZE)
        return TORCH_SMALL_SEGMENT;
    if (rounded < TORCH_MIN_LARGE)
        return large_segment;
    return torch_round_up(rounded, TORCH_ROUND_LARGE);
}

#endif
