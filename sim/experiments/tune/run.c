/* run.c - replays one case with one setting. */
#include "sim/experiments/tune/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/versions.h"

/* Writes the settings and the version as the text of a policy. */
static void put_policy(unsigned version, const char *settings,
                       char text[TUNE_TEXT + 32])
{
    snprintf(text, TUNE_TEXT + 32, "torch:%s%storch_version:2.%u", settings,
             *settings ? "," : "", torch_modelled_as(version));
}

static enum frag_err run_policy(const struct cell_settings *settings,
                                const struct stop *stop,
                                const struct tune_case *on, frag_size capacity,
                                const struct policy_choice *policy,
                                struct frag_run *out, struct frag_error *e)
{
    struct frag_run_identity id = {.policy = policy->text,
                                   .policy_used = policy->policy,
                                   .capacity = capacity};
    struct stop asked =
        *stop; /* a copy, because frag_replay's user is not const */
    struct frag_params *params;
    enum frag_err err;

    FRAG_TRY(policy_choice_params(policy, on->trace->settings, on->trace->path,
                                  &params, e));
    err =
        cell_run(settings, on->device, &id, params, stop_tick, &asked, out, e);
    free(params);
    return err;
}

enum frag_err tune_notes(const struct tune_search *s, size_t i,
                         const char *text, struct cell_notes *out,
                         struct frag_error *e)
{
    char all[TUNE_TEXT + 32];
    struct policy_choice policy;
    struct frag_run run;
    enum frag_err err;

    put_policy(s->space.version, text, all);
    FRAG_TRY(policy_choice_read(all, &policy, e));
    err = run_policy(s->settings, &s->on.stop, &s->cases[i], s->goal.capacity,
                     &policy, &run, e);
    if (err == FRAG_OK) {
        const struct cell_result result = {
            .settings = s->settings,
            .policy = &policy,
            .trace = s->cases[i].trace,
            .device = s->cases[i].device,
            .capacity = s->goal.capacity,
            .summary = &run.summary,
            .params = run.params,
        };

        err = cell_notes(&result, out, e);
        frag_run_free(&run);
    }
    policy_choice_free(&policy);
    return err;
}

enum frag_err tune_replay(unsigned version,
                          const struct cell_settings *settings,
                          const struct stop *stop, const struct tune_case *on,
                          frag_size capacity, const char *text,
                          struct tune_result *out, struct frag_error *e)
{
    char all[TUNE_TEXT + 32];
    struct policy_choice policy;
    struct frag_run run;
    enum frag_err err;

    put_policy(version, text, all);
    FRAG_TRY(policy_choice_read(all, &policy, e));
    err = run_policy(settings, stop, on, capacity, &policy, &run, e);
    policy_choice_free(&policy);
    FRAG_TRY(err);
    *out = (struct tune_result){
        .peak = run.summary.peak_reserved,
        .seconds = run.summary.modelled_device_seconds,
        .first_oom = run.summary.first_oom_event,
    };
    for (size_t k = 0; k < FRAG_CALL_COUNT; k++)
        out->calls += run.summary.calls[k];
    frag_run_free(&run);
    return FRAG_OK;
}

/* The parameters of a policy in its text. */
static const char *params_of(const char *policy)
{
    return strchr(policy, ':') + 1;
}

enum frag_err tune_heap_open(unsigned version, const char *text,
                             struct frag_backend *mem, struct frag_heap *out)
{
    char all[TUNE_TEXT + 32];

    put_policy(version, text, all);
    return frag_heap_open(out, &frag_policy_torch, mem, params_of(all), NULL);
}

enum frag_err tune_rules(unsigned version, const char *text,
                         struct frag_torch_rules *out, frag_size *sizes,
                         size_t count)
{
    char all[TUNE_TEXT + 32];

    put_policy(version, text, all);
    return frag_torch_rules_read(params_of(all), out, sizes, count, NULL);
}
