/* file_write.c - writes a trace to a trace file, complete or not at all.
 *
 * HDF5's times of objects are not stored, so the same trace always has the same
 * bytes. The metadata have the format of HDF5 1.8 and later, whose checksums
 * reveal a damaged file. The layout is described in trace_file.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/bytes/atomic_file.h"
#include "traces/file/file_parts.h"
#include "traces/file/guard.h"

enum { PAGE = 4096 }; /* bytes */

struct writer {
    const struct frag_trace *trace;
    hid_t file;
};

/* Returns whether the column holds information; other columns are omitted. */
static bool is_needed(const struct frag_device_trace *d, enum trace_events k)
{
    switch (k) {
    case EVENTS_STREAM:
        return d->stream_count > 1;
    case EVENTS_POOL:
        return d->pool_count > 1;
    case EVENTS_TIME:
        return d->time;
    case EVENTS_STACK:
        return d->stack;
    default:
        return true;
    }
}

static bool put_events(hid_t at, const struct frag_device_trace *d)
{
    hid_t group = hdf5_make_group(at, "events");
    bool fine = group >= 0;

    for (int k = 0; fine && k < EVENTS_COUNT; k++) {
        const enum trace_events column = (enum trace_events)k;

        if (is_needed(d, column))
            fine = trace_put_column(group, &trace_event_columns[k],
                                    trace_event_data(d, column), d->count);
    }
    return trace_close_group(group, fine);
}

static bool put_recorded(hid_t at, const struct frag_device_trace *d)
{
    const struct frag_recorded *r = &d->recorded;
    hid_t group = hdf5_make_group(at, "recorded");
    bool fine = group >= 0;

    if (fine && r->addr)
        fine = trace_put_column(group, &trace_addr, r->addr, d->count);
    fine =
        fine &&
        trace_put_table(group, &trace_actions, r->actions, r->action_count) &&
        trace_put_table(group, &trace_start_segments, r->start.segments,
                        r->start.segment_count) &&
        trace_put_table(group, &trace_start_blocks, r->start.blocks,
                        r->start.block_count) &&
        trace_put_table(group, &trace_end_segments, r->end.segments,
                        r->end.segment_count) &&
        trace_put_table(group, &trace_end_blocks, r->end.blocks,
                        r->end.block_count);
    return trace_close_group(group, fine);
}

static bool put_device(hid_t at, const struct frag_device_trace *d)
{
    char name[16];
    hid_t group;
    bool fine;

    snprintf(name, sizeof(name), "%" PRIu32, d->device);
    group = hdf5_make_group(at, name);
    fine =
        group >= 0 && trace_put_number(group, "slots", d->slots) &&
        trace_put_number(group, "initial", d->initial) &&
        trace_put_number(group, "has_actions", d->recorded.has_actions) &&
        (!d->free_streams || trace_put_number(group, "free_streams", 1)) &&
        trace_put_number(group, "has_end", d->recorded.has_end) &&
        put_events(group, d) &&
        trace_put_column(group, &trace_streams, d->streams, d->stream_count) &&
        trace_put_table(group, &trace_pools, d->pools, d->pool_count) &&
        trace_put_table(group, &trace_marks, d->marks, d->mark_count) &&
        (!d->change_count ||
         trace_put_table(group, &trace_changes, d->changes, d->change_count)) &&
        put_recorded(group, d);
    return trace_close_group(group, fine);
}

static bool put_devices(const struct writer *w)
{
    hid_t group = hdf5_make_group(w->file, "devices");
    bool fine = group >= 0;

    for (uint32_t i = 0; fine && i < w->trace->device_count; i++)
        fine = put_device(group, &w->trace->devices[i]);
    return trace_close_group(group, fine);
}

/* Texts. */

