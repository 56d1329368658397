/* import_torch.c - snapshots of PyTorch's CUDA allocator, as _snapshot(),
 * memory_snapshot(), _dump_snapshot() and torch.save() leave them.
 *
 * The schema below names the dicts and lists that matter and where they stand.
 * Each dict has a record, filled by a table of its keys while its members come
 * in, and handed to the builder when it is complete. Nothing depends on the
 * order of keys. Sources: allocator rules 19, 20 and 22.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"
#include "traces/import_torch_conf.h"
#include "traces/importer.h"
#include "traces/pickle.h"

/* Every text that means something, once. The actions stand in the order of enum
 * frag_entry_kind, the divisions in that of their octaves. */
#define WORDS(X)                                          \
    X(alloc, "alloc")                                     \
    X(free_requested, "free_requested")                   \
    X(free_completed, "free_completed")                   \
    X(segment_alloc, "segment_alloc")                     \
    X(segment_free, "segment_free")                       \
    X(segment_map, "segment_map")                         \
    X(segment_unmap, "segment_unmap")                     \
    X(oom, "oom")                                         \
    X(action, "action")                                   \
    X(addr, "addr")                                       \
    X(device_free, "device_free")                         \
    X(size, "size")                                       \
    X(stream, "stream")                                   \
    X(time_us, "time_us")                                 \
    X(frames, "frames")                                   \
    X(pool_id, "pool_id")                                 \
    X(name, "name")                                       \
    X(filename, "filename")                               \
    X(line, "line")                                       \
    X(device, "device")                                   \
    X(address, "address")                                 \
    X(total_size, "total_size")                           \
    X(segment_type, "segment_type")                       \
    X(segment_pool_id, "segment_pool_id")                 \
    X(is_expandable, "is_expandable")                     \
    X(blocks, "blocks")                                   \
    X(requested_size, "requested_size")                   \
    X(state, "state")                                     \
    X(small, "small")                                     \
    X(inactive, "inactive")                               \
    X(active_pending_free, "active_pending_free")         \
    X(active_awaiting_free, "active_awaiting_free")       \
    X(active_allocated, "active_allocated")               \
    X(stage, "stage")                                     \
    X(START, "START")                                     \
    X(END, "END")                                         \
    X(segments, "segments")                               \
    X(device_traces, "device_traces")                     \
    X(allocator_settings, "allocator_settings")           \
    X(external_annotations, "external_annotations")       \
    X(trace_alloc_overflowed, "trace_alloc_overflowed")   \
    X(conf, "PYTORCH_CUDA_ALLOC_CONF")                    \
    X(max_split_size, "max_split_size")                   \
    X(gc_threshold, "garbage_collection_threshold")       \
    X(expandable, "expandable_segments")                  \
    X(capture_reuse, "graph_capture_record_stream_reuse") \
    X(divisions, "roundup_power2_divisions")              \
    X(octave_0, "1")                                      \
    X(octave_1, "2")                                      \
    X(octave_2, "4")                                      \
    X(octave_3, "8")                                      \
    X(octave_4, "16")                                     \
    X(octave_5, "32")                                     \
    X(octave_6, "64")                                     \
    X(octave_7, "128")                                    \
    X(octave_8, "256")                                    \
    X(octave_9, "512")                                    \
    X(octave_10, "1024")                                  \
    X(octave_11, "2048")                                  \
    X(octave_12, "4096")                                  \
    X(octave_13, "8192")                                  \
    X(octave_14, "16384")                                 \
    X(octave_15, "32768")

enum word {
#define X(name, text) W_##name,
    WORDS(X)
#undef X
        WORD_COUNT
};

static const char *const words[] = {
#define X(name, text) text,
    WORDS(X)
#undef X
};

enum kind {
    K_NONE,
    K_SNAPSHOT,
    K_TRACES,
    K_TRACE,
    K_ENTRY,
    K_FRAMES,
    K_FRAME,
    K_SEGMENTS,
    K_SEGMENT,
    K_BLOCKS,
    K_BLOCK,
    K_SETTINGS,
    K_DIVISIONS,
    K_ANNOTATIONS,
    K_ANNOTATION,
    K_OVERFLOWS,
    KIND_COUNT
};

/* A key of a dict: which values it may have and where they go in a record. */
struct field {
    uint16_t tags; /* 1 << enum pickle_tag; 0: the key means nothing */
    uint8_t slot;
    uint8_t kind; /* of a container */
    bool needed, may_be_negative;
};

#define WHOLE (1 << PICKLE_INT | 1 << PICKLE_UINT)
#define TEXT  (1 << PICKLE_TEXT)

enum { SLOTS = 16, DEVICES_MAX = 1024, FRAME_CACHE = 1 << 12 };

