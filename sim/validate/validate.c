/* validate.c - runs a validation: replays the recorded trace under a watch, and
 * summarizes the comparison. */
#include "sim/validate/validate.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/replay/replay.h"
#include "sim/validate/parts.h"
#include "sim/validate/recorded.h"

static void on_opened(void *user, struct frag_heap *heap)
{
    struct checked_run *c = user;

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
    frag_size reserved = 0;

    for (uint64_t i = 0; i < c->recorded->start.segment_count; i++)
        reserved += c->recorded->start.segments[i].size;
    v->peak_reserved_recorded = reserved;
    for (uint64_t i = 0; i < c->recorded->action_count; i++) {
        const struct frag_recorded_action *a = &c->recorded->actions[i];

        if (a->action == FRAG_OOM_REPORTED) {
            v->ooms_recorded++;
            continue;
        }
        v->segment_events++;
        if (a->action == FRAG_SEGMENT_ALLOC || a->action == FRAG_SEGMENT_MAP)
            reserved += a->size;
        else
            reserved -= a->size;
        if (reserved > v->peak_reserved_recorded)
            v->peak_reserved_recorded = reserved;
    }
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
        .adopt_start = true,
    };
    struct frag_replay spec = {
        .trace = c->spec->device,
        .watch = &watch,
        .policy = &frag_policy_torch,
        .params = setup->params,
        .mem = frag_arena_open(&setup->arena),
        .check = true,
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

/* The only error is NOMEM, without a message. */
static enum frag_err conclude(struct checked_run *c)
{
    struct frag_validation *v = c->v;
    const struct frag_torch_count *reserved =
        &c->observer.counters.stat[FRAG_TORCH_RESERVED_BYTES][FRAG_TORCH_ALL];

    if (c->nomem)
        return FRAG_NOMEM;
    check_missed(c, UINT64_MAX);
    if (c->recorded->has_end)
        FRAG_TRY(check_end(c));
    FRAG_TRY(check_stats(c));
    v->peak_reserved_replayed = reserved->peak;
    v->end_reserved_replayed = reserved->current;
    v->events = c->spec->device->count;
    v->exact = !v->first.found;
    return FRAG_OK;
}

enum frag_err frag_validate(const struct frag_validate *spec,
                            struct frag_validation *out, struct frag_error *e)
{
    struct frag_validation v = {0};
    struct checked_run c = {
        .spec = spec, .recorded = &spec->device->recorded, .v = &v};
    struct frag_recorded_setup setup;
    enum frag_err err;

    if (spec->device->count == spec->device->initial)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s: device %" PRIu32 " has no history, so there is "
                         "nothing to compare; record with torch.cuda.memory."
                         "_record_memory_history() before the job starts",
                         spec->trace->path, spec->device->device);
    if (!c.recorded->addr || !c.recorded->has_actions)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s: expected a PyTorch snapshot, found a trace "
                         "without the answers of a recorded allocator",
                         spec->trace->path);
    FRAG_TRY(frag_recorded_can_start(spec->trace, spec->device,
                                     "`fragsim replay -p torch@recorded'", e));
    FRAG_TRY(frag_recorded_setup(spec, &setup, e));
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
