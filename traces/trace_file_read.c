/* trace_file_read.c - trace files to traces.
 *
 * The file is mapped, and every event column that is stored as we store it is
 * a pointer into the map; all else is read. Nothing that the file says is
 * believed before it is checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/trace_file.h"

/* Built-in filters shrink data at most about a thousandfold. */
enum { INFLATION_MAX = 2048, DEVICES_MAX = 1024, TEXT_MAX = 1 << 20 };

struct reader {
    struct frag_trace *trace;
    struct frag_error *e;
    const char *path;
    const unsigned char *map;
    uint64_t map_size;
    hid_t file;
};

static enum frag_err expected(const struct reader *r, const char *where,
                              const char *name, const char *what)
{
    return frag_fail(r->e, FRAG_CORRUPT, "%s:%s%s: expected %s", r->path, where,
                     name, what);
}

/* A dataset on its way into memory. */
struct column {
    const struct reader *r;
    const char *where, *name; /* "/devices/0/events/", "op" */
    hid_t data;
    uint64_t rows;
};

static bool exists(hid_t at, const char *name)
{
    return H5Lexists(at, name, H5P_DEFAULT) > 0;
}

static enum frag_err count_rows(struct column *c, size_t item)
{
    hid_t space = H5Dget_space(c->data);
    hsize_t rows = 0;
    bool fine = space >= 0 && H5Sget_simple_extent_ndims(space) == 1 &&
                H5Sget_simple_extent_dims(space, &rows, NULL) == 1;

    if (space >= 0)
        H5Sclose(space);
    if (!fine)
        return expected(c->r, c->where, c->name, "a dataset of one dimension");
    if (rows > c->r->map_size * INFLATION_MAX / item)
        return expected(c->r, c->where, c->name,
                        "no more rows than the file can hold");
    c->rows = rows;
    return FRAG_OK;
}

static enum frag_err open_column(struct column *c, hid_t at, size_t item)
{
    enum frag_err err;

    c->data = H5Dopen2(at, c->name, H5P_DEFAULT);
    if (c->data < 0)
        return expected(c->r, c->where, c->name, "a dataset");
    err = count_rows(c, item);
    if (err != FRAG_OK)
        H5Dclose(c->data);
    return err;
}

static bool is_stored_as(hid_t data, enum trace_type type)
{
    hid_t found = H5Dget_type(data), want = trace_file_type(type);
    hid_t how = H5Dget_create_plist(data);
    bool same =
        found >= 0 && want >= 0 && how >= 0 && H5Tequal(found, want) > 0 &&
        H5Pget_layout(how) == H5D_CONTIGUOUS && H5Pget_external_count(how) == 0;

    if (how >= 0)
        H5Pclose(how);
    if (want >= 0)
        H5Tclose(want);
    if (found >= 0)
        H5Tclose(found);
    return same;
}

static bool is_little_endian(void)
{
    const uint16_t one = 1;
    uint8_t low;

    memcpy(&low, &one, 1);
    return low == 1;
}

/* Where the column lies in the map, NULL if it has to be read. */
static const void *mapped(const struct column *c, enum trace_type type)
{
    size_t item = trace_type_size(type);
    haddr_t offset;

    if (!is_little_endian() || !is_stored_as(c->data, type))
        return NULL;
    offset = H5Dget_offset(c->data);
    if (offset == HADDR_UNDEF || offset % item || offset > c->r->map_size ||
        c->rows > (c->r->map_size - offset) / item)
        return NULL;
    return c->r->map + offset;
}

/* Data kept in other files, or as anything but numbers, is not read. */
static enum frag_err check_numbers(const struct column *c, H5T_class_t class)
{
    hid_t how = H5Dget_create_plist(c->data), type = H5Dget_type(c->data);
    bool fine = how >= 0 && type >= 0;