/* A dict being read. */
struct record {
    uint64_t value[SLOTS];
    uint32_t set; /* 1 << slot */
    uint64_t where;
    uint64_t number; /* how many of its kind came before it */
};

struct import {
    struct frag_source *source;
    struct frag_build *build;
    const struct frag_read_options *opts;
    struct pickle *pickle;

    struct record records[KIND_COUNT];
    uint32_t traces; /* lists of entries so far; the last one's device is one
                        less */
    bool has_entries, has_segments;

    struct frag_snapshot_block *blocks; /* of the segment being read */
    uint64_t block_count, block_room;

    struct frag_frame *frames; /* the different ones, nearly */
    uint64_t frame_count, frame_room;
    uint32_t frame_cache[FRAME_CACHE]; /* 1 + index in frames, by hash */
    struct frag_frame *stack;          /* the stack being read */
    uint64_t stack_count, stack_room;

    uint32_t *strings; /* 1 + the builder's number, by the pickle's */
    uint64_t string_room;

    struct torch_settings settings;
};

/* Records */

static enum frag_err no_memory(const struct import *in, struct frag_error *e)
{
    return frag_fail(e, FRAG_NOMEM, "%s: no memory to import it",
                     frag_source_name(in->source));
}

static const struct pickle_schema schema;

/* "x.pickle:123: a trace entry (number 7): " and then what is wrong. */
static enum frag_err bad(const struct import *in, enum kind kind,
                         struct frag_error *e, const char *wrong,
                         const char *key, const char *found)
{
    return frag_fail(e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": %s, number %" PRIu64 ": %s '%s'%s%s",
                     frag_source_name(in->source), in->records[kind].where,
                     schema.kinds[kind].name, in->records[kind].number, wrong,
                     key, *found ? ", found " : "", found);
}

static enum frag_err begin_record(struct import *in, enum kind kind)
{
    struct record *r = &in->records[kind];

    r->set = 0;
    r->where = pickle_where(in->pickle);
    return FRAG_OK;
}

static enum frag_err check_value(const struct import *in, enum kind kind,
                                 const struct field *f, uint64_t word,
                                 const struct pickle_value *v,
                                 struct frag_error *e)
{
    if (!(f->tags >> v->tag & 1) || v->kind != f->kind)
        return bad(in, kind, e, "wrong type of", words[word],
                   pickle_describe(in->pickle, v));
    if (v->tag == PICKLE_INT && (int64_t)v->n < 0 && !f->may_be_negative)
        return bad(in, kind, e, "a negative", words[word], "");
    return FRAG_OK;
}

/* Fills the kind's record by fields[WORD_COUNT]. */
static enum frag_err take_pairs(struct import *in, enum kind kind,
                                const struct field *fields,
                                const struct pickle_value *items, size_t count,
                                struct frag_error *e)
{
    struct record *r = &in->records[kind];

    for (const struct pickle_value *key = items; count--; key += 2) {
        const struct pickle_value *value = key + 1;
        const struct field *f;

        if (key->tag != PICKLE_TEXT || key->n >= WORD_COUNT)
            continue;
        f = &fields[key->n];
        if (!f->tags)
            continue;
        FRAG_TRY(check_value(in, kind, f, key->n, value, e));
        r->value[f->slot] = value->n;
        r->set |= 1u << f->slot;
    }
    return FRAG_OK;
}

static bool has(const struct record *r, unsigned slot)
{
    return r->set >> slot & 1;
}

static enum frag_err need_fields(const struct import *in, enum kind kind,
                                 const struct field *fields,
                                 struct frag_error *e)
{
    for (size_t word = 0; word < WORD_COUNT; word++)
        if (fields[word].needed && !has(&in->records[kind], fields[word].slot))
            return bad(in, kind, e, "expected the key", words[word], "none");
    return FRAG_OK;
}

static enum frag_err to_time(const struct import *in, enum kind kind,
                             uint64_t us, frag_time *time, struct frag_error *e)
{
    if (us > UINT64_MAX / 1000)
        return bad(in, kind, e, "too large a", "time_us", "");
    *time = us * 1000;
    return FRAG_OK;
}

/* Texts: the pickle's number to the builder's. */

static bool grow_strings(struct import *in, uint64_t want)
{
    const uint64_t had = in->string_room;

    if (!GROW(in->strings, in->string_room, want))
        return false;
    memset(in->strings + had, 0,
           (in->string_room - had) * sizeof(*in->strings));
    return true;
}

