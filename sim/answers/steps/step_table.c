/* step_table.c - cuts a trace into parts and measures them in one replay. A
 * meter under the replay counts what the policy asks of the device. */
#include "sim/answers/steps/step_table.h"

#include <math.h>
#include <stdlib.h>

#include "sim/experiments/start.h"
#include "sim/meter/meter.h"
#include "sim/replay/replay.h"
#include "traces/steps/complete.h"

const char *const step_part_names[] = {"before", "step", "after"};

/* ---- the parts ---- */

static void add_part(struct step_table *t, enum step_part_kind kind,
                     uint64_t from, uint64_t to)
{
    if (from < to)
        t->items[t->count++] = (struct step_part){
            .kind = kind,
            .from = from,
            .to = to,
            .seconds = NAN,
        };
}

static enum frag_err cut(const struct frag_device_trace *d,
                         struct step_table *t, struct frag_error *e)
{
    const struct frag_steps *s = &t->steps;
    const uint64_t first = s->count ? s->items[0].from : d->count;
    const uint64_t last = s->count ? s->items[s->count - 1].to : d->count;

    t->items = calloc((size_t)s->count + 2, sizeof(*t->items));
    if (!t->items)
        return frag_no_memory(e, "the steps");
    add_part(t, STEP_BEFORE, 0, first);
    for (uint64_t i = 0; i < s->count; i++) {
        add_part(t, STEP_COMPLETE, s->items[i].from, s->items[i].to);
        t->items[t->count - 1].step = i + 1;
    }
    add_part(t, STEP_AFTER, last, d->count);
    return FRAG_OK;
}

static void time_parts(const struct frag_device_trace *d, struct step_table *t)
{
    for (uint64_t i = 0; d->time && i < t->count; i++) {
        struct step_part *p = &t->items[i];
        const uint64_t end = p->to < d->count ? p->to : d->count - 1;
        const uint64_t first = d->initial < end ? d->initial : end;
        const uint64_t from = p->from < first ? first : p->from;

        p->seconds = (double)(d->time[end] - d->time[from]) * 1e-9;
    }
}

/* ---- the replay ---- */

/* A block of the run, by its slot. */
struct held {
    frag_size requested, allocated; /* 0 if it is not live */
};

struct watcher {
    const struct frag_device_trace *d;
    struct step_table *table;
    struct meter meter;
    struct held *held;
    uint64_t part;
    uint64_t calls; /* before this part */
    bool adopts;    /* the run starts from the recorded layout, which has not
                       been entered yet */
    frag_size requested, allocated;
};

static void begin_part(struct watcher *w, struct step_part *p)
{
    p->live = p->peak_requested = w->requested;
    p->peak_allocated = w->allocated;
    p->peak_reserved = w->meter.reserved_peak = w->meter.reserved;
    w->calls = frag_calls_sum(w->meter.calls);
}

static void end_part(struct watcher *w, struct step_part *p)
{
    p->driver_calls = frag_calls_sum(w->meter.calls) - w->calls;
    p->fragmentation = p->peak_reserved ? 1 - (double)p->peak_allocated /
                                                  (double)p->peak_reserved
                                        : 0;
    w->part++;
}

static void serve(struct watcher *w, uint64_t i, const struct frag_block *block)
{
    struct held *h = &w->held[w->d->id[i]];

    if (w->d->op[i] == FRAG_ALLOC && block)
        *h = (struct held){w->d->bytes[i], block->size};
    w->requested += w->d->op[i] == FRAG_ALLOC ? h->requested : 0;
    w->allocated += w->d->op[i] == FRAG_ALLOC ? h->allocated : 0;
    if (w->d->op[i] != FRAG_FREE && w->d->op[i] != FRAG_FREE_REQUESTED)
        return;
    w->requested -= h->requested;
    w->allocated -= h->allocated;
    *h = (struct held){0};
}

/* Ends the part, and begins the next one if there is one. */
static void next_part(struct watcher *w)
{
    end_part(w, &w->table->items[w->part]);
    if (w->part < w->table->count)
        begin_part(w, &w->table->items[w->part]);
}

/* Enters the blocks of the recorded layout, before the first event that runs.
 * A block that is pending there is freed already. */
