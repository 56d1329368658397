/* replay.c - the replay loop over the events of a trace.
 *
 * The time of the loop is part of every policy's ns_per_event, so the loop does
 * little: it calls the policy, adds to the tally, and checks whether the policy
 * called the device. Everything else is in rare_events.c. */
#include "sim/replay/replay.h"

#include <stdlib.h>

#include "sim/replay/place.h"
#include "sim/replay/replay_parts.h"

enum {
    NEAR_SLOTS = 1 << 14, /* this many slots stay in the second-level cache; if
                             there are more, they are prefetched */
    AHEAD = 12, /* how many events ahead: enough to cover a cache miss, and few
                   enough that the slots stay in the first-level cache */
};

#define RARE(x) __builtin_expect((x), 0)

/* Counts an event that has ended, and returns its error. */
static inline enum frag_err ended(struct run *r, enum frag_err err)
{
    tally_event(&r->tally);
    return err;
}

static inline enum frag_err on_alloc(struct run *r,
                                     const struct frag_device_trace *t,
                                     uint64_t i, bool careful)
{
    const uint32_t id = t->id[i];
    const struct frag_request req = {
        .size = t->bytes[i],
        .frees_at = r->frees_at ? r->frees_at[i] : FRAG_NEVER,
        .owner = id,
        .stream = t->stream[i],
        .pool = t->pool[i],
    };
    enum frag_err err;
    bool changed;

    if (RARE(req.stream != 0))
        run_announce_stream(r, req.stream);
    err = r->policy->alloc(&r->heap, &req, &r->slots[id].block);
    changed = r->meter.changes != r->seen;
    if (RARE(changed))
        run_absorb(r, true);
    if (RARE(err != FRAG_OK))
        return ended(r, run_refused(r, &req, err));
    if (careful)
        FRAG_TRY(run_prove_alloc(r, id, req.size));
    run_enter(r, id, &req);
    if (RARE(changed))
        run_peak(r, req.stream, req.pool);
    return ended(r, FRAG_OK);
}

static inline enum frag_err on_free(struct run *r,
                                    const struct frag_device_trace *t,
                                    uint64_t i, bool careful)
{
    const uint32_t id = t->id[i];
    struct run_slot *s = &r->slots[id];

    if (RARE(r->follows_frees && t->stream[i]))
        FRAG_TRY(run_freed_on(r, id, (frag_stream)(t->stream[i] - 1)));
    if (RARE(state_of(r->tags[id]) != SLOT_LIVE))
        return ended(r, run_free_odd(r, id));
    if (careful)
        FRAG_TRY(run_prove_free(r, id));
    run_drop(r, id);
    run_release(r, id);
    r->tags[id] = tag_of(SLOT_FREE, METER_NOWHERE);
    r->policy->free(&r->heap, &s->block);
    if (RARE(r->meter.changes != r->seen)) {
        run_absorb(r, false);
        run_peak(r, 0, 0);
    }
    return ended(r, FRAG_OK);
}

/* Runs event i of the trace t, which is r->trace or a copy of it. */
static inline enum frag_err
step(struct run *r, const struct frag_device_trace *t, uint64_t i, bool careful)
{
    const uint8_t op = t->op[i];

    r->event = r->base + i;
    if (op == FRAG_ALLOC)
        return on_alloc(r, t, i, careful);
    if (op == FRAG_FREE)
        return on_free(r, t, i, careful);
    return ended(r, run_rare(r, i));
}

/* Prefetches the slot of event i, or of the last event if there is no event
 * i. */
static inline void prefetch(const struct run *r, uint64_t i)
{
    const struct frag_device_trace *t = r->trace;
    const uint32_t id = t->id[i < t->count ? i : t->count - 1];

    __builtin_prefetch(&r->slots[id], 1);
    __builtin_prefetch(&r->tags[id], 1);
}

/* A local copy of the trace spares each event the load of r->trace, which the
 * compiler must repeat after each call. */
static enum frag_err run_fast(struct run *r, uint64_t from, uint64_t to)
{
    const struct frag_device_trace t = *r->trace;
    const bool is_far = t.slots > NEAR_SLOTS;

    for (uint64_t i = from; i < to; i++) {
        enum frag_err err;

        if (RARE(is_far))
            prefetch(r, i + AHEAD);
        err = step(r, &t, i, false);
        if (RARE(err != FRAG_OK || r->stop))
            return err;
    }
    return FRAG_OK;
}

