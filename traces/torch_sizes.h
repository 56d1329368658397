/* torch_sizes.h - the rounding rules of PyTorch's caching allocator, for sizes
 * of blocks and segments. The torch policy allocates by these rules. Readers
 * use them to infer what a recording omits: the segment that a failed or
 * retried request would have needed, and the size of a block whose allocation
 * was not recorded.
 *
 * Source: round_size and get_allocation_size of PyTorch 2.11, read in its
 * source and confirmed by recordings; every rule was probed on an H200.
 */
#ifndef FRAG_TRACES_TORCH_SIZES_H
#define FRAG_TRACES_TORCH_SIZES_H

#include <stdlib.h>
#include <string.h>

#include "traces/base.h"

#define TORCH_MIN_BLOCK     ((frag_size)512)
#define TORCH_SMALL_SIZE    FRAG_MIB       /* largest block of the small pool */
#define TORCH_SMALL_SEGMENT (2 * FRAG_MIB) /* segment of the small pool */

/* A block of TORCH_MIN_LARGE bytes or more has a segment of its own, rounded up
 * to a multiple of TORCH_ROUND_LARGE. A smaller block of the large pool is part
 * of a segment of TORCH_LARGE_SEGMENT bytes, unless the settings change this
 * size. */
#define TORCH_MIN_LARGE     (10 * FRAG_MIB)
#define TORCH_LARGE_SEGMENT (20 * FRAG_MIB)
#define TORCH_ROUND_LARGE   (2 * FRAG_MIB)

/* The setting "padding": bytes that an allocator adds to each request before it
 * rounds the size. It belongs to the device library and not to the settings
 * that a user chooses, so a replay with other settings keeps it. The key is
 * fragsim's own: PyTorch and torch_npu refuse it.
 *
 * Source: AddPadSize and round_size of torch_npu for Ascend,
 * torch_npu/csrc/core/npu/NPUCachingAllocator.cpp of Ascend/pytorch, commit
 * 9e73e708ab93: 32 bytes, but 0 on Ascend950 or newer with CANN 9.1.0 or newer.
 */
#define TORCH_PADDING_KEY    "padding"
#define TORCH_PADDING_ASCEND ((frag_size)32)
#define TORCH_PADDING_MOST   ((frag_size)512) /* that is accepted */

/* Number of entries of the setting roundup_power2_divisions. Entry k is for
 * sizes from 2^k MiB up to, but not including, 2^(k + 1) MiB. Entry 0 is also
 * for all smaller sizes, the last entry also for all larger sizes. */
enum { TORCH_DIVISIONS = 16 };

/* The binary logarithm of n, rounded down. n must not be 0. */
static inline unsigned torch_log2(uint64_t n)
{
    return 63 - (unsigned)__builtin_clzll(n);
}

/* The smallest multiple of `power`, a power of two, that is at least n. */
static inline frag_size torch_round_up(frag_size n, frag_size power)
{
    return (n + power - 1) & ~(power - 1);
}

/* The entry of `divisions` for a request of n bytes; n must not be 0. */
static inline uint64_t torch_divisions_of(frag_size n,
                                          const uint64_t *divisions)
{
    const unsigned top = torch_log2(n);
    const unsigned octave = top < 20 ? 0 : top - 20;

    return divisions[octave < TORCH_DIVISIONS ? octave : TORCH_DIVISIONS - 1];
}

/* The size of the block that serves a request of n bytes, for n from 1 to
 * 2^63 - 1. Without divisions it is the next multiple of 512. With d divisions
 * for n's power of two, it is the next of d equal steps between two powers of
 * two. `divisions` has TORCH_DIVISIONS entries, each a power of two, or 0 or 1
 * for no divisions; NULL means no divisions for any size. */
static inline frag_size torch_round_size(frag_size n, const uint64_t *divisions)
{
    if (divisions) {
        const unsigned top = torch_log2(n);
        const uint64_t d = torch_divisions_of(n, divisions);
        const unsigned split = d ? torch_log2(d) : 0;

        if (split && split < 54 && n > TORCH_MIN_BLOCK << split)
            return torch_round_up(n, (frag_size)1 << (top - split));
    }
    return torch_round_up(n, TORCH_MIN_BLOCK);
}

/* The size of the segment that the allocator reserves if no free block can
 * serve a block of the rounded size. `large_segment` is the size of the
 * segments for blocks of more than 1 MiB and less than 10 MiB. */
static inline frag_size torch_segment_size(frag_size rounded,
                                           frag_size large_segment)
{
    if (rounded <= TORCH_SMALL_SIZE)
        return TORCH_SMALL_SEGMENT;
    if (rounded < TORCH_MIN_LARGE)
        return large_segment;
    return torch_round_up(rounded, TORCH_ROUND_LARGE);
}

/* The value of the last padding in settings in the grammar of
 * PYTORCH_CUDA_ALLOC_CONF; NULL if they do not set it, or if they are NULL. */
static inline const char *torch_padding_text(const char *settings)
{
    static const char key[] = TORCH_PADDING_KEY ":";
    const char *found = NULL;

    for (const char *at = settings; at && (at = strstr(at, key));
         at += sizeof(key) - 1)
        if (at == settings || at[-1] == ',')
            found = at + sizeof(key) - 1;
    return found;
}

/* The padding by such settings, in bytes; 0 if they do not set it. */
static inline frag_size torch_padding_of(const char *settings)
{
    const char *value = torch_padding_text(settings);
    const frag_size padding = value ? strtoull(value, NULL, 10) : 0;

    return padding <= TORCH_PADDING_MOST ? padding : 0;
}

/* The environment variable that the allocator with such settings reads: that of
 * torch_npu if they have a padding, else that of PyTorch for CUDA. Source: the
 * scripts of vllm-ascend set this variable for torch_npu. */
static inline const char *torch_variable_of(const char *settings)
{
    return torch_padding_of(settings) ? "PYTORCH_NPU_ALLOC_CONF"
                                      : "PYTORCH_CUDA_ALLOC_CONF";
}

#endif
