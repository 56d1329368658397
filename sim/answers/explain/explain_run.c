/* explain_run.c - replays a trace up to an event, with inserted events. */
#include <stdlib.h>

#include "sim/answers/explain/explain_parts.h"
#include "sim/experiments/cell.h"

/* ---- the edited trace ---- */

/* The columns of the edited trace; the caller frees them. */
struct columns {
    uint8_t *op;
    uint32_t *id;
    uint64_t *bytes;
    frag_stream *stream;
    frag_pool *pool;
    uint64_t *origin; /* event of the trace; of an inserted event, the next */
    uint64_t count, request; /* events; index of attempt.event */
};

static void columns_free(struct columns *c)
{
    free(c->op);
    free(c->id);
    free(c->bytes);
    free(c->stream);
    free(c->pool);
    free(c->origin);
}

static enum frag_err columns_open(struct columns *c, uint64_t count)
{
    c->op = calloc(count + 1, sizeof(*c->op));
    c->id = calloc(count + 1, sizeof(*c->id));
    c->bytes = calloc(count + 1, sizeof(*c->bytes));
    c->stream = calloc(count + 1, sizeof(*c->stream));
    c->pool = calloc(count + 1, sizeof(*c->pool));
    c->origin = calloc(count + 1, sizeof(*c->origin));
    return c->op && c->id && c->bytes && c->stream && c->pool && c->origin
               ? FRAG_OK
               : FRAG_NOMEM;
}

static frag_size scaled(const struct attempt *a, uint64_t i)
{
    const frag_size bytes = a->device->bytes[i];

    if (!a->scales || !a->scales[i])
        return bytes;
    return (frag_size)((double)bytes * a->scale) + 1;
}

/* Appends event i of the trace, as operation `op`. */
static void put_event(struct columns *c, const struct attempt *a, uint64_t i,
                      uint8_t op, uint64_t origin)
{
    const struct frag_device_trace *d = a->device;
    const uint64_t from = a->one_space ? a->event : i;
    const uint64_t at = c->count++;

    c->origin[at] = origin;
    c->op[at] = op;
    c->id[at] = d->id[i];
    if (op == FRAG_ALLOC)
        c->bytes[at] = scaled(a, i);
    c->stream[at] = op == d->op[i] ? d->stream[from] : 0;
    c->pool[at] = a->one_pool && op == FRAG_ALLOC ? 0 : d->pool[i];
}

/* Appends the edits before event i, from a->edits[next]; returns the next. */
static size_t put_edits(struct columns *c, const struct attempt *a, size_t next,
                        uint64_t i)
{
    for (; next < a->edit_count && a->edits[next].before == i; next++) {
        const struct explain_edit *edit = &a->edits[next];

        if (edit->op == FRAG_EMPTY_CACHE) {
            c->origin[c->count] = i;
            c->op[c->count++] = FRAG_EMPTY_CACHE;
            continue;
        }
        put_event(c, a, edit->block, edit->op, i);
    }
    return next;
}

static void fill(struct columns *c, const struct attempt *a, uint64_t count)
{
    size_t next = 0;

    for (uint64_t i = 0; i < count; i++) {
        next = put_edits(c, a, next, i);
        if (i == a->event)
            c->request = c->count;
        put_event(c, a, i, a->device->op[i], i);
    }
    put_edits(c, a, next, count);
}

/* Cuts the trace after the last event and inserts the edits. An edited trace
 * has no marks, times and stacks, which no replay reads. */
static enum frag_err edit_trace(const struct attempt *a,
                                struct frag_device_trace *d, struct columns *c,
                                struct frag_error *e)
{
    const uint64_t count =
        a->whole ? a->device->count : a->event + !a->without_last;

    *d = *a->device;
    d->free_streams = d->free_streams && !a->one_space;
    d->mark_count = 0;
    d->time = NULL;
    d->stack = NULL;
    d->added = 0;
    d->count = count;
    c->request = a->event;
    if (!a->edit_count && !a->one_space && !a->one_pool && !a->scales)
        return FRAG_OK;
    if (columns_open(c, count + a->edit_count) != FRAG_OK)
        return frag_no_memory(e, "the edited trace");
    fill(c, a, count);
    d->count = c->count;
    d->op = c->op;
    d->id = c->id;
    d->bytes = c->bytes;
    d->stream = c->stream;
    d->pool = c->pool;
    return FRAG_OK;
}

/* ---- the watch ---- */

struct watched {
    const struct frag_device_trace *device;
    const struct columns *columns;
    struct placed *placed; /* [slots]; NULL: nobody asks */
    struct state *state;   /* NULL: nobody asks */
    struct outcome *out;
    struct frag_torch_observer observer;
};

