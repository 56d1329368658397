/* track.c - reads the events of a device and writes those of an edited one: its
 * columns, slots, streams, pools, stacks and marks. */
#include "traces/edit/parts.h"

#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"
#include "traces/storage.h"

/* ---- streams and pools ---- */

enum { ROWS_MAX = UINT16_MAX + 1 };

static enum frag_err no_memory(const struct track *t)
{
    return frag_no_memory(t->making->error, "the edited trace");
}

enum frag_err track_stream(struct track *t, uint64_t handle, frag_stream *out)
{
    uint64_t i = 0;

    while (i < t->stream_count && t->streams[i] != handle)
        i++;
    if (i == ROWS_MAX)
        return edit_fail(t->making, "a device has at most %d streams",
                         ROWS_MAX);
    if (i == t->stream_count) {
        if (!GROW(t->streams, t->streams_room, i + 1))
            return no_memory(t);
        t->streams[t->stream_count++] = handle;
    }
    *out = (frag_stream)i;
    return FRAG_OK;
}

static enum frag_err track_pool(struct track *t, struct frag_pool_id pool,
                                frag_pool *out)
{
    uint64_t i = 0;

    while (i < t->pool_count && (t->pools[i].owner != pool.owner ||
                                 t->pools[i].number != pool.number))
        i++;
    if (i == ROWS_MAX)
        return edit_fail(t->making, "a device has at most %d pools", ROWS_MAX);
    if (i == t->pool_count) {
        if (!GROW(t->pools, t->pools_room, i + 1))
            return no_memory(t);
        t->pools[t->pool_count++] = pool;
    }
    *out = (frag_pool)i;
    return FRAG_OK;
}

/* The first of as many handles as the device has streams, all above those of
 * the track. */
static uint64_t first_apart(const struct track *t)
{
    uint64_t most = 0;

    for (uint64_t i = 0; i < t->stream_count; i++)
        most = t->streams[i] > most ? t->streams[i] : most;
    return most + 1;
}

/* ---- sources ---- */

static enum frag_err map_rows(struct source *s, struct track *t, bool is_apart)
{
    const struct frag_device_trace *d = s->device;
    const uint64_t apart = first_apart(t);

    for (uint32_t i = 0; i < d->stream_count; i++)
        FRAG_TRY(track_stream(t, is_apart ? apart + i : d->streams[i],
                              &s->streams[i]));
    for (uint32_t i = 0; i < d->pool_count; i++)
        FRAG_TRY(track_pool(t, d->pools[i], &s->pools[i]));
    return FRAG_OK;
}

enum frag_err source_open(struct source *s, const struct frag_trace *trace,
                          const struct frag_device_trace *d, struct track *t,
                          bool is_apart)
{
    *s = (struct source){.trace = trace, .device = d};
    FRAG_TRY(blocks_open(d, d->count, &s->blocks, t->making->error));
    s->slot = malloc(((size_t)s->blocks.count + 1) * sizeof(*s->slot));
    s->stacks = malloc(((size_t)trace->stack_count + 1) * sizeof(*s->stacks));
    s->streams = calloc((size_t)d->stream_count + 1, sizeof(*s->streams));
    s->pools = calloc((size_t)d->pool_count + 1, sizeof(*s->pools));
    if (!s->slot || !s->stacks || !s->streams || !s->pools)
        return no_memory(t);
    for (uint32_t i = 0; i < trace->stack_count; i++)
        s->stacks[i] = UINT32_MAX;
    source_rewind(s);
    return map_rows(s, t, is_apart);
}

void source_rewind(struct source *s)
{
    for (uint64_t k = 0; k < s->blocks.count; k++)
        s->slot[k] = UINT32_MAX;
    s->mark = 0;
}

void source_close(struct source *s)
{
    blocks_close(&s->blocks);
    free(s->slot);
    free(s->stacks);
    free(s->streams);
    free(s->pools);
    *s = (struct source){0};
}

/* ---- stacks ---- */

static uint32_t text_of(struct frag_build *b, const struct frag_trace *t,
                        uint32_t string)
{
    return frag_build_string(b, t->strings[string], strlen(t->strings[string]));
}

static bool copy_frames(struct frag_build *b, const struct frag_trace *t,
                        uint64_t first, size_t count, struct frag_frame *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct frag_frame *f = &t->frames[first + i];

        out[i] = (struct frag_frame){text_of(b, t, f->file),
                                     text_of(b, t, f->function), f->line};
        if (out[i].file == UINT32_MAX || out[i].function == UINT32_MAX)
            return false;
    }
    return true;
}

