/* run.c - replays a trace up to an event, with inserted events. */
#include <stdlib.h>
#include <string.h>

#include "policies/torch/platform.h"
#include "sim/answers/explain/parts.h"
#include "sim/replay/replay.h"
#include "sim/validate/anchors.h"

/* ---- the edited trace ---- */

/* The columns of the edited trace; the caller frees them. */
struct columns {
    uint8_t *op;
    uint32_t *id;
    uint64_t *bytes;
    frag_stream *stream;
    frag_pool *pool;
};

static void columns_free(struct columns *c)
{
    free(c->op);
    free(c->id);
    free(c->bytes);
    free(c->stream);
    free(c->pool);
}

static enum frag_err columns_open(struct columns *c, uint64_t count)
{
    c->op = calloc(count + 1, sizeof(*c->op));
    c->id = calloc(count + 1, sizeof(*c->id));
    c->bytes = calloc(count + 1, sizeof(*c->bytes));
    c->stream = calloc(count + 1, sizeof(*c->stream));
    c->pool = calloc(count + 1, sizeof(*c->pool));
    return c->op && c->id && c->bytes && c->stream && c->pool ? FRAG_OK
                                                              : FRAG_NOMEM;
}

static void put_event(struct columns *c, uint64_t at, const struct attempt *a,
                      uint64_t i)
{
    const struct frag_device_trace *d = a->device;
    const uint64_t from = a->one_space ? a->event : i;

    c->op[at] = d->op[i];
    c->id[at] = d->id[i];
    c->bytes[at] = d->bytes[i];
    c->stream[at] = d->stream[from];
    c->pool[at] = d->pool[from];
}

static uint64_t fill(struct columns *c, const struct attempt *a, uint64_t count)
{
    uint64_t at = 0;
    size_t next = 0;

    for (uint64_t i = 0; i < count; i++) {
        for (; next < a->edit_count && a->edits[next].before == i; next++) {
            c->op[at] = a->edits[next].op;
            c->id[at++] = a->edits[next].slot;
        }
        put_event(c, at++, a, i);
    }
    for (; next < a->edit_count; next++) {
        c->op[at] = a->edits[next].op;
        c->id[at++] = a->edits[next].slot;
    }
    return at;
}

/* Cuts the trace after the last event and inserts the edits. A cut trace has no
 * marks, times and stacks, which no replay reads. */
static enum frag_err edit_trace(const struct attempt *a,
                                struct frag_device_trace *d, struct columns *c,
                                struct frag_error *e)
{
    const uint64_t count = a->event + !a->without_last;

    *d = *a->device;
    d->free_streams = d->free_streams && !a->one_space;
    d->mark_count = 0;
    d->time = NULL;
    d->stack = NULL;
    d->added = 0;
    d->count = count;
    if (!a->edit_count && !a->one_space)
        return FRAG_OK;
    if (columns_open(c, count + a->edit_count) != FRAG_OK)
        return frag_no_memory(e, "the edited trace");
    d->count = fill(c, a, count);
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
    struct placed *placed; /* [slots]; NULL: nobody asks */
    struct state *state;   /* NULL: nobody asks */
    bool served;
    frag_size rounded; /* of the last request that failed */
    struct frag_torch_observer observer;
};

static void on_action(void *user, enum frag_torch_action action, frag_addr addr,
                      frag_size size, frag_stream stream)
{
    struct watched *w = user;

    (void)addr;
    (void)stream;
    if (action == FRAG_TORCH_OOM)
        w->rounded = size;
}

static void on_opened(void *user, struct frag_heap *heap)
{
    struct watched *w = user;

    w->observer.action = on_action;
    w->observer.user = w;
    frag_torch_observe(heap, &w->observer);
}

static void on_done(void *user, uint64_t event, const struct frag_block *block)
{
    struct watched *w = user;
    const struct frag_device_trace *d = w->device;

    w->served = block != NULL;
    if (!w->placed)
        return;
    if (d->op[event] == FRAG_ALLOC)
        w->placed[d->id[event]] =
            (struct placed){block ? block->addr : 0, event, d->id[event]};
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
    for (uint64_t i = 0; i < d->initial; i++) {
        w->placed[d->id[i]].event = i;
        w->placed[d->id[i]].slot = d->id[i];
    }
}

/* ---- the run ---- */

static enum frag_err replay(const struct attempt *a,
                            const struct frag_device_trace *d,
                            const struct frag_arena_options *arena,
                            struct watched *w, struct frag_run *run,
                            struct frag_error *e)
{
    const struct frag_replay_watch watch = {
        .user = w,
        .opened = on_opened,
        .done = on_done,
        .ended = on_ended,
    };
    char *params = torch_settings_limited(
        a->settings, a->is_device ? FRAG_UNLIMITED : a->limit, arena->total);
    struct frag_replay spec = {
        .trace = d,
        .watch = &watch,
        .policy = &frag_policy_torch,
        .params = params,
        .mem = frag_arena_open(arena),
        .adopt_start = a->starts_there,
        .repeat = 1,
        .max_ooms = 1,
        .progress = a->progress,
        .user = a->user,
    };
    enum frag_err err = params && spec.mem ? frag_replay(&spec, run, e)
                                           : frag_no_memory(e, "the arena");

    frag_arena_close(spec.mem);
    free(params);
    return err;
}

static enum frag_err watch_run(const struct attempt *a,
                               const struct frag_device_trace *d,
                               struct watched *w, struct outcome *out,
                               struct frag_error *e)
{
    struct frag_arena_options arena = {
        .capacity = a->is_device ? a->limit : FRAG_UNLIMITED,
        .total = a->total ? a->total : FRAG_H200_TOTAL,
        .rule = a->anchored ? FRAG_RULE_ANCHORED : FRAG_RULE_DRIVER,
    };
    struct frag_run run;
    enum frag_err err = FRAG_OK;

    if (a->anchored)
        err = frag_anchors_make(&d->recorded, &arena, e);
    if (err == FRAG_OK)
        err = replay(a, d, &arena, w, &run, e);
    frag_anchors_free(&arena);
    FRAG_TRY(err);
    *out = (struct outcome){
        .served = w->served,
        .ooms = run.summary.num_ooms,
        .first_oom = run.oom_count ? run.ooms[0].event : UINT64_MAX,
        .rounded = w->rounded,
        .peak = run.summary.peak_reserved,
    };
    frag_run_free(&run);
    return FRAG_OK;
}

static enum frag_err run_watched(const struct attempt *a,
                                 const struct frag_device_trace *d,
                                 struct outcome *out, struct state *state,
                                 struct frag_error *e)
{
    struct watched w = {.device = d, .state = state};
    enum frag_err err;

    if (state) {
        w.placed = calloc((size_t)d->slots + 1, sizeof(*w.placed));
        if (!w.placed)
            return frag_no_memory(e, "the live blocks");
        if (a->starts_there)
            place_start(&w);
    }
    err = watch_run(a, d, &w, out, e);
    if (err == FRAG_OK && state && state->nomem)
        err = frag_no_memory(e, "the blocks");
    if (err == FRAG_OK && state)
        state_name(state, w.placed, d->slots);
    free(w.placed);
    return err;
}

enum frag_err attempt_run(const struct attempt *a, struct outcome *out,
                          struct state *state, struct frag_error *e)
{
    struct frag_device_trace d;
    struct columns c = {0};
    enum frag_err err = edit_trace(a, &d, &c, e);

    if (err == FRAG_OK)
        err = run_watched(a, &d, out, state, e);
    if (err != FRAG_OK && state)
        state_close(state);
    columns_free(&c);
    return err;
}