/* The block of event i if the event is an ALLOC that was served, else NULL. */
static const struct frag_block *answer(const struct run *r, uint64_t i)
{
    uint32_t id = r->trace->id[i];

    return r->trace->op[i] == FRAG_ALLOC && state_of(r->tags[id]) == SLOT_LIVE
               ? &r->slots[id].block
               : NULL;
}

static enum frag_err run_carefully(struct run *r, uint64_t from, uint64_t to)
{
    const struct frag_replay_watch *watch = r->spec->watch;

    for (uint64_t i = from; i < to; i++) {
        FRAG_TRY(step(r, r->trace, i, true));
        if (r->ledger && frag_ledger_fault(r->ledger))
            return run_fault(r);
        if (watch && watch->done)
            watch->done(watch->user, r->event, answer(r, i));
        if (r->stop)
            break;
    }
    return FRAG_OK;
}

/* Runs the events [from, to) of the trace and adds their time to r->loop. */
static enum frag_err run_events(struct run *r, uint64_t from, uint64_t to)
{
    const bool careful = r->ledger || r->spec->watch;
    uint64_t before = run_clock();
    enum frag_err err =
        careful ? run_carefully(r, from, to) : run_fast(r, from, to);

    r->loop += run_clock() - before;
    tally_fold(&r->tally, err == FRAG_OK ? r->event + 1 : r->event);
    return err;
}

enum frag_err run_next(struct run *r)
{
    enum frag_err err = step(r, r->trace, 0, false);

    if (err == FRAG_OK)
        r->base++;
    if (r->base - r->tally.from >= TALLY_WINDOW)
        tally_fold(&r->tally, r->base);
    return err;
}

/* ------------------------------------------------------ the whole run --- */

/* The progress of a run, in events of all repetitions. */
struct run_progress {
    uint64_t done, total;
    uint64_t bucket; /* events in a bucket of the series; 0: no series */
};

static frag_time time_at(const struct run *r, uint64_t i)
{
    return r->trace->time ? r->trace->time[i] : 0;
}

static void begin_point(struct run *r, const struct run_progress *c, uint64_t i)
{
    if (c->bucket && !r->tally.point)
        tally_point(&r->tally, &r->out.points[r->out.point_count], c->done,
                    time_at(r, i));
}