/* The number of a stack in the output; UINT32_MAX if the host has no memory. */
static uint32_t stack_of(struct track *t, struct source *s, uint32_t stack)
{
    struct frag_build *b = t->making->build;
    struct frag_frame *frames;
    uint64_t first;
    size_t count;

    if (stack >= s->trace->stack_count)
        return 0;
    if (s->stacks[stack] != UINT32_MAX)
        return s->stacks[stack];
    first = s->trace->stack_first[stack];
    count = (size_t)(s->trace->stack_first[stack + 1] - first);
    frames = malloc((count + 1) * sizeof(*frames));
    if (frames && copy_frames(b, s->trace, first, count, frames))
        s->stacks[stack] = frag_build_stack(b, frames, count);
    free(frames);
    return s->stacks[stack];
}

/* ---- events ---- */

static bool grow_columns(struct track *t)
{
    const uint64_t want = t->out.count + 1;

    return GROW(t->op, t->op_room, want) && GROW(t->id, t->id_room, want) &&
           GROW(t->bytes, t->bytes_room, want) &&
           GROW(t->stream, t->stream_room, want) &&
           GROW(t->pool, t->pool_room, want) &&
           (!t->has_time || GROW(t->time, t->time_room, want)) &&
           (!t->has_stack || GROW(t->stack, t->stack_room, want));
}

/* Appends a row of zeros but for the operation and the slot. */
static enum frag_err append(struct track *t, enum frag_op op, uint32_t slot)
{
    const uint64_t n = t->out.count;

    if (!grow_columns(t))
        return no_memory(t);
    t->op[n] = (uint8_t)op;
    t->id[n] = slot;
    t->bytes[n] = 0;
    t->stream[n] = 0;
    t->pool[n] = 0;
    if (t->has_stack)
        t->stack[n] = 0;
    t->out.count++;
    if (t->has_time)
        t->time[n] = 0;
    return FRAG_OK;
}

static enum frag_err occupy(struct track *t, uint32_t *slot)
{
    const uint32_t fresh = t->out.slots;

    if (t->vacant_count) {
        *slot = t->vacant[--t->vacant_count];
    } else if (fresh == UINT32_MAX - 1 ||
               !GROW(t->live, t->live_room, (uint64_t)fresh + 1)) {
        return no_memory(t);
    } else {
        *slot = t->out.slots++;
    }
    t->live[*slot] = true;
    return FRAG_OK;
}

static enum frag_err vacate(struct track *t, uint32_t slot)
{
    if (!GROW(t->vacant, t->vacant_room, t->vacant_count + 1))
        return no_memory(t);
    t->vacant[t->vacant_count++] = slot;
    t->live[slot] = false;
    return FRAG_OK;
}

/* 1 + the row of the stream on which event i, a FREE, was freed; 0 if that is
 * the stream of its block. */
static frag_stream freed_on(const struct source *s, uint64_t i)
{
    const struct frag_device_trace *d = s->device;
    const frag_stream own = d->stream[s->blocks.lives[s->blocks.of[i]].alloc];

    if (!d->free_streams || !d->stream[i] || d->stream[i] == own + 1)
        return 0;
    return (frag_stream)(1 + s->streams[d->stream[i] - 1]);
}

static enum frag_err fill_stream(struct track *t, const struct source *s,
                                 uint64_t i)
{
    const struct frag_device_trace *d = s->device;
    frag_stream *stream = &t->stream[t->out.count - 1];

    if (d->op[i] == FRAG_ALLOC || d->op[i] == FRAG_RECORD_STREAM)
        *stream = s->streams[d->stream[i]];
    if (d->op[i] == FRAG_FREE)
        *stream = freed_on(s, i);
    if (d->op[i] == FRAG_FREE && *stream && t->stream_count == ROWS_MAX)
        return edit_fail(t->making,
                         "a device on which blocks are freed on other streams "
                         "has at most %d streams",
                         ROWS_MAX - 1);
    return FRAG_OK;
}

/* Fills the row of the last event from event i of the source. */
static enum frag_err fill(struct track *t, struct source *s, uint64_t i)
{
    const struct frag_device_trace *d = s->device;
    const uint64_t n = t->out.count - 1;

