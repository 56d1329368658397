/* build_finish.c - runs the steps of inference for each device and moves the
 * builder's state into a trace. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/build/build_device.h"

/* Moves arrays to the trace: the trace owns an array from then on, and the
 * builder's pointer is NULL. */

static bool keep(struct frag_trace *t, void *at)
{
    void *array, *none = NULL;

    memcpy(&array, at, sizeof(array));
    if (!array)
        return true;
    if (!storage_keep(t, array))
        return false;
    memcpy(at, &none, sizeof(none));
    return true;
}

#define KEEP(trace, to, array) ((to) = (array), keep((trace), &(array)))

bool build_keep_events(struct frag_trace *t, struct frag_device_trace *out,
                       struct device_build *d)
{
    struct columns *c = &d->events;

    out->count = c->count;
    out->slots = d->slots;
    return KEEP(t, out->op, c->op) && KEEP(t, out->id, c->id) &&
           KEEP(t, out->bytes, c->bytes) && KEEP(t, out->stream, c->stream) &&
           KEEP(t, out->pool, c->pool) &&
           (!d->has_time || KEEP(t, out->time, c->time)) &&
           (!d->has_stack || KEEP(t, out->stack, c->stack));
}

static bool keep_recorded(struct frag_trace *t, struct frag_recorded *out,
                          struct device_build *d, bool has_addresses)
{
    out->action_count = d->action_count;
    out->start.segment_count = d->start_segment_count;
    out->start.block_count = d->start_block_count;
    out->end.segment_count = d->segment_count;
    out->end.block_count = d->block_count;
    out->has_end = d->segment_count != 0;
    out->has_actions = d->action_count || (d->entries && out->has_end);
    return (!has_addresses || KEEP(t, out->addr, d->events.addr)) &&
           KEEP(t, out->actions, d->actions) &&
           KEEP(t, out->start.segments, d->start_segments) &&
           KEEP(t, out->start.blocks, d->start_blocks) &&
           KEEP(t, out->end.segments, d->segments) &&
           KEEP(t, out->end.blocks, d->blocks);
}

static bool keep_tables(struct frag_trace *t, struct frag_device_trace *out,
                        struct device_build *d)
{
    out->device = d->device;
    out->stream_count = (uint32_t)d->stream_count;
    out->pool_count = (uint32_t)d->pool_count;
    out->mark_count = d->mark_count;
    out->change_count = d->change_count;
    return KEEP(t, out->streams, d->streams) && KEEP(t, out->pools, d->pools) &&
           KEEP(t, out->marks, d->marks) && KEEP(t, out->changes, d->changes);
}

static enum frag_err finish_device(struct frag_build *b, struct frag_trace *t,
                                   struct device_build *d, frag_size limit,
                                   struct frag_error *e)
{
    struct frag_device_trace *out = &t->devices[t->device_count++];
    uint32_t stream;

    FRAG_TRY(build_flush(d));
    if (!d->stream_count)
        FRAG_TRY(build_stream(b, d, 0, &stream, e));
    FRAG_TRY(build_changes(d));
    FRAG_TRY(build_found(b, d));
    FRAG_TRY(build_infer(b, d, limit));
    FRAG_TRY(build_end(b, d, e));
    FRAG_TRY(build_start(b, d, e));
    FRAG_TRY(build_pools(d));
    FRAG_TRY(build_free_streams(d));
    FRAG_TRY(build_streams(d));
    FRAG_TRY(build_marks(b, d));
    FRAG_TRY(build_changes(d));
    FRAG_TRY(build_found(b, d));
    out->initial = d->initial;
    out->free_streams = d->free_streams;
    if (!build_keep_events(t, out, d) ||
        !keep_recorded(t, &out->recorded, d, d->entries) ||
        !keep_tables(t, out, d))
        return FRAG_NOMEM;
    return frag_trace_check(out, b->path, e);
}

/* The trace has one array with the text and one with pointers into it. */
static enum frag_err keep_strings(struct frag_build *b, struct frag_trace *t)
{
    const char **strings = storage_array(t, b->string_count, sizeof(*strings));
    const char *text = b->text;

    if (!strings || !keep(t, &b->text))
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < b->string_count; i++)
        strings[i] = text + b->strings[i];
    t->strings = strings;
    t->string_count = (uint32_t)b->string_count;
    return FRAG_OK;
}

static enum frag_err check_frames(const struct frag_build *b,
                                  struct frag_error *e)
{
    for (uint64_t i = 0; i < b->frame_count; i++)
        if (b->frames[i].file >= b->string_count ||
            b->frames[i].function >= b->string_count)
            return frag_fail(e, FRAG_INVALID,
                             "%s: a frame has a string that was not interned",
                             b->path);
    return FRAG_OK;
}

static enum frag_err keep_stacks(struct frag_build *b, struct frag_trace *t)
{
    t->stack_count = (uint32_t)b->stack_count;
    if (!KEEP(t, t->stack_first, b->stack_first) ||
        !KEEP(t, t->frames, b->frames))
        return FRAG_NOMEM;
    b->stack_count = b->frame_count = 0;
    return FRAG_OK;
}

static enum frag_err keep_notes(struct frag_build *b, struct frag_trace *t)
{
    const char **notes = storage_array(t, b->note_count, sizeof(*notes));

    if (!notes)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < b->note_count; i++) {
        notes[i] = storage_text(t, b->notes[i], strlen(b->notes[i]));
        if (!notes[i])
            return FRAG_NOMEM;
    }
    t->notes = notes;
    t->note_count = (uint32_t)b->note_count;
    return FRAG_OK;
}

static enum frag_err keep_settings(struct frag_build *b, struct frag_trace *t)
{
    if (*b->releases) {
        t->releases = storage_text(t, b->releases, strlen(b->releases));
        if (!t->releases)
            return FRAG_NOMEM;
    }
    if (!b->conf)
        return FRAG_OK;
    t->settings = storage_text(t, b->conf, strlen(b->conf));
    return t->settings ? FRAG_OK : FRAG_NOMEM;
}

static int by_device(const void *a, const void *b)
{
    const struct device_build *const *x = a, *const *y = b;

    return ((*x)->device > (*y)->device) - ((*x)->device < (*y)->device);
}

static enum frag_err fill(struct frag_build *b, struct frag_trace *t,
                          frag_size limit, struct frag_error *e)
{
    t->devices = storage_array(t, b->device_count, sizeof(*t->devices));
    if (!t->devices)
        return FRAG_NOMEM;
    if (b->device_count)
        qsort(b->devices, (size_t)b->device_count, sizeof(*b->devices),
              by_device);
    for (uint64_t i = 0; i < b->device_count; i++)
        FRAG_TRY(finish_device(b, t, b->devices[i], limit, e));
    FRAG_TRY(check_frames(b, e));
    FRAG_TRY(keep_strings(b, t));
    FRAG_TRY(keep_stacks(b, t));
    FRAG_TRY(keep_settings(b, t));
    storage_share_settings(t);
    return keep_notes(b, t);
}

enum frag_err frag_build_finish(struct frag_build *b,
                                const struct frag_read_options *opts,
                                struct frag_trace **out, struct frag_error *e)
{
    struct frag_trace *t = storage_trace(b->path, b->format);
    enum frag_err err = FRAG_NOMEM;

    if (t)
        err = fill(b, t, opts ? opts->limit : 0, e);
    if (err == FRAG_OK)
        *out = t;
    else
        frag_trace_close(t);
    return err;
}