/* UINT32_MAX if the host has no memory. */
static uint32_t string_of(struct import *in, uint64_t text)
{
    if (text >= in->string_room && !grow_strings(in, text + 1))
        return UINT32_MAX;
    if (!in->strings[text]) {
        size_t length;
        const char *bytes = pickle_text(in->pickle, text, &length);

        in->strings[text] = frag_build_string(in->build, bytes, length) + 1;
    }
    return in->strings[text] - 1;
}

/* Stacks */

enum { F_NAME, F_FILE, F_LINE };

static const struct field frame_fields[WORD_COUNT] = {
    [W_name] = {TEXT, F_NAME, 0, true, false},
    [W_filename] = {TEXT, F_FILE, 0, true, false},
    [W_line] = {WHOLE, F_LINE, 0, true, true},
};

static enum frag_err frame_begin(void *user, uint64_t where,
                                 struct frag_error *e)
{
    (void)where, (void)e;
    return begin_record(user, K_FRAME);
}

static enum frag_err frame_take(void *user, const struct pickle_value *items,
                                size_t count, struct frag_error *e)
{
    return take_pairs(user, K_FRAME, frame_fields, items, count, e);
}

static uint32_t frame_hash(const struct frag_frame *f)
{
    const uint64_t n = ((uint64_t)f->file << 32 | f->function) + f->line;

    return (uint32_t)(n * 0x9e3779b97f4a7c15 >> 32) % FRAME_CACHE;
}

static bool same_frame(const struct frag_frame *a, const struct frag_frame *b)
{
    return a->file == b->file && a->function == b->function &&
           a->line == b->line;
}

static enum frag_err frame_seal(void *user, uint32_t *result,
                                struct frag_error *e)
{
    struct import *in = user;
    const uint64_t *v = in->records[K_FRAME].value;
    struct frag_frame f;
    uint32_t *cached;

    FRAG_TRY(need_fields(in, K_FRAME, frame_fields, e));
    f.file = string_of(in, v[F_FILE]);
    f.function = string_of(in, v[F_NAME]);
    f.line = v[F_LINE] <= UINT32_MAX ? (uint32_t)v[F_LINE] : 0;
    if (f.file == UINT32_MAX || f.function == UINT32_MAX)
        return no_memory(in, e);
    in->records[K_FRAME].number++;
    cached = &in->frame_cache[frame_hash(&f)];
    if (!*cached || !same_frame(&f, &in->frames[*cached - 1])) {
        if (!GROW(in->frames, in->frame_room, in->frame_count + 1))
            return no_memory(in, e);
        in->frames[in->frame_count++] = f;
        *cached = (uint32_t)in->frame_count;
    }
    *result = *cached - 1;
    return FRAG_OK;
}

static enum frag_err stack_begin(void *user, uint64_t where,
                                 struct frag_error *e)
{
    struct import *in = user;

    (void)where, (void)e;
    in->stack_count = 0;
    return FRAG_OK;
}

static enum frag_err stack_take(void *user, const struct pickle_value *items,
                                size_t count, struct frag_error *e)
{
    struct import *in = user;

    for (; count--; items++) {
        if (!GROW(in->stack, in->stack_room, in->stack_count + 1))
            return no_memory(in, e);
        in->stack[in->stack_count++] = in->frames[items->n];
    }
    return FRAG_OK;
}

static enum frag_err stack_seal(void *user, uint32_t *result,
                                struct frag_error *e)
{
    struct import *in = user;

    *result = 0;
    if (in->stack_count)
        *result = frag_build_stack(in->build, in->stack, in->stack_count);
    return *result == UINT32_MAX ? no_memory(in, e) : FRAG_OK;
}

/* Traces: the k-th list of entries is device k's. */

static enum frag_err once(struct import *in, enum kind kind,
                          struct frag_error *e)
{
    if (in->records[kind].number++)
        return frag_fail(e, FRAG_CORRUPT, "%s:%" PRIu64 ": %s a second time",
                         frag_source_name(in->source), pickle_where(in->pickle),
                         schema.kinds[kind].name);
    return FRAG_OK;
}

static enum frag_err traces_begin(void *user, uint64_t where,
                                  struct frag_error *e)
{
    (void)where;
    return once(user, K_TRACES, e);
}

static enum frag_err trace_begin(void *user, uint64_t where,
                                 struct frag_error *e)
{
    struct import *in = user;

    (void)where, (void)e;
    in->traces++;
    in->records[K_ENTRY].number = 0;
    return FRAG_OK;
}

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

