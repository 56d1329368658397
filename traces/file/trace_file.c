/* trace_file.c - the columns and tables of a trace file, and their HDF5 types.
 * The reader and the writer use the same tables. The layout is in trace_file.h.
 */
#include "traces/file/file_parts.h"

#include <string.h>

#include "traces/file/guard.h"

const char *const trace_file_format = "hdf5";

const struct trace_column trace_event_columns[EVENTS_COUNT] = {
    [EVENTS_OP] = {"op", "1", "what the client did", TRACE_OP},
    [EVENTS_ID] = {"id", "1", "slot of the block, reused once freed",
                   TRACE_U32},
    [EVENTS_BYTES] = {"bytes", "byte", "bytes requested by an alloc",
                      TRACE_U64},
    [EVENTS_STREAM] = {"stream", "1", "row of streams", TRACE_U16},
    [EVENTS_POOL] = {"pool", "1", "row of pools", TRACE_U16},
    [EVENTS_TIME] = {"time", "ns", "time since 1970-01-01 UTC", TRACE_U64},
    [EVENTS_STACK] = {"stack", "1", "row of /stacks/first", TRACE_U32},
};

const struct trace_column trace_addr = {
    "addr", "1", "address that answered an alloc; 0 if it failed", TRACE_U64};
const struct trace_column trace_streams = {
    "streams", "1", "raw stream handles, ascending", TRACE_U64};
const struct trace_column trace_first = {
    "first", "1", "first row of each item; one row more than items", TRACE_U64};
const struct trace_column trace_text = {
    "text", "1", "UTF-8, each item ended by a 0", TRACE_U8};

#define FIELD(type, member, kind)                    \
    {                                                \
#member, offsetof(struct type, member), kind \
    }
#define END               \
    {                     \
        NULL, 0, TRACE_U8 \
    }

static const struct trace_field action_fields[] = {
    FIELD(frag_recorded_action, event, TRACE_U64),
    FIELD(frag_recorded_action, addr, TRACE_U64),
    FIELD(frag_recorded_action, size, TRACE_U64),
    FIELD(frag_recorded_action, device_free, TRACE_U64),
    FIELD(frag_recorded_action, action, TRACE_U32),
    FIELD(frag_recorded_action, stream, TRACE_U32),
    END};

static const struct trace_field segment_fields[] = {
    FIELD(frag_recorded_segment, addr, TRACE_U64),
    FIELD(frag_recorded_segment, size, TRACE_U64),
    FIELD(frag_recorded_segment, first_block, TRACE_U64),
    FIELD(frag_recorded_segment, block_count, TRACE_U64),
    FIELD(frag_recorded_segment, stream, TRACE_U32),
    FIELD(frag_recorded_segment, pool, TRACE_U32),
    FIELD(frag_recorded_segment, is_small, TRACE_U8),
    FIELD(frag_recorded_segment, is_expandable, TRACE_U8),
    END};

static const struct trace_field block_fields[] = {
    FIELD(frag_recorded_block, addr, TRACE_U64),
    FIELD(frag_recorded_block, size, TRACE_U64),
    FIELD(frag_recorded_block, requested, TRACE_U64),
    FIELD(frag_recorded_block, state, TRACE_U32),
    FIELD(frag_recorded_block, slot, TRACE_U32),
    END};

static const struct trace_field pool_fields[] = {
    FIELD(frag_pool_id, owner, TRACE_U64),
    FIELD(frag_pool_id, number, TRACE_U64), END};

static const struct trace_field mark_fields[] = {
    FIELD(frag_mark, event, TRACE_U64), FIELD(frag_mark, time, TRACE_U64),
    FIELD(frag_mark, kind, TRACE_U32), FIELD(frag_mark, name, TRACE_U32), END};

static const struct trace_field change_fields[] = {
    FIELD(frag_setting_change, event, TRACE_U64),
    FIELD(frag_setting_change, time, TRACE_U64),
    FIELD(frag_setting_change, limit, TRACE_U64),
    FIELD(frag_setting_change, kind, TRACE_U32),
    FIELD(frag_setting_change, text, TRACE_U32),
    FIELD(frag_setting_change, stack, TRACE_U32),
    FIELD(frag_setting_change, origin, TRACE_U32),
    END};

static const struct trace_field frame_fields[] = {
    FIELD(frag_frame, file, TRACE_U32), FIELD(frag_frame, function, TRACE_U32),
    FIELD(frag_frame, line, TRACE_U32), END};

#define SEGMENT_UNITS "1,byte,1,1,1,1,1,1"
#define BLOCK_UNITS   "1,byte,byte,1,1"