    if (fine) {
        H5T_class_t found = H5Tget_class(type);

        fine =
            (found == class || (class == H5T_INTEGER && found == H5T_ENUM)) &&
            H5Pget_layout(how) != H5D_VIRTUAL &&
            H5Pget_external_count(how) == 0;
    }
    if (type >= 0)
        H5Tclose(type);
    if (how >= 0)
        H5Pclose(how);
    if (fine)
        return FRAG_OK;
    return expected(c->r, c->where, c->name,
                    class == H5T_COMPOUND ? "a table in this file"
                                          : "whole numbers in this file");
}

static enum frag_err read_rows(const struct column *c, hid_t type, size_t item,
                               const void **rows)
{
    void *array = storage_array(c->r->trace, c->rows, item);

    if (!array)
        return FRAG_NOMEM;
    if (c->rows &&
        H5Dread(c->data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array) < 0)
        return expected(c->r, c->where, c->name, "data that HDF5 can read");
    *rows = array;
    return FRAG_OK;
}

/* An enum's numbers are ours only if its names are. */
static enum frag_err check_enum(const struct column *c)
{
    hid_t type = H5Dget_type(c->data);
    bool fine = type >= 0;

    for (unsigned i = 0;
         fine && H5Tget_class(type) == H5T_ENUM && i < FRAG_OP_COUNT; i++) {
        union {
            uint64_t wide;
            uint8_t bytes[8];
        } value = {0};
        hid_t base = H5Tget_super(type);

        fine = base >= 0 && H5Tget_size(base) <= sizeof(value) &&
               (H5Tenum_valueof(type, frag_op_names[i], &value) < 0 ||
                (H5Tconvert(base, H5T_NATIVE_UINT64, 1, &value, NULL,
                            H5P_DEFAULT) >= 0 &&
                 value.wide == i));
        if (base >= 0)
            H5Tclose(base);
    }
    if (type >= 0)
        H5Tclose(type);
    if (fine)
        return FRAG_OK;
    return expected(c->r, c->where, c->name, "an enum with our numbers");
}

static enum frag_err read_open(const struct column *c, enum trace_type type,
                               const void **rows)
{
    hid_t memory;
    enum frag_err err;

    *rows = c->rows ? mapped(c, type) : NULL;
    if (*rows)
        return FRAG_OK;
    FRAG_TRY(check_numbers(c, H5T_INTEGER));
    if (type == TRACE_OP)
        FRAG_TRY(check_enum(c));
    memory = trace_memory_type(type);
    if (memory < 0)
        return FRAG_NOMEM;
    err = read_rows(c, memory, trace_type_size(type), rows);
    H5Tclose(memory);
    return err;
}

/* *rows and *count are those of the dataset. */
static enum frag_err read_column(const struct reader *r, hid_t at,
                                 const char *where,
                                 const struct trace_column *column,
                                 const void **rows, uint64_t *count)
{
    struct column c = {r, where, column->name, -1, 0};
    enum frag_err err;

    FRAG_TRY(open_column(&c, at, trace_type_size(column->type)));
    err = read_open(&c, column->type, rows);
    *count = c.rows;
    H5Dclose(c.data);
    return err;
}

/* Absent is empty. */
static enum frag_err read_table(const struct reader *r, hid_t at,
                                const char *where,
                                const struct trace_table *table,
                                const void **rows, uint64_t *count)
{
    struct column c = {r, where, table->name, -1, 0};
    hid_t type;
    enum frag_err err;

    *count = 0;
    *rows = NULL;
    if (!exists(at, table->name))
        return FRAG_OK;
    FRAG_TRY(open_column(&c, at, table->size));
    type = trace_row_type(table, false);
    err = type < 0 ? FRAG_NOMEM : check_numbers(&c, H5T_COMPOUND);
    if (err == FRAG_OK)
        err = read_rows(&c, type, table->size, rows);
    *count = c.rows;
    if (type >= 0)
        H5Tclose(type);
    H5Dclose(c.data);
    return err;
}

/* Attributes. */

