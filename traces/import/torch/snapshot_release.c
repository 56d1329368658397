/* snapshot_release.c - infers from the keys of a snapshot which releases of
 * PyTorch write such snapshots. A snapshot does not name its release.
 *
 * Source: the keys that libtorch_python of each release from 2.0.1 to 2.14.0
 * contains, as published; "max_round_threshold" was seen in snapshots
 * of 2.13.0, 2.14.1 and 2.15.0, and not in those of 2.12.1. Whether a library
 * contains "pool_id" cannot be seen; #177717 of March 2026 added it to the
 * entries, so after 2.11. Of 2.5 to 2.7 only 2.5 contains "compile_context",
 * and whether it writes that key is not known, so the key's presence excludes
 * neither.
 */
#include "traces/import/torch/import_torch.h"

/* A key: the first release that may write it, and the first one from which on
 * all do. */
static const struct key {
    enum kind kind;
    enum word word;
    uint32_t since, always;
} keys[] = {
    {K_SEGMENT, W_segment_pool_id, 1, 1},
    {K_SEGMENT, W_is_expandable, 1, 1},
    {K_ENTRY, W_time_us, 2, 2},
    {K_SNAPSHOT, W_allocator_settings, 3, 3},
    {K_SNAPSHOT, W_external_annotations, 5, 5},
    {K_ENTRY, W_compile_context, 5, 8},
    {K_SETTINGS, W_capture_reuse, 9, 9},
    {K_ENTRY, W_user_metadata, 10, 10},
    {K_ENTRY, W_pool_id, 12, 12},
    {K_SETTINGS, W_round_threshold, 13, 13},
    {K_SNAPSHOT, W_host_segments, 14, 14},
};

uint32_t release_find(const struct import *in)
{
    uint32_t first = 0, last = UINT32_MAX;

    if (torch_platforms[origin_of(in)].rules)
        return 0; /* its keys are not those of PyTorch for CUDA */
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const struct key *k = &keys[i];
        const struct object *o = &in->objects[k->kind];
        const uint32_t seen = o->seen | o->set;

        if (!seen)
            continue; /* there is no dictionary of this kind */
        if (seen >> in->fields[k->kind][k->word].slot & 1)
            first = k->since > first ? k->since : first;
        else
            last = k->always - 1 < last ? k->always - 1 : last;
    }
    if (first <= last && (first || last != UINT32_MAX))
        frag_build_releases(in->build, first, last);
    return first;
}
