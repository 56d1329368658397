/* snapshot_origin.c - finds out which platform a snapshot comes from.
 *
 * The frames show it (traces/torch_platforms.c). A snapshot of PyTorch for XPU
 * also has a key of its own, if it has settings. torch_npu has a copy of the
 * allocator for CUDA. The copy adds 32 bytes to each request before it rounds
 * the size (traces/torch_sizes.h has the source), except on new devices. So
 * each of its
 * live blocks has 32 bytes or more beyond its request. In a small segment,
 * where nothing but the rounding makes a block larger, such a block of a
 * request that is nearly a multiple of 512 bytes cannot come from CUDA. In
 * expandable segments, the copy also lets large blocks start at multiples of 16
 * KiB; releases before July 2024 did not, so a history whose large blocks start
 * elsewhere refutes this. The settings of a snapshot of torch_npu receive both
 * rules.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/import/torch/import_torch.h"

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
    for (unsigned p = 0; p < TORCH_PLATFORMS; p++)
        for (const char *const *part = torch_platforms[p].frames; *part; part++)
            o->seen[p] |= has(text, length, *part);
}

void origin_see_entry(struct origin *o, const struct frag_entry *entry)
{
    o->maps |= entry->kind == FRAG_ENTRY_SEGMENT_MAP;
    if (!o->maps || entry->kind != FRAG_ENTRY_ALLOC ||
        entry->size < TORCH_ALIGN_LEAST)
        return;
    o->large++;
    o->aligned += entry->addr % TORCH_ALIGN_ASCEND == 0;
}

void origin_see_block(struct origin *o, const struct frag_snapshot_block *b,
                      bool is_small)
{
    if (b->state == FRAG_INACTIVE || b->requested == FRAG_SIZE_UNKNOWN ||
        b->requested > b->size)
        return;
    if (b->size - b->requested < TORCH_PADDING_ASCEND)
        o->plain++;
    else if (is_small &&
             b->size == torch_round_up(b->requested + TORCH_PADDING_ASCEND,
                                       TORCH_MIN_BLOCK) &&
             b->size > torch_round_up(b->requested, TORCH_MIN_BLOCK))
        o->padded++;
}

/* roundup_power2_divisions makes blocks larger too, also after a change. */
static bool has_divisions(const struct import *in)
{
    for (uint64_t i = 0; i < in->change_count; i++) {
        const struct change_read *c = &in->changes[i];
        size_t length = 0;
        const char *text = c->x.kind == FRAG_CHANGE_SETTINGS &&
                                   c->x.origin == FRAG_CHANGE_RECORDED
                               ? pickle_text(in->pickle, c->text, &length)
                               : "";

        if (has(text, length, "roundup_power2_divisions"))
            return true;
    }
    for (unsigned i = 0; i < TORCH_DIVISIONS; i++)
        if (in->settings.divisions[i] > 1)
            return true;
    return false;
}

/* Whether requests were padded. Without live blocks of a small segment, only
 * the frames tell. */
static bool is_padded(const struct import *in)
{
    const struct origin *o = &in->origin;

    return !o->plain &&
           (o->seen[TORCH_NPU] || (o->padded && !has_divisions(in)));
}

enum torch_platform_id origin_of(const struct import *in)
{
    const bool *seen = in->origin.seen;

    if (seen[TORCH_NPU] || is_padded(in))
        return TORCH_NPU;
    if (seen[TORCH_XPU] || torch_platform_of(in->conf) == TORCH_XPU)
        return TORCH_XPU;
    return seen[TORCH_ROCM] ? TORCH_ROCM : TORCH_CUDA;
}

static enum frag_err note_padding(struct import *in)
{
    if (!is_padded(in))
        return FRAG_OK;
    return frag_build_note(
        in->build,
        "the allocator of torch_npu adds 32 bytes to each request before it "
        "rounds the size; the policy torch adds them too, with all settings "
        "(" TORCH_PADDING_KEY ":32), and all other policies serve the requests "
        "as recorded%s",
        in->origin.padded
            ? ""
            : "; no block of the snapshot proves the 32 bytes, and Ascend950 "
              "with CANN 9.1.0 or newer does not add them "
              "(torch:" TORCH_PADDING_KEY ":0)");
}

/* A free block without room refuses the alignment to a few blocks. */
static bool is_aligned(const struct origin *o)
{
    return o->aligned * 10 >= o->large * 9;
}

static enum frag_err note_alignment(struct import *in)
{
    const struct origin *o = &in->origin;

    if (!o->large)
        return FRAG_OK;
    return frag_build_note(
        in->build,
        "in expandable segments of torch_npu, blocks of 2 MiB or more start at "
        "multiples of 16 KiB: %" PRIu64 " of %" PRIu64 " in the history do, so "
        "the policy torch %s",
        o->aligned, o->large,
        is_aligned(o) ? "aligns them too, with all settings (" TORCH_ALIGN_KEY
                        ":16)"
                      : "does not align them");
}

static enum frag_err apply_ascend(struct import *in, struct frag_error *e)
{
    const bool recorded = in->conf != NULL;

    FRAG_TRY(settings_add_platform(
        in, TORCH_CUDA, is_padded(in) ? TORCH_PADDING_ASCEND : 0,
        is_aligned(&in->origin) ? TORCH_ALIGN_ASCEND : 0, e));
    FRAG_TRY(frag_build_note(
        in->build,
        "the snapshot comes from torch_npu for Ascend, which reads "
        "PYTORCH_NPU_ALLOC_CONF and refuses max_split_size_mb and "
        "garbage_collection_threshold together with expandable_segments; "
        "page_size and segment_size_mb are not modelled, and driver calls are "
        "modelled after CUDA%s",
        recorded ? ""
                 : "; the snapshot does not contain the settings of the job, "
                   "so they are taken to be the defaults, apart from "
                   "expandable_segments, which the segments show"));
    FRAG_TRY(note_padding(in));
    return note_alignment(in);
}

enum frag_err origin_apply(struct import *in, struct frag_error *e)
{
    const enum torch_platform_id origin = origin_of(in);

    if (origin == TORCH_NPU)
        return apply_ascend(in, e);
    if (origin == TORCH_XPU)
        FRAG_TRY(settings_add_platform(in, TORCH_XPU, 0, 0, e));
    if (torch_platforms[origin].note)
        return frag_build_note(in->build, "%s", torch_platforms[origin].note);
    return FRAG_OK;
}
