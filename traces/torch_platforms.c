/* torch_platforms.c - the table of platforms whose allocators write snapshots
 * of PyTorch.
 *
 * Sources: XPU: c10/xpu/XPUCachingAllocator.cpp of pytorch/pytorch, commit
 * 00d512aed753, and torch/csrc/xpu/Module.cpp, commit 6430a5dbd7c7. The sizes,
 * the choice of a block (best fit; of equal sizes the lowest address), the
 * split and the release are those of CUDA up to 2.11. Of the settings it reads
 * expandable_segments only. Its snapshots exist since PyTorch 2.11 (_snapshot
 * of torch/xpu/memory.py in the releases 2.11.0 to 2.15.0, not in 2.9.1). No
 * snapshot of a device was at hand. ROCm: #177974 and #179930 of
 * pytorch/pytorch, and expandable_segments() of
 * c10/cuda/CUDAAllocatorConfig.h in the releases: 2.11.0 has it for CUDA only,
 * 2.12.1 to 2.14.1 also from ROCM_VERSION 70000; ROCm/pytorch#3106 brought it
 * to AMD's 2.11. torch_npu: torch_npu/csrc/core/npu/NPUCachingAllocator.cpp of
 * Ascend/pytorch, commit 9e73e708ab93; its recordings are exact under the rules
 * of 2.11.
 */
#include "traces/torch_platforms.h"

#include "traces/text.h"

const struct torch_platform torch_platforms[TORCH_PLATFORMS] = {
    [TORCH_CUDA] = {"cuda",
                    "PyTorch for CUDA",
                    "PYTORCH_CUDA_ALLOC_CONF",
                    0,
                    {NULL},
                    NULL},
    [TORCH_ROCM] =
        {"rocm",
         "PyTorch for ROCm",
         "PYTORCH_CUDA_ALLOC_CONF",
         0,
         {"c10::hip::", "at::hip::", "libtorch_hip", NULL},
         "the snapshot comes from PyTorch for ROCm: the rules of its allocator "
         "are those for CUDA, and the addresses of segments and the costs of "
         "driver calls are modelled after CUDA; expandable_segments needs ROCm "
         "7.0 and PyTorch 2.12 or AMD's 2.11, older ones ignore it"},
    [TORCH_XPU] =
        {"xpu",
         "PyTorch for XPU",
         "PYTORCH_ALLOC_CONF",
         11,
         {"c10::xpu::", "at::xpu::", "/torch/xpu/", "libtorch_xpu",
          "libc10_xpu", NULL},
         "the snapshot comes from PyTorch for XPU: of the settings its "
         "allocator uses expandable_segments only, and the policy torch "
         "ignores the others too (" TORCH_PLATFORM_KEY ":xpu); the rules were "
         "read in its source and compared with no recording of a device; "
         "private pools, addresses of segments and costs of driver calls are "
         "modelled after CUDA"},
    [TORCH_NPU] = {"npu",
                   "torch_npu for Ascend",
                   "PYTORCH_NPU_ALLOC_CONF",
                   11,
                   {"/torch_npu/", "c10_npu::", NULL},
                   NULL},
};

enum torch_platform_id torch_platform_find(const char *key, size_t length)
{
    unsigned i = 0;

    while (i < TORCH_PLATFORMS &&
           (strlen(torch_platforms[i].key) != length ||
            strncmp(torch_platforms[i].key, key, length) != 0))
        i++;
    return (enum torch_platform_id)i;
}

enum torch_platform_id torch_platform_of(const char *settings)
{
    const char *key = torch_value_of(settings, TORCH_PLATFORM_KEY);
    const enum torch_platform_id named =
        key ? torch_platform_find(key, strcspn(key, ",")) : TORCH_PLATFORMS;

    if (named < TORCH_PLATFORMS)
        return named;
    return torch_padding_of(settings) || torch_align_of(settings) ? TORCH_NPU
                                                                  : TORCH_CUDA;
}

void torch_platform_text(enum torch_platform_id platform, frag_size padding,
                         frag_size align, char text[TORCH_PLATFORM_TEXT])
{
    *text = '\0';
    if (platform != TORCH_CUDA)
        text_add(text, TORCH_PLATFORM_TEXT, ",", TORCH_PLATFORM_KEY ":%s",
                 torch_platforms[platform].key);
    if (padding)
        text_add(text, TORCH_PLATFORM_TEXT, ",", TORCH_PADDING_KEY ":%u",
                 (unsigned)padding);
    if (align)
        text_add(text, TORCH_PLATFORM_TEXT, ",", TORCH_ALIGN_KEY ":%u",
                 (unsigned)(align / FRAG_KIB));
}
