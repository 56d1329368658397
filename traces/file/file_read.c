/* file_read.c - reads a trace from a trace file.
 *
 * The file stays mapped until the trace is closed. Columns and tables that the
 * file lacks are filled with defaults, so that a file made by hand may be
 * short. The layout is described in trace_file.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/file/file_parts.h"
#include "traces/file/guard.h"

enum { DEVICES_MAX = 1024 };

/* Devices. */

static enum frag_err zeros(const struct trace_reader *r, uint64_t count,
                           size_t item, const void **rows)
{
    *rows = storage_array(r->trace, count, item);
    return *rows ? FRAG_OK : FRAG_NOMEM;
}

static enum frag_err read_event_column(const struct trace_reader *r, hid_t at,
                                       const char *where, enum trace_events k,
                                       uint64_t *count, const void **rows)
{
    const struct trace_column *column = &trace_event_columns[k];
    bool required = k <= EVENTS_BYTES;
    uint64_t found;

    *rows = NULL;
    if (!required && !hdf5_has(at, column->name)) {
        if (k == EVENTS_TIME || k == EVENTS_STACK)
            return FRAG_OK;
        return zeros(r, *count, trace_type_size(column->type), rows);
    }
    FRAG_TRY(trace_read_column(r, at, where, column, rows, &found));
    if (k == EVENTS_OP)
        *count = found;
    if (found != *count)
        return trace_expected(r, where, column->name, "as many rows as op has");
    return FRAG_OK;
}

static enum frag_err read_events(const struct trace_reader *r, hid_t at,
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
    d->map = r->map;
    d->map_size = r->map_size;
    return FRAG_OK;
}

static enum frag_err read_layout(const struct trace_reader *r, hid_t at,
                                 const char *where,
                                 const struct trace_table *segments,
                                 const struct trace_table *blocks,
                                 struct frag_layout *out)
{
    const void *rows;

    FRAG_TRY(
        trace_read_table(r, at, where, segments, &rows, &out->segment_count));
    out->segments = rows;
    FRAG_TRY(trace_read_table(r, at, where, blocks, &rows, &out->block_count));
    out->blocks = rows;
    return FRAG_OK;
}

static enum frag_err read_recorded(const struct trace_reader *r, hid_t at,
                                   const char *where,
                                   struct frag_device_trace *d)
{
    struct frag_recorded *rec = &d->recorded;
    const void *rows;
    uint64_t count;

    if (hdf5_has(at, trace_addr.name)) {
        FRAG_TRY(trace_read_column(r, at, where, &trace_addr, &rows, &count));
        if (count != d->count)
            return trace_expected(r, where, trace_addr.name,
                                  "as many rows as there are events");
        rec->addr = rows;
    }
    FRAG_TRY(trace_read_table(r, at, where, &trace_actions, &rows,
                              &rec->action_count));
    rec->actions = rows;
    FRAG_TRY(read_layout(r, at, where, &trace_start_segments,
                         &trace_start_blocks, &rec->start));
    return read_layout(r, at, where, &trace_end_segments, &trace_end_blocks,
                       &rec->end);
}

/* Reads the tables of streams, pools, marks and changes. If the tables of
 * streams or pools are absent, complete() makes them. Rows of events that are
 * not in the tables are found by frag_trace_check. */
static enum frag_err read_tables(const struct trace_reader *r, hid_t at,
                                 const char *where, struct frag_device_trace *d)
{
    const void *rows = NULL;
    uint64_t count = 0;

    if (hdf5_has(at, trace_streams.name))
        FRAG_TRY(
            trace_read_column(r, at, where, &trace_streams, &rows, &count));
    if (count > (uint64_t)UINT16_MAX + 1)
        return trace_expected(r, where, trace_streams.name,
                              "at most 65536 rows");
    d->streams = rows;
    d->stream_count = (uint32_t)count;
    FRAG_TRY(trace_read_table(r, at, where, &trace_pools, &rows, &count));
    if (count > (uint64_t)UINT16_MAX + 1)
        return trace_expected(r, where, trace_pools.name, "at most 65536 rows");
    d->pools = rows;
    d->pool_count = (uint32_t)count;
    FRAG_TRY(
        trace_read_table(r, at, where, &trace_marks, &rows, &d->mark_count));
    d->marks = rows;
    FRAG_TRY(trace_read_table(r, at, where, &trace_changes, &rows,
                              &d->change_count));
    d->changes = rows;
    return FRAG_OK;
}

