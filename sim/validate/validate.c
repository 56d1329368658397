/* validate.c - runs a validation: determines the parameters and the device,
 * replays the recorded trace under a watch, and summarizes the comparison. */
#include "sim/validate/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/arena/arena.h"
#include "sim/replay/replay.h"
#include "sim/validate/anchors.h"
#include "sim/validate/parts.h"

static void on_opened(void *user, struct frag_heap *heap)
{
    struct checked_run *c = user;

    frag_torch_observe(heap, &c->observer);
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

static void set_params(const struct checked_run *c, frag_size total, char *text,
                       size_t room)
{
    const struct frag_validate *spec = c->spec;
    const char *settings =
        spec->settings ? spec->settings : spec->trace->settings;

    snprintf(text, room, "%s", settings ? settings : "");
    if (spec->limit != FRAG_UNLIMITED) {
        size_t length = strlen(text);

        snprintf(text + length, room - length,
                 "%sper_process_memory_fraction:%.17g", length ? "," : "",
                 (double)spec->limit / (double)total);
    }
}

static enum frag_err run(struct checked_run *c,
                         const struct frag_arena_options *opts,
                         struct frag_error *e)
{
    const struct frag_replay_watch watch = {
        .user = c,
        .opened = on_opened,
        .done = check_event,
        .ended = check_ended,
        .adopt_start = true,
    };
    char params[1024];
    struct frag_replay spec = {
        .trace = c->spec->device,
        .watch = &watch,
        .policy = &frag_policy_torch,
        .params = params,
        .mem = frag_arena_open(opts),
        .check = true,
        .repeat = 1,
    };
    struct frag_run result;
    enum frag_err err;

    if (!spec.mem)
        return FRAG_NOMEM;
    set_params(c, opts->total, params, sizeof(params));
    err = frag_replay(&spec, &result, e);
    if (err == FRAG_OK)
        frag_run_free(&result);
    frag_arena_close(spec.mem);
    return err;
}

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
    struct frag_arena_options arena = {
        .capacity = FRAG_UNLIMITED,
        .total = spec->total ? spec->total : FRAG_H200_TOTAL,
        .rule = spec->predicted ? FRAG_RULE_DRIVER : FRAG_RULE_ANCHORED,
    };
    enum frag_err err;

    if (!c.recorded->addr || !c.recorded->has_actions)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s: expected a PyTorch snapshot, found a trace "
                         "without the answers of a recorded allocator",
                         spec->trace->path);
    c.observer.action = check_action;
    c.observer.user = &c;
    count_recorded(&c);
    err = frag_anchors_make(c.recorded, &arena);
    if (err == FRAG_OK)
        err = run(&c, &arena, e);
    if (err == FRAG_OK)
        err = conclude(&c);
    frag_anchors_free(&arena);
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