static void enter_layout(void *user, struct frag_heap *heap)
{
    struct watcher *w = user;
    const struct frag_layout *l = &w->d->recorded.start;

    (void)heap;
    for (uint64_t i = 0; w->adopts && i < l->block_count; i++)
        if (l->blocks[i].state == FRAG_ACTIVE_ALLOCATED &&
            l->blocks[i].slot < w->d->slots)
            w->held[l->blocks[i].slot].allocated = l->blocks[i].size;
    for (uint64_t i = 0; w->adopts && i < w->d->initial; i++) {
        struct held *h = &w->held[w->d->id[i]];

        h->requested = h->allocated ? w->d->bytes[i] : 0;
        w->requested += h->requested;
        w->allocated += h->allocated;
    }
}

/* Counts what the run holds from its start on, in the parts of the events that
 * it skips. */
static void count_layout(struct watcher *w, uint64_t event)
{
    struct step_part *p = w->table->items;

    w->adopts = false;
    meter_settle(&w->meter);
    frag_raise(&p->peak_requested, w->requested);
    frag_raise(&p->peak_allocated, w->allocated);
    frag_raise(&p->peak_reserved, w->meter.reserved);
    while (event >= w->table->items[w->part].to)
        next_part(w);
}

/* The meter holds what the calls of this event did. The first event of a part
 * begins from what the last part left. */
static void watch(void *user, uint64_t i, const struct frag_block *block)
{
    struct watcher *w = user;
    const bool is_alloc = w->d->op[i] == FRAG_ALLOC;
    struct step_part *p;

    if (w->adopts)
        count_layout(w, i);
    p = &w->table->items[w->part];
    serve(w, i, block);
    p->retries += meter_settle(&w->meter) && is_alloc;
    p->ooms += is_alloc && !block;
    frag_raise(&p->peak_requested, w->requested);
    frag_raise(&p->peak_allocated, w->allocated);
    frag_raise(&p->peak_reserved, w->meter.reserved_peak);
    if (i + 1 >= p->to)
        next_part(w);
}

static enum frag_err replay(const struct step_spec *spec, struct watcher *w,
                            struct frag_error *e)
{
    const struct frag_replay_watch watching = {
        .user = w, .opened = enter_layout, .done = watch};
    struct frag_run run;

    FRAG_TRY(frag_replay(
        &(const struct frag_replay){
            .trace = spec->device,
            .watch = &watching,
            .prepared = spec->policy,
            .mem = &w->meter.base,
            .check = cell_is_checked(spec->settings, spec->policy->policy),
            .adopt_start = w->adopts,
            .repeat = 1,
            .progress = spec->progress,
            .user = spec->user,
        },
        &run, e));
    w->table->summary = run.summary;
    frag_run_free(&run);
    return FRAG_OK;
}

static enum frag_err measure(const struct step_spec *spec, bool adopts,
                             struct step_table *t, struct frag_error *e)
{
    struct watcher w = {.d = spec->device, .table = t, .adopts = adopts};
    struct cell_memory memory;
    enum frag_err err;

    FRAG_TRY(cell_open_arena(spec->settings, spec->device, spec->bound,
                             spec->repeats, &memory, e));
    w.held = calloc((size_t)spec->device->slots + 1, sizeof(*w.held));
    err = w.held ? meter_open(&w.meter, memory.mem, NULL) : FRAG_NOMEM;
    if (err == FRAG_OK) {
        err = replay(spec, &w, e);
        meter_close(&w.meter);
    } else {
        err = frag_no_memory(e, "the meter");
    }
    free(w.held);
    cell_close_arena(&memory);
    return err;
}

enum frag_err step_table_make(const struct step_spec *spec,
                              struct step_table *out, struct frag_error *e)
{
    const struct frag_device_trace *d = spec->device;
    const uint64_t died = frag_fatal_request(d);
    const bool adopts = start_is_adoptable(d, spec->policy->policy,
                                           spec->policy->text, spec->bound);
    struct step_table t = {.bound = spec->bound};
    enum frag_err err;

    FRAG_TRY(frag_steps_find(spec->trace, d, died < d->count ? died : d->count,
                             spec->mark, &t.steps, e));
    err = cut(d, &t, e);
    FRAG_THEN(err, measure(spec, adopts, &t, e));
    if (adopts && err == FRAG_UNSUPPORTED)
        err = measure(spec, false, &t, e);
    time_parts(d, &t);
    if (err == FRAG_OK)
        *out = t;
    else
        step_table_close(&t);
    return err;
}

void step_table_close(struct step_table *t)
{
    frag_steps_close(&t->steps);
    free(t->items);
    *t = (struct step_table){0};
}
