/* summary_make.c - replays a trace up to the event, with an observer of
 * PyTorch's counters or, for a policy that has none, with counters made from
 * what the replay measures. */
#include "policies/policies.h"
#include "sim/answers/summary/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/arena/arena.h"
#include "sim/validate/recorded.h"
#include "traces/printable.h"
#include "traces/steps/complete.h"

/* A run under way. */
struct watched {
    const struct summary_spec *spec;
    bool is_torch;
    struct frag_torch_observer observer;
    struct frag_torch_counters at_end;     /* before live blocks are freed */
    struct frag_torch_pool_count *by_pool; /* the same */
    /* Of a policy without PyTorch's counters. */
    bool *live;                        /* [slots]: a block was granted */
    struct frag_torch_count allocated; /* number of blocks */
    frag_size requested_total, allocated_total;
};

/* -- the watch on the replay ---------------------------------------------- */

static void on_opened(void *user, struct frag_heap *heap)
{
    struct watched *w = user;

    if (w->is_torch)
        frag_torch_observe(heap, &w->observer);
}

static void count_alloc(struct watched *w, uint64_t event,
                        const struct frag_block *block)
{
    struct frag_torch_count *c = &w->allocated;

    w->live[w->spec->device->id[event]] = true;
    w->requested_total += w->spec->device->bytes[event];
    w->allocated_total += block->size;
    c->allocated++;
    if (++c->current > c->peak)
        c->peak = c->current;
}

/* A FREE that follows a FREE_REQUESTED frees no further block. */
static void on_done(void *user, uint64_t event, const struct frag_block *block)
{
    struct watched *w = user;
    const struct frag_device_trace *d = w->spec->device;
    const bool frees =
        d->op[event] == FRAG_FREE || d->op[event] == FRAG_FREE_REQUESTED;

    if (block)
        count_alloc(w, event, block);
    if (!frees || !w->live[d->id[event]])
        return;
    w->live[d->id[event]] = false;
    w->allocated.current--;
    w->allocated.freed++;
}

static void on_ended(void *user, const struct frag_heap *heap)
{
    struct watched *w = user;

    (void)heap;
    w->at_end = w->observer.counters;
    w->observer.reserved = NULL;
}

/* -- counters of a policy that has none of its own ------------------------ */

static const struct frag_torch_count unknown = {
    SUMMARY_UNKNOWN, SUMMARY_UNKNOWN, SUMMARY_UNKNOWN, SUMMARY_UNKNOWN};

static struct frag_torch_count count_of(uint64_t current, uint64_t peak,
                                        uint64_t total)
{
    return (struct frag_torch_count){current, peak, total, total - current};
}

static void measured_counters(const struct watched *w,
                              const struct frag_run *run,
                              struct frag_torch_counters *out)
{
    const struct frag_summary *s = &run->summary;
    const struct frag_end *end = &run->end;
    const uint64_t segments = s->calls[FRAG_CALL_SEGMENT_ALLOC];
    const uint64_t returned = s->calls[FRAG_CALL_SEGMENT_FREE];
    struct frag_torch_counters c = {
        .oversize_allocations = unknown,
        .oversize_segments = unknown,
        .num_alloc_retries = s->num_alloc_retries,
        .num_ooms = s->num_ooms,
        .num_oom_rejections = SUMMARY_UNKNOWN,
        .num_sync_all_streams = SUMMARY_UNKNOWN,
        .num_device_alloc = segments + s->calls[FRAG_CALL_MAP],
        .num_device_free = returned + s->calls[FRAG_CALL_UNMAP],
    };
    const struct frag_torch_count all[FRAG_TORCH_STAT_COUNT] = {
        [FRAG_TORCH_ALLOCATION] = w->allocated,
        [FRAG_TORCH_ALLOCATED_BYTES] =
            count_of(end->allocated, s->peak_allocated, w->allocated_total),
        [FRAG_TORCH_REQUESTED_BYTES] =
            count_of(end->requested, s->peak_requested, w->requested_total),
        [FRAG_TORCH_ACTIVE] =
            count_of(end->blocks, SUMMARY_UNKNOWN, w->allocated.allocated),
        [FRAG_TORCH_ACTIVE_BYTES] =
            count_of(end->active, s->peak_active, w->allocated_total),
        [FRAG_TORCH_SEGMENT] =
            count_of(segments - returned, s->peak_segments, segments),
        [FRAG_TORCH_RESERVED_BYTES] =
            count_of(end->reserved, s->peak_reserved, end->acquired),
        [FRAG_TORCH_INACTIVE_SPLIT] = unknown,
        [FRAG_TORCH_INACTIVE_SPLIT_BYTES] = {end->inactive_split,
                                             s->peak_inactive_split,
                                             SUMMARY_UNKNOWN, SUMMARY_UNKNOWN},
    };

