/* fit.c - the smallest capacity at which a policy survives a trace. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/fit_report.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/threads.h"
#include "sim/experiments/choices.h"
#include "sim/experiments/fit/search.h"
#include "traces/grow.h"

struct values {
    struct common common;
    struct cell_values cell;
    struct outputs outputs;
    const char *frontier;
    uint64_t jobs;
};

struct search {
    const struct call *call;
    const struct values *values;
    struct policy_choice *policies;
    size_t policy_count;
    struct cell_settings settings;
    struct parallel on;
    struct progress progress;
    struct fit_report report;
};

/* -- the search ---------------------------------------------------------- */

/* Up from the least that any policy needs to the first that survives. A total
 * that goes with the capacity is the unlimited run's at an H200's. */
static enum frag_err find_first(const struct search *s,
                                const struct frag_fit *fit,
                                const struct frag_fit_span *unlimited,
                                struct frag_fit_spans *spans,
                                struct frag_error *e)
{
    frag_size from = frag_round_up(unlimited->run.lower_bound, FRAG_FIT_STEP);
    frag_size to = unlimited->used;

    if (!unlimited->exact) {
        to = to > FRAG_H200_TOTAL ? to : FRAG_H200_TOTAL;
        to = frag_round_up(to, FRAG_FIT_STEP) + 1;
    }
    return fit_search(fit, from, to, true, &s->on, spans, e);
}

/* From there on to what the policy takes where nothing is refused. */
static enum frag_err find_rest(const struct search *s,
                               const struct frag_fit *fit,
                               const struct frag_fit_span *unlimited,
                               struct frag_fit_spans *spans,
                               struct frag_error *e)
{
    frag_size from =
        spans->count ? spans->items[spans->count - 1].to
                     : frag_round_up(unlimited->run.lower_bound, FRAG_FIT_STEP);
    frag_size to = unlimited->exact
                       ? unlimited->used
                       : frag_round_up(unlimited->used, FRAG_FIT_STEP) + 1;

    return fit_search(fit, from, to, false, &s->on, spans, e);
}

static enum frag_err push(struct frag_fit_spans *spans,
                          const struct frag_fit_span *span,
                          struct frag_error *e)
{
    if (!GROW(spans->items, spans->room, spans->count + 1))
        return frag_no_memory(e, "the capacities");
    spans->items[spans->count++] = *span;
    return FRAG_OK;
}

/* The unlimited run is itself the last span, where it stands for more than
 * itself. */
static enum frag_err find_spans(const struct search *s,
                                const struct frag_fit *fit,
                                const struct frag_fit_span *unlimited,
                                struct frag_fit_spans *spans,
                                struct frag_error *e)
{
    const struct frag_fit_span *last;

    FRAG_TRY(find_first(s, fit, unlimited, spans, e));
    if (s->values->frontier)
        FRAG_TRY(find_rest(s, fit, unlimited, spans, e));
    last = spans->count ? &spans->items[spans->count - 1] : NULL;
    if (!unlimited->exact ||
        (last && (last->to > unlimited->used ||
                  (!s->values->frontier && frag_fit_survives(last)))))
        return FRAG_OK;
    return push(spans, unlimited, e);
}

/* -- all of them --------------------------------------------------------- */

static enum frag_err fit_policy(struct search *s, const struct frag_fit *fit,
                                const struct fit_subject *on,
                                struct frag_error *e)
{
    struct frag_fit_spans spans = {0};
    struct frag_fit_span unlimited;
    enum frag_err err;

    FRAG_TRY(frag_fit_at(fit, FRAG_UNLIMITED, &unlimited, e));
    err = find_spans(s, fit, &unlimited, &spans, e);
    if (err == FRAG_OK)
        fit_report_add(&s->report, on, &unlimited, &spans);
    free(spans.items);
    return err;
}

static void announce(struct search *s, const struct fit_subject *on, size_t i)
{
    if (s->progress.shown)
        fprintf(stderr, "%s, %s (%zu of %zu)\n", on->trace, on->policy, i + 1,
                s->policy_count);
}

