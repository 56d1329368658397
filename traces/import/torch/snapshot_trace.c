/* snapshot_trace.c - reads the trace entries and the annotations of a snapshot,
 * and passes them to the builder. */
#include "traces/import/torch/import_torch.h"

const struct pickle_kind torch_traces = {
    .name = "the list of device traces",
    .element = K_TRACE,
    .begin = list_begin_once,
};

/* The list number k, counted from 0, holds the entries of device k. */
static enum frag_err trace_begin(void *user, uint8_t kind, struct frag_error *e)
{
    struct import *in = user;

    (void)e;
    in->is_host = kind == K_HOST_TRACE;
    in->traces += !in->is_host;
    in->origin.maps = false;
    in->objects[K_ENTRY].number = 0;
    return FRAG_OK;
}

const struct pickle_kind torch_trace = {
    .name = "a list of trace entries",
    .element = K_ENTRY,
    .begin = trace_begin,
};

/* The entries of pinned host memory, of PyTorch 2.14 and later. */
const struct pickle_kind torch_host_trace = {
    .name = "the list of host traces",
    .element = K_ENTRY,
    .begin = trace_begin,
};

enum {
    E_ACTION,
    E_ADDR,
    E_DEVICE_FREE,
    E_SIZE,
    E_STREAM,
    E_TIME,
    E_FRAMES,
    E_POOL,
    E_COMPILE,
    E_METADATA,
    E_REQUESTED
};

/* No key is marked as needed here: an entry with an unknown action is ignored,
 * whatever keys it has. check_entry checks the others. */
const struct field entry_fields[WORD_COUNT] = {
    [W_action] = {TEXT, E_ACTION, 0, true, false},
    [W_addr] = {WHOLE, E_ADDR, 0, false, false},
    [W_device_free] = {WHOLE, E_DEVICE_FREE, 0, false, false},
    [W_size] = {WHOLE, E_SIZE, 0, false, true},
    [W_stream] = {WHOLE, E_STREAM, 0, false, true},
    [W_time_us] = {WHOLE, E_TIME, 0, false, false},
    [W_frames] = {1 << PICKLE_RESULT, E_FRAMES, K_FRAMES, false, false},
    [W_pool_id] = {PAIR, E_POOL, 0, false, false},
    [W_requested_size] = {WHOLE, E_REQUESTED, 0, false, false},
    [W_compile_context] = {ANY, E_COMPILE, 0, false, true},
    [W_user_metadata] = {ANY, E_METADATA, 0, false, true},
};

static enum frag_err check_entry(const struct import *in, unsigned place,
                                 struct frag_error *e)
{
    const struct object *o = &in->objects[K_ENTRY];
    enum word missing;

    if (!object_has(o, E_SIZE))
        missing = W_size;
    else if (!object_has(o, E_STREAM))
        missing = W_stream;
    else if (!object_has(o, place))
        missing = place == E_ADDR ? W_addr : W_device_free;
    else
        return FRAG_OK;
    return object_bad(in, K_ENTRY, "the key", missing, "none", e);
}

/* An alloc of host memory has the size of its block. Where the bytes that were
 * requested are known, they stand beside it (requested_size). */
static void host_request(struct import *in, frag_size *size)
{
    const struct object *o = &in->objects[K_ENTRY];

    if (object_has(o, E_REQUESTED) && o->value[E_REQUESTED])
        *size = o->value[E_REQUESTED];
    else
        in->unknown_requests++;
}

/* Memory that the program registered by cudaHostRegister itself has entries of
 * the same form. It is told apart by its size, where the allocator makes no
 * block of that size. */
static enum frag_err find_registered(struct import *in,
                                     const struct frag_entry *entry, bool *is,
                                     struct frag_error *e)
{
    struct live_row *row = live_find(&in->registered, entry->addr);

    *is = row != NULL;
    if (row && entry->kind == FRAG_ENTRY_SEGMENT_FREE)
        live_remove(&in->registered, row);
    if (row || entry->kind != FRAG_ENTRY_SEGMENT_ALLOC || !entry->size ||
        settings_round_to(in, entry->size))
        return FRAG_OK;
    *is = true;
    in->registered_count++;
    in->registered_bytes += entry->size;
    return live_put(&in->registered, entry->addr, 0) ? FRAG_OK
                                                     : import_no_memory(in, e);
}

static enum frag_err feed_entry(struct import *in, enum frag_entry_kind kind,
                                struct frag_error *e)
{
    const struct object *o = &in->objects[K_ENTRY];
    const unsigned place = kind == FRAG_ENTRY_OOM ? E_DEVICE_FREE : E_ADDR;
    const uint32_t device = in->is_host ? FRAG_HOST_DEVICE : in->traces - 1;
    bool is_registered = false;
    struct frag_entry entry = {
        .kind = kind,
        .has_pool = object_has(o, E_POOL),
        .stack = object_has(o, E_FRAMES) ? (uint32_t)o->value[E_FRAMES] : 0,
        .addr = o->value[place],
        .size = o->value[E_SIZE],
        .stream = o->value[E_STREAM],
    };