static void on_action(void *user, enum frag_torch_action action, frag_addr addr,
                      frag_size size, frag_stream stream)
{
    struct watched *w = user;

    (void)addr;
    (void)stream;
    if (action == FRAG_TORCH_OOM)
        w->out->rounded = size;
}

static void on_opened(void *user, struct frag_heap *heap)
{
    struct watched *w = user;

    w->observer.action = on_action;
    w->observer.user = w;
    frag_torch_observe(heap, &w->observer);
}

static void note_failure(struct watched *w, uint64_t event)
{
    const struct columns *c = w->columns;
    struct outcome *out = w->out;
    uint64_t *first = event > c->request ? &out->later_oom : &out->first_oom;

    out->ooms += event <= c->request;
    if (*first == UINT64_MAX)
        *first = c->origin ? c->origin[event] : event;
}

static void on_done(void *user, uint64_t event, const struct frag_block *block)
{
    struct watched *w = user;
    const struct frag_device_trace *d = w->device;

    if (d->op[event] == FRAG_ALLOC && !block)
        note_failure(w, event);
    if (event == w->columns->request)
        w->out->served = block != NULL;
    if (!w->placed)
        return;
    if (d->op[event] == FRAG_ALLOC)
        w->placed[d->id[event]] =
            (struct placed){block ? block->addr : 0, event};
    else if (d->op[event] == FRAG_FREE)
        w->placed[d->id[event]].addr = 0;
}

static void on_ended(void *user, const struct frag_heap *heap)
{
    struct watched *w = user;

    if (w->state)
        state_take(w->state, heap);
}

/* Places the blocks of the recorded layout from which the replay starts. */
static void place_start(struct watched *w)
{
    const struct frag_device_trace *d = w->device;
    const struct frag_layout *start = &d->recorded.start;

    for (uint64_t i = 0; i < start->block_count; i++) {
        const struct frag_recorded_block *b = &start->blocks[i];

        if (b->slot < d->slots && b->state != FRAG_INACTIVE)
            w->placed[b->slot].addr = b->addr;
    }
    for (uint64_t i = 0; i < d->initial; i++)
        w->placed[d->id[i]].event = i;
}

/* ---- the run ---- */

static enum frag_err watch_run(const struct attempt *a, struct watched *w,
                               struct frag_error *e)
{
    const struct cell_settings settings = {.total = a->total};
    const struct frag_replay_watch watch = {
        .user = w,
        .opened = on_opened,
        .done = on_done,
        .ended = on_ended,
    };
    struct frag_replay spec = {
        .trace = w->device,
        .watch = &watch,
        .policy = &frag_policy_torch,
        .params = a->settings,
        .adopt_start = a->starts_there,
        .stop_at_oom = a->stops,
        .repeat = 1,
        .progress = a->progress,
        .user = a->user,
    };
    struct cell_memory m;
    struct frag_run run;
    enum frag_err err;

    *w->out =
        (struct outcome){.first_oom = UINT64_MAX, .later_oom = UINT64_MAX};
    FRAG_TRY(
        cell_open_arena(&settings, w->device, a->bound, a->anchored, &m, e));
    spec.mem = m.mem;
    err = frag_replay(&spec, &run, e);
    cell_close_arena(&m);
    FRAG_TRY(err);
    w->out->peak = run.summary.peak_reserved;
    w->out->requested = run.summary.peak_requested;
    frag_run_free(&run);
    return FRAG_OK;
}

static enum frag_err run_watched(const struct attempt *a, struct watched *w,
                                 struct frag_error *e)
{
    const uint32_t slots = w->device->slots;
    struct state *state = w->state;
    enum frag_err err;

    if (state) {
        w->placed = calloc((size_t)slots + 1, sizeof(*w->placed));
        if (!w->placed)
            return frag_no_memory(e, "the live blocks");
        if (a->starts_there)
            place_start(w);
    }
    err = watch_run(a, w, e);
    if (err == FRAG_OK && state && state->nomem)
        err = frag_no_memory(e, "the blocks");
    if (err == FRAG_OK && state)
        state_name(state, w->placed, slots);
    free(w->placed);
    return err;
}

enum frag_err attempt_run(const struct attempt *a, struct outcome *out,
                          struct state *state, struct frag_error *e)
{
    struct frag_device_trace d;
    struct columns c = {0};
    struct watched w = {
        .device = &d, .columns = &c, .state = state, .out = out};
    enum frag_err err = edit_trace(a, &d, &c, e);

    FRAG_THEN(err, run_watched(a, &w, e));
    if (err != FRAG_OK && state)
        state_close(state);
    columns_free(&c);
    return err;
}
