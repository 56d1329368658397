/* conf.h - PYTORCH_CUDA_ALLOC_CONF: PyTorch's settings. The sizes that follow
 * from them are in traces/torch_sizes.h.
 *
 * The grammar is that of PyTorch 2.11, with its tolerances: white space is
 * dropped, trailing garbage after a number is ignored ("128MB" is 128), a later
 * key wins. What it refuses is refused here, with the reason.
 *
 * Source: c10/core/AllocatorConfig, c10/cuda/CUDAAllocatorConfig of PyTorch
 * 2.11, read; the list form of roundup_power2_divisions and both modes
 * of large_segment_size_mb probed on an H200.
 */
#ifndef FRAG_POLICIES_TORCH_CONF_H
#define FRAG_POLICIES_TORCH_CONF_H

#include "traces/torch_sizes.h"

/* All sizes in bytes. */
struct torch_conf {
    frag_size large_segment; /* segment of requests of 1 to 10 MiB */
    frag_size max_split;     /* FRAG_UNLIMITED: off */
    frag_size max_non_split_rounding;
    double gc_threshold;    /* of the memory limit; 0: off */
    double memory_fraction; /* of the device's total; 1: no limit */
    bool expandable_segments;
    bool rounds; /* some entry of divisions is above 1 */
    uint64_t divisions[TORCH_DIVISIONS]; /* roundup_power2_divisions */
};

/* PyTorch's defaults. */
void torch_conf_default(struct torch_conf *conf);

/* Reads settings over the defaults. INVALID, with the key and the reason; conf
 * is then undefined. UNSUPPORTED for backend:cudaMallocAsync, which is another
 * allocator. */
enum frag_err torch_conf_parse(struct torch_conf *conf, const char *text,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the settings that matter for placement, all values resolved, in the
 * same grammar, to at most room bytes. */
void torch_conf_describe(const struct torch_conf *conf, char *text,
                         size_t room);

#endif
