/* validate.c - runs a validation: replays the recorded trace under a watch, and
 * summarizes the comparison. */
#include "sim/validate/validate.h"

#include <inttypes.h>
#include <stdlib.h>

#include "policies/policies.h"
#include "sim/replay/replay.h"
#include "sim/validate/recorded.h"
#include "sim/validate/validate_parts.h"

const char *const frag_verdict_words[FRAG_VERDICT_COUNT] = {
#define X(name, word) [FRAG_VERDICT_##name] = (word),
    FRAG_VERDICTS(X)
#undef X
};

static bool is_host(const struct frag_device_trace *d)
{
    return d->device == FRAG_HOST_DEVICE;
}

static void on_opened(void *user, struct frag_heap *heap)
{
    struct checked_run *c = user;

    if (is_host(c->spec->device))
        frag_torch_host_observe(heap, &c->observer);
    else
        frag_torch_observe(heap, &c->observer);
}

/* The event to which the first action of the replay belongs: a replay that
 * adopts the start layout skips the events that rebuild it. */
static uint64_t first_event(const struct frag_device_trace *d)
{
    return d->recorded.start.segment_count ? d->initial : 0;
}

static void count_recorded(struct checked_run *c)
{
    struct frag_validation *v = c->v;
    uint64_t counts[FRAG_ACTION_COUNT] = {0};

    for (uint64_t i = 0; i < c->recorded->action_count; i++)
        counts[c->recorded->actions[i].action]++;
    v->ooms_recorded = counts[FRAG_OOM_REPORTED];
    v->segment_events = c->recorded->action_count - v->ooms_recorded;
    v->evidence = counts[FRAG_SEGMENT_ALLOC] + counts[FRAG_SEGMENT_MAP] +
                  v->ooms_recorded;
}

static const char *settings_of(const struct frag_validate *spec)
{
    return spec->settings ? spec->settings : spec->trace->settings;
}

/* Sets the limit of the replay, and *spec to what the recorded process had. */
static void choose_limit(struct frag_validate *spec, struct frag_validation *v)
{
    struct frag_recorded_limit l =
        frag_recorded_limit(spec->device, settings_of(spec));

    v->peak_reserved_recorded = l.least;
    if (spec->limit && !is_host(spec->device) &&
        (spec->limit != FRAG_UNLIMITED || l.source != FRAG_LIMIT_DEVICE)) {
        l.source = FRAG_LIMIT_GIVEN;
        l.limit = spec->limit;
    }
    v->limit = l;
    spec->limit = l.source == FRAG_LIMIT_DEVICE ? FRAG_UNLIMITED : l.limit;
}

static enum frag_err run(struct checked_run *c,
                         const struct frag_recorded_setup *setup,
                         struct frag_error *e)
{
    const struct frag_replay_watch watch = {
        .user = c,
        .opened = on_opened,
        .done = check_event,
        .ended = check_ended,
    };
    struct frag_replay spec = {
        .trace = c->spec->device,
        .watch = &watch,
        .policy = is_host(c->spec->device) ? &frag_policy_torch_host
                                           : &frag_policy_torch,
        .params = setup->params,
        .mem = frag_arena_open(&setup->arena),
        .adopt_start = true,
        .repeat = 1,
    };
    struct frag_run result;
    enum frag_err err;

    if (!spec.mem)
        return frag_no_memory(e, "the device");
    err = frag_replay(&spec, &result, e);
    if (err == FRAG_OK)
        frag_run_free(&result);
    frag_arena_close(spec.mem);
    return err;
}

static enum frag_verdict judge(const struct frag_validation *v, bool is_late)
{
    if (!v->evidence || (v->first.found && is_late && v->ends_early))
        return FRAG_VERDICT_NO_EVIDENCE;
    if (v->first.found)
        return FRAG_VERDICT_DIFFERS;
    return v->ends_early ? FRAG_VERDICT_TO_LAST : FRAG_VERDICT_EXACT;
}

/* The only error is NOMEM, without a message. */
static enum frag_err conclude(struct checked_run *c)
{
    struct frag_validation *v = c->v;
    const struct frag_torch_count *reserved =
        &c->observer.counters.stat[FRAG_TORCH_RESERVED_BYTES][FRAG_TORCH_ALL];

    if (c->nomem)
        return FRAG_NOMEM;
    check_missed(c, UINT64_MAX);
    v->peak_reserved_replayed = reserved->peak;
    v->end_reserved_replayed = reserved->current;
    if (c->recorded->has_end)
        check_end(c);
    FRAG_TRY(check_stats(c));
    v->evidence += v->allocs + v->stat_count;
    v->events = c->spec->device->count - c->spec->device->initial;
    v->verdict = judge(v, check_is_late(c->spec->device));
    return FRAG_OK;
}

/* A device without history has nothing to compare. */
static struct frag_validation without_history(const struct frag_validate *spec)
{
    return (struct frag_validation){
        .verdict = FRAG_VERDICT_NO_EVIDENCE,
        .limit = frag_recorded_limit(spec->device, settings_of(spec)),
        .events = 0,
    };
}

enum frag_err frag_validate(const struct frag_validate *spec,
                            struct frag_validation *out, struct frag_error *e)
{
    struct frag_validation v = {0};
    struct frag_validate settled = *spec;
    struct checked_run c = {
        .spec = &settled, .recorded = &spec->device->recorded, .v = &v};
    struct frag_recorded_setup setup;
    enum frag_err err;

    if (spec->device->count == spec->device->initial &&
        frag_trace_is_snapshot(spec->trace)) {
        *out = without_history(spec);
        return FRAG_OK;
    }
    if (!c.recorded->addr || !c.recorded->has_actions)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s: expected a PyTorch snapshot, found a trace "
                         "without the answers of a recorded allocator",
                         spec->trace->path);
    choose_limit(&settled, &v);
    c.observer.reserved =
        calloc(spec->device->pool_count + 1, sizeof(*c.observer.reserved));
    if (!c.observer.reserved)
        return frag_no_memory(e, "the counters");
    err = frag_recorded_setup(&settled, &setup, e);
    if (err != FRAG_OK) {
        free(c.observer.reserved);
        return err;
    }
    if (v.limit.source == FRAG_LIMIT_DEVICE)
        setup.arena.capacity = v.limit.limit;
    c.observer.action = check_action;
    c.observer.user = &c;
    c.event = first_event(spec->device);
    count_recorded(&c);
    err = run(&c, &setup, e);
    if (err == FRAG_OK)
        err = conclude(&c) == FRAG_OK
                  ? FRAG_OK
                  : frag_no_memory(e, "the comparison with the recording");
    frag_recorded_setup_free(&setup);
    free(c.observer.reserved);
    free(c.pairs);
    free(c.blocks);
    if (err != FRAG_OK)
        frag_validation_free(&v);
    else
        *out = v;
    return err;
}

void frag_validation_free(struct frag_validation *v)
{
    free(v->stats);
    v->stats = NULL;
}