static enum frag_err read_number(const struct reader *r, hid_t at,
                                 const char *where, const char *name,
                                 uint64_t max, uint64_t *value)
{
    hid_t attribute, space;
    uint64_t found = 0;
    bool fine;

    if (H5Aexists(at, name) <= 0)
        return FRAG_OK;
    attribute = H5Aopen(at, name, H5P_DEFAULT);
    space = attribute >= 0 ? H5Aget_space(attribute) : -1;
    fine = space >= 0 && H5Sget_simple_extent_npoints(space) == 1 &&
           H5Aread(attribute, H5T_NATIVE_UINT64, &found) >= 0 && found <= max;
    if (space >= 0)
        H5Sclose(space);
    if (attribute >= 0)
        H5Aclose(attribute);
    if (!fine)
        return expected(r, where, name, "a number in range");
    *value = found;
    return FRAG_OK;
}

/* Of fixed length, as ours are, or of variable length, as h5py's. CORRUPT, in
 * no words yet, if it cannot be read. */
static enum frag_err read_string(hid_t attribute, hid_t type, char **text)
{
    size_t size = H5Tget_size(type);
    char *loose = NULL;

    if (H5Tis_variable_str(type) > 0) {
        if (H5Aread(attribute, type, &loose) < 0 || !loose)
            return FRAG_CORRUPT;
        *text = strdup(loose);
        H5free_memory(loose);
        return *text ? FRAG_OK : FRAG_NOMEM;
    }
    if (!size || size > TEXT_MAX)
        return FRAG_CORRUPT;
    *text = calloc(size + 1, 1);
    if (!*text)
        return FRAG_NOMEM;
    return H5Aread(attribute, type, *text) < 0 ? FRAG_CORRUPT : FRAG_OK;
}

/* NULL in *text if there is none. The caller frees it. */
static enum frag_err read_text(const struct reader *r, const char *name,
                               char **text)
{
    hid_t attribute, type, space;
    enum frag_err err = FRAG_CORRUPT;

    *text = NULL;
    if (H5Aexists(r->file, name) <= 0)
        return FRAG_OK;
    attribute = H5Aopen(r->file, name, H5P_DEFAULT);
    type = attribute >= 0 ? H5Aget_type(attribute) : -1;
    space = attribute >= 0 ? H5Aget_space(attribute) : -1;
    if (type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING &&
        H5Sget_simple_extent_npoints(space) == 1)
        err = read_string(attribute, type, text);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    if (err == FRAG_OK)
        return FRAG_OK;
    free(*text);
    *text = NULL;
    return err == FRAG_CORRUPT ? expected(r, "/", name, "a text") : err;
}

/* Devices. */

static enum frag_err zeros(const struct reader *r, uint64_t count, size_t item,
                           const void **rows)
{
    *rows = storage_array(r->trace, count, item);
    return *rows ? FRAG_OK : FRAG_NOMEM;
}

static enum frag_err read_event_column(const struct reader *r, hid_t at,
                                       const char *where, enum trace_events k,
                                       uint64_t *count, const void **rows)
{
    const struct trace_column *column = &trace_event_columns[k];
    bool required = k <= EVENTS_BYTES;
    uint64_t found;

    *rows = NULL;
    if (!required && !exists(at, column->name)) {
        if (k == EVENTS_TIME || k == EVENTS_STACK)
            return FRAG_OK;
        return zeros(r, *count, trace_type_size(column->type), rows);
    }
    FRAG_TRY(read_column(r, at, where, column, rows, &found));
    if (k == EVENTS_OP)
        *count = found;
    if (found != *count)
        return expected(r, where, column->name, "as many rows as op has");
    return FRAG_OK;
}

