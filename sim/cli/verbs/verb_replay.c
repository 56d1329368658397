/* verb_replay.c - the command replay: runs every trace with every policy at
 * every capacity, one after the other, and reports the results. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/output/report.h"
#include "sim/experiments/recording.h"
#include "sim/version.h"
#include "traces/printable.h"

struct replay_values {
    struct common common;
    struct cell_values cell;
    struct outputs outputs;
    uint64_t points;
};

/* Everything that a replay needs; all options are checked before the first run.
 */
struct plan {
    const struct call *call;
    const struct replay_values *values;
    struct policy_choice *policies;
    struct bound_choice *bounds;
    size_t policy_count, bound_count;
    struct cell_settings settings;
    struct progress progress;
    struct report report;
    struct cell_note_list notes;
    struct unread unread;
    FILE *faults; /* the errors of cells, one line each */
    char *fault_text;
    size_t fault_size;
    uint64_t failed;     /* cells */
    enum frag_err first; /* the first error */
};

/* -- one run ------------------------------------------------------------- */

/* Adds the run to the report, with the notes of the cell in its row. */
static enum frag_err report_run(struct plan *plan, const struct input *in,
                                const struct policy_choice *policy,
                                const struct frag_run_identity *id,
                                const struct frag_run *run,
                                struct frag_error *e)
{
    const struct cell_result result = {
        &plan->settings, policy,        in->trace,  in->device,
        id->bound,       &run->summary, run->params};
    struct row_notes notes;
    struct frag_run_identity said = *id;
    enum frag_err err;

    err = row_notes_make(&result, &plan->notes, &notes, e);
    said.trace.notes = notes.items;
    said.trace.note_count = notes.count;
    FRAG_THEN(err, report_add(&plan->report, &said, run, e));
    row_notes_free(&notes);
    return err;
}

/* Reports a cell that failed alone. */
static void report_fault(struct plan *plan, const struct frag_run_identity *id,
                         struct frag_params *params, enum frag_err err,
                         const char *words)
{
    plan->first = plan->failed++ ? plan->first : err;
    report_add_failed(&plan->report, id, params->text, words);
    printable_line(plan->faults, "%s, %s at %s: %s", id->trace.path, id->policy,
                   FRAG_SHOW_BOUND(id->bound), words);
}

static enum frag_err measure(struct plan *plan, const struct input *in,
                             const struct policy_choice *policy,
                             struct frag_run_identity *id,
                             struct frag_params *params, struct frag_error *e)
{
    struct frag_run run;
    enum frag_err err = cell_run(&plan->settings, in->device, id, params,
                                 progress_tick, &plan->progress, &run, e);

    if (cell_fails_alone(err)) {
        report_fault(plan, id, params, err, e->text);
        return FRAG_OK;
    }
    FRAG_TRY(err);
    err = report_run(plan, in, policy, id, &run, e);
    frag_run_free(&run);
    return err;
}

static void announce(struct plan *plan, const struct frag_run_identity *id,
                     size_t step)
{
    char label[112];

    snprintf(label, sizeof(label), "%.24s %.20s %s", id->trace.name, id->policy,
             FRAG_SHOW_BOUND(id->bound));
    progress_step(&plan->progress, step + 1,
                  plan->policy_count * plan->bound_count, " events", 1, label);
}

static enum frag_err run_policy(struct plan *plan, const struct input *in,
                                const struct bound_facts *facts,
                                struct frag_run_identity *id, size_t p,
                                struct frag_error *e)
{
    const struct policy_choice *policy = &plan->policies[p];
    enum frag_err err = FRAG_OK;
    struct frag_params *params;

    FRAG_TRY(policy_choice_params(policy, id->trace.settings,
                                  id->trace.releases, id->trace.path,
                                  in->device->device, &params, e));
    id->policy = policy->text;
    id->policy_used = params->policy;
    for (size_t c = 0; err == FRAG_OK && c < plan->bound_count; c++) {
        id->bound = bound_choice_of(&plan->bounds[c], policy, facts);
        id->capacity = bound_choice_capacity(&plan->bounds[c]);
        id->repeats = bound_repeats(policy, id->bound, facts->recorded);
        announce(plan, id, p * plan->bound_count + c);
        err = measure(plan, in, policy, id, params, e);
        if (err == FRAG_OK && cli_interrupted())
            err = FRAG_CANCELLED;
    }
    free(params);
    return err;
}

static enum frag_err run_device(void *user, const struct input *in,
                                struct frag_error *e)
{
    struct plan *plan = user;
    struct frag_run_identity id = {
        .trace = frag_trace_identify(in->trace, in->device, in->name),
    };
    struct bound_facts facts;

    if (!input_replays(in, plan->values->cell.device))
        return FRAG_OK;
    FRAG_TRY(input_has_history(in, e));
    FRAG_TRY(recording_facts(in->trace, in->device, &facts, e));
    for (size_t p = 0; p < plan->policy_count; p++)
        FRAG_TRY(run_policy(plan, in, &facts, &id, p, e));
    return FRAG_OK;
}

/* -- all of them --------------------------------------------------------- */

static void say_totals(const struct plan *plan, const struct report *r,
                       uint64_t started)
{
    const char *out = plan->values->outputs.hdf5;
    double seconds = (double)(progress_clock() - started) / 1e9;

    if (plan->values->common.quiet)
        return;
    printable_line(stderr,
                   "%" PRIu64 " run%s, %" PRIu64
                   " with an OOM; %.1f M events in %.2f s%s%s",
                   r->runs, r->runs == 1 ? "" : "s", r->failed_runs,
                   (double)r->events / 1e6, seconds, out ? "; written to " : "",
                   out ? out : "");
}

