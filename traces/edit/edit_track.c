/* edit_track.c - reads the events of a device and writes those of an edited
 * one: its slots, streams, pools, stacks and marks. The columns are those of
 * the builder.
 */
#include "traces/edit/edit_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- sources ---- */

enum frag_err source_open(struct edit_source *s,
                          const struct frag_device_trace *d,
                          struct edit_track *t)
{
    struct making *m = t->making;
    const uint32_t stacks = m->trace->stack_count;

    *s = (struct edit_source){.device = d};
    FRAG_TRY(blocks_open(d, d->count, &s->blocks, m->error));
    s->slot = malloc(((size_t)s->blocks.count + 1) * sizeof(*s->slot));
    s->stacks = malloc(((size_t)stacks + 1) * sizeof(*s->stacks));
    s->pools = calloc((size_t)d->pool_count + 1, sizeof(*s->pools));
    if (!s->slot || !s->stacks || !s->pools)
        return FRAG_NOMEM;
    for (uint32_t i = 0; i < stacks; i++)
        s->stacks[i] = UINT32_MAX;
    source_rewind(s);
    for (uint32_t i = 0; i < d->pool_count; i++)
        FRAG_TRY(
            build_pool(m->build, t->d, d->pools[i], &s->pools[i], m->error));
    return FRAG_OK;
}

void source_rewind(struct edit_source *s)
{
    for (uint64_t k = 0; k < s->blocks.count; k++)
        s->slot[k] = UINT32_MAX;
    s->mark = s->change = 0;
}