    for (int i = 0; i < FRAG_TORCH_STAT_COUNT; i++) {
        c.stat[i][FRAG_TORCH_ALL] = all[i];
        c.stat[i][FRAG_TORCH_LARGE] = c.stat[i][FRAG_TORCH_SMALL] = unknown;
    }
    *out = c;
}

/* -- fragmentation -------------------------------------------------------- */

static double ratio(frag_size part, frag_size whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

static struct summary_fragmentation fragmentation_of(const struct frag_run *run)
{
    const struct frag_summary *s = &run->summary;
    const struct frag_end *end = &run->end;
    const frag_size free =
        end->reserved > end->active ? end->reserved - end->active : 0;

    return (struct summary_fragmentation){
        .now = 1 - ratio(end->allocated, end->reserved),
        .external = 1 - ratio(end->largest_free, free),
        .internal = 1 - ratio(end->requested, end->allocated),
        .overhead = ratio(end->reserved, end->requested),
        .so_far = 1 - ratio(s->peak_allocated, s->peak_reserved),
        .mean = s->events ? s->fragmentation_mean : NAN,
        .overhead_so_far = ratio(s->peak_reserved, s->peak_requested),
        .gap = ratio(s->peak_reserved, s->lower_bound) - 1,
        .lower_bound = s->lower_bound,
        .free = free,
        .largest_free = end->largest_free,
        .parts = end->parts,
    };
}

/* -- notes ---------------------------------------------------------------- */

static void FRAG_PRINTF(2, 3)
    add_note(struct summary *s, const char *format, ...)
{
    va_list args;

    if (s->note_count == SUMMARY_NOTES)
        return;
    va_start(args, format);
    vsnprintf(s->notes[s->note_count++], SUMMARY_NOTE, format, args);
    va_end(args);
}

static frag_size held_at_start(const struct frag_device_trace *d)
{
    const struct frag_layout *start = &d->recorded.start;
    frag_size bytes = 0;

    for (uint64_t i = 0; i < start->segment_count; i++)
        bytes += start->segments[i].size;
    return bytes;
}

/* The memory that the recorded allocator held after the event. */
static frag_size recorded_reserved(const struct frag_device_trace *d,
                                   uint64_t event)
{
    const struct frag_recorded *r = &d->recorded;
    frag_size bytes = held_at_start(d);

    for (uint64_t i = 0; i < r->action_count; i++) {
        const struct frag_recorded_action *a = &r->actions[i];

        if (a->event > event || a->action == FRAG_OOM_REPORTED)
            continue;
        if (a->action == FRAG_SEGMENT_ALLOC || a->action == FRAG_SEGMENT_MAP)
            bytes += a->size;
        else
            bytes -= a->size;
    }
    return bytes;
}

static void note_start(struct summary *s, const struct frag_device_trace *d)
{
    if (s->is_snapshot) {
        add_note(s, "no event was recorded: only what was in use when the "
                    "snapshot was taken is known, no peak and no total");
        return;
    }
    if (!d->initial && !d->recorded.start.segment_count)
        return;
    add_note(s,
             "the recording began late: %" PRIu64 " blocks were live and %s "
             "was reserved before it; the counters start with these, and lack "
             "the peaks, totals, OOMs and retries of what came before, so "
             "PyTorch's own may be larger",
             d->initial, FRAG_SHOW_SIZE(held_at_start(d)));
    if (s->event < d->initial)
        add_note(s,
                 "event %" PRIu64 " rebuilds a block that was live before the "
                 "recording: the state is that of the first recorded event",
                 s->event);
}

static void note_death(struct summary *s, const struct frag_device_trace *d)
{
    const uint64_t died = frag_fatal_request(d);

    if (died < s->event)
        add_note(s,
                 "the job died at event %" PRIu64 ", and what it freed while "
                 "it ended is free here; --at oom is the state at the failed "
                 "request",
                 died);
}

static void note_divergence(struct summary *s,
                            const struct frag_device_trace *d)
{
    const frag_size replayed =
        s->counters.stat[FRAG_TORCH_RESERVED_BYTES][FRAG_TORCH_ALL].current;
    const frag_size recorded = recorded_reserved(d, s->event);

    if (s->is_recorded && replayed != recorded)
        add_note(s,
                 "the recorded allocator held %" PRIu64 " bytes here, the "
                 "replay holds %" PRIu64 ": the two differ (see `fragsim "
                 "validate'), so the counters are those of the replay",
                 recorded, replayed);
}

static void note_requested(struct summary *s)
{
    if (!s->has_pools && s->fragmentation.parts.pending)
        add_note(s, "requested memory leaves out blocks that the program has "
                    "freed and another stream still uses; PyTorch counts them");
}

/* -- the whole ------------------------------------------------------------ */

static enum frag_err replay(struct watched *w, struct frag_replay *r,
                            struct frag_run *run, struct frag_error *e)
{
    const struct summary_spec *spec = w->spec;
    const struct frag_replay_watch watch = {
        .user = w,
        .opened = on_opened,
        .done = w->is_torch ? NULL : on_done,
        .ended = on_ended,
    };
    enum frag_err err;

    if (!r->mem)
        return frag_no_memory(e, "the device");
    r->trace = spec->device;
    r->watch = &watch;
    r->adopt_start = !spec->params;
    r->events = spec->event + 1;
    if (!spec->params && r->events < spec->device->initial)
        r->events = spec->device->initial;
    r->progress = spec->progress;
    r->user = spec->user;
    w->live = calloc((size_t)spec->device->slots + 1, sizeof(*w->live));
    err =
        w->live ? frag_replay(r, run, e) : frag_no_memory(e, "the live blocks");
    free(w->live);
    return err;
}

static enum frag_err replay_recorded(struct watched *w, struct frag_run *run,
                                     struct frag_error *e)
{
    const struct frag_validate recorded = {
        .trace = w->spec->trace,
        .device = w->spec->device,
        .limit = frag_bound_of(w->spec->bound, FRAG_BOUND_LIMIT),
        .total = w->spec->recorded_total,
    };
    struct frag_recorded_setup setup;
    struct frag_replay r = {.policy = &frag_policy_torch};
    enum frag_err err;

    FRAG_TRY(frag_recorded_setup(&recorded, &setup, e));
    setup.arena.capacity = frag_bound_of(w->spec->bound, FRAG_BOUND_CAPACITY);
    r.params = setup.params;
    r.mem = frag_arena_open(&setup.arena);
    err = replay(w, &r, run, e);
    frag_arena_close(r.mem);
    frag_recorded_setup_free(&setup);
    return err;
}

static enum frag_err replay_policy(struct watched *w, struct frag_run *run,
                                   struct frag_error *e)
{
    const struct summary_spec *spec = w->spec;
    struct frag_replay r = {
        .prepared = spec->params,
        .check = cell_is_checked(spec->settings, spec->params->policy),
    };
    enum frag_err err;

    FRAG_TRY(cell_arena(spec->settings, spec->bound, spec->settings->total,
                        &r.mem, e));
    err = replay(w, &r, run, e);
    frag_arena_close(r.mem);
    return err;
}

static bool is_snapshot(const struct frag_device_trace *d)
{
    return d->count == d->initial && d->recorded.start.segment_count;
}

static void keep_current(struct frag_torch_count *c)
{
    c->peak = c->allocated = c->freed = SUMMARY_UNKNOWN;
}

/* Leaves what a snapshot without history shows. */
static void forget_past(struct summary *s)
{
    struct frag_torch_counters *c = &s->counters;
    struct summary_fragmentation *f = &s->fragmentation;

    for (int i = 0; i < FRAG_TORCH_STAT_COUNT; i++)
        for (int k = 0; k < FRAG_TORCH_POOLS_COUNT; k++)
            keep_current(&c->stat[i][k]);
    for (uint32_t i = 0; s->by_pool && i < s->trace_device->pool_count; i++)
        for (int k = 0; k < FRAG_TORCH_POOLS_COUNT; k++)
            keep_current(&s->by_pool[i].of[k]);
    keep_current(&c->oversize_allocations);
    keep_current(&c->oversize_segments);
    c->num_alloc_retries = c->num_ooms = c->num_oom_rejections =
        c->num_sync_all_streams = SUMMARY_UNKNOWN;
    c->num_device_alloc = c->num_device_free = SUMMARY_UNKNOWN;
    f->so_far = f->mean = f->overhead_so_far = f->gap = NAN;
    f->lower_bound = SUMMARY_UNKNOWN;
}

static void fill_summary(const struct watched *w, struct frag_run *run,
                         struct summary *out)
{
    const struct summary_spec *spec = w->spec;

    *out = (struct summary){
        .device = spec->device->device,
        .event = spec->event,
        .events = spec->device->count,
        .policy =
            spec->params ? spec->params->policy->name : frag_policy_torch.name,
        .is_recorded = !spec->params,
        .is_snapshot = is_snapshot(spec->device),
        .has_pools = w->is_torch,
        .is_pytorch = w->is_torch &&
                      (!spec->params || frag_trace_is_snapshot(spec->trace)),
        .counters = w->at_end,
        .by_pool = w->by_pool,
        .trace = spec->trace,
        .trace_device = spec->device,
        .fragmentation = fragmentation_of(run),
    };
    out->params = run->params;
    run->params = NULL;
    if (!w->is_torch)
        measured_counters(w, run, &out->counters);
    if (out->is_snapshot)
        forget_past(out);
    note_start(out, spec->device);
    note_death(out, spec->device);
    note_divergence(out, spec->device);
    note_requested(out);
}

bool summary_has_recorded(const struct frag_device_trace *d)
{
    return (d->recorded.addr && d->recorded.has_actions) || is_snapshot(d);
}

/* Whether the policy torch can repeat the recorded allocator. */
static enum frag_err check_recorded(const struct summary_spec *spec,
                                    struct frag_error *e)
{
    if (!summary_has_recorded(spec->device))
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s: expected a PyTorch snapshot, found a trace "
                         "without the answers of a recorded allocator",
                         spec->trace->path);
    return FRAG_OK;
}

void summary_close(struct summary *s)
{
    free(s->params);
    free(s->by_pool);
}

enum frag_err summary_make(const struct summary_spec *spec, struct summary *out,
                           struct frag_error *e)
{
    struct watched w = {.spec = spec};
    struct frag_run run;
    enum frag_err err;

    if (spec->event >= spec->device->count)
        return frag_fail(e, FRAG_INVALID,
                         "expected an event below %" PRIu64 ", found %" PRIu64,
                         spec->device->count, spec->event);
    if (!spec->params)
        FRAG_TRY(check_recorded(spec, e));
    w.is_torch = !spec->params || spec->params->policy == &frag_policy_torch;
    if (w.is_torch && spec->device->pool_count > 1) {
        w.by_pool = calloc(spec->device->pool_count, sizeof(*w.by_pool));
        if (!w.by_pool)
            return frag_no_memory(e, "the counters of the pools");
    }
    w.observer.reserved = w.by_pool;
    err = spec->params ? replay_policy(&w, &run, e)
                       : replay_recorded(&w, &run, e);
    if (err == FRAG_OK) {
        fill_summary(&w, &run, out);
        frag_run_free(&run);
    } else {
        free(w.by_pool);
    }
    return err;
}
