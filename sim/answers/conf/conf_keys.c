/* conf_keys.c - the table of PyTorch's allocator settings: what each does, when
 * it helps and what it costs. policies/torch/versions.c says which version
 * knows it, policies/torch/torch_conf.c which values are accepted.
 */
#include "sim/answers/conf/conf.h"

#include <stdio.h>
#include <string.h>

const struct conf_key conf_keys[] = {
    {"expandable_segments", CONF_PLACEMENT, true, false, "True or False",
     "False",
     "The allocator reserves one large range of addresses for each stream and "
     "pool, and maps memory into it as needed, so a segment can grow and free "
     "space between segments is rare.",
     "It helps when sizes change from step to step and fragmentation is high.",
     "Mapping and unmapping take driver calls. It does not work on Windows or "
     "WSL, nor with cudaIpcGetMemHandle (custom all-reduce of inference "
     "servers) and some NCCL and RDMA registrations."},
    {"max_split_size_mb", CONF_PLACEMENT, true, false,
     "a number of MiB, at least large_segment_size_mb", "unlimited",
     "A free block of this size or more is never split: it serves only "
     "requests of nearly its own size.",
     "It can help when large blocks are cut for small long-lived ones and the "
     "large sizes repeat exactly.",
     "If large sizes vary, free large blocks cannot be used again, and "
     "reserved memory can grow several times."},
    {"max_non_split_rounding_mb", CONF_PLACEMENT, true, false,
     "a number of MiB, at least large_segment_size_mb", "20",
     "A request of max_split_size_mb or more may take a free block that is "
     "larger by less than this size.",
     "A larger value lets more free large blocks be used again when "
     "max_split_size_mb is set.",
     "The rest of such a block is not usable while the block is live."},
    {"garbage_collection_threshold", CONF_PLACEMENT, true, false,
     "a number above 0 and below 1", "off",
     "When reserved memory exceeds this share of the memory limit, the "
     "allocator frees old unused segments before it asks the driver for more.",
     "It avoids the expensive release of the whole cache in jobs that run "
     "close to a limit.",
     "Frees and new segments cost driver calls. It has no effect without a "
     "memory fraction below 1, and does not free expandable segments."},
    {"roundup_power2_divisions", CONF_PLACEMENT, true, false,
     "a power of two, or a list such as [256:1,512:2,>:8] of intervals in MiB",
     "no divisions",
     "Sizes are rounded up to one of this many equal steps between two powers "
     "of two. In a list, the entry K serves sizes from K MiB up to 2 K MiB.",
     "It helps when sizes differ a little from step to step, because rounded "
     "blocks fit again.",
     "Every rounded block is larger than its request: with N divisions by up "
     "to 1/N, so N = 2 can add half of the request."},
    {"large_segment_size_mb", CONF_PLACEMENT, true, false,
     "a number of MiB, at least 11", "20",
     "The size of the segments for requests of 1 to 10 MiB, and of the pages "
     "of large expandable segments.",
     "A smaller value wastes less in jobs with few such requests; a larger one "
     "saves driver calls.",
     "It is also the least value of max_split_size_mb and "
     "max_non_split_rounding_mb. With expandable segments it must be a "
     "multiple of 2."},
    {"per_process_memory_fraction", CONF_PLACEMENT, false, false,
     "a number from 0 to 1", "1 (no limit)",
     "The allocator reserves at most this share of the device's total memory. "
     "It is read once, when the device is first used.",
     "It leaves memory for other processes on the device, and "
     "garbage_collection_threshold needs it.",
     "A request that would exceed the limit fails, even if the device has "
     "memory left."},
    {"throw_on_cudamalloc_oom", CONF_PLACEMENT, false, false, "True or False",
     "False",
     "A request that per_process_memory_fraction does not allow fails with an "
     "exception before the driver is called.",
     "It helps servers that must survive a request that does not fit.",
     "It rejects a request that a release of cached memory might have served. "
     "A limit that torch.cuda.set_per_process_memory_fraction set is tested "
     "before, and ends as usual."},
    {"backend", CONF_BACKEND, false, false, "native or cudaMallocAsync",
     "native",
     "It selects the allocator: PyTorch's own, or the stream-ordered allocator "
     "of the CUDA driver (CUDA 11.4 or later). It is read when PyTorch is "
     "loaded.",
     "cudaMallocAsync shares memory with other libraries that use it.",
     "With cudaMallocAsync the settings of placement have no effect, and "
     "PyTorch keeps no memory snapshot. Policy cuda_async models it."},
    {"graph_capture_record_stream_reuse", CONF_OTHER, false, false,
     "True or False", "False",
     "While a CUDA graph is captured, a freed block that several streams used "
     "can be used again as soon as the graph orders those uses.",
     "It lowers the memory of graphs with several streams.",
     "The capture takes longer. The torch policy accepts it and does not model "
     "it."},
    {"release_lock_on_cudamalloc", CONF_OTHER, false, false, "True or False",
     "False",
     "The allocator's lock is free while the driver allocates a segment.",
     "It helps programs in which several threads allocate.",
     "None is known. It does not change where blocks are placed."},
    {"release_lock_on_hipmalloc", CONF_OTHER, false, false, "True or False",
     "False", "The name of release_lock_on_cudamalloc in builds for ROCm.",
     "It helps programs in which several threads allocate.",
     "None is known. It does not change where blocks are placed."},
    {"pinned_use_cuda_host_register", CONF_OTHER, false, true, "True or False",
     "False",
     "Pinned memory of the host is allocated by malloc and then registered, "
     "instead of by cudaHostAlloc.",
     "It shortens the time for which the driver's lock is held when large "
     "pinned buffers are allocated.",
     "It has no effect on the memory of the GPU."},
    {"pinned_use_hip_host_register", CONF_OTHER, false, true, "True or False",
     "False", "The name of pinned_use_cuda_host_register in builds for ROCm.",
     "It shortens the time for which the driver's lock is held when large "
     "pinned buffers are allocated.",
     "It has no effect on the memory of the GPU."},
    {"pinned_num_register_threads", CONF_OTHER, false, true,
     "a power of two, at most 128", "1",
     "The number of threads that map the pages of a pinned buffer of the host "
     "before it is registered.",
     "It speeds up large pinned buffers together with "
     "pinned_use_cuda_host_register.",
     "It uses CPU cores, and has no effect on the memory of the GPU."},
    {"pinned_use_background_threads", CONF_OTHER, true, true, "True or False",
     "False",
     "A thread in the background checks which pinned buffers of the host are "
     "free again.",
     "It shortens the calls that allocate pinned memory.",
     "It needs one thread, and has no effect on the memory of the GPU."},
    {"pinned_reserve_segment_size_mb", CONF_OTHER, false, true,
     "a number of MiB above 0", "0 (off)",
     "One pinned segment of this size is allocated at the start and serves the "
     "small pinned requests of the host.",
     "It avoids slow driver calls for pinned memory.",
     "The host's memory stays pinned. It has no effect on the memory of the "
     "GPU."},
    {"pinned_max_cached_size_mb", CONF_OTHER, true, true, "a number of MiB",
     "unlimited",
     "Freed pinned buffers of the host are kept for new requests only up to "
     "this size.",
     "It returns pinned memory to the host's other programs.",
     "Buffers that are not kept are allocated again by slow driver calls. It "
     "has no effect on the memory of the GPU."},
    {"pinned_max_round_threshold_mb", CONF_OTHER, true, true, "a number of MiB",
     "unlimited",
     "Pinned requests of the host above this size keep their size; smaller "
     "ones "
     "are rounded up to a power of two.",
     "It saves up to half of large pinned buffers.",
     "Buffers of many different sizes are used again less often. It has no "
     "effect on the memory of the GPU."},
    {"pinned_free_catch_all", CONF_OTHER, false, true, "True or False", "False",
     "An error while a pinned buffer of the host is freed is ignored.",
     "It lets a program end whose device has failed.",
     "It hides errors. It has no effect on the memory of the GPU."},
    {"expandable_segments_reserve", CONF_PLACEMENT, false, false,
     "a share of the device's memory, or a number of GiB such as 4G",
     "no bound",
     "It bounds the range of addresses that each expandable segment reserves.",
     "It helps where many segments exhaust the address space of the process.",
     "A request above the bound fails although memory is free."},
    {"expandable_segments_reserve_by_class", CONF_OTHER, false, false,
     "a list such as [small:1G,large:0.5]", "no bound",
     "It is expandable_segments_reserve for each class of segments.",
     "It helps where many segments exhaust the address space of the process.",
     "A request above the bound fails although memory is free. The torch "
     "policy does not model it."},
    {"roundup_bypass_threshold_mb", CONF_OTHER, false, false, "a number of MiB",
     "none",
     "In PyTorch 1.13, requests above this size were not rounded by "
     "roundup_power2_divisions.",
     "PyTorch 2 does the same with a list: roundup_power2_divisions:[64:8,>:1] "
     "rounds no request of 128 MiB or more.",
     "PyTorch 2 refuses it."},
    {TORCH_ALIGN_KEY, CONF_PLACEMENT, false, false, "a number of KiB, 0 to 16",
     "16",
     "In expandable segments of torch_npu, blocks of 2 MiB or more start at "
     "multiples of this.",
     "It aligns large blocks for the device.",
     "The front of a free block can be lost to small pieces."},
    {"page_size", CONF_OTHER, false, false, "1g", "pages of 2 MiB",
     "Segments of the large pool of torch_npu are made of pages of 1 GiB.",
     "It speeds up the translation of addresses.",
     "Segments are rounded up to 1 GiB. The torch policy accepts it and does "
     "not model it."},
    {"segment_size_mb", CONF_OTHER, false, false, "a number of MiB, 20 to 512",
     "20",
     "It is the size of the pages of large expandable segments of torch_npu; "
     "large_segment_size_mb replaces it.",
     "A larger value saves driver calls.",
     "The torch policy accepts it and does not model it."},
    {"multi_stream_lazy_reclaim", CONF_OTHER, false, false, "True or False",
     "False",
     "torch_npu asks later whether blocks that several streams used are free.",
     "It shortens the calls of programs with many such blocks.",
     "Such blocks are used again later. The torch policy accepts it and does "
     "not model it."},
    {"throw_on_npumalloc_oom", CONF_PLACEMENT, false, false, "True or False",
     "False", "It is throw_on_cudamalloc_oom under its name in torch_npu.",
     "It helps servers that must survive a request that does not fit.",
     "It rejects a request that a release of cached memory might have served."},
    {"release_lock_on_npumalloc", CONF_OTHER, false, false, "True or False",
     "False", "It is release_lock_on_cudamalloc under its name in torch_npu.",
     "It helps programs in which several threads allocate.",
     "None is known. It does not change where blocks are placed."},
    {"pinned_mem_register", CONF_OTHER, false, true, "True or False", "False",
     "torch_npu registers pinned memory of the host with the device.",
     "It needs CANN 8.5.0 or later.",
     "It has no effect on the memory of the device."},
    {"pin_memory_expandable_segments", CONF_OTHER, false, true, "True or False",
     "False",
     "torch_npu keeps pinned memory of the host in expandable segments.",
     "It needs CANN 8.5.0 or later.",
     "It has no effect on the memory of the device."},
    {0},
};

const struct conf_key *conf_key_find(const char *name)
{
    for (const struct conf_key *k = conf_keys; k->name; k++)
        if (!strcmp(k->name, name))
            return k;
    return NULL;
}

bool conf_key_is_of_npu(const struct conf_key *key)
{
    return !torch_setting_find(key->name);
}

const char *conf_key_versions(const struct conf_key *key,
                              char text[CONF_VERSIONS])
{
    const struct torch_setting *s = torch_setting_find(key->name);
    const unsigned since = s ? s->since : TORCH_NEVER;

    if (!s)
        snprintf(text, CONF_VERSIONS, "torch_npu for Ascend only");
    else if (since == TORCH_NEVER)
        snprintf(text, CONF_VERSIONS, "PyTorch 1.13 only");
    else if (since == TORCH_OLDEST)
        snprintf(text, CONF_VERSIONS, "all versions of PyTorch 2");
    else
        snprintf(text, CONF_VERSIONS, "PyTorch 2.%u and later", since);
    return text;
}
