/* verb_fit.c - the command fit: finds what each policy needs to survive a
 * trace. The search itself is in sim/experiments/capacity/. */
#include <stdlib.h>

#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/fit_report.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/experiments/capacity/search.h"
#include "sim/experiments/choices.h"
#include "sim/experiments/recording.h"
#include "traces/grow.h"

struct fit_values {
    struct common common;
    struct cell_values cell;
    struct outputs outputs;
    struct one_bound bound;
    uint64_t jobs;
};

struct search {
    const struct call *call;
    const struct fit_values *values;
    struct policy_choice *policies;
    size_t policy_count;
    struct cell_settings settings;
    struct parallel on;
    struct progress progress;
    struct fit_report report;
    struct frag_bound bound; /* that was asked for; FRAG_NO_BOUND: none */
    struct cell_note_list notes;
    struct unread unread;
};

/* -- the search ---------------------------------------------------------- */

/* The least bound that may serve a trace of which this is the unlimited run:
 * the demand, in units of the device where these count. The search begins at a
 * multiple of FRAG_CAPACITY_STEP. */
static frag_size least_bound(const struct frag_capacity_spec *spec,
                             const struct frag_capacity_span *unlimited)
{
    const frag_size bytes = unlimited->run.demand;

    return spec->kind == FRAG_BOUND_CAPACITY && spec->rule != FRAG_RULE_EXACT
               ? frag_round_up(bytes, FRAG_CAPACITY_STEP)
               : bytes - bytes % FRAG_CAPACITY_STEP;
}

/* The end of a search from `from` for a policy whose outcome depends on the
 * bound's value: the total of an H200, which an unlimited run reports, or the
 * memory of the unlimited run, whichever is larger. A job that asks for more
 * may survive on a larger device: then the end is the memory that it uses on
 * one of twice the size. */
static enum frag_err find_end(const struct frag_capacity_spec *spec,
                              const struct frag_capacity_span *unlimited,
                              frag_size from, frag_size *to,
                              struct frag_error *e)
{
    frag_size most = unlimited->used;
    struct frag_capacity_span large;

    most = most > FRAG_H200_TOTAL ? most : FRAG_H200_TOTAL;
    if (from > most && from < FRAG_UNLIMITED / 2) {
        FRAG_TRY(frag_capacity_at(spec, 2 * from, &large, e));
        most = frag_capacity_survives(&large) ? large.used : most;
    }
    *to = frag_round_up(most, FRAG_CAPACITY_STEP) + 1;
    return FRAG_OK;
}

/* Shows which bounds are searched. */
static void say_range(struct search *s, const struct frag_capacity_spec *spec,
                      frag_size from, frag_size to)
{
    struct progress *p = &s->progress;
    char label[96];

    snprintf(label, sizeof(label), "%.14s: %s to %s",
             spec->prepared->policy->name, FRAG_SHOW_SIZE(from),
             FRAG_SHOW_SIZE(to));
    progress_step(p, p->step, p->steps, " events", 1, label);
}

/* Searches upward from there to the first bound at which the policy survives.
 */
static enum frag_err find_first(struct search *s,
                                const struct frag_capacity_spec *spec,
                                const struct frag_capacity_span *unlimited,
                                struct frag_capacity_spans *spans,
                                struct frag_error *e)
{
    frag_size from = least_bound(spec, unlimited);
    frag_size to = unlimited->used;

    if (!unlimited->exact)
        FRAG_TRY(find_end(spec, unlimited, from, &to, e));
    say_range(s, spec, from, to);
    return capacity_search(spec, from, to, true, &s->on, spans, e);
}

/* Continues from there to the memory that the policy uses at unlimited
 * capacity. */
static enum frag_err find_rest(const struct search *s,
                               const struct frag_capacity_spec *spec,
                               const struct frag_capacity_span *unlimited,
                               struct frag_capacity_spans *spans,
                               struct frag_error *e)
{
    frag_size from = spans->count ? spans->items[spans->count - 1].to
                                  : least_bound(spec, unlimited);
    frag_size to = unlimited->exact
                       ? unlimited->used
                       : frag_round_up(unlimited->used, FRAG_CAPACITY_STEP) + 1;

    return capacity_search(spec, from, to, false, &s->on, spans, e);
}

static enum frag_err push(struct frag_capacity_spans *spans,
                          const struct frag_capacity_span *span,
                          struct frag_error *e)
{
    if (!GROW(spans->items, spans->room, spans->count + 1))
        return frag_no_memory(e, "the capacities");
    spans->items[spans->count++] = *span;
    return FRAG_OK;
}