/* Which of them an entry needs depends on its action. */
static const struct field entry_fields[WORD_COUNT] = {
    [W_action] = {TEXT, E_ACTION, 0, true, false},
    [W_addr] = {WHOLE, E_ADDR, 0, false, false},
    [W_device_free] = {WHOLE, E_DEVICE_FREE, 0, false, false},
    [W_size] = {WHOLE, E_SIZE, 0, false, true},
    [W_stream] = {WHOLE, E_STREAM, 0, false, true},
    [W_time_us] = {WHOLE, E_TIME, 0, false, false},
    [W_frames] = {1 << PICKLE_RESULT, E_FRAMES, K_FRAMES, false, false},
    [W_pool_id] = {1 << PICKLE_PAIR, E_POOL, 0, false, false},
};

static enum frag_err entry_begin(void *user, uint64_t where,
                                 struct frag_error *e)
{
    (void)where, (void)e;
    return begin_record(user, K_ENTRY);
}

static enum frag_err entry_take(void *user, const struct pickle_value *items,
                                size_t count, struct frag_error *e)
{
    return take_pairs(user, K_ENTRY, entry_fields, items, count, e);
}

static enum frag_err entry_lacks(const struct import *in,
                                 const struct record *r, unsigned place,
                                 struct frag_error *e)
{
    const char *key =
        has(r, E_SIZE) ? has(r, E_STREAM)
                             ? words[place == E_ADDR ? W_addr : W_device_free]
                             : words[W_stream]
                       : words[W_size];

    return bad(in, K_ENTRY, e, "expected the key", key, "none");
}

static enum frag_err entry_seal(void *user, uint32_t *result,
                                struct frag_error *e)
{
    struct import *in = user;
    struct record *r = &in->records[K_ENTRY];
    const uint64_t *v = r->value, action = v[E_ACTION];
    const unsigned place = action == W_oom ? E_DEVICE_FREE : E_ADDR;
    const uint32_t needed = 1u << E_SIZE | 1u << E_STREAM | 1u << place;
    const uint32_t device = in->traces - 1;

    (void)result;
    if (!has(r, E_ACTION))
        return bad(in, K_ENTRY, e, "expected the key", "action", "none");
    r->number++;
    if (action > W_oom)
        return FRAG_OK;
    r->number--;
    if ((r->set & needed) != needed)
        return entry_lacks(in, r, place, e);
    if (device >= DEVICES_MAX)
        return bad(in, K_ENTRY, e, "too many devices in", "device_traces", "");

    struct frag_entry entry = {
        .kind = (enum frag_entry_kind)action,
        .has_pool = has(r, E_POOL),
        .stack = has(r, E_FRAMES) ? (uint32_t)v[E_FRAMES] : 0,
        .addr = v[place],
        .size = v[E_SIZE],
        .stream = v[E_STREAM],
    };
    if (has(r, E_TIME))
        FRAG_TRY(to_time(in, K_ENTRY, v[E_TIME], &entry.time, e));
    if (entry.has_pool) {
        uint64_t pair[2];

        pickle_pair(in->pickle, v[E_POOL], pair);
        entry.pool = (struct frag_pool_id){pair[0], pair[1]};
    }
    in->has_entries = true;
    r->number++;
    return frag_build_entry(in->build, device, &entry, r->where, e);
}

/* Segments and their blocks */

enum { B_ADDRESS, B_SIZE, B_REQUESTED, B_STATE };

static const struct field block_fields[WORD_COUNT] = {
    [W_address] = {WHOLE, B_ADDRESS, 0, false, false},
    [W_size] = {WHOLE, B_SIZE, 0, true, false},
    [W_requested_size] = {WHOLE, B_REQUESTED, 0, false, false},
    [W_state] = {TEXT, B_STATE, 0, true, false},
};

static enum frag_err blocks_begin(void *user, uint64_t where,
                                  struct frag_error *e)
{
    struct import *in = user;

    (void)where, (void)e;
    in->block_count = 0;
    return FRAG_OK;
}

static enum frag_err block_begin(void *user, uint64_t where,
                                 struct frag_error *e)
{
    (void)where, (void)e;
    return begin_record(user, K_BLOCK);
}

static enum frag_err block_take(void *user, const struct pickle_value *items,
                                size_t count, struct frag_error *e)
{
    return take_pairs(user, K_BLOCK, block_fields, items, count, e);
}

static bool state_of(uint64_t word, enum frag_block_state *state)
{
    switch (word) {
    case W_inactive:
        *state = FRAG_INACTIVE;
        return true;
    case W_active_pending_free:
    case W_active_awaiting_free:
        *state = FRAG_ACTIVE_PENDING_FREE;
        return true;
    case W_active_allocated:
        *state = FRAG_ACTIVE_ALLOCATED;
        return true;
    default:
        return false;
    }
}