/* Prints the errors of cells. Returns the first one; OK if there is none. */
static enum frag_err say_faults(const struct plan *plan, uint64_t runs,
                                struct frag_error *e)
{
    if (!plan->failed)
        return FRAG_OK;
    fprintf(stderr, "%s\n", plan->fault_text);
    return frag_fail(e, plan->first,
                     "%" PRIu64 " of %" PRIu64
                     " runs failed; the table has the others",
                     plan->failed, plan->failed + runs);
}

static enum frag_err run_all(struct plan *plan, struct frag_error *e)
{
    const struct replay_values *v = plan->values;
    struct frag_provenance provenance = {
        .version = frag_version,
        .commit = frag_commit,
        .command = plan->call->command,
        .started = cli_now(),
    };
    const struct inputs inputs = {&v->common.args,        v->cell.device,
                                  cell_reading(&v->cell), !v->common.quiet,
                                  &plan->progress,        &plan->unread};
    uint64_t started = progress_clock();
    enum frag_err err;

    FRAG_TRY(report_open(&plan->report, &provenance, &v->outputs, e));
    err = inputs_each(&inputs, run_device, plan, e);
    if (err != FRAG_OK) {
        report_abort(&plan->report);
        return err;
    }
    if (plan->failed && fflush(plan->faults) == 0) {
        plan->fault_text[plan->fault_size - 1] = '\0'; /* the last newline */
        provenance.missing = plan->fault_text;
    }
    struct report totals = plan->report;
    if (!v->common.quiet)
        input_say_cells(&plan->notes);
    FRAG_TRY(report_commit(&plan->report, cli_colors(&v->common, stdout), e));
    say_totals(plan, &totals, started);
    return say_faults(plan, totals.runs, e);
}

/* Reads the policies, capacities and settings of the options, before any trace
 * is read. */
static enum frag_err prepare(struct plan *plan, struct frag_error *e)
{
    const struct replay_values *v = plan->values;

    FRAG_TRY(policy_choices_read(&v->cell.policies, &plan->policies,
                                 &plan->policy_count, e));
    FRAG_TRY(bound_choices_read(v->cell.bounds, &plan->bounds,
                                &plan->bound_count, e));
    FRAG_TRY(cell_settings_read(&v->cell, &plan->settings, e));
    plan->settings.quantum =
        policy_choices_quantum(plan->policies, plan->policy_count);
    plan->settings.points =
        v->outputs.hdf5 ? v->points : 0; /* only result files contain series */
    return FRAG_OK;
}

static int replay_run(const struct call *call, const void *values)
{
    struct plan plan = {.call = call, .values = values};
    struct frag_error e = {""};
    enum frag_err err;
    int code = outputs_check(call, &plan.values->outputs);

    if (code != EXIT_DONE)
        return code;
    plan.progress = progress_start(&plan.values->common);
    plan.unread = unread_of(call, &plan.values->common);
    plan.faults = open_memstream(&plan.fault_text, &plan.fault_size);
    cli_catch_signals();
    err = plan.faults ? prepare(&plan, &e) : frag_no_memory(&e, "the runs");
    FRAG_THEN(err, run_all(&plan, &e));
    progress_clear(&plan.progress);
    cell_note_free(&plan.notes);
    policy_choices_free(plan.policies, plan.policy_count);
    free(plan.bounds);
    if (plan.faults)
        fclose(plan.faults);
    free(plan.fault_text);
    return unread_exit(&plan.unread, cli_fail(call, err, &e));
}

/* clang-format off */
#define AT(field) offsetof(struct replay_values, field)
static const struct option_row options[] = {
    CELL_GRID_OPTIONS(AT),
    OUTPUT_HDF5_OPTION(AT),
    OUTPUT_JSON_OPTION(AT, "rows as JSON; - is stdout"),
    OUTPUT_CSV_OPTION(AT),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    CELL_DEVICE_OPTIONS(AT),
    {"points", 0, "N", OPTION_NUMBER, AT(points), NULL,
     "number of points of each series in the result file (default: 2000)"},
    {0},
};
/* clang-format on */

const struct verb verb_replay = {
    .name = "replay",
    .args = "TRACE...",
    .summary = "replay traces against policies, each at every capacity",
    .about =
        "The command prints a table of peak memory, fragmentation and OOMs, "
        "with one row for each trace, device, policy and capacity. A request "
        "that the device cannot meet is counted and skipped. Such an OOM is a "
        "result, not an error, and does not change the exit code. A run that "
        "ends by an error of its device or its policy is a row that says "
        "`failed'; the others are reported, and the exit code is that of the "
        "first error.\n\n"
        "Where a recording begins late, torch takes over the recorded "
        "segments and blocks; other policies allocate the live blocks first, "
        "and so does torch if the segments do not fit in the device or hinder "
        "its settings. The column `start' says how a run began. A note says "
        "where torch, with the recorded settings, reserves another peak than "
        "the recorded allocator.\n\n"
        "A policy is NAME or NAME:PARAMS. The text after `torch:' has the "
        "format of PyTorch's own PYTORCH_CUDA_ALLOC_CONF.",
    .example = "fragsim replay snapshot.pickle -p torch -p "
               "torch:expandable_segments:True -c 24GiB,inf -o results.h5",
    .options = options,
    .size = sizeof(struct replay_values),
    .defaults = &(const struct replay_values){.cell = CELL_DEFAULTS,
                                              .points = CELL_POINTS},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = replay_run,
};