static enum frag_err fit_device(void *user, const struct input *in,
                                struct frag_error *e)
{
    struct search *s = user;

    for (size_t i = 0; i < s->policy_count; i++) {
        const struct policy_choice *policy = &s->policies[i];
        const struct fit_subject on = {in->name, policy->text,
                                       in->device->device, s->settings.total};
        struct frag_fit fit = {
            .trace = in->device,
            .costs = &s->settings.costs,
            .rule = s->settings.rule,
            .total = s->settings.total,
            .progress = stop_tick,
            .user = &s->on.stop,
        };
        enum frag_err err;
        struct frag_params *params;

        FRAG_TRY(policy_choice_params(policy, in->trace->settings,
                                      in->trace->path, &params, e));
        announce(s, &on, i);
        fit.prepared = params;
        err = fit_policy(s, &fit, &on, e);
        free(params);
        FRAG_TRY(err);
    }
    return FRAG_OK;
}

static enum frag_err fit_all(struct search *s, struct frag_error *e)
{
    const struct values *v = s->values;
    const struct inputs inputs = {&v->common.args, v->cell.device,
                                  v->cell.limit, false, &s->progress};
    enum frag_err err;

    FRAG_TRY(policy_choices_read(&v->cell.policies, &s->policies,
                                 &s->policy_count, e));
    FRAG_TRY(cell_settings_read(&v->cell, &s->settings, e));
    s->on = cli_threads(s->call, v->jobs, v->common.quiet);
    FRAG_TRY(fit_report_open(&s->report, s->call, v->outputs.json,
                             v->outputs.csv, v->frontier, e));
    err = inputs_each(&inputs, fit_device, s, e);
    if (err == FRAG_OK)
        return fit_report_commit(&s->report, cli_colors(&v->common, stdout), e);
    fit_report_abort(&s->report);
    return err;
}

static int check_outputs(const struct call *call, const struct values *v)
{
    struct outputs o = v->outputs;

    o.own[0] = v->frontier;
    return outputs_check(call, &o);
}

static int fit_run(const struct call *call, const void *values)
{
    struct search s = {.call = call, .values = values};
    struct frag_error e = {""};
    enum frag_err err;
    int code = check_outputs(call, s.values);

    if (code != EXIT_DONE)
        return code;
    s.progress = progress_start(&s.values->common);
    cli_catch_signals();
    err = fit_all(&s, &e);
    progress_clear(&s.progress);
    policy_choices_free(s.policies, s.policy_count);
    return cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct values, field)
static const struct option_row options[] = {
    CELL_POLICY_OPTION(AT),
    {"frontier", 0, "FILE",
     "walk on to what the policy takes where nothing is refused, and write what "
     "happens at every capacity as CSV: from_bytes to to_bytes - 1, the first "
     "OOM; - is stdout. Says from where on nothing fails",
     OPTION_TEXT, AT(frontier), NULL},
    OUTPUT_JSON_OPTION(AT, "rows as JSON, with the frontier if it was walked; "
                       "- is stdout"),
    OUTPUT_CSV_OPTION(AT),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    {"jobs", 'j', "N", "threads (default: one for each processor)",
     OPTION_NUMBER, AT(jobs), NULL},
    CELL_MODEL_OPTIONS(AT),
    {0},
};
/* clang-format on */

const struct verb verb_fit = {
    .name = "fit",
    .args = "TRACE...",
    .summary = "the smallest capacity at which each policy survives a trace",
    .about =
        "To survive is to meet every request. A run says how it goes at every "
        "capacity at which the device would refuse the same requests, so that "
        "a walk from one such span to the next finds the smallest capacity to "
        "the byte, and assumes nothing: a policy may fail with more memory "
        "where it survives with less. Where that is, --frontier tells.\n\n"
        "A policy that decides by the value of the capacity or of the device's "
        "total (as PyTorch's memory fraction and expandable segments do, where "
        "--total does not hold the total fixed) is run at every 2 MiB instead; "
        "`step_bytes' says so.",
    .example = "fragsim fit snapshot.pickle -p torch -p "
               "torch:expandable_segments:True",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.cell = CELL_DEFAULTS},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = fit_run,
};
