/* versions.c - the tables of PyTorch's settings, versions and changed rules.
 *
 * Evidence: libc10_cuda of each release from 2.1.0 to 2.11.0, as published, was
 * run on a substitute for the CUDA driver that hands out invented addresses.
 * Each release read each setting, and received the same random streams of
 * requests under groups of settings: defaults, limits, garbage collection,
 * divisions, expandable segments, private pools, and combinations. Four of the
 * groups ran on six of the releases only. What the tables below have as a
 * change is what differed; every other trace entry and every block of the final
 * snapshots was equal in all releases that received the stream. Not exercised:
 * blocks used on several streams, graph captures, MemPools with use_on_oom or
 * no_split, and several devices. The releases are these commits of
 * pytorch/pytorch:
 *
 *   2.1.0  7bcf7da3a268   2.5.0  32f585d9346e   2.9.0   0fabc3ba4482
 *   2.2.0  8ac9b20d4b09   2.6.0  2236df177080   2.10.0  449b17684101
 *   2.3.0  97ff6cfd9c86   2.7.0  134179474539   2.11.0  70d99e998b49
 *   2.4.0  e4ee3be4063b   2.8.0  a1cb3cc05d46
 *
 * The changes of placement, in round_size, alloc_block and
 * release_available_cached_blocks of c10/cuda/CUDACachingAllocator.cpp and in
 * the parser of roundup_power2_divisions (c10/cuda/CUDAAllocatorConfig.cpp up
 * to 2.9, c10/core/AllocatorConfig.cpp since 2.10):
 *
 *   2.4   one division rounds to 512 bytes (#126830); before it, such a request
 *         kept its own size. A list may have 0 divisions (#126833).
 *   2.5   private pools use expandable segments (#128068). With max_split_size,
 *         the release of large free blocks skips expandable ones; before it, an
 *         internal assertion failed (#119452).
 *   2.10  ">" in a list begins above the last interval named (#165304); before
 *         it, the fill began at that interval.
 *   2.12  of free blocks of equal size the one whose record was made first is
 *         taken; before it, the one with the lowest address.
 *   2.13  the lowest address in the segment that was made first. Requests of a
 *         private pool return cached memory before they fail, unless a graph is
 *         captured; before it, they did not. The limit of a memory fraction is
 *         the nearest number of bytes (#179444); before it, the product was
 *         cut, which can be one byte less than was meant.
 *   2.2, 2.3, 2.6, 2.7, 2.8, 2.9, 2.11, 2.14 and 2.15 place as the release
 *         before them does, apart from new settings.
 *
 * 2.12.1, 2.13.0, 2.14.1 and 2.15.0 were run by tests/gpu/releases/scripts.py,
 * with blocks used on several streams, MemPools of each kind, captures, full
 * devices and each setting. Their settings, and those of 2.6.0, 2.9.1 and
 * 2.11.0, are what their own parsers answer (tests/gpu/releases/keys.csv).
 *
 * Settings below 2.1 rest on pull requests: #44742 and #87290 (before 2.0),
 * roundup_bypass_threshold_mb in 1.13 only (#85940). PYTORCH_CUDA_ALLOC_CONF is
 * read by all versions, PYTORCH_ALLOC_CONF has an effect since 2.10.
 */
#include "policies/torch/versions.h"

#include <stdio.h>
#include <string.h>

/* The parser before 2.10 wants more than 20 MiB for two sizes. */
enum { ABOVE_LARGE_SEGMENT = 21, RELAXED = TORCH_PARSER };

const struct torch_setting torch_known_settings[] = {
    {"expandable_segments", 1, 0, 0, true, false},
    {"large_segment_size_mb", 11, 0, 0, true, false},
    {"max_split_size_mb", 0, ABOVE_LARGE_SEGMENT, RELAXED, true, false},
    {"max_non_split_rounding_mb", 6, ABOVE_LARGE_SEGMENT, RELAXED, true, false},
    {"roundup_power2_divisions", 0, 0, 0, true, false},
    {"garbage_collection_threshold", 0, 0, 0, true, false},
    {"per_process_memory_fraction", 10, 0, 0, false, false},
    {"throw_on_cudamalloc_oom", 12, 0, 0, false, false},
    {"backend", 0, 0, 0, false, false},
    {"graph_capture_record_stream_reuse", 9, 0, 0, false, false},
    {"release_lock_on_cudamalloc", 2, 0, 0, false, false},
    {"release_lock_on_hipmalloc", 2, 0, 0, false, false},
    {"pinned_use_cuda_host_register", 2, 0, 0, false, true},
    {"pinned_use_hip_host_register", 2, 0, 0, false, true},
    {"pinned_num_register_threads", 2, 0, 0, false, true},
    {"pinned_use_background_threads", 6, 0, 0, true, true},
    {"pinned_reserve_segment_size_mb", 10, 0, 0, false, true},
    {"pinned_free_catch_all", 12, 0, 0, false, true},
    {"pinned_max_cached_size_mb", 13, 0, 0, true, true},
    {"pinned_max_round_threshold_mb", 13, 0, 0, true, true},
    {"expandable_segments_reserve", 15, 0, 0, false, false},
    {"expandable_segments_reserve_by_class", 15, 0, 0, false, false},
    {"roundup_bypass_threshold_mb", TORCH_NEVER, 0, 0, false, false},
    {0},
};

const struct torch_change torch_changes[TORCH_RULES] = {
    [TORCH_ONE_DIVISION] = {4, "roundup_power2_divisions with 1 division",
                            "a request with 1 division is not rounded at all"},
    [TORCH_POOL_SEGMENTS] = {5, "expandable_segments in private pools",
                             "private pools use ordinary segments"},
    [TORCH_OVERSIZE_FAILS] =
        {5, "expandable_segments together with max_split_size_mb",
         "the release of large free blocks fails with an internal assertion"},
    [TORCH_FILL_AT_LAST] = {10, "roundup_power2_divisions with \">\"",
                            "\">\" also sets the last interval before it"},
    [TORCH_TIE_ADDRESS] = {12, "free blocks of equal size",
                           "the one with the lowest address is taken"},
    [TORCH_TIE_RECORD] = {13, "free blocks of equal size",
                          "the one whose record is the oldest is taken"},
    [TORCH_POOL_RELEASES] = {13, "private pools",
                             "their requests return no cached memory before "
                             "they fail"},
    [TORCH_FRACTION_CUT] = {13, "per_process_memory_fraction",
                            "the limit is cut to whole bytes"},
};

const struct torch_setting *torch_setting_find(const char *name)
{
    for (const struct torch_setting *s = torch_known_settings; s->name; s++)
        if (!strcmp(s->name, name))
            return s;
    return NULL;
}

unsigned torch_setting_least(const struct torch_setting *setting,
                             unsigned version)
{
    return version < setting->relaxed ? setting->least_mib : 0;
}

enum frag_err torch_version_read(const char *text, unsigned *version,
                                 struct frag_error *e)
{
    unsigned major, minor;
    int length = 0;
    const bool is_version =
        strspn(text, "0123456789.") > 2 &&
        sscanf(text, "%5u.%5u%n", &major, &minor, &length) == 2 &&
        strchr(".+", text[length]) && major >= 2;

    if (!is_version)
        return frag_fail(e, FRAG_INVALID,
                         "\"%.40s\" is not a version of PyTorch whose settings "
                         "are known; those versions are 2.%d to 2.%d",
                         text, TORCH_OLDEST, TORCH_NEWEST);
    *version = major > 2 || minor > TORCH_NEWEST ? TORCH_LATER : minor;
    return FRAG_OK;
}