static uint32_t most_of(const uint16_t *rows, uint64_t count)
{
    uint32_t most = 0;

    for (uint64_t i = 0; i < count; i++)
        most = rows[i] > most ? rows[i] : most;
    return most;
}

/* A short file lacks the table of streams, the table of pools, or the number of
 * slots. The next three functions make them: streams and pools from 0 to the
 * greatest number that an event uses, and slots from the ids of the allocs. */
static enum frag_err complete_streams(const struct trace_reader *r,
                                      struct frag_device_trace *d)
{
    uint64_t *streams;

    if (d->stream_count)
        return FRAG_OK;
    d->stream_count = 1 + most_of(d->stream, d->count);
    streams = storage_array(r->trace, d->stream_count, sizeof(*streams));
    for (uint32_t i = 0; streams && i < d->stream_count; i++)
        streams[i] = i;
    d->streams = streams;
    return streams ? FRAG_OK : FRAG_NOMEM;
}

static enum frag_err complete_pools(const struct trace_reader *r,
                                    struct frag_device_trace *d)
{
    struct frag_pool_id *pools;

    if (d->pool_count)
        return FRAG_OK;
    d->pool_count = 1 + most_of(d->pool, d->count);
    pools = storage_array(r->trace, d->pool_count, sizeof(*pools));
    for (uint32_t i = 0; pools && i < d->pool_count; i++)
        pools[i].number = i;
    d->pools = pools;
    return pools ? FRAG_OK : FRAG_NOMEM;
}

static enum frag_err complete(const struct trace_reader *r, const char *where,
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
        return trace_expected(r, where, "events/id",
                              "ids below the number of events");
    d->slots = (uint32_t)top;
    return FRAG_OK;
}

static enum frag_err read_facts(const struct trace_reader *r, hid_t at,
                                const char *where, struct frag_device_trace *d)
{
    uint64_t slots = 0, initial = 0, actions = 0, end = 0, streams = 0;

    FRAG_TRY(trace_read_number(r, at, where, "slots", UINT32_MAX - 1, &slots));
    FRAG_TRY(trace_read_number(r, at, where, "initial", UINT64_MAX, &initial));
    FRAG_TRY(trace_read_number(r, at, where, "has_actions", 1, &actions));
    FRAG_TRY(trace_read_number(r, at, where, "has_end", 1, &end));
    FRAG_TRY(trace_read_number(r, at, where, "free_streams", 1, &streams));
    d->slots = (uint32_t)slots;
    d->initial = initial;
    d->free_streams = streams;
    d->recorded.has_actions = actions;
    d->recorded.has_end = end;
    return FRAG_OK;
}

static enum frag_err in_group(const struct trace_reader *r, hid_t at,
                              const char *where, const char *name,
                              enum frag_err (*read)(const struct trace_reader *,
                                                    hid_t, const char *,
                                                    struct frag_device_trace *),
                              struct frag_device_trace *d)
{
    hid_t group = hdf5_group(r->fault, at, name);
    char inner[96];
    enum frag_err err;

    if (group < 0)
        return trace_expected(r, where, name, "a group");
    snprintf(inner, sizeof(inner), "%.60s%.20s/", where, name);
    err = read(r, group, inner, d);
    H5Gclose(group);
    return err;
}

static enum frag_err read_device(const struct trace_reader *r, hid_t at,
                                 const char *where, struct frag_device_trace *d)
{
    FRAG_TRY(read_facts(r, at, where, d));
    FRAG_TRY(in_group(r, at, where, "events", read_events, d));
    FRAG_TRY(read_tables(r, at, where, d));
    if (hdf5_has(at, "recorded"))
        FRAG_TRY(in_group(r, at, where, "recorded", read_recorded, d));
    return complete(r, where, d);
}