static enum frag_err block_seal(void *user, uint32_t *result,
                                struct frag_error *e)
{
    struct import *in = user;
    struct record *r = &in->records[K_BLOCK];
    struct frag_snapshot_block b = {
        .addr = has(r, B_ADDRESS) ? r->value[B_ADDRESS] : 0,
        .size = r->value[B_SIZE],
        .requested =
            has(r, B_REQUESTED) ? r->value[B_REQUESTED] : FRAG_SIZE_UNKNOWN,
    };

    (void)result;
    FRAG_TRY(need_fields(in, K_BLOCK, block_fields, e));
    if (!state_of(r->value[B_STATE], &b.state))
        return bad(in, K_BLOCK, e, "unknown value of", "state", "");
    if (!GROW(in->blocks, in->block_room, in->block_count + 1))
        return no_memory(in, e);
    in->blocks[in->block_count++] = b;
    r->number++;
    return FRAG_OK;
}

enum {
    S_DEVICE,
    S_ADDRESS,
    S_SIZE,
    S_STREAM,
    S_TYPE,
    S_POOL,
    S_EXPANDABLE,
    S_BLOCKS
};

static const struct field segment_fields[WORD_COUNT] = {
    [W_device] = {WHOLE, S_DEVICE, 0, false, false},
    [W_address] = {WHOLE, S_ADDRESS, 0, true, false},
    [W_total_size] = {WHOLE, S_SIZE, 0, true, false},
    [W_stream] = {WHOLE, S_STREAM, 0, true, true},
    [W_segment_type] = {TEXT, S_TYPE, 0, true, false},
    [W_segment_pool_id] = {1 << PICKLE_PAIR, S_POOL, 0, false, false},
    [W_is_expandable] = {1 << PICKLE_BOOL, S_EXPANDABLE, 0, false, false},
    [W_blocks] = {1 << PICKLE_DONE, S_BLOCKS, K_BLOCKS, true, false},
};

static enum frag_err segments_begin(void *user, uint64_t where,
                                    struct frag_error *e)
{
    (void)where;
    return once(user, K_SEGMENTS, e);
}

static enum frag_err segment_begin(void *user, uint64_t where,
                                   struct frag_error *e)
{
    struct import *in = user;

    (void)where, (void)e;
    in->records[K_BLOCK].number = 0;
    return begin_record(in, K_SEGMENT);
}

static enum frag_err segment_take(void *user, const struct pickle_value *items,
                                  size_t count, struct frag_error *e)
{
    return take_pairs(user, K_SEGMENT, segment_fields, items, count, e);
}

static enum frag_err feed_segment(struct import *in, const struct record *r,
                                  uint32_t device, struct frag_error *e)
{
    const uint64_t *v = r->value;
    struct frag_snapshot_segment s = {
        .addr = v[S_ADDRESS],
        .size = v[S_SIZE],
        .stream = v[S_STREAM],
        .is_small = v[S_TYPE] == W_small,
        .is_expandable = has(r, S_EXPANDABLE) && v[S_EXPANDABLE],
    };

    if (has(r, S_POOL)) {
        uint64_t pair[2];

        pickle_pair(in->pickle, v[S_POOL], pair);
        s.pool = (struct frag_pool_id){pair[0], pair[1]};
    }
    FRAG_TRY(frag_build_segment(in->build, device, &s, r->where, e));
    for (size_t i = 0; i < in->block_count; i++)
        FRAG_TRY(
            frag_build_block(in->build, device, &in->blocks[i], r->where, e));
    return FRAG_OK;
}

static enum frag_err segment_seal(void *user, uint32_t *result,
                                  struct frag_error *e)
{
    struct import *in = user;
    struct record *r = &in->records[K_SEGMENT];
    const uint64_t device = has(r, S_DEVICE) ? r->value[S_DEVICE] : 0;

    (void)result;
    FRAG_TRY(need_fields(in, K_SEGMENT, segment_fields, e));
    if (device >= DEVICES_MAX)
        return bad(in, K_SEGMENT, e, "too large a", "device", "");
    in->has_segments = true;
    r->number++;
    return feed_segment(in, r, (uint32_t)device, e);
}

/* Settings */

enum { C_CONF, C_SPLIT, C_GC, C_EXPANDABLE, C_REUSE, C_DIVISIONS };

static const struct field settings_fields[WORD_COUNT] = {
    [W_conf] = {TEXT, C_CONF, 0, false, false},
    [W_max_split_size] = {WHOLE, C_SPLIT, 0, false, true},
    [W_gc_threshold] = {1 << PICKLE_FLOAT, C_GC, 0, false, false},
    [W_expandable] = {1 << PICKLE_BOOL, C_EXPANDABLE, 0, false, false},
    [W_capture_reuse] = {1 << PICKLE_BOOL, C_REUSE, 0, false, false},
    [W_divisions] = {1 << PICKLE_DONE, C_DIVISIONS, K_DIVISIONS, false, false},
};