static bool put_texts(const struct writer *w, const char *name,
                      const char *const *texts, uint32_t count)
{
    uint64_t *first = calloc((size_t)count + 1, sizeof(*first));
    hid_t group = hdf5_make_group(w->file, name);
    char *joined = NULL;
    bool fine;

    for (uint32_t i = 0; first && i < count; i++)
        first[i + 1] = first[i] + strlen(texts[i]) + 1;
    if (first)
        joined = malloc((size_t)first[count] + 1);
    for (uint32_t i = 0; joined && i < count; i++)
        memcpy(joined + first[i], texts[i], (size_t)(first[i + 1] - first[i]));
    fine = joined && group >= 0 &&
           trace_put_column(group, &trace_text, joined, first[count]) &&
           trace_put_column(group, &trace_first, first, (uint64_t)count + 1);
    free(joined);
    free(first);
    return trace_close_group(group, fine);
}

static bool put_stacks(const struct writer *w)
{
    const struct frag_trace *t = w->trace;
    uint64_t frames;
    hid_t group;
    bool fine;

    if (!t->stack_count)
        return true;
    frames = t->stack_first[t->stack_count];
    group = hdf5_make_group(w->file, "stacks");
    fine = group >= 0 &&
           trace_put_table(group, &trace_frames, t->frames, frames) &&
           trace_put_column(group, &trace_first, t->stack_first,
                            (uint64_t)t->stack_count + 1);
    return trace_close_group(group, fine);
}

static bool put_root(const struct writer *w)
{
    const struct frag_trace *t = w->trace;

    return hdf5_put_text(w->file, "schema_name", TRACE_SCHEMA) &&
           hdf5_put_text(w->file, "schema_version", TRACE_SCHEMA_VERSION) &&
           trace_put_label(w->file, "tool", TRACE_TOOL) &&
           trace_put_label(w->file, "source_path", t->path) &&
           trace_put_label(w->file, "source_format", t->format) &&
           hdf5_put_text(w->file, "source_sha256", t->sha256) &&
           (!t->settings || hdf5_put_text(w->file, "settings", t->settings)) &&
           (!t->releases || hdf5_put_text(w->file, "releases", t->releases));
}

static bool put_trace(const struct writer *w)
{
    const struct frag_trace *t = w->trace;

    return put_root(w) && put_devices(w) &&
           put_texts(w, "strings", t->strings, t->string_count) &&
           put_texts(w, "notes", t->notes, t->note_count) && put_stacks(w);
}

static hid_t create(const char *path)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), how = H5Pcreate(H5P_FILE_CREATE);
    hid_t file = -1;

    if (access >= 0 && how >= 0 && H5Pset_alignment(access, PAGE, PAGE) >= 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110) >= 0 &&
        H5Pset_obj_track_times(how, false) >= 0)
        file = H5Fcreate(path, H5F_ACC_TRUNC, how, access);
    hdf5_drop(how);
    hdf5_drop(access);
    return file;
}

static bool write_file(struct writer *w, const char *path,
                       struct hdf5_fault *fault)
{
    struct hdf5_quiet quiet = hdf5_quiet_begin(fault);
    bool fine;

    w->file = create(path);
    fine =
        w->file >= 0 && put_trace(w) && H5Fflush(w->file, H5F_SCOPE_LOCAL) >= 0;
    if (w->file >= 0)
        fine = H5Fclose(w->file) >= 0 && fine;
    hdf5_quiet_end(quiet);
    return fine;
}

enum frag_err frag_trace_write(const struct frag_trace *trace, const char *path,
                               struct frag_error *e)
{
    struct writer w = {trace, -1};
    struct hdf5_fault fault = {0};
    struct atomic_file file;
    int reason;

    FRAG_TRY(atomic_file_begin(&file, path, "", e));
    errno = 0;
    if (write_file(&w, file.partial, &fault))
        return atomic_file_commit(&file, e);
    reason = fault.error ? fault.error : errno;
    atomic_file_abort(&file);
    if (reason == ENOMEM)
        return frag_no_memory(e, "%s", path);
    return hdf5_failed(path, "write", reason, e);
}
