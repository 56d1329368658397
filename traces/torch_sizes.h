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

#include <math.h>
#include <stdio.h>
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

/* The setting "base_addr_aligned_kb" of torch_npu for Ascend, in KiB. Under
 * expandable_segments, a block of TORCH_ALIGN_LEAST bytes or more starts at a
 * multiple of this value, if the free block that serves it has room: the front
 * of the free block, up to that address, is then a free block of its own. A
 * replay with other settings keeps the value, as it keeps the padding. PyTorch
 * for CUDA has no such setting.
 *
 * Source: malloc and NPUAllocatorConfig.h of the same commit: 16, and 0 to 16
 * are accepted; since July 2024.
 */
#define TORCH_ALIGN_KEY    "base_addr_aligned_kb"
#define TORCH_ALIGN_ASCEND (16 * FRAG_KIB)
#define TORCH_ALIGN_LEAST  (2 * FRAG_MIB)

/* The setting "follows_changes": True in the settings of a trace whose devices
 * have changes (struct frag_setting_change): a policy with these settings
 * changes them there. The key is fragsim's own. */
#define TORCH_FOLLOWS_KEY "follows_changes"
#define TORCH_FOLLOWED    "the program's own changes" /* in answers */

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

/* The length of a setting, which ends at the next comma outside of brackets. */
static inline size_t torch_item_length(const char *text)
{
    size_t i = 0;
    int depth = 0;

    for (; text[i] && (text[i] != ',' || depth > 0); i++)
        depth += (text[i] == '[') - (text[i] == ']');
    return i;
}

/* The last value of a key in settings in the grammar of
 * PYTORCH_CUDA_ALLOC_CONF; NULL if they do not set it, or if they are NULL. */
static inline const char *torch_value_of(const char *settings, const char *key)
{
    const size_t length = strlen(key);
    const char *found = NULL;

    for (const char *at = settings; at && (at = strstr(at, key)); at += length)
        if ((at == settings || at[-1] == ',') && at[length] == ':')
            found = at + length + 1;
    return found;
}

/* The size of a segment for blocks of more than 1 MiB and less than 10 MiB, by
 * such settings. */
static inline frag_size torch_large_segment_of(const char *settings)
{
    const char *value = torch_value_of(settings, "large_segment_size_mb");
    const frag_size mib = value ? strtoull(value, NULL, 10) : 0;

    return mib > 10 && mib < UINT64_MAX / FRAG_MIB ? mib * FRAG_MIB
                                                   : TORCH_LARGE_SEGMENT;
}

/* The padding by such settings, in bytes; 0 if they do not set it. */
static inline frag_size torch_padding_of(const char *settings)
{
    const char *value = torch_value_of(settings, TORCH_PADDING_KEY);
    const frag_size padding = value ? strtoull(value, NULL, 10) : 0;

    return padding <= TORCH_PADDING_MOST ? padding : 0;
}

/* Whether they mean what the program set while it ran: nothing to export. */
static inline bool torch_is_followed(const char *settings)
{
    return torch_value_of(settings, TORCH_FOLLOWS_KEY) != NULL;
}

/* The alignment by such settings, in bytes; 0 if they do not set it. */
static inline frag_size torch_align_of(const char *settings)
{
    const char *value = torch_value_of(settings, TORCH_ALIGN_KEY);
    const frag_size align = value ? strtoull(value, NULL, 10) * FRAG_KIB : 0;

    return align <= TORCH_ALIGN_ASCEND ? align : 0;
}

/* The setting "expandable_segments_reserve" (PyTorch 2.15): how many addresses
 * an expandable segment reserves, as a share of the device's memory, or in GiB
 * with the suffix G. As in PyTorch, a value that is neither, or not above 0,
 * has no effect.
 *
 * Source: parseReserveSpec and resolveBytes of CUDAAllocatorConfig.h, tried
 * with the library of 2.15.0. */
#define TORCH_RESERVE_KEY "expandable_segments_reserve"

struct torch_reserve {
    double value; /* 0: not set */
    bool in_gib;
};

/* Reads the value at the beginning of the text, which ends at a comma or at a
 * bracket; false: it has no effect. */
static inline bool torch_reserve_read(const char *text,
                                      struct torch_reserve *out)
{
    char *end;
    const double value = strtod(text, &end);
    const bool in_gib = *end == 'G' || *end == 'g';

    if (end == text || !(value > 0 && value < HUGE_VAL) ||
        !strchr(",]", end[in_gib]))
        return false;
    *out = (struct torch_reserve){value, in_gib};
    return true;
}

/* The bytes that an expandable segment with such pages reserves on a device of
 * `total` bytes: 9/8 of the total, or less by the setting; whole pages. */
static inline frag_size torch_reservation_size(struct torch_reserve reserve,
                                               frag_size total, frag_size page)
{
    const frag_size most = total + total / 8;
    const double wanted =
        reserve.value * (reserve.in_gib ? (double)FRAG_GIB : (double)total);
    const frag_size size =
        reserve.value > 0 && wanted < (double)most ? (frag_size)wanted : most;

    return (size + page - 1) / page * page;
}

/* The reserve by such settings. */
static inline struct torch_reserve torch_reserve_of(const char *settings)
{
    const char *value = torch_value_of(settings, TORCH_RESERVE_KEY);
    struct torch_reserve reserve = {0, false};

    if (value)
        (void)torch_reserve_read(value, &reserve);
    return reserve;
}

#endif
