/* replayed.c - replays a device for an answer. */
#include "sim/answers/replayed.h"

#include <stdlib.h>

#include "sim/experiments/recording.h"
#include "traces/steps/steps.h"

const char *replayed_policy(const struct frag_trace *t, const char *asked)
{
    if (asked)
        return asked;
    return t->settings ? "torch@recorded" : "torch";
}

enum frag_err replayed_run(const struct replay_settings *s,
                           const struct input *in, frag_size capacity,
                           struct frag_run *out, struct frag_error *e)
{
    struct frag_run_identity id = {
        .trace = frag_trace_identify(in->trace, in->device, in->name),
        .policy = replayed_policy(in->trace, s->policy),
    };
    struct policy_choice policy;
    struct frag_params *params;
    enum frag_err err;

    FRAG_TRY(input_has_history(in, e));
    FRAG_TRY(policy_choice_read(id.policy, &policy, e));
    err = policy_choice_params_of(&policy, in->trace, in->device, &params, e);
    if (err == FRAG_OK) {
        id.policy_used = params->policy;
        id.bound =
            recording_bound_for(in->trace, in->device, &policy, capacity);
        id.repeats = bound_repeats(&policy, id.bound,
                                   recording_bound(in->trace, in->device));
        err = cell_run(s->cell, in->device, &id, params, s->tick, s->user, out,
                       e);
        free(params);
    }
    policy_choice_free(&policy);
    return err;
}

uint64_t replayed_calls(const struct frag_summary *s)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < FRAG_CALL_COUNT; i++)
        sum += s->calls[i];
    return sum;
}

enum frag_err replayed_steps(const struct replay_settings *s,
                             const struct input *in, struct replayed_steps *out,
                             struct frag_error *e)
{
    const struct frag_device_trace *d = in->device;
    struct frag_steps steps;
    enum frag_err err;

    FRAG_TRY(
        frag_steps_find(in->trace, d, d->count - d->added, s->mark, &steps, e));
    out->count = steps.count;
    err = frag_steps_growth(&steps, &out->growth, e);
    frag_steps_close(&steps);
    return err;
}