static int by_number(const void *a, const void *b)
{
    const struct frag_device_trace *x = a, *y = b;

    return (x->device > y->device) - (x->device < y->device);
}

static enum frag_err device_number(const struct trace_reader *r,
                                   const char *name, uint32_t *number)
{
    char again[16];

    *number = (uint32_t)strtoul(name, NULL, 10);
    snprintf(again, sizeof(again), "%" PRIu32, *number);
    if (!strcmp(again, name))
        return FRAG_OK;
    return trace_expected(r, "/devices/", "",
                          "the numbers of devices as names");
}

static enum frag_err read_nth_device(const struct trace_reader *r, hid_t at,
                                     uint64_t n, struct frag_device_trace *d)
{
    char name[16];
    ssize_t length = H5Lget_name_by_idx(at, ".", H5_INDEX_NAME, H5_ITER_INC, n,
                                        name, sizeof(name), H5P_DEFAULT);

    if (length <= 0 || length >= (ssize_t)sizeof(name))
        return trace_expected(r, "/devices/", "",
                              "the numbers of devices as names");
    FRAG_TRY(device_number(r, name, &d->device));
    return in_group(r, at, "/devices/", name, read_device, d);
}

static enum frag_err read_devices(const struct trace_reader *r, hid_t at)
{
    struct frag_trace *t = r->trace;
    H5G_info_t info;

    if (H5Gget_info(at, &info) < 0 || !info.nlinks || info.nlinks > DEVICES_MAX)
        return trace_expected(r, "/", "devices",
                              "1 to 1024 devices; import the trace again");
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

static enum frag_err read_all_devices(const struct trace_reader *r)
{
    hid_t group = hdf5_group(r->fault, r->file, "devices");
    enum frag_err err;

    if (group < 0)
        return trace_expected(r, "/", "devices",
                              "a group, as a trace file has it; found an HDF5 "
                              "file of another kind; \"fragsim help formats\" "
                              "describes a trace file");
    err = read_devices(r, group);
    H5Gclose(group);
    return err;
}

/* The file as a whole. */

#define RESULTS_SCHEMA "fragsim-results" /* see sim/results/results.h */

/* Fails with CORRUPT; `found` is the schema_name of the file. */
static enum frag_err other_schema(const struct trace_reader *r,
                                  const char *attribute, const char *expected,
                                  const char *found)
{
    if (!strcmp(found, RESULTS_SCHEMA))
        return frag_fail(r->e, FRAG_CORRUPT,
                         "%s: expected a trace, found a result file; see it "
                         "with `fragsim report %s -o report.html' or `fragsim "
                         "plot %s compare -o compare.svg', and compare it "
                         "with another one by `fragsim diff'",
                         r->path, r->path, r->path);
    return frag_fail(r->e, FRAG_CORRUPT, "%s:/%s: expected %s, found %.60s",
                     r->path, attribute, expected, found);
}

static enum frag_err check_schema(const struct trace_reader *r)
{
    static const struct {
        const char *name, *want;
        size_t length; /* number of bytes that must be equal */
    } rows[] = {
        {"schema_name", TRACE_SCHEMA, sizeof(TRACE_SCHEMA)},
        {"schema_version", TRACE_SCHEMA_VERSION, 2}, /* the major number */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        enum frag_err err = FRAG_OK;
        char *text;

        FRAG_TRY(trace_read_text(r, rows[i].name, &text));
        if (text && strncmp(text, rows[i].want, rows[i].length))
            err = other_schema(r, rows[i].name, rows[i].want, text);
        free(text);
        FRAG_TRY(err);
    }
    return FRAG_OK;
}

/* Reads a text that the trace keeps; NULL if the file has none. */
static enum frag_err read_kept(const struct trace_reader *r, const char *name,
                               char **text)
{
    FRAG_TRY(trace_read_text(r, name, text));
    if (!*text || storage_keep(r->trace, *text))
        return FRAG_OK;
    free(*text);
    *text = NULL;
    return FRAG_NOMEM;
}

static enum frag_err read_root(const struct trace_reader *r)
{
    struct frag_trace *t = r->trace;
    char *text;

