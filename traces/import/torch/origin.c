/* origin.c - finds out whether a snapshot comes from PyTorch for CUDA, from
 * PyTorch for ROCm, or from torch_npu for Ascend. No key of a snapshot tells.
 *
 * PyTorch for ROCm has the allocator of CUDA under other names, which the
 * frames of C++ show. torch_npu has a copy of that allocator. The copy adds 32
 * bytes to each request before it rounds the size (NPUCachingAllocator.cpp,
 * round_size and AddPadSize), except on new devices. So each of its live blocks
 * has 32 bytes or more beyond its request. In a small segment, where nothing
 * but the rounding makes a block larger, such a block of a request that is
 * nearly a multiple of 512 bytes cannot come from CUDA.
 */
#include <string.h>

#include "traces/import/torch/torch.h"
#include "traces/torch_sizes.h"

enum { PAD = 32 }; /* bytes */

static bool has(const char *text, size_t length, const char *part)
{
    const size_t size = strlen(part);

    for (size_t i = 0; i + size <= length; i++)
        if (!memcmp(text + i, part, size))
            return true;
    return false;
}

void origin_see_text(struct origin *o, const char *text, size_t length)
{
    o->has_npu |=
        has(text, length, "/torch_npu/") || has(text, length, "c10_npu::");
    o->has_hip |= has(text, length, "c10::hip::") ||
                  has(text, length, "at::hip::") ||
                  has(text, length, "libtorch_hip");
}

void origin_see_block(struct origin *o, const struct frag_snapshot_block *b,
                      bool is_small)
{
    if (b->state == FRAG_INACTIVE || b->requested == FRAG_SIZE_UNKNOWN ||
        b->requested > b->size)
        return;
    if (b->size - b->requested < PAD)
        o->plain++;
    else if (is_small &&
             b->size == torch_round_up(b->requested + PAD, TORCH_MIN_BLOCK) &&
             b->size > torch_round_up(b->requested, TORCH_MIN_BLOCK))
        o->padded++;
}

/* roundup_power2_divisions makes blocks larger too. */
static bool has_divisions(const struct import *in)
{
    for (unsigned i = 0; i < TORCH_DIVISIONS; i++)
        if (in->settings.divisions[i] > 1)
            return true;
    return false;
}

enum frag_err origin_note(const struct import *in)
{
    const struct origin *o = &in->origin;
    const bool is_padded = o->padded && !o->plain && !has_divisions(in);

    if (is_padded || (o->has_npu && !o->plain))
        return frag_build_note(
            in->build,
            "the snapshot comes from torch_npu for Ascend, whose allocator "
            "adds 32 bytes to each request before it rounds the size; no "
            "policy of fragsim adds them, so the reserved bytes of all "
            "policies are too low: each request of a multiple of 512 bytes "
            "needs 512 bytes more; driver calls are modelled after CUDA");
    if (o->has_npu)
        return frag_build_note(
            in->build,
            "the snapshot comes from torch_npu for Ascend, whose driver calls "
            "are modelled after CUDA");
    if (o->has_hip)
        return frag_build_note(
            in->build,
            "the snapshot comes from PyTorch for ROCm: the rules of its "
            "allocator are those for CUDA, and the addresses of segments and "
            "the costs of driver calls are modelled after CUDA");
    return FRAG_OK;
}
