/* import_torch.c - imports snapshots of PyTorch's CUDA allocator, as the
 * functions _snapshot(), memory_snapshot(), _dump_snapshot() and torch.save()
 * write them: the schema of the pickle, the outermost dictionary, and the
 * importer. */
#include "traces/import/torch/import_torch.h"

#include <inttypes.h>

#include "traces/bytes/lines.h"

static enum frag_err overflows_add(void *user, uint8_t kind,
                                   const struct pickle_value *items,
                                   size_t count, struct frag_error *e)
{
    struct import *in = user;
    bool any = false;

    (void)kind, (void)e;
    for (; count--; items++)
        any |=
            (items->tag == PICKLE_BOOL || items->tag == PICKLE_INT) && items->n;
    if (!any)
        return FRAG_OK;
    return frag_build_note(in->build,
                           "the ring buffer of the history overflowed, so the "
                           "oldest entries are lost; a larger max_entries of "
                           "_record_memory_history keeps them");
}

const struct pickle_kind torch_overflows = {
    .name = "a list of bools",
    .add = overflows_add,
};

enum {
    T_SEGMENTS,
    T_TRACES,
    T_SETTINGS,
    T_ANNOTATIONS,
    T_HOST_SEGMENTS,
    T_HOST_TRACES,
    T_CHANGES,
    T_START
};

static const struct field snapshot_fields[WORD_COUNT] = {
    [W_segments] = {DONE, T_SEGMENTS, K_SEGMENTS, false, false},
    [W_device_traces] = {DONE, T_TRACES, K_TRACES, false, false},
    [W_host_segments] = {DONE, T_HOST_SEGMENTS, K_HOST_SEGMENTS, false, false},
    [W_host_traces] = {DONE, T_HOST_TRACES, K_HOST_TRACE, false, false},
    [W_allocator_settings] = {DONE, T_SETTINGS, K_SETTINGS, false, false},
    [W_external_annotations] = {DONE, T_ANNOTATIONS, K_ANNOTATIONS, false,
                                false},
    [W_changes] = {DONE, T_CHANGES, K_CHANGES, false, false},
    [W_start] = {DONE, T_START, K_START, false, false},
};

static enum frag_err snapshot_add(void *user, uint8_t kind,
                                  const struct pickle_value *items,
                                  size_t count, struct frag_error *e)
{
    FRAG_TRY(object_add(user, kind, items, count, e));
    for (; count--; items += 2)
        if (items[0].tag == PICKLE_TEXT &&
            items[0].n == W_trace_alloc_overflowed)
            FRAG_TRY(overflows_add(user, K_OVERFLOWS, items + 1, 1, e));
    return FRAG_OK;
}

static enum frag_err snapshot_seal(void *user, uint8_t kind, uint32_t *result,
                                   struct frag_error *e)
{
    struct import *in = user;
    const struct object *o = &in->objects[kind];

    (void)result;
    if (object_has(o, T_SEGMENTS) || object_has(o, T_TRACES))
        return FRAG_OK;
    return frag_fail(e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected a snapshot, with the key "
                     "'segments' or 'device_traces'; found a dictionary of "
                     "another kind; " FRAG_RECORD_SNAPSHOT,
                     frag_source_name(in->source), o->where);
}

static const struct pickle_member members[] = {
    {W_segments, K_SEGMENTS},
    {W_device_traces, K_TRACES},
    {W_host_segments, K_HOST_SEGMENTS},
    {W_host_traces, K_HOST_TRACE},
    {W_allocator_settings, K_SETTINGS},
    {W_external_annotations, K_ANNOTATIONS},
    {W_trace_alloc_overflowed, K_OVERFLOWS},
    {W_changes, K_CHANGES},
    {W_start, K_START},
    {0, 0},
};

const struct pickle_kind torch_snapshot = {
    .name = "a snapshot",
    .shape = PICKLE_IS_DICT,
    .members = members,
    .begin = object_begin,
    .add = snapshot_add,
    .seal = snapshot_seal,
};

const struct pickle_kind torch_other = {.name = "a value of another type"};

static enum frag_err tick(void *user, struct frag_error *e)
{
    const struct import *in = user;

    return lines_tick(in->source, in->opts, e);
}

static const char *const words[WORD_COUNT] = {
#define X(name, text) text,
    WORDS(X)
#undef X
};

static const struct pickle_kind *const kinds[KIND_COUNT] = {
#define X(name, kind) &torch_##kind,
    KINDS(X)
#undef X
};