    FRAG_TRY(check_schema(r));
    FRAG_TRY(read_kept(r, "settings", &t->settings));
    FRAG_TRY(read_kept(r, "releases", &t->releases));
    FRAG_TRY(trace_read_text(r, "source_sha256", &text));
    if (text && strlen(text) == sizeof(t->sha256) - 1)
        memcpy(t->sha256, text, sizeof(t->sha256));
    free(text);
    return FRAG_OK;
}

static enum frag_err read_all(const struct trace_reader *r)
{
    struct frag_trace *t = r->trace;

    FRAG_TRY(read_root(r));
    FRAG_TRY(read_all_devices(r));
    FRAG_TRY(trace_read_texts(r, "strings", &t->strings, &t->string_count));
    FRAG_TRY(trace_read_texts(r, "notes", &t->notes, &t->note_count));
    FRAG_TRY(trace_read_stacks(r));
    storage_share_settings(t);
    FRAG_TRY(trace_file_check(t, r->e));
    for (uint32_t i = 0; i < t->device_count; i++)
        FRAG_TRY(frag_trace_check(&t->devices[i], r->path, r->e));
    return FRAG_OK;
}

static enum frag_err map_file(struct trace_reader *r)
{
    struct storage *s = r->trace->owner;
    int file = open(r->path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    void *map = NULL;

    if (file >= 0 && fstat(file, &info) == 0 && info.st_size > 0)
        map = storage_map(file, (size_t)info.st_size, r->trace->path);
    if (file >= 0)
        close(file);
    if (!map)
        return frag_fail(r->e, FRAG_IO, "%s: %s", r->path, strerror(errno));
    s->map = map;
    s->map_size = (size_t)info.st_size;
    r->map = map;
    r->map_size = r->trace->file_bytes = (uint64_t)info.st_size;
    return FRAG_OK;
}

static enum frag_err read_file(struct trace_reader *r)
{
    enum frag_err err;

    FRAG_TRY(map_file(r));
    r->file = hdf5_open(r->fault, r->path);
    if (r->file < 0)
        return frag_fail(r->e, FRAG_CORRUPT,
                         "%s:0: expected a complete HDF5 file, found one that "
                         "is damaged or ends too early, at byte %" PRIu64
                         "; copy it again or make it again",
                         r->path, r->map_size);
    err = read_all(r);
    H5Fclose(r->file);
    return err;
}

static enum frag_err read_trace(const char *path, struct frag_trace **out,
                                struct frag_error *e)
{
    struct hdf5_fault fault = {0};
    struct trace_reader r = {.e = e, .path = path, .fault = &fault};
    struct hdf5_quiet quiet;
    enum frag_err err;

    r.trace = storage_trace(path, trace_file_format);
    if (!r.trace)
        return FRAG_NOMEM;
    quiet = hdf5_quiet_begin(&fault);
    err = hdf5_explain(&fault, path, read_file(&r), e);
    hdf5_quiet_end(quiet);
    if (err == FRAG_OK)
        *out = r.trace;
    else
        frag_trace_close(r.trace);
    return err;
}

/* A trial in a child process: see hdf5_survives. */
static void try_trace(const char *path)
{
    struct frag_trace *t = NULL;
    struct frag_error e;

    if (read_trace(path, &t, &e) == FRAG_OK)
        frag_trace_close(t);
}

enum frag_err trace_file_read(const char *path, struct frag_trace **out,
                              struct frag_error *e)
{
    if (!hdf5_survives(path, try_trace))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s:0: expected an HDF5 file, found one that is so "
                         "damaged that reading it crashes or does not end; "
                         "copy it again or make it again",
                         path);
    return read_trace(path, out, e);
}