static void end_point(struct run *r, const struct run_progress *c)
{
    if (!r->tally.point ||
        (c->done % c->bucket && c->done < c->total && !r->stop))
        return;
    if (run_picture(r, 0, 0, NULL) == FRAG_OK)
        tally_point_end(&r->tally, r->picture.largest);
    r->out.point_count++;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Tells the policy of the changes of settings directly before event i. */
static enum frag_err change_settings(struct run *r, uint64_t i)
{
    const struct frag_device_trace *t = r->trace;

    for (; r->policy->set && r->change < t->change_count &&
           t->changes[r->change].event <= i;
         r->change++) {
        const struct frag_setting_change *x = &t->changes[r->change];
        const struct frag_setting setting = {
            .text =
                x->kind == FRAG_CHANGE_SETTINGS ? t->strings[x->text] : NULL,
            .limit = x->limit};
        const enum frag_err err = r->policy->set(&r->heap, &setting);

        if (err != FRAG_OK && err != FRAG_INVALID)
            return frag_fail(r->error, err, "%s: a change of settings: %s",
                             r->policy->name, frag_err_text(err));
    }
    return FRAG_OK;
}

/* Number of events from i on to run before the next change of settings, window,
 * bucket or call of progress. */
static uint64_t events_to_next(const struct run *r,
                               const struct run_progress *c, uint64_t i)
{
    const struct frag_device_trace *t = r->trace;
    uint64_t events = least(run_count(r) - i, TALLY_WINDOW);

    if (r->policy->set && r->change < t->change_count)
        events = least(events, t->changes[r->change].event - i);
    return c->bucket ? least(events, c->bucket - c->done % c->bucket) : events;
}

static enum frag_err report_progress(struct run *r,
                                     const struct run_progress *c)
{
    if (!r->spec->progress || (!run_is_due(r) && c->done < c->total))
        return FRAG_OK;
    return r->spec->progress(r->spec->user, c->done, c->total)
               ? frag_fail(r->error, FRAG_CANCELLED, "%s: cancelled",
                           r->policy->name)
               : FRAG_OK;
}

static enum frag_err pass(struct run *r, struct run_progress *c, uint64_t from)
{
    const uint64_t count = run_count(r);

    for (uint64_t i = from; i < count && !r->stop;) {
        enum frag_err err = change_settings(r, i);
        const uint64_t events = events_to_next(r, c, i);

        FRAG_TRY(err);
        begin_point(r, c, i);
        err = run_events(r, i, i + events);
        c->done = r->event + 1;
        if (err != FRAG_OK)
            return err;
        frag_trace_passed(r->trace, i, i + events);
        end_point(r, c);
        FRAG_TRY(report_progress(r, c));
        i += events;
    }
    return FRAG_OK;
}

static enum frag_err open_series(struct run *r, struct run_progress *c)
{
    uint64_t count;

    if (!r->spec->points || !c->total)
        return FRAG_OK;
    c->bucket = (c->total + r->spec->points - 1) / r->spec->points;
    count = (c->total + c->bucket - 1) / c->bucket;
    r->out.points = calloc(count, sizeof(*r->out.points));
    return r->out.points ? FRAG_OK
                         : frag_no_memory(r->error, "%llu points",
                                          (unsigned long long)count);
}

/* Ends a run that began with event `from` and ended before event `done`; done
 * is 0 if no event was run. The last picture is seen by the last event's
 * request. */
static enum frag_err finish(struct run *r, uint64_t done, uint64_t from)
{
    const struct frag_device_trace *t = r->trace;
    const uint64_t last = done ? (done - 1) % run_count(r) : 0;
    const bool asks = done && t->op[last] == FRAG_ALLOC;

    r->event = done ? done : from;
    FRAG_TRY(run_prove_end(r));
    return run_end(r, r->event - from, asks ? t->stream[last] : 0,
                   asks ? t->pool[last] : 0);
}

/* Between two repetitions. */
static enum frag_err begin_again(struct run *r)
{
    FRAG_TRY(run_drain(r));
    if (r->change)
        FRAG_TRY(r->policy->set(&r->heap, NULL));
    r->change = 0;
    return FRAG_OK;
}

static enum frag_err run_all(struct run *r)
{
    const uint64_t repeat = r->spec->repeat ? r->spec->repeat : 1;
    struct run_progress c = {.total = run_total(r)};
    uint64_t from = 0;

    FRAG_TRY(open_series(r, &c));
    r->out.summary.start =
        r->trace->initial ? FRAG_START_LIVE_BLOCKS : FRAG_START_EMPTY;
    if (r->spec->adopt_start && r->policy->adopt &&
        r->trace->recorded.start.segment_count) {
        FRAG_TRY(run_adopt(r));
        from = c.done = r->trace->initial;
        r->out.summary.start = FRAG_START_ADOPTED;
    }
    for (uint64_t k = 0; k < repeat && !r->stop; k++) {
        r->base = k * run_count(r);
        if (k > 0)
            FRAG_TRY(begin_again(r));
        FRAG_TRY(pass(r, &c, k > 0 ? 0 : from));
    }
    if (r->spec->watch && r->spec->watch->ended)
        r->spec->watch->ended(r->spec->watch->user, &r->heap);
    return finish(r, c.done, from);
}

enum frag_err frag_replay(const struct frag_replay *spec, struct frag_run *out,
                          struct frag_error *e)
{
    const struct frag_policy *policy = frag_replay_policy(spec);
    struct place *place =
        place_of_run(policy, sizeof(struct run), offsetof(struct run, event));
    struct run own, *r = place ? place_memory(place) : &own;
    enum frag_err err;

    *r = (struct run){.spec = spec,
                      .trace = spec->trace,
                      .policy = policy,
                      .error = e,
                      .follows_frees = spec->trace->free_streams &&
                                       policy->needs & FRAG_HEARS_FREES,
                      .foresees = policy->needs & FRAG_NEEDS_FUTURE};
    place_part(place, "in init");
    err = run_open(r);
    if (err == FRAG_OK) {
        place_part(place, NULL);
        err = run_all(r);
        place_part(place, "in fini");
        err = run_close(r, err);
        if (err == FRAG_OK)
            *out = r->out;
        else
            frag_run_free(&r->out);
    }
    place_leave(place);
    return err;
}

void frag_run_free(struct frag_run *run)
{
    free(run->ooms);
    free(run->points);
    free(run->segments);
    free(run->params);
    *run = (struct frag_run){0};
}