static const struct field *const fields[KIND_COUNT] = {
    [K_SNAPSHOT] = snapshot_fields,   [K_ENTRY] = entry_fields,
    [K_FRAME] = frame_fields,         [K_SEGMENT] = segment_fields,
    [K_BLOCK] = block_fields,         [K_SETTINGS] = settings_fields,
    [K_DIVISIONS] = divisions_fields, [K_ANNOTATION] = annotation_fields,
    [K_START] = settings_fields,      [K_CHANGE] = change_fields,
};

static const struct pickle_schema schema = {
    .words = words,
    .word_count = WORD_COUNT,
    .kinds = kinds,
    .kind_count = KIND_COUNT,
    .root_dict = K_SNAPSHOT,
    .root_list = K_SEGMENTS,
    .anywhere = {W_frames, K_FRAMES},
    .tick = tick,
};

/* Adds a note if the snapshot has no history, or one entry of it. */
static enum frag_err note_missing(struct import *in, struct frag_error *e)
{
    if (!in->has_entries && !in->has_segments)
        FRAG_TRY(frag_build_device(in->build, 0, e));
    if (in->most_entries == 1)
        return frag_build_note(
            in->build,
            "the history has one entry: _record_memory_history(True), whose "
            "trace_alloc_max_entries is 1, and enabled=\"state\" keep no more; "
            "the snapshot shows what was held at one moment, not what the job "
            "requested; call torch.cuda.memory._record_memory_history() "
            "without True before the job allocates");
    if (!in->has_entries)
        FRAG_TRY(frag_build_note(in->build,
                                 "the snapshot has no history: it shows what "
                                 "was held at one moment, not what the job "
                                 "requested; call "
                                 "torch.cuda.memory._record_memory_history() "
                                 "before the job allocates"));
    return FRAG_OK;
}

static enum frag_err import(struct import *in, struct frag_error *e)
{
    in->pickle = pickle_open(in->source, &schema, in);
    if (!in->pickle)
        return import_no_memory(in, e);
    FRAG_TRY(pickle_read(in->pickle, e));
    FRAG_TRY(changes_find(in, e));
    FRAG_TRY(settings_finish(in, e));
    FRAG_TRY(changes_finish(in, e));
    FRAG_TRY(origin_apply(in, e));
    if (in->unknown_actions)
        FRAG_TRY(frag_build_note(
            in->build,
            "%" PRIu64 " trace entries have an action that is not known here, "
            "the first of them \"%s\"; they are left out, so what they did to "
            "memory is missing",
            in->unknown_actions, in->unknown_action));
    if (in->unknown_requests)
        FRAG_TRY(frag_build_note(
            in->build,
            "%s: " FRAG_BLOCKS_AS_REQUESTS " and not the bytes "
            "that were requested, so the waste of rounding is not known; run "
            "the job with pinned_max_round_threshold_mb:0, under which the two "
            "are equal",
            FRAG_DEVICE_NAME(FRAG_HOST_DEVICE)));
    if (in->registered_count)
        FRAG_TRY(frag_build_note(
            in->build,
            "%s: %" PRIu64 " ranges, %s in all, are none of the allocator's: "
            "the program registered them (cudaHostRegister); they are left out",
            FRAG_DEVICE_NAME(FRAG_HOST_DEVICE), in->registered_count,
            FRAG_SHOW_SIZE(in->registered_bytes)));
    (void)release_find(in);
    return note_missing(in, e);
}

static enum frag_err torch_read(struct frag_source *source,
                                struct frag_build *build,
                                const struct frag_read_options *opts,
                                struct frag_error *e)
{
    struct import *in = calloc(1, sizeof(*in));
    enum frag_err err;

    if (!in)
        return frag_no_memory(e, "%s", frag_source_name(source));
    in->source = source;
    in->build = build;
    in->opts = opts;
    in->words = words;
    in->kinds = kinds;
    in->fields = fields;
    err = import(in, e);
    pickle_close(in->pickle);
    free(in->blocks);
    free(in->frames);
    free(in->stack);
    free(in->strings);
    live_fini(&in->registered);
    free(in->conf);
    free(in->changes);
    free(in->toggles);
    free(in);
    return err;
}

static bool torch_recognize(const unsigned char *bytes, size_t count)
{
    return count >= 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
}

const struct frag_importer frag_importer_torch = {
    .name = "torch",
    .summary = "snapshot of PyTorch's allocator for CUDA, ROCm, XPU or "
               "Ascend (pickle, also in a .pt)",
    .made = "torch.cuda.memory._record_memory_history() before the work, "
            "torch.cuda.memory._dump_snapshot(\"run.pickle\") after it",
    .lacks = "the memory limit of the job; without stacks=... no stacks; "
             "without stacks of C++ it does not show whether the job ran on "
             "CUDA or on ROCm",
    .recognize = torch_recognize,
    .read = torch_read,
};
