/* trace.c - entries of a snapshot's traces, and annotations. */
#include "traces/import/torch/torch.h"

const struct pickle_kind torch_traces = {
    .name = "the list of device traces",
    .element = K_TRACE,
    .begin = record_once,
};

/* The k-th list of entries is device k's. */
static enum frag_err trace_begin(void *user, uint8_t kind, struct frag_error *e)
{
    struct import *in = user;

    (void)kind, (void)e;
    in->traces++;
    in->records[K_ENTRY].number = 0;
    return FRAG_OK;
}

const struct pickle_kind torch_trace = {
    .name = "a list of trace entries",
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
    E_POOL
};

/* An entry of an action that is not known needs none of them. */
const struct field entry_fields[WORD_COUNT] = {
    [W_action] = {TEXT, E_ACTION, 0, true, false},
    [W_addr] = {WHOLE, E_ADDR, 0, false, false},
    [W_device_free] = {WHOLE, E_DEVICE_FREE, 0, false, false},
    [W_size] = {WHOLE, E_SIZE, 0, false, true},
    [W_stream] = {WHOLE, E_STREAM, 0, false, true},
    [W_time_us] = {WHOLE, E_TIME, 0, false, false},
    [W_frames] = {1 << PICKLE_RESULT, E_FRAMES, K_FRAMES, false, false},
    [W_pool_id] = {PAIR, E_POOL, 0, false, false},
};

static enum frag_err check_entry(const struct import *in, unsigned place,
                                 struct frag_error *e)
{
    const struct record *r = &in->records[K_ENTRY];
    enum word missing;

    if (!record_has(r, E_SIZE))
        missing = W_size;
    else if (!record_has(r, E_STREAM))
        missing = W_stream;
    else if (!record_has(r, place))
        missing = place == E_ADDR ? W_addr : W_device_free;
    else
        return FRAG_OK;
    return record_bad(in, K_ENTRY, "expected the key", missing, "none", e);
}

static enum frag_err feed_entry(struct import *in, enum frag_entry_kind kind,
                                struct frag_error *e)
{
    const struct record *r = &in->records[K_ENTRY];
    const unsigned place = kind == FRAG_ENTRY_OOM ? E_DEVICE_FREE : E_ADDR;
    struct frag_entry entry = {
        .kind = kind,
        .has_pool = record_has(r, E_POOL),
        .stack = record_has(r, E_FRAMES) ? (uint32_t)r->value[E_FRAMES] : 0,
        .addr = r->value[place],
        .size = r->value[E_SIZE],
        .stream = r->value[E_STREAM],
    };

    FRAG_TRY(check_entry(in, place, e));
    FRAG_TRY(record_time(in, K_ENTRY, E_TIME, &entry.time, e));
    if (entry.has_pool)
        entry.pool = record_pool(in, K_ENTRY, E_POOL);
    if (in->traces > DEVICES_MAX)
        return record_bad(in, K_ENTRY, "too many devices in", W_device_traces,
                          "", e);
    in->has_entries = true;
    return frag_build_entry(in->build, in->traces - 1, &entry, r->where, e);
}

static enum frag_err entry_seal(void *user, uint8_t kind, uint32_t *result,
                                struct frag_error *e)
{
    struct import *in = user;
    struct record *r = &in->records[K_ENTRY];

    (void)kind, (void)result;
    if (!record_has(r, E_ACTION))
        return record_bad(in, K_ENTRY, "expected the key", W_action, "none", e);
    if (r->value[E_ACTION] <= W_oom)
        FRAG_TRY(feed_entry(in, (enum frag_entry_kind)r->value[E_ACTION], e));
    r->number++;
    return FRAG_OK;
}

const struct pickle_kind torch_entry = {
    .name = "a trace entry",
    .shape = PICKLE_IS_DICT,
    .begin = record_begin,
    .take = record_take,
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
    struct record *r = &in->records[K_ANNOTATION];
    const uint64_t stage = r->value[A_STAGE], device = r->value[A_DEVICE];
    const char *name;
    size_t length;
    frag_time time = 0;

    (void)kind, (void)result;
    FRAG_TRY(record_check(in, K_ANNOTATION, e));
    FRAG_TRY(record_time(in, K_ANNOTATION, A_TIME, &time, e));
    r->number++;
    /* Ranges of the host carry a device of -1. */
    if ((stage != W_START && stage != W_END) || device >= DEVICES_MAX)
        return FRAG_OK;
    name = pickle_text(in->pickle, r->value[A_NAME], &length);
    return frag_build_mark(in->build, (uint32_t)device,
                           stage == W_START ? FRAG_MARK_BEGIN : FRAG_MARK_END,
                           time, name, length, e);
}

const struct pickle_kind torch_annotation = {
    .name = "an annotation",
    .shape = PICKLE_IS_DICT,
    .begin = record_begin,
    .take = record_take,
    .seal = annotation_seal,
};

const struct pickle_kind torch_annotations = {
    .name = "the list of annotations",
    .element = K_ANNOTATION,
    .begin = record_once,
};