static enum frag_err read_events(const struct reader *r, hid_t at,
                                 const char *where, struct frag_device_trace *d)
{
    const void *rows[EVENTS_COUNT];

    for (int k = 0; k < EVENTS_COUNT; k++)
        FRAG_TRY(read_event_column(r, at, where, (enum trace_events)k,
                                   &d->count, &rows[k]));
    d->op = rows[EVENTS_OP];
    d->id = rows[EVENTS_ID];
    d->bytes = rows[EVENTS_BYTES];
    d->stream = rows[EVENTS_STREAM];
    d->pool = rows[EVENTS_POOL];
    d->time = rows[EVENTS_TIME];
    d->stack = rows[EVENTS_STACK];
    return FRAG_OK;
}

static enum frag_err read_layout(const struct reader *r, hid_t at,
                                 const char *where,
                                 const struct trace_table *segments,
                                 const struct trace_table *blocks,
                                 struct frag_layout *out)
{
    const void *rows;

    FRAG_TRY(read_table(r, at, where, segments, &rows, &out->segment_count));
    out->segments = rows;
    FRAG_TRY(read_table(r, at, where, blocks, &rows, &out->block_count));
    out->blocks = rows;
    return FRAG_OK;
}

static enum frag_err read_recorded(const struct reader *r, hid_t at,
                                   const char *where,
                                   struct frag_device_trace *d)
{
    struct frag_recorded *rec = &d->recorded;
    const void *rows;
    uint64_t count;

    if (exists(at, trace_addr.name)) {
        FRAG_TRY(read_column(r, at, where, &trace_addr, &rows, &count));
        if (count != d->count)
            return expected(r, where, trace_addr.name,
                            "as many rows as there are events");
        rec->addr = rows;
    }
    FRAG_TRY(
        read_table(r, at, where, &trace_actions, &rows, &rec->action_count));
    rec->actions = rows;
    FRAG_TRY(read_layout(r, at, where, &trace_start_segments,
                         &trace_start_blocks, &rec->start));
    return read_layout(r, at, where, &trace_end_segments, &trace_end_blocks,
                       &rec->end);
}

/* Without tables there is one stream and one pool. A stream or pool beyond
 * them is found by the check. */
static enum frag_err read_tables(const struct reader *r, hid_t at,
                                 const char *where, struct frag_device_trace *d)
{
    const void *rows = NULL;
    uint64_t count = 0;

    if (exists(at, trace_streams.name))
        FRAG_TRY(read_column(r, at, where, &trace_streams, &rows, &count));
    if (count > (uint64_t)UINT16_MAX + 1)
        return expected(r, where, trace_streams.name, "at most 65536 rows");
    d->streams = rows;
    d->stream_count = (uint32_t)count;
    FRAG_TRY(read_table(r, at, where, &trace_pools, &rows, &count));
    if (count > (uint64_t)UINT16_MAX + 1)
        return expected(r, where, trace_pools.name, "at most 65536 rows");
    d->pools = rows;
    d->pool_count = (uint32_t)count;
    FRAG_TRY(read_table(r, at, where, &trace_marks, &rows, &d->mark_count));
    d->marks = rows;
    return FRAG_OK;
}

/* What a short file leaves out: streams 0 .. as used, one pool, and slots. */
static enum frag_err complete_streams(const struct reader *r,
                                      struct frag_device_trace *d)
{
    uint64_t *streams;
    frag_stream last = 0;

    if (d->stream_count)
        return FRAG_OK;
    for (uint64_t i = 0; i < d->count; i++)
        last = d->stream[i] > last ? d->stream[i] : last;
    d->stream_count = (uint32_t)last + 1;
    streams = storage_array(r->trace, d->stream_count, sizeof(*streams));
    for (uint32_t i = 0; streams && i < d->stream_count; i++)
        streams[i] = i;
    d->streams = streams;
    return streams ? FRAG_OK : FRAG_NOMEM;
}

static enum frag_err complete_pools(const struct reader *r,
                                    struct frag_device_trace *d)
{
    struct frag_pool_id *pools;
    frag_pool last = 0;