const struct trace_table trace_actions = {
    "actions", "1,1,byte,byte,1,1",
    "what the recorded allocator did during an event",
    sizeof(struct frag_recorded_action), action_fields};
const struct trace_table trace_start_segments = {
    "start_segments", SEGMENT_UNITS, "segments held before the first entry",
    sizeof(struct frag_recorded_segment), segment_fields};
const struct trace_table trace_start_blocks = {
    "start_blocks", BLOCK_UNITS, "blocks that tile start_segments",
    sizeof(struct frag_recorded_block), block_fields};
const struct trace_table trace_end_segments = {
    "end_segments", SEGMENT_UNITS, "segments of the final snapshot",
    sizeof(struct frag_recorded_segment), segment_fields};
const struct trace_table trace_end_blocks = {
    "end_blocks", BLOCK_UNITS, "blocks that tile end_segments",
    sizeof(struct frag_recorded_block), block_fields};
const struct trace_table trace_pools = {
    "pools", "1,1", "PyTorch's pool ids; row 0 is the default pool",
    sizeof(struct frag_pool_id), pool_fields};
const struct trace_table trace_marks = {
    "marks", "1,ns,1,1", "step and phase boundaries; name is a row of /strings",
    sizeof(struct frag_mark), mark_fields};
const struct trace_table trace_changes = {
    "changes", "1,ns,byte,1,1,1,1",
    "changes of the settings or the limit; text is a row of /strings",
    sizeof(struct frag_setting_change), change_fields};
const struct trace_table trace_frames = {
    "frames", "1,1,1", "stack frames, innermost first; rows of /strings",
    sizeof(struct frag_frame), frame_fields};

const void *trace_event_data(const struct frag_device_trace *d,
                             enum trace_events k)
{
    const void *const data[EVENTS_COUNT] = {
        [EVENTS_OP] = d->op,       [EVENTS_ID] = d->id,
        [EVENTS_BYTES] = d->bytes, [EVENTS_STREAM] = d->stream,
        [EVENTS_POOL] = d->pool,   [EVENTS_TIME] = d->time,
        [EVENTS_STACK] = d->stack,
    };

    return data[k];
}

bool trace_file_is(const unsigned char *bytes, size_t count)
{
    static const unsigned char signature[] = {0x89, 'H',  'D',  'F',
                                              '\r', '\n', 0x1a, '\n'};

    return count >= sizeof(signature) &&
           !memcmp(bytes, signature, sizeof(signature));
}

size_t trace_type_size(enum trace_type type)
{
    static const size_t sizes[] = {[TRACE_U8] = 1,
                                   [TRACE_U16] = 2,
                                   [TRACE_U32] = 4,
                                   [TRACE_U64] = 8,
                                   [TRACE_OP] = 1};

    return sizes[type];
}

static hid_t op_type(void)
{
    hid_t type = H5Tenum_create(H5T_STD_U8LE);

    for (uint8_t i = 0; type >= 0 && i < FRAG_OP_COUNT; i++)
        if (H5Tenum_insert(type, frag_op_names[i], &i) < 0) {
            H5Tclose(type);
            return -1;
        }
    return type;
}

hid_t trace_memory_type(enum trace_type type)
{
    switch (type) {
    case TRACE_U16:
        return H5Tcopy(H5T_NATIVE_UINT16);
    case TRACE_U32:
        return H5Tcopy(H5T_NATIVE_UINT32);
    case TRACE_U64:
        return H5Tcopy(H5T_NATIVE_UINT64);
    case TRACE_U8:
    case TRACE_OP:
        break;
    }
    return H5Tcopy(H5T_NATIVE_UINT8);
}

hid_t trace_file_type(enum trace_type type)
{
    hid_t copy = type == TRACE_OP ? op_type() : trace_memory_type(type);

    if (copy >= 0 && type != TRACE_OP)
        (void)H5Tset_order(copy, H5T_ORDER_LE);
    return copy;
}

/* Rows in the file have their fields in the same order, but no padding. */
hid_t trace_row_type(const struct trace_table *table, bool in_file)
{
    hid_t row = H5Tcreate(H5T_COMPOUND, table->size);
    bool fine = row >= 0;

    for (const struct trace_field *f = table->fields; fine && f->name; f++) {
        hid_t type =
            in_file ? trace_file_type(f->type) : trace_memory_type(f->type);

        fine = type >= 0 && H5Tinsert(row, f->name, f->offset, type) >= 0;
        hdf5_drop(type);
    }
    if (fine && in_file)
        fine = H5Tpack(row) >= 0;
    if (fine)
        return row;
    hdf5_drop(row);
    return -1;
}