    t->bytes[n] = d->bytes[i];
    FRAG_TRY(fill_stream(t, s, i));
    if (d->op[i] == FRAG_ALLOC)
        t->pool[n] = s->pools[d->pool[i]];
    if (t->has_time && d->time)
        t->time[n] = d->time[i] + s->shift;
    if (t->has_stack && d->stack) {
        t->stack[n] = stack_of(t, s, d->stack[i]);
        if (t->stack[n] == UINT32_MAX)
            return no_memory(t);
    }
    return FRAG_OK;
}

/* Finds the slot of the event's block in the output. */
static enum frag_err slot_of(struct track *t, struct source *s, uint64_t i,
                             uint32_t *slot)
{
    const uint32_t block = s->blocks.of[i];

    *slot = 0;
    if (block == UINT32_MAX)
        return FRAG_OK;
    if (s->device->op[i] == FRAG_ALLOC)
        FRAG_TRY(occupy(t, &s->slot[block]));
    *slot = s->slot[block];
    if (*slot == UINT32_MAX || s->device->op[i] != FRAG_FREE)
        return FRAG_OK;
    s->slot[block] = UINT32_MAX;
    return vacate(t, *slot);
}

/* Only allocs before all other events are initial ones. `recorded` is where the
 * events begin that completed the trace. */
static void note_place(struct track *t, const struct source *s, uint64_t i)
{
    const struct frag_device_trace *d = s->device;

    if (i < d->initial && t->out.initial == t->out.count)
        t->out.initial++;
    if (d->added && i >= d->count - d->added && t->recorded == FRAG_NEVER)
        t->recorded = t->out.count;
}

enum frag_err track_put(struct track *t, struct source *s, uint64_t i,
                        bool *put)
{
    uint32_t slot;

    FRAG_TRY(slot_of(t, s, i, &slot));
    if (put)
        *put = slot != UINT32_MAX;
    if (slot == UINT32_MAX)
        return FRAG_OK;
    note_place(t, s, i);
    FRAG_TRY(append(t, s->device->op[i], slot));
    return fill(t, s, i);
}

void track_move_time(struct track *t)
{
    const uint64_t n = t->out.count;

    if (t->has_time && n > 1)
        t->time[n - 1] = t->time[n - 2];
}

enum frag_err track_add(struct track *t, enum frag_op op, uint32_t slot)
{
    FRAG_TRY(append(t, op, slot));
    track_move_time(t);
    return op == FRAG_FREE ? vacate(t, slot) : FRAG_OK;
}

enum frag_err track_free_all(struct track *t)
{
    for (uint32_t slot = 0; slot < t->out.slots; slot++)
        if (t->live[slot])
            FRAG_TRY(track_add(t, FRAG_FREE, slot));
    return FRAG_OK;
}

enum frag_err track_marks(struct track *t, struct source *s, uint64_t i)
{
    const struct frag_device_trace *d = s->device;

    for (; s->mark < d->mark_count && d->marks[s->mark].event <= i; s->mark++) {
        struct frag_mark m = d->marks[s->mark];

        m.event = t->out.count;
        m.time += s->shift;
        m.name = text_of(t->making->build, s->trace, m.name);
        if (m.name == UINT32_MAX ||
            !GROW(t->marks, t->marks_room, t->mark_count + 1))
            return no_memory(t);
        t->marks[t->mark_count++] = m;
    }
    return FRAG_OK;
}

enum frag_err track_all(struct track *t, struct source *s)
{
    for (uint64_t i = 0; i < s->device->count; i++) {
        FRAG_TRY(track_marks(t, s, i));
        FRAG_TRY(track_put(t, s, i, NULL));
    }
    return track_marks(t, s, s->device->count);
}

/* ---- the end ---- */