static enum frag_err settings_begin(void *user, uint64_t where,
                                    struct frag_error *e)
{
    struct import *in = user;

    (void)where, (void)e;
    in->settings = torch_settings_default();
    return begin_record(in, K_SETTINGS);
}

static enum frag_err settings_take(void *user, const struct pickle_value *items,
                                   size_t count, struct frag_error *e)
{
    return take_pairs(user, K_SETTINGS, settings_fields, items, count, e);
}

static enum frag_err divisions_take(void *user,
                                    const struct pickle_value *items,
                                    size_t count, struct frag_error *e)
{
    static const struct field fields[WORD_COUNT] = {
        [W_octave_0] = {WHOLE, 0, 0, false, false},
        [W_octave_1] = {WHOLE, 1, 0, false, false},
        [W_octave_2] = {WHOLE, 2, 0, false, false},
        [W_octave_3] = {WHOLE, 3, 0, false, false},
        [W_octave_4] = {WHOLE, 4, 0, false, false},
        [W_octave_5] = {WHOLE, 5, 0, false, false},
        [W_octave_6] = {WHOLE, 6, 0, false, false},
        [W_octave_7] = {WHOLE, 7, 0, false, false},
        [W_octave_8] = {WHOLE, 8, 0, false, false},
        [W_octave_9] = {WHOLE, 9, 0, false, false},
        [W_octave_10] = {WHOLE, 10, 0, false, false},
        [W_octave_11] = {WHOLE, 11, 0, false, false},
        [W_octave_12] = {WHOLE, 12, 0, false, false},
        [W_octave_13] = {WHOLE, 13, 0, false, false},
        [W_octave_14] = {WHOLE, 14, 0, false, false},
        [W_octave_15] = {WHOLE, 15, 0, false, false},
    };
    struct import *in = user;
    const struct record *r = &in->records[K_DIVISIONS];

    FRAG_TRY(take_pairs(in, K_DIVISIONS, fields, items, count, e));
    for (unsigned i = 0; i < TORCH_DIVISIONS; i++)
        if (has(r, i))
            in->settings.divisions[i] = r->value[i];
    return FRAG_OK;
}

static uint8_t log2_of(uint64_t n)
{
    uint8_t bits = 0;

    while (n >>= 1)
        bits++;
    return bits;
}

static double as_double(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof(d));
    return d;
}

static enum frag_err feed_settings(struct import *in, const char *given,
                                   struct frag_error *e)
{
    const struct torch_settings *s = &in->settings;
    struct frag_recorded_settings out = {.gc_threshold = s->gc_threshold,
                                         .expandable = s->expandable};
    bool rebuilt = false;
    char *conf = torch_settings_conf(s, given, &rebuilt);
    enum frag_err err;

    if (!conf)
        return no_memory(in, e);
    for (size_t i = 0; i < TORCH_DIVISIONS; i++)
        out.divisions[i] = log2_of(s->divisions[i]);
    out.conf = conf;
    err = frag_build_settings(in->build, &out, e);
    if (err == FRAG_OK && rebuilt && given)
        err = frag_build_note(
            in->build,
            "the settings in force were not those of PYTORCH_CUDA_ALLOC_CONF "
            "('%.200s'); they are taken from their values: %.200s",
            given, conf);
    free(conf);
    return err;
}

static enum frag_err settings_seal(void *user, uint32_t *result,
                                   struct frag_error *e)
{
    struct import *in = user;
    const struct record *r = &in->records[K_SETTINGS];
    char *given = NULL;
    enum frag_err err;

    (void)result;
    if (has(r, C_SPLIT))
        in->settings.max_split = r->value[C_SPLIT];
    if (has(r, C_GC))
        in->settings.gc_threshold = as_double(r->value[C_GC]);
    in->settings.expandable = has(r, C_EXPANDABLE) && r->value[C_EXPANDABLE];
    in->settings.capture_reuse = has(r, C_REUSE) && r->value[C_REUSE];
    if (has(r, C_CONF)) {
        size_t length;
        const char *text = pickle_text(in->pickle, r->value[C_CONF], &length);

        given = strndup(text, length);
        if (!given)
            return no_memory(in, e);
    }
    err = feed_settings(in, given, e);
    free(given);
    return err;
}

/* Annotations */

enum { A_STAGE, A_NAME, A_DEVICE, A_TIME };

static const struct field annotation_fields[WORD_COUNT] = {
    [W_stage] = {TEXT, A_STAGE, 0, true, false},
    [W_name] = {TEXT, A_NAME, 0, true, false},
    [W_device] = {WHOLE, A_DEVICE, 0, true, true},
    [W_time_us] = {WHOLE, A_TIME, 0, true, false},
};