    if (d->pool_count)
        return FRAG_OK;
    for (uint64_t i = 0; i < d->count; i++)
        last = d->pool[i] > last ? d->pool[i] : last;
    d->pool_count = (uint32_t)last + 1;
    pools = storage_array(r->trace, d->pool_count, sizeof(*pools));
    for (uint32_t i = 0; pools && i < d->pool_count; i++)
        pools[i].number = i;
    d->pools = pools;
    return pools ? FRAG_OK : FRAG_NOMEM;
}

static enum frag_err complete(const struct reader *r, const char *where,
                              struct frag_device_trace *d)
{
    uint64_t top = 0;

    FRAG_TRY(complete_streams(r, d));
    FRAG_TRY(complete_pools(r, d));
    if (d->slots)
        return FRAG_OK;
    for (uint64_t i = 0; i < d->count; i++)
        if (d->op[i] == FRAG_ALLOC && d->id[i] >= top)
            top = (uint64_t)d->id[i] + 1;
    if (top > d->count)
        return expected(r, where, "events/id",
                        "ids below the number of events");
    d->slots = (uint32_t)top;
    return FRAG_OK;
}

static enum frag_err read_facts(const struct reader *r, hid_t at,
                                const char *where, struct frag_device_trace *d)
{
    uint64_t slots = 0, initial = 0, actions = 0, end = 0;

    FRAG_TRY(read_number(r, at, where, "slots", UINT32_MAX - 1, &slots));
    FRAG_TRY(read_number(r, at, where, "initial", UINT64_MAX, &initial));
    FRAG_TRY(read_number(r, at, where, "has_actions", 1, &actions));
    FRAG_TRY(read_number(r, at, where, "has_end", 1, &end));
    d->slots = (uint32_t)slots;
    d->initial = initial;
    d->recorded.has_actions = actions;
    d->recorded.has_end = end;
    return FRAG_OK;
}

static enum frag_err
in_group(const struct reader *r, hid_t at, const char *where, const char *name,
         enum frag_err (*read)(const struct reader *, hid_t, const char *,
                               struct frag_device_trace *),
         struct frag_device_trace *d)
{
    hid_t group = H5Gopen2(at, name, H5P_DEFAULT);
    char inner[96];
    enum frag_err err;

    if (group < 0)
        return expected(r, where, name, "a group");
    snprintf(inner, sizeof(inner), "%.60s%.20s/", where, name);
    err = read(r, group, inner, d);
    H5Gclose(group);
    return err;
}

static enum frag_err read_device(const struct reader *r, hid_t at,
                                 const char *where, struct frag_device_trace *d)
{
    FRAG_TRY(read_facts(r, at, where, d));
    FRAG_TRY(in_group(r, at, where, "events", read_events, d));
    FRAG_TRY(read_tables(r, at, where, d));
    if (exists(at, "recorded"))
        FRAG_TRY(in_group(r, at, where, "recorded", read_recorded, d));
    return complete(r, where, d);
}

static int by_number(const void *a, const void *b)
{
    const struct frag_device_trace *x = a, *y = b;

    return (x->device > y->device) - (x->device < y->device);
}

static enum frag_err device_number(const struct reader *r, const char *name,
                                   uint32_t *number)
{
    char again[16];

    *number = (uint32_t)strtoul(name, NULL, 10);
    snprintf(again, sizeof(again), "%" PRIu32, *number);
    if (!strcmp(again, name))
        return FRAG_OK;
    return expected(r, "/devices/", "", "the numbers of devices as names");
}

static enum frag_err read_nth_device(const struct reader *r, hid_t at,
                                     uint64_t n, struct frag_device_trace *d)
{
    char name[16];
    ssize_t length = H5Lget_name_by_idx(at, ".", H5_INDEX_NAME, H5_ITER_INC, n,
                                        name, sizeof(name), H5P_DEFAULT);

    if (length <= 0 || length >= (ssize_t)sizeof(name))
        return expected(r, "/devices/", "", "the numbers of devices as names");
    FRAG_TRY(device_number(r, name, &d->device));
    return in_group(r, at, "/devices/", name, read_device, d);
}