static int by_handle(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* What the column adds to the row of a stream: 1 for a FREE. */
static frag_stream stream_base(const struct track *t, uint64_t i)
{
    return t->op[i] == FRAG_FREE;
}

static bool has_stream(const struct track *t, uint64_t i)
{
    return t->op[i] == FRAG_ALLOC || t->op[i] == FRAG_RECORD_STREAM ||
           (t->op[i] == FRAG_FREE && t->stream[i]);
}

/* Sorts the streams that events use, and renumbers the column. */
static bool sort_streams(struct track *t)
{
    uint64_t *used = malloc(((size_t)t->stream_count + 1) * sizeof(*used));
    uint8_t *is_used = calloc((size_t)t->stream_count + 1, 1);
    frag_stream *row = calloc((size_t)t->stream_count + 1, sizeof(*row));
    uint64_t count = 0;
    const bool fine = used && is_used && row;

    for (uint64_t i = 0; fine && i < t->out.count; i++)
        if (has_stream(t, i))
            is_used[t->stream[i] - stream_base(t, i)] = true;
    for (uint64_t k = 0; fine && k < t->stream_count; k++)
        if (is_used[k])
            used[count++] = t->streams[k];
    if (fine)
        qsort(used, (size_t)count, sizeof(*used), by_handle);
    for (uint64_t k = 0; fine && k < t->stream_count; k++)
        while (is_used[k] && used[row[k]] != t->streams[k])
            row[k]++;
    for (uint64_t i = 0; fine && i < t->out.count; i++)
        if (has_stream(t, i))
            t->stream[i] = (frag_stream)(row[t->stream[i] - stream_base(t, i)] +
                                         stream_base(t, i));
    if (fine && count) {
        memcpy(t->streams, used, (size_t)count * sizeof(*used));
        t->stream_count = count;
    } else if (fine) {
        t->stream_count = 1; /* without events, one stream remains */
    }
    free(used);
    free(is_used);
    free(row);
    return fine;
}

/* Drops the pools that no event uses, except the default pool. */
static bool drop_pools(struct track *t)
{
    uint8_t *is_used = calloc((size_t)t->pool_count + 1, 1);
    frag_pool *row = calloc((size_t)t->pool_count + 1, sizeof(*row));
    uint64_t count = 0;
    const bool fine = is_used && row;

    for (uint64_t i = 0; fine && i < t->out.count; i++)
        is_used[t->pool[i]] = true;
    for (uint64_t k = 0; fine && k < t->pool_count; k++)
        if (!k || is_used[k]) {
            row[k] = (frag_pool)count;
            t->pools[count++] = t->pools[k];
        }
    for (uint64_t i = 0; fine && i < t->out.count; i++)
        t->pool[i] = row[t->pool[i]];
    if (fine)
        t->pool_count = count;
    free(is_used);
    free(row);
    return fine;
}

/* Moves an array to the trace; `at` is the address of its pointer. */
static bool keep(struct frag_trace *t, void *at)
{
    void *array, *none = NULL;

    memcpy(&array, at, sizeof(array));
    if (array && !storage_keep(t, array))
        return false;
    memcpy(at, &none, sizeof(none));
    return true;
}

static void point(struct track *t, struct frag_device_trace *out)
{
    *out = t->out;
    out->op = t->op;
    out->id = t->id;
    out->bytes = t->bytes;
    out->stream = t->stream;
    out->pool = t->pool;
    out->time = t->time;
    out->stack = t->stack;
    out->streams = t->streams;
    out->stream_count = (uint32_t)t->stream_count;
    out->pools = t->pools;
    out->pool_count = (uint32_t)t->pool_count;
    out->marks = t->marks;
    out->mark_count = t->mark_count;
    out->added = t->recorded == FRAG_NEVER ? 0 : t->out.count - t->recorded;
}

enum frag_err track_finish(struct track *t, struct frag_trace *trace,
                           struct frag_device_trace *out)
{
    /* Columns that are empty still exist. */
    if (!grow_columns(t) ||
        frag_build_free_streams(t->op, t->id, t->stream, t->out.count,
                                t->out.slots,
                                &t->out.free_streams) != FRAG_OK ||
        !sort_streams(t) || !drop_pools(t))
        return no_memory(t);
    point(t, out);
    if (!keep(trace, &t->op) || !keep(trace, &t->id) ||
        !keep(trace, &t->bytes) || !keep(trace, &t->stream) ||
        !keep(trace, &t->pool) || !keep(trace, &t->time) ||
        !keep(trace, &t->stack) || !keep(trace, &t->streams) ||
        !keep(trace, &t->pools) || !keep(trace, &t->marks))
        return no_memory(t);
    return FRAG_OK;
}

void track_close(struct track *t)
{
    free(t->op);
    free(t->id);
    free(t->bytes);
    free(t->stream);
    free(t->pool);
    free(t->time);
    free(t->stack);
    free(t->vacant);
    free(t->live);
    free(t->streams);
    free(t->pools);
    free(t->marks);
}