/* Finds all spans. The unlimited run is itself the last span if it is valid at
 * other capacities too. */
static enum frag_err find_spans(struct search *s,
                                const struct frag_capacity_spec *spec,
                                const struct frag_capacity_span *unlimited,
                                struct frag_capacity_spans *spans,
                                struct frag_error *e)
{
    const struct frag_capacity_span *last;

    FRAG_TRY(find_first(s, spec, unlimited, spans, e));
    if (s->values->outputs.own[0])
        FRAG_TRY(find_rest(s, spec, unlimited, spans, e));
    last = spans->count ? &spans->items[spans->count - 1] : NULL;
    if (!unlimited->exact || (last && (last->to > unlimited->used ||
                                       (!s->values->outputs.own[0] &&
                                        frag_capacity_survives(last)))))
        return FRAG_OK;
    return push(spans, unlimited, e);
}

/* -- all of them --------------------------------------------------------- */

static enum frag_err fit_policy(struct search *s,
                                const struct frag_capacity_spec *spec,
                                const struct fit_subject *on,
                                struct frag_error *e)
{
    struct fit_found found = {.spans = {0}};
    enum frag_err err;

    FRAG_TRY(frag_capacity_at(spec, FRAG_UNLIMITED, &found.unlimited, e));
    FRAG_TRY(frag_capacity_need(spec, &found.unlimited, &found.need, e));
    err = find_spans(s, spec, &found.unlimited, &found.spans, e);
    FRAG_THEN(err, fit_report_add(&s->report, on, &found, &s->notes, e));
    free(found.spans.items);
    return err;
}

/* The kind that the user asked for, else that of which the job died. */
static enum frag_bound_kind kind_for(const struct search *s,
                                     const struct input *in)
{
    return one_bound_is_given(&s->values->bound)
               ? s->bound.kind
               : recording_bound(in->trace, in->device).kind;
}

static void announce(struct search *s, const struct fit_subject *on, size_t i)
{
    char label[64];

    snprintf(label, sizeof(label), "%.30s %.30s", on->name, on->policy->text);
    progress_step(&s->progress, i + 1, s->policy_count, " events", 1, label);
}

static enum frag_err fit_device(void *user, const struct input *in,
                                struct frag_error *e)
{
    struct search *s = user;
    const enum frag_bound_kind kind = kind_for(s, in);

    FRAG_TRY(input_tells(in, e));
    for (size_t i = 0; i < s->policy_count; i++) {
        const struct policy_choice *policy = &s->policies[i];
        struct fit_subject on = {.name = in->name,
                                 .trace = in->trace,
                                 .device = in->device,
                                 .policy = policy,
                                 .settings = &s->settings,
                                 .kind = kind};
        struct frag_memo memo = {0};
        struct frag_capacity_spec spec;
        enum frag_err err;
        struct frag_params *params;

        FRAG_TRY(
            policy_choice_params_of(policy, in->trace, in->device, &params, e));
        announce(s, &on, i);
        spec = frag_capacity_of_cell(&s->settings, in->device, params, kind);
        spec.progress = progress_tick;
        spec.user = &s->progress;
        spec.memo = &memo;
        on.params = params->text;
        err = fit_policy(s, &spec, &on, e);
        frag_memo_release(&memo);
        free(params);
        FRAG_TRY(err);
    }
    return FRAG_OK;
}

static enum frag_err fit_all(struct search *s, struct frag_error *e)
{
    const struct fit_values *v = s->values;
    struct inputs inputs = {&v->common.args,        v->cell.device,
                            cell_reading(&v->cell), !v->common.quiet,
                            &s->progress,           &s->unread};
    enum frag_err err;

    FRAG_TRY(one_bound_read(&v->bound, &s->bound, e));
    FRAG_TRY(policy_choices_read(&v->cell.policies, &s->policies,
                                 &s->policy_count, e));
    FRAG_TRY(cell_settings_read(&v->cell, &s->settings, e));
    s->settings.quantum = policy_choices_quantum(s->policies, s->policy_count);
    s->on = cli_threads(s->call, v->jobs, v->common.quiet);
    inputs.reading.threads = s->on.threads;
    FRAG_TRY(
        fit_report_open(&s->report, s->call, &v->outputs, s->bound.bytes, e));
    err = inputs_each(&inputs, fit_device, s, e);
    if (err == FRAG_OK && !v->common.quiet)
        input_say_cells(&s->notes);
    if (err == FRAG_OK)
        return report_texts_commit(&s->report.texts,
                                   cli_colors(&v->common, stdout), e);
    report_texts_abort(&s->report.texts);
    return err;
}