static enum frag_err read_devices(const struct reader *r, hid_t at)
{
    struct frag_trace *t = r->trace;
    H5G_info_t info;

    if (H5Gget_info(at, &info) < 0 || info.nlinks > DEVICES_MAX)
        return expected(r, "/", "devices", "at most 1024 devices");
    t->devices = storage_array(t, info.nlinks, sizeof(*t->devices));
    if (!t->devices)
        return FRAG_NOMEM;
    for (hsize_t n = 0; n < info.nlinks; n++) {
        FRAG_TRY(read_nth_device(r, at, n, &t->devices[n]));
        t->device_count++;
    }
    qsort(t->devices, t->device_count, sizeof(*t->devices), by_number);
    return FRAG_OK;
}

static enum frag_err read_all_devices(const struct reader *r)
{
    hid_t group = H5Gopen2(r->file, "devices", H5P_DEFAULT);
    enum frag_err err;

    if (group < 0)
        return expected(r, "/", "devices", "a group");
    err = read_devices(r, group);
    H5Gclose(group);
    return err;
}

/* Texts and stacks. */

static enum frag_err point_at_texts(const struct reader *r, const char *where,
                                    const char *text, uint64_t size,
                                    const uint64_t *first, uint64_t count,
                                    const char *const **out)
{
    const char **texts = storage_array(r->trace, count, sizeof(*texts));

    if (!texts)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < count; i++) {
        if (first[i] >= first[i + 1] || first[i + 1] > size ||
            text[first[i + 1] - 1])
            return expected(r, where, "first",
                            "ascending rows, each text ended by a 0");
        texts[i] = text + first[i];
    }
    *out = texts;
    return FRAG_OK;
}

static enum frag_err read_texts(const struct reader *r, const char *name,
                                const char *const **out, uint32_t *count)
{
    hid_t at;
    char where[32];
    const void *text, *first;
    uint64_t size, rows;
    enum frag_err err;

    if (!exists(r->file, name))
        return FRAG_OK;
    at = H5Gopen2(r->file, name, H5P_DEFAULT);
    if (at < 0)
        return expected(r, "/", name, "a group");
    snprintf(where, sizeof(where), "/%s/", name);
    err = read_column(r, at, where, &trace_text, &text, &size);
    if (err == FRAG_OK)
        err = read_column(r, at, where, &trace_first, &first, &rows);
    H5Gclose(at);
    FRAG_TRY(err);
    if (!rows || rows > UINT32_MAX)
        return expected(r, where, "first", "1 to 2^32 - 1 rows");
    FRAG_TRY(point_at_texts(r, where, text, size, first, rows - 1, out));
    *count = (uint32_t)(rows - 1);
    return FRAG_OK;
}

static enum frag_err read_stacks(const struct reader *r)
{
    struct frag_trace *t = r->trace;
    const void *frames, *first;
    uint64_t frame_count, rows;
    enum frag_err err;
    hid_t at;

    if (!exists(r->file, "stacks"))
        return FRAG_OK;
    at = H5Gopen2(r->file, "stacks", H5P_DEFAULT);
    if (at < 0)
        return expected(r, "/", "stacks", "a group");
    err = read_table(r, at, "/stacks/", &trace_frames, &frames, &frame_count);
    if (err == FRAG_OK)
        err = read_column(r, at, "/stacks/", &trace_first, &first, &rows);
    H5Gclose(at);
    FRAG_TRY(err);
    if (!rows || rows > UINT32_MAX)
        return expected(r, "/stacks/", "first", "1 to 2^32 - 1 rows");
    t->frames = frames;
    t->stack_first = first;
    t->stack_count = (uint32_t)(rows - 1);
    if (t->stack_first[t->stack_count] > frame_count)
        return expected(r, "/stacks/", "first", "rows of frames");
    return FRAG_OK;
}