static enum frag_err annotation_begin(void *user, uint64_t where,
                                      struct frag_error *e)
{
    (void)where, (void)e;
    return begin_record(user, K_ANNOTATION);
}

static enum frag_err annotation_take(void *user,
                                     const struct pickle_value *items,
                                     size_t count, struct frag_error *e)
{
    return take_pairs(user, K_ANNOTATION, annotation_fields, items, count, e);
}

static enum frag_err annotation_seal(void *user, uint32_t *result,
                                     struct frag_error *e)
{
    struct import *in = user;
    struct record *r = &in->records[K_ANNOTATION];
    const uint64_t stage = r->value[A_STAGE], device = r->value[A_DEVICE];
    const char *name;
    size_t length;
    frag_time time = 0;

    (void)result;
    FRAG_TRY(need_fields(in, K_ANNOTATION, annotation_fields, e));
    FRAG_TRY(to_time(in, K_ANNOTATION, r->value[A_TIME], &time, e));
    r->number++;
    /* Ranges of the host carry a device of -1. */
    if ((stage != W_START && stage != W_END) || device >= DEVICES_MAX)
        return FRAG_OK;
    name = pickle_text(in->pickle, r->value[A_NAME], &length);
    return frag_build_mark(in->build, (uint32_t)device,
                           stage == W_START ? FRAG_MARK_BEGIN : FRAG_MARK_END,
                           time, name, length, e);
}

/* The snapshot */

static enum frag_err note_overflow(struct import *in, struct frag_error *e)
{
    (void)e;
    return frag_build_note(in->build,
                           "the recorder's ring buffer overflowed: the oldest "
                           "entries are lost");
}

static enum frag_err overflows_take(void *user,
                                    const struct pickle_value *items,
                                    size_t count, struct frag_error *e)
{
    for (; count--; items++)
        if ((items->tag == PICKLE_BOOL || items->tag == PICKLE_INT) && items->n)
            return note_overflow(user, e);
    return FRAG_OK;
}

enum { T_SEGMENTS, T_TRACES, T_SETTINGS, T_ANNOTATIONS, T_OVERFLOWED };

static const struct field snapshot_fields[WORD_COUNT] = {
    [W_segments] = {1 << PICKLE_DONE, T_SEGMENTS, K_SEGMENTS, false, false},
    [W_device_traces] = {1 << PICKLE_DONE, T_TRACES, K_TRACES, false, false},
    [W_allocator_settings] = {1 << PICKLE_DONE, T_SETTINGS, K_SETTINGS, false,
                              false},
    [W_external_annotations] = {1 << PICKLE_DONE, T_ANNOTATIONS, K_ANNOTATIONS,
                                false, false},
};

static enum frag_err snapshot_begin(void *user, uint64_t where,
                                    struct frag_error *e)
{
    (void)where, (void)e;
    return begin_record(user, K_SNAPSHOT);
}

static enum frag_err snapshot_take(void *user, const struct pickle_value *items,
                                   size_t count, struct frag_error *e)
{
    FRAG_TRY(take_pairs(user, K_SNAPSHOT, snapshot_fields, items, count, e));
    for (; count--; items += 2)
        if (items[0].tag == PICKLE_TEXT &&
            items[0].n == W_trace_alloc_overflowed)
            FRAG_TRY(overflows_take(user, items + 1, 1, e));
    return FRAG_OK;
}

static enum frag_err snapshot_seal(void *user, uint32_t *result,
                                   struct frag_error *e)
{
    struct import *in = user;

    (void)result;
    if (!in->records[K_SNAPSHOT].set)
        return bad(in, K_SNAPSHOT, e, "expected the key", "device_traces",
                   "none");
    return FRAG_OK;
}

static const struct pickle_member snapshot_members[] = {
    {W_segments, K_SEGMENTS},
    {W_device_traces, K_TRACES},
    {W_allocator_settings, K_SETTINGS},
    {W_external_annotations, K_ANNOTATIONS},
    {W_trace_alloc_overflowed, K_OVERFLOWS},
    {0, 0},
};

static const struct pickle_member segment_members[] = {{W_blocks, K_BLOCKS},
                                                       {0, 0}};
static const struct pickle_member settings_members[] = {
    {W_divisions, K_DIVISIONS}, {0, 0}};

static enum frag_err divisions_begin(void *user, uint64_t where,
                                     struct frag_error *e)
{
    (void)where, (void)e;
    return begin_record(user, K_DIVISIONS);
}