static int fit_run(const struct call *call, const void *values)
{
    struct search s = {.call = call, .values = values};
    struct frag_error e = {""};
    enum frag_err err;
    int code = outputs_check(call, &s.values->outputs);

    if (code != EXIT_DONE)
        return code;
    s.progress = progress_start(&s.values->common);
    s.unread = unread_of(call, &s.values->common);
    cli_catch_signals();
    err = fit_all(&s, &e);
    progress_clear(&s.progress);
    cell_note_free(&s.notes);
    policy_choices_free(s.policies, s.policy_count);
    code = cli_fail(call, err, &e);
    return unread_exit(&s.unread,
                       code == EXIT_DONE && s.report.misfits ? EXIT_NO : code);
}

/* clang-format off */
#define AT(field) offsetof(struct fit_values, field)
static const struct option_row options[] = {
    CELL_POLICY_OPTION(AT),
    ONE_BOUND_OPTIONS(AT, bound),
    {"frontier", 0, "FILE", OPTION_TEXT, AT(outputs.own[0]), NULL,
     "continue to the memory that the policy uses without a bound, and write "
     "the outcome under every bound as CSV: a row is from_bytes to to_bytes - "
     "1 and its first OOM; - is stdout"},
    OUTPUT_JSON_OPTION(AT, "rows as JSON, with the frontier if it was "
                           "searched; - is stdout"),
    OUTPUT_CSV_OPTION(AT),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    JOBS_OPTION(AT(jobs)),
    CELL_CHECK_OPTIONS(AT, ""),
    CELL_MODEL_OPTIONS(AT),
    {0},
};
/* clang-format on */

const struct verb verb_fit = {
    .name = "fit",
    .args = "TRACE...",
    .summary = "find what each policy needs to survive a trace",
    .about =
        "The need is the least capacity from which on nothing fails: with it, "
        "and with any more, the policy meets every request. The column "
        "`serves from' is the least capacity that meets every request at all. "
        "It is less than the need where more memory can be worse: PyTorch's "
        "default allocator may fail with more memory where it survived with "
        "less, and a job that is sized by `serves from' then dies on a "
        "slightly larger device. --frontier shows all such capacities.\n\n"
        "One run shows the outcome at all capacities at which the device "
        "would refuse the same requests. The search goes from each such span "
        "of capacities to the next, so it finds both to the byte.\n\n"
        "Some policies read the value of the capacity or of the device's "
        "total and decide by it, for example PyTorch's memory fraction and "
        "expandable segments. Such a policy is run at every 2 MiB instead, "
        "above 1.5 times its allocated peak at steps of a 64th, and the "
        "output's `step_bytes' is 2 MiB. With --total, the device reports the "
        "same total at every capacity; a policy that reads only the total is "
        "then searched to the byte.\n\n"
        "With --capacity, --gpu or --process-limit the last lines say which "
        "policies fit, which is the case if the need is at most that size, and "
        "the exit code is 1 if one does not; inf judges nothing. What is "
        "searched is the capacity of the device, which the driver counts in "
        "units of 2 MiB, or with --process-limit the memory limit of the "
        "process. The two differ: a limit refuses before the driver is asked, "
        "and counts what the allocator requests. Without any of them it is the "
        "kind of which the recorded job died, and the capacity if it did not "
        "die.\n\n"
        "For a program on RAPIDS, write a log with RMM's "
        "LoggingResourceAdaptor above its memory resource, for example with "
        "rmm.reinitialize(logging=True, log_file_name=\"rmm.csv\"). Then "
        "`fragsim fit rmm.dev0.csv -p rmm_pool -p rmm_arena:fraction=1 -p "
        "rmm_binning -p cuda_async' shows the device that each resource of "
        "RMM needs to serve the program, and `fragsim replay' with the same "
        "policies shows what they reserve. RMM writes a log for each device, "
        "rmm.dev0.csv, rmm.dev1.csv and so on: each is a trace of its own.\n\n"
        "If the recording lacks the beginning of the job, the notes on stderr "
        "and in the JSON say so, and the capacity is a lower bound. A "
        "snapshot without history is refused.",
    .example = "fragsim fit snapshot.pickle -p torch -p "
               "torch:expandable_segments:True",
    .options = options,
    .size = sizeof(struct fit_values),
    .defaults = &(const struct fit_values){.cell = CELL_DEFAULTS},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = fit_run,
};