    FRAG_TRY(check_entry(in, place, e));
    if (in->is_host)
        FRAG_TRY(find_registered(in, &entry, &is_registered, e));
    if (is_registered)
        return FRAG_OK;
    if (in->is_host && kind == FRAG_ENTRY_ALLOC)
        host_request(in, &entry.size);
    FRAG_TRY(object_time(in, K_ENTRY, E_TIME, &entry.time, e));
    if (entry.has_pool)
        entry.pool = object_pool(in, K_ENTRY, E_POOL);
    if (kind == FRAG_ENTRY_ALLOC && object_has(o, E_METADATA) &&
        o->value[E_METADATA] != NO_TEXT)
        entry.stack =
            stack_with_metadata(in, entry.stack, o->value[E_METADATA]);
    if (entry.stack == UINT32_MAX)
        return import_no_memory(in, e);
    if (in->traces > DEVICES_MAX)
        return object_bad(in, K_ENTRY, "at most 1024 devices in",
                          W_device_traces, "more", e);
    in->has_entries = true;
    in->has_expandable |= kind == FRAG_ENTRY_SEGMENT_MAP;
    origin_see_entry(&in->origin, &entry);
    FRAG_TRY(changes_see(in, device, &entry, e));
    return frag_build_entry(in->build, device, &entry, o->where, e);
}

/* Counts an entry whose action is none of those that change memory. Some are
 * known to change none. */
static void see_other_action(struct import *in, uint64_t action)
{
    static const char *const harmless[] = {"snapshot", "user_defined",
                                           "annotate"};
    size_t length;
    const char *text = pickle_text(in->pickle, action, &length);

    for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
        if (length == strlen(harmless[i]) && !memcmp(text, harmless[i], length))
            return;
    if (!in->unknown_actions++)
        snprintf(in->unknown_action, sizeof(in->unknown_action), "%.*s",
                 (int)(length < 40 ? length : 40), text);
}

static enum frag_err entry_seal(void *user, uint8_t kind, uint32_t *result,
                                struct frag_error *e)
{
    struct import *in = user;
    struct object *o = &in->objects[K_ENTRY];

    (void)kind, (void)result;
    if (!object_has(o, E_ACTION))
        return object_bad(in, K_ENTRY, "the key", W_action, "none", e);
    if (o->value[E_ACTION] <= W_oom)
        FRAG_TRY(feed_entry(in, (enum frag_entry_kind)o->value[E_ACTION], e));
    else
        see_other_action(in, o->value[E_ACTION]);
    o->number++;
    if (in->most_entries < o->number)
        in->most_entries = o->number;
    return FRAG_OK;
}

const struct pickle_kind torch_entry = {
    .name = "a trace entry",
    .shape = PICKLE_IS_DICT,
    .begin = object_begin,
    .add = object_add,
    .seal = entry_seal,
};

/* Annotations */

enum { A_STAGE, A_NAME, A_DEVICE, A_TIME };

const struct field annotation_fields[WORD_COUNT] = {
    [W_stage] = {TEXT, A_STAGE, 0, true, false},
    [W_name] = {TEXT, A_NAME, 0, true, false},
    [W_device] = {WHOLE, A_DEVICE, 0, true, true},
    [W_time_us] = {WHOLE, A_TIME, 0, true, false},
};

static enum frag_err annotation_seal(void *user, uint8_t kind, uint32_t *result,
                                     struct frag_error *e)
{
    struct import *in = user;
    struct object *o = &in->objects[K_ANNOTATION];
    const uint64_t stage = o->value[A_STAGE], device = o->value[A_DEVICE];
    const char *name;
    size_t length;
    frag_time time = 0;

    (void)kind, (void)result;
    FRAG_TRY(object_check(in, K_ANNOTATION, e));
    FRAG_TRY(object_time(in, K_ANNOTATION, A_TIME, &time, e));
    o->number++;
    name = pickle_text(in->pickle, o->value[A_NAME], &length);
    if (stage == W_policy && device < DEVICES_MAX) {
        in->has_policy = true;
        return frag_build_policy(in->build, (uint32_t)device, name, length, e);
    }
    if ((stage == W_emptied || stage == W_emptied_before) &&
        device < DEVICES_MAX)
        return frag_build_emptied(in->build, (uint32_t)device, time, e);
    /* Annotations of the host have the device -1. */
    if ((stage != W_START && stage != W_END) || device >= DEVICES_MAX)
        return FRAG_OK;
    return frag_build_mark(in->build, (uint32_t)device,
                           stage == W_START ? FRAG_MARK_BEGIN : FRAG_MARK_END,
                           time, name, length, e);
}

const struct pickle_kind torch_annotation = {
    .name = "an annotation",
    .shape = PICKLE_IS_DICT,
    .begin = object_begin,
    .add = object_add,
    .seal = annotation_seal,
};

const struct pickle_kind torch_annotations = {
    .name = "the list of annotations",
    .element = K_ANNOTATION,
    .begin = list_begin_once,
};