/* The file as a whole. */

static enum frag_err check_schema(const struct reader *r)
{
    static const struct {
        const char *name, *want;
        size_t length; /* that must agree */
    } rows[] = {
        {"schema_name", TRACE_SCHEMA, sizeof(TRACE_SCHEMA)},
        {"schema_version", TRACE_SCHEMA_VERSION, 2}, /* the major number */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        enum frag_err err = FRAG_OK;
        char *text;

        FRAG_TRY(read_text(r, rows[i].name, &text));
        if (text && strncmp(text, rows[i].want, rows[i].length))
            err = frag_fail(r->e, FRAG_CORRUPT,
                            "%s:/%s: expected %s, found %.60s", r->path,
                            rows[i].name, rows[i].want, text);
        free(text);
        FRAG_TRY(err);
    }
    return FRAG_OK;
}

static enum frag_err read_root(const struct reader *r)
{
    struct frag_trace *t = r->trace;
    char *text;

    FRAG_TRY(check_schema(r));
    FRAG_TRY(read_text(r, "settings", &text));
    if (text && !storage_keep(t, text)) {
        free(text);
        return FRAG_NOMEM;
    }
    t->settings = text;
    FRAG_TRY(read_text(r, "source_sha256", &text));
    if (text && strlen(text) == sizeof(t->sha256) - 1)
        memcpy(t->sha256, text, sizeof(t->sha256));
    free(text);
    return FRAG_OK;
}

static enum frag_err read_all(const struct reader *r)
{
    struct frag_trace *t = r->trace;

    FRAG_TRY(read_root(r));
    FRAG_TRY(read_all_devices(r));
    FRAG_TRY(read_texts(r, "strings", &t->strings, &t->string_count));
    FRAG_TRY(read_texts(r, "notes", &t->notes, &t->note_count));
    FRAG_TRY(read_stacks(r));
    FRAG_TRY(trace_file_check(t, r->e));
    for (uint32_t i = 0; i < t->device_count; i++)
        FRAG_TRY(frag_trace_check(&t->devices[i], r->path, r->e));
    return FRAG_OK;
}

static enum frag_err map_file(struct reader *r)
{
    struct storage *s = r->trace->owner;
    int file = open(r->path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    void *map = MAP_FAILED;

    if (file >= 0 && fstat(file, &info) == 0 && info.st_size > 0)
        map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (file >= 0)
        close(file);
    if (map == MAP_FAILED)
        return frag_fail(r->e, FRAG_IO, "%s: %s", r->path, strerror(errno));
    s->map = map;
    s->map_size = (size_t)info.st_size;
    r->map = map;
    r->map_size = r->trace->file_bytes = (uint64_t)info.st_size;
    return FRAG_OK;
}

static enum frag_err read_file(struct reader *r)
{
    enum frag_err err;

    FRAG_TRY(map_file(r));
    r->file = H5Fopen(r->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (r->file < 0)
        return frag_fail(r->e, FRAG_CORRUPT,
                         "%s:0: expected an HDF5 file that is whole (where "
                         "files cannot be locked set "
                         "HDF5_USE_FILE_LOCKING=FALSE)",
                         r->path);
    err = read_all(r);
    H5Fclose(r->file);
    return err;
}

enum frag_err trace_file_read(const char *path,
                              const struct frag_read_options *opts,
                              struct frag_trace **out, struct frag_error *e)
{
    struct reader r = {.e = e, .path = path};
    struct trace_quiet quiet;
    enum frag_err err;

    (void)opts;
    r.trace = storage_trace(path, trace_file_format);
    if (!r.trace)
        return FRAG_NOMEM;
    quiet = trace_hush();
    err = read_file(&r);
    trace_unhush(quiet);
    if (err == FRAG_OK)
        *out = r.trace;
    else
        frag_trace_close(r.trace);
    return err;
}
