/* versions.c - the table of PyTorch's settings and versions.
 *
 * Sources, with the marks of an allocator specification: [S] the strings of
 * libc10 in the released packages, [R] the source of c10/cuda at the time,
 * [P] a pull request, whose merge lies between two release branches, [I]
 * inferred. Releases 2.0, 2.1, 2.6, 2.9, 2.10 and 2.11 are of March 2023,
 * October 2023, January 2025, October 2025, January 2026 and March 2026; a
 * branch leaves main about six weeks before its release.
 *
 *   max_split_size_mb             before 2.0: #44742 (2021) [P]
 *   garbage_collection_threshold, roundup_power2_divisions with one number
 *                                 before 2.0: the parser without lists has both
 * [R] roundup_power2_divisions with a list 2.0: #87290, October and November
 * 2022 [P] expandable_segments           2.1: #96995 and #99275, April 2023 [P]
 *   max_non_split_rounding_mb     2.6: #136174, September 2024, after the
 *                                 branch of 2.5 [P]; in libc10 of 2.9 [S]
 *   per_process_memory_fraction   2.10: #161035 was under review on 9 September
 *                                 2025, after the branch of 2.9 [P], and 2.11
 *                                 has it [R]; so 2.10 [I]
 *   large_segment_size_mb         2.11: #172056, January 2026 [P]; in libc10 of
 *                                 2.11, and not in those of 2.10 and 2.9 [S]
 *   backend                       2.0: a parser of that time has it [R]
 *   roundup_bypass_threshold_mb   1.13 only: #85940, September 2022 [P]; the
 *                                 parser with lists has it no more [R]
 *   release_lock_on_cudamalloc    2.2: #108367 is of 31 August 2023, and a fork
 *                                 of October 2023 did not know it [P]
 *   pinned_use_cuda_host_register 2.2: #108488, September 2023 [P]
 *   pinned_num_register_threads   2.2: #111545, October 2023 [P]
 *   pinned_use_background_threads 2.6: #135524 and #136879, September 2024 [P]
 *   graph_capture_record_stream_reuse
 *                                 2.9: #158352, before 4 September 2025 [P]
 *   pinned_reserve_segment_size_mb
 *                                 2.10: #164501, October 2025 [P]
 *   throw_on_cudamalloc_oom       2.12: #179473, in its release notes [P]
 *   pinned_max_cached_size_mb     2.13: used with that release [I]
 * The names with hip are those of ROCm builds. They are assumed to be as old as
 * the names with cuda [I].
 *
 * The parser in c10/cuda/CUDAAllocatorConfig.cpp wanted more than 20 MiB for
 * the two sizes [R]; that in c10/core/AllocatorConfig.cpp wants 20 or more, and
 * libc10 has it since 2.9 [S]. Which of the two the CUDA allocator of 2.9 used
 * is not known, so 2.9 counts as old. The old parser also began the fill of ">"
 * in a list at the last interval named, and not above it [R].
 *
 * PYTORCH_CUDA_ALLOC_CONF is read by all versions. PYTORCH_ALLOC_CONF is new in
 * 2.9 [S], whose CUDA allocator ignored settings in it (issue #183387).
 */
#include "policies/torch/versions.h"

#include <stdlib.h>
#include <string.h>

enum { ABOVE_LARGE_SEGMENT = 21, RELAXED = 10 };

const struct torch_setting torch_known_settings[] = {
    {"expandable_segments", 1, 0, 0, NULL},
    {"large_segment_size_mb", 11, 0, 0, NULL},
    {"max_split_size_mb", 0, ABOVE_LARGE_SEGMENT, RELAXED, "inf"},
    {"max_non_split_rounding_mb", 6, ABOVE_LARGE_SEGMENT, RELAXED, NULL},
    {"roundup_power2_divisions", 0, 0, 0, "0"},
    {"garbage_collection_threshold", 0, 0, 0, "0"},
    {"per_process_memory_fraction", 10, 0, 0, NULL},
    {"throw_on_cudamalloc_oom", 12, 0, 0, NULL},
    {"backend", 0, 0, 0, NULL},
    {"graph_capture_record_stream_reuse", 9, 0, 0, NULL},
    {"release_lock_on_cudamalloc", 2, 0, 0, NULL},
    {"release_lock_on_hipmalloc", 2, 0, 0, NULL},
    {"pinned_use_cuda_host_register", 2, 0, 0, NULL},
    {"pinned_use_hip_host_register", 2, 0, 0, NULL},
    {"pinned_num_register_threads", 2, 0, 0, NULL},
    {"pinned_use_background_threads", 6, 0, 0, NULL},
    {"pinned_reserve_segment_size_mb", 10, 0, 0, NULL},
    {"pinned_max_cached_size_mb", 13, 0, 0, NULL},
    {"roundup_bypass_threshold_mb", TORCH_NEVER, 0, 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

const struct torch_setting *torch_setting_find(const char *name)
{
    for (const struct torch_setting *s = torch_known_settings; s->name; s++)
        if (!strcmp(s->name, name))
            return s;
    return NULL;
}

bool torch_setting_is_off(const char *name, const char *value)
{
    const struct torch_setting *s = torch_setting_find(name);

    return s && s->off && !strcmp(s->off, value);
}

unsigned torch_setting_least(const struct torch_setting *setting,
                             unsigned version)
{
    return version < setting->relaxed ? setting->least_mib : 0;
}

enum frag_err torch_version_read(const char *text, unsigned *version,
                                 struct frag_error *e)
{
    const bool is_two =
        text[0] == '2' && text[1] == '.' && text[2] >= '0' && text[2] <= '9';
    char *end = NULL;
    unsigned long minor = is_two ? strtoul(text + 2, &end, 10) : 0;

    if (!is_two || (*end && *end != '.' && *end != '+') || minor > TORCH_NEWEST)
        return frag_fail(e, FRAG_INVALID,
                         "\"%.40s\" is not a version of PyTorch whose settings "
                         "are known; those versions are 2.%d to 2.%d",
                         text, TORCH_OLDEST, TORCH_NEWEST);
    *version = (unsigned)minor;
    return FRAG_OK;
}