static const struct pickle_kind kinds[KIND_COUNT] = {
    [K_NONE] = {.name = "a value of another type"},
    [K_SNAPSHOT] = {.name = "a snapshot",
                    .shape = PICKLE_IS_DICT,
                    .members = snapshot_members,
                    .begin = snapshot_begin,
                    .take = snapshot_take,
                    .seal = snapshot_seal},
    [K_TRACES] = {.name = "the list of device traces",
                  .element = K_TRACE,
                  .begin = traces_begin},
    [K_TRACE] = {.name = "a list of trace entries",
                 .element = K_ENTRY,
                 .begin = trace_begin},
    [K_ENTRY] = {.name = "a trace entry",
                 .shape = PICKLE_IS_DICT,
                 .begin = entry_begin,
                 .take = entry_take,
                 .seal = entry_seal},
    [K_FRAMES] = {.name = "a list of frames",
                  .element = K_FRAME,
                  .keeps = true,
                  .begin = stack_begin,
                  .take = stack_take,
                  .seal = stack_seal},
    [K_FRAME] = {.name = "a frame",
                 .shape = PICKLE_IS_DICT,
                 .keeps = true,
                 .begin = frame_begin,
                 .take = frame_take,
                 .seal = frame_seal},
    [K_SEGMENTS] = {.name = "the list of segments",
                    .element = K_SEGMENT,
                    .begin = segments_begin},
    [K_SEGMENT] = {.name = "a segment",
                   .shape = PICKLE_IS_DICT,
                   .members = segment_members,
                   .begin = segment_begin,
                   .take = segment_take,
                   .seal = segment_seal},
    [K_BLOCKS] = {.name = "a list of blocks",
                  .element = K_BLOCK,
                  .begin = blocks_begin},
    [K_BLOCK] = {.name = "a block",
                 .shape = PICKLE_IS_DICT,
                 .begin = block_begin,
                 .take = block_take,
                 .seal = block_seal},
    [K_SETTINGS] = {.name = "the allocator's settings",
                    .shape = PICKLE_IS_DICT,
                    .members = settings_members,
                    .begin = settings_begin,
                    .take = settings_take,
                    .seal = settings_seal},
    [K_DIVISIONS] = {.name = "the table of divisions",
                     .shape = PICKLE_IS_DICT,
                     .begin = divisions_begin,
                     .take = divisions_take},
    [K_ANNOTATIONS] = {.name = "the list of annotations",
                       .element = K_ANNOTATION},
    [K_ANNOTATION] = {.name = "an annotation",
                      .shape = PICKLE_IS_DICT,
                      .begin = annotation_begin,
                      .take = annotation_take,
                      .seal = annotation_seal},
    [K_OVERFLOWS] = {.name = "a list of bools", .take = overflows_take},
};

static enum frag_err tick(void *user, struct frag_error *e)
{
    struct import *in = user;

    if (in->opts && in->opts->progress &&
        in->opts->progress(in->opts->user, frag_source_read(in->source),
                           frag_source_size(in->source)))
        return frag_fail(e, FRAG_CANCELLED, "%s: cancelled",
                         frag_source_name(in->source));
    return FRAG_OK;
}

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

static enum frag_err note_what_lacks(struct import *in, struct frag_error *e)
{
    if (!in->has_entries && !in->has_segments)
        FRAG_TRY(frag_build_device(in->build, 0, e));
    if (!in->has_entries)
        FRAG_TRY(frag_build_note(in->build,
                                 "the snapshot has no trace entries: history "
                                 "was not recorded"));
    return FRAG_OK;
}

static enum frag_err import(struct import *in, struct frag_error *e)
{
    in->pickle = pickle_open(in->source, &schema, in);
    if (!in->pickle)
        return no_memory(in, e);
    FRAG_TRY(pickle_read(in->pickle, e));
    return note_what_lacks(in, e);
}

static enum frag_err torch_read(struct frag_source *source,
                                struct frag_build *build,
                                const struct frag_read_options *opts,
                                struct frag_error *e)
{
    struct import *in = calloc(1, sizeof(*in));
    enum frag_err err;

    if (!in)
        return frag_fail(e, FRAG_NOMEM, "%s: no memory to import it",
                         frag_source_name(source));
    in->source = source;
    in->build = build;
    in->opts = opts;
    err = import(in, e);
    pickle_close(in->pickle);
    free(in->blocks);
    free(in->frames);
    free(in->stack);
    free(in->strings);
    free(in);
    return err;
}

static bool torch_recognize(const unsigned char *bytes, size_t count)
{
    return count >= 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
}

const struct frag_importer frag_importer_torch = {
    .name = "torch",
    .summary = "snapshot of PyTorch's CUDA allocator (pickle, also in a .pt)",
    .recognize = torch_recognize,
    .read = torch_read,
};