void source_close(struct edit_source *s)
{
    blocks_close(&s->blocks);
    free(s->slot);
    free(s->stacks);
    free(s->pools);
    *s = (struct edit_source){0};
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
static uint32_t stack_of(struct edit_track *t, struct edit_source *s,
                         uint32_t stack)
{
    struct frag_build *b = t->making->build;
    struct frag_frame *frames;
    uint64_t first;
    size_t count;

    if (stack >= t->making->trace->stack_count)
        return 0;
    if (s->stacks[stack] != UINT32_MAX)
        return s->stacks[stack];
    first = t->making->trace->stack_first[stack];
    count = (size_t)(t->making->trace->stack_first[stack + 1] - first);
    frames = malloc((count + 1) * sizeof(*frames));
    if (frames && copy_frames(b, t->making->trace, first, count, frames))
        s->stacks[stack] = frag_build_stack(b, frames, count);
    free(frames);
    return s->stacks[stack];
}

/* ---- events ---- */

static enum frag_err stream_of(const struct edit_track *t, uint64_t handle,
                               uint32_t most, frag_stream *out)
{
    uint32_t index;

    FRAG_TRY(
        build_stream(t->making->build, t->d, handle, &index, t->making->error));
    if (index > most)
        return edit_fail(t->making,
                         "a device on which blocks are freed on other streams "
                         "has at most %" PRIu32 " streams",
                         most + 1);
    *out = (frag_stream)index;
    return FRAG_OK;
}

/* 1 + the row of the stream on which event i, a FREE, was freed; 0 if that is
 * the stream of its block. */
static enum frag_err freed_on(const struct edit_track *t,
                              const struct edit_source *s, uint64_t i,
                              frag_stream *out)
{
    const struct frag_device_trace *d = s->device;
    const frag_stream own = d->stream[s->blocks.lives[s->blocks.of[i]].alloc];

    if (!d->free_streams || !d->stream[i] || d->stream[i] == own + 1)
        return FRAG_OK;
    FRAG_TRY(stream_of(t, s->device->streams[d->stream[i] - 1], UINT16_MAX - 1,
                       out));
    t->d->free_streams = true;
    ++*out;
    return FRAG_OK;
}

static enum frag_err fill_stream(const struct edit_track *t,
                                 const struct edit_source *s, uint64_t i,
                                 frag_stream *out)
{
    const struct frag_device_trace *d = s->device;

    if (d->op[i] == FRAG_FREE)
        return freed_on(t, s, i, out);
    if (d->op[i] != FRAG_ALLOC && d->op[i] != FRAG_RECORD_STREAM)
        return FRAG_OK;
    return stream_of(t, s->device->streams[d->stream[i]], UINT16_MAX, out);
}

/* Finds the slot of the event's block in the output. */
static enum frag_err slot_of(struct edit_track *t, struct edit_source *s,
                             uint64_t i, uint32_t *slot)
{
    const uint32_t block = s->blocks.of[i];

    *slot = 0;
    if (block == UINT32_MAX)
        return FRAG_OK;
    if (s->device->op[i] == FRAG_ALLOC)
        FRAG_TRY(build_acquire_slot(t->d, &s->slot[block]));
    *slot = s->slot[block];
    if (*slot == UINT32_MAX || s->device->op[i] != FRAG_FREE)
        return FRAG_OK;
    s->slot[block] = UINT32_MAX;
    build_return_slot(t->d, *slot);
    return FRAG_OK;
}

/* Only allocs before all other events are initial ones. `recorded` is where the
 * events begin that completed the trace. */
static void note_place(struct edit_track *t, const struct edit_source *s,
                       uint64_t i)
{
    const struct frag_device_trace *d = s->device;

    if (i < d->initial && t->d->initial == track_count(t))
        t->d->initial++;
    if (d->added && i >= d->count - d->added && t->recorded == FRAG_NEVER)
        t->recorded = track_count(t);
}

enum frag_err track_put(struct edit_track *t, struct edit_source *s, uint64_t i)
{
    const struct frag_device_trace *d = s->device;
    struct event ev = {.op = d->op[i], .bytes = d->bytes[i]};

    FRAG_TRY(slot_of(t, s, i, &ev.id));
    if (ev.id == UINT32_MAX)
        return FRAG_OK;
    note_place(t, s, i);
    FRAG_TRY(fill_stream(t, s, i, &ev.stream));
    if (d->op[i] == FRAG_ALLOC || d->op[i] == FRAG_EMPTY_CACHE)
        ev.pool = (frag_pool)s->pools[d->pool[i]];
    if (d->op[i] == FRAG_EMPTY_CACHE)
        ev.id = d->id[i];
    if (t->has_time && d->time)
        ev.time = d->time[i] + s->shift;
    if (t->has_stack && d->stack)
        ev.stack = stack_of(t, s, d->stack[i]);
    return ev.stack == UINT32_MAX ? FRAG_NOMEM : build_push(t->d, &ev);
}

void track_move_time(struct edit_track *t)
{
    const uint64_t n = track_count(t);

    if (t->has_time && n > 1)
        t->d->events.time[n - 1] = t->d->events.time[n - 2];
}

enum frag_err track_add(struct edit_track *t, enum frag_op op, uint32_t slot)
{
    FRAG_TRY(
        build_push(t->d, &(const struct event){.op = (uint8_t)op, .id = slot}));
    track_move_time(t);
    if (op == FRAG_FREE)
        build_return_slot(t->d, slot);
    return FRAG_OK;
}

enum frag_err track_free_all(struct edit_track *t)
{
    const uint32_t slots = t->d->slots;
    bool *vacant = calloc((size_t)slots + 1, sizeof(*vacant));
    enum frag_err err = vacant ? FRAG_OK : FRAG_NOMEM;

    for (uint64_t i = 0; vacant && i < t->d->vacant_count; i++)
        vacant[t->d->vacant[i]] = true;
    for (uint32_t slot = 0; err == FRAG_OK && slot < slots; slot++)
        if (!vacant[slot])
            err = track_add(t, FRAG_FREE, slot);
    free(vacant);
    return err;
}

enum frag_err track_change(struct edit_track *t, struct edit_source *s,
                           const struct frag_setting_change *change,
                           const char *text)
{
    struct frag_setting_change x = *change;
    struct device_build *d = t->d;

    x.event = d->events.count;
    if (text)
        x.text = frag_build_string(t->making->build, text, strlen(text));
    x.stack = stack_of(t, s, x.stack);
    if (x.text == UINT32_MAX || x.stack == UINT32_MAX ||
        !GROW(d->changes, d->change_room, d->change_count + 1))
        return FRAG_NOMEM;
    d->changes[d->change_count++] = x;
    return FRAG_OK;
}

enum frag_err track_marks(struct edit_track *t, struct edit_source *s,
                          uint64_t i)
{
    const struct frag_device_trace *from = s->device;
    struct device_build *d = t->d;

    for (; s->mark < from->mark_count && from->marks[s->mark].event <= i;
         s->mark++) {
        struct frag_mark m = from->marks[s->mark];

        m.event = d->events.count;
        m.time += s->shift;
        m.name = text_of(t->making->build, t->making->trace, m.name);
        if (m.name == UINT32_MAX ||
            !GROW(d->marks, d->mark_room, d->mark_count + 1))
            return FRAG_NOMEM;
        d->marks[d->mark_count++] = m;
    }
    for (;
         s->change < from->change_count && from->changes[s->change].event <= i;
         s->change++) {
        struct frag_setting_change x = from->changes[s->change];

        x.time += x.time ? s->shift : 0;
        if (s->change + 1 != s->left_out)
            FRAG_TRY(track_change(t, s, &x, change_given(from, &x)));
    }
    return FRAG_OK;
}

enum frag_err track_all(struct edit_track *t, struct edit_source *s)
{
    for (uint64_t i = 0; i < s->device->count; i++) {
        FRAG_TRY(track_marks(t, s, i));
        FRAG_TRY(track_put(t, s, i));
    }
    return track_marks(t, s, s->device->count);
}

/* ---- the end ---- */

/* The streams and pools of the start layout that is kept. NOMEM. */
static enum frag_err use_start(struct edit_track *t,
                               const struct edit_source *s, uint8_t *is_used)
{
    const struct frag_layout *l = &s->device->recorded.start;
    frag_stream row;

    for (uint64_t i = 0; i < l->segment_count; i++) {
        is_used[s->pools[l->segments[i].pool]] = true;
        FRAG_TRY(stream_of(t, s->device->streams[l->segments[i].stream],
                           UINT16_MAX, &row));
    }
    return FRAG_OK;
}

/* The default pool stays. */
enum frag_err track_finish(struct edit_track *t,
                           const struct edit_source *keeps)
{
    struct device_build *d = t->d;
    uint8_t *is_used = calloc((size_t)d->pool_count + 1, 1);
    frag_pool *row = calloc((size_t)d->pool_count + 1, sizeof(*row));
    uint64_t count = 0;
    enum frag_err err = is_used && row ? FRAG_OK : FRAG_NOMEM;
    bool fine;

    if (err == FRAG_OK && keeps)
        err = use_start(t, keeps, is_used);
    fine = err == FRAG_OK;
    for (uint64_t i = 0; fine && i < d->events.count; i++)
        is_used[d->events.pool[i]] = true;
    for (uint64_t k = 0; fine && k < d->pool_count; k++)
        if (!k || is_used[k]) {
            row[k] = (frag_pool)count;
            d->pools[count++] = d->pools[k];
        }
    for (uint64_t i = 0; fine && i < d->events.count; i++)
        d->events.pool[i] = row[d->events.pool[i]];
    if (fine)
        d->pool_count = count;
    free(is_used);
    free(row);
    return err;
}
