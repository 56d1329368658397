/* verb_export.c - the command export: writes the events of one device, or what
 * policies do with them, in the format of another program. */
#include "sim/export/formats.h"

#include <stdlib.h>

#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "sim/experiments/recording.h"
#include "traces/name.h"
#include "traces/printable.h"

struct export_values {
    struct common common;
    struct cell_values cell;
    const char *out;
    unsigned format; /* enum export_format_number */
    uint64_t points;
    bool force;
};

/* Everything that an export needs. */
struct plan {
    const struct export_values *values;
    struct export_job job;
    struct policy_choice *policies;
    struct bound_choice *bounds;
    size_t bound_count;
    struct cell_settings settings;
    struct progress progress;
    struct export_notes notes;
};

static void say_notes(const struct plan *p)
{
    for (uint64_t i = 0; !p->values->common.quiet && i < p->notes.count; i++)
        printable_line(stderr, "%s: note: %s", p->values->common.args.items[0],
                       p->notes.items[i]);
}

static enum frag_err set_bound(struct plan *p, struct frag_error *e)
{
    static const struct policy_choice none = {.text = ""};
    struct bound_facts facts;

    if (p->bound_count != 1)
        return frag_fail(
            e, FRAG_INVALID,
            "--capacity, --process-limit: expected one bound, found %zu",
            p->bound_count);
    FRAG_TRY(recording_facts(p->job.trace, p->job.device, &facts, e));
    p->job.bound = bound_choice_of(&p->bounds[0],
                                   p->policies ? p->policies : &none, &facts);
    return FRAG_OK;
}

static enum frag_err note_start(struct plan *p)
{
    const char *note = export_start_note(p->job.device);

    return p->job.policy_count && note ? export_note(&p->notes, "%s", note)
                                       : FRAG_OK;
}

static enum frag_err convert(struct plan *p, const struct frag_trace *t,
                             struct frag_error *e)
{
    const struct export_values *v = p->values;
    char *name = frag_trace_name(t->path);
    enum frag_err err = name ? FRAG_OK : FRAG_NOMEM;

    p->job.trace = t;
    p->job.name = name;
    FRAG_THEN(err, input_device(t, v->cell.device, &p->job.device, e));
    FRAG_THEN(err, set_bound(p, e));
    FRAG_THEN(err, note_start(p));
    FRAG_THEN(err, export_write((enum export_format_number)v->format, &p->job,
                                v->out, &p->notes, e));
    progress_clear(&p->progress);
    if (err == FRAG_OK)
        say_notes(p);
    free(name);
    return err;
}

static bool has_bounds(const struct export_values *v)
{
    return v->cell.bounds[FRAG_BOUND_CAPACITY].count ||
           v->cell.bounds[FRAG_BOUND_LIMIT].count;
}

/* Reads all options before the trace is read. */
static enum frag_err prepare(struct plan *p, struct frag_error *e)
{
    const struct export_values *v = p->values;

    if (has_bounds(v) && !v->cell.policies.count)
        return frag_fail(
            e, FRAG_INVALID,
            "--capacity, --process-limit: it limits a replay, but no policy is "
            "named; for example -p torch");
    if (v->cell.policies.count)
        FRAG_TRY(policy_choices_read(&v->cell.policies, &p->policies,
                                     &p->job.policy_count, e));
    FRAG_TRY(
        bound_choices_read(v->cell.bounds, &p->bounds, &p->bound_count, e));
    FRAG_TRY(cell_settings_read(&v->cell, &p->settings, e));
    p->job.cell = &p->settings;
    p->job.policies = p->policies;
    p->job.points = v->points;
    p->job.tick = progress_tick;
    p->job.user = &p->progress;
    return FRAG_OK;
}

static enum frag_err run(struct plan *p, struct frag_error *e)
{
    const struct export_values *v = p->values;
    const struct trace_reading raw = {READING_RAW, .limit = v->cell.limit};
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(prepare(p, e));
    FRAG_TRY(input_open(v->common.args.items[0], &raw, &p->progress, &t, e));
    if (!v->common.quiet)
        input_say_notes(v->common.args.items[0], t);
    err = convert(p, t, e);
    frag_trace_close(t);
    return err;
}

static int export_run(const struct call *call, const void *values)
{
    struct plan p = {.values = values};
    struct frag_error e = {""};
    enum frag_err err;
    int code = cli_may_write(call, p.values->out, p.values->force);

    if (code != EXIT_DONE)
        return code;
    p.progress = progress_start(&p.values->common);
    cli_catch_signals();
    err = run(&p, &e);
    policy_choices_free(p.policies, p.job.policy_count);
    free(p.bounds);
    export_notes_free(&p.notes);
    return cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct export_values, field)
#define FORMAT(name, ...) "|" #name
static const struct option_row options[] = {
    {"to", 0, "FORMAT", OPTION_CHOICE, AT(format),
     &(
#include "sim/export/export_list.h"
     )[1],
     "one of the formats that are described below (default: csv)"},
    {"output", 'o', "FILE", OPTION_TEXT, AT(out), NULL,
     "the file; - is stdout (default)"},
    FORCE_OPTION(AT(force)),
    {"policy", 'p', "POLICY", OPTION_LIST, AT(cell.policies), NULL,
     "replay the trace with this policy (see `fragsim policies'): for snapshot "
     "one; without it the snapshot shows the recorded allocator. For chrome "
     "one or more, each after its own -p. The other formats have none"},
    {"capacity", 'c', "SIZE", OPTION_LIST, AT(cell.bounds), NULL,
     "memory of the device: a size such as 24GiB, a share of the trace's peak "
     "requested such as 0.9x, or inf (default)"},
    {"total", 0, "SIZE", OPTION_TOTAL, AT(cell.total), NULL,
     "memory that the device reports (default: the capacity; for inf, an "
     "H200's memory)"},
    {"points", 0, "N", OPTION_NUMBER, AT(points), NULL,
     "chrome: largest number of samples of each counter, each the largest "
     "value of its events (default: 20000; 0: one for each event)"},
    {"device", 0, "N", OPTION_DEVICE, AT(cell.device), NULL,
     "number of the device (default: the only one)"},
    RECORDED_LIMIT_OPTION(AT(cell.limit)),
    {0},
};
#undef FORMAT
/* clang-format on */

const struct verb verb_export = {
    .name = "export",
    .args = "TRACE",
    .summary =
        "write a trace or a policy's run in the format of another program",
    .about =
        "The trace is taken as it was recorded. Notes on stderr state what the "
        "format does not hold."
#define FORMAT(name, about, ...) "\n\n" #name ": " about
#include "sim/export/export_list.h"
#undef FORMAT
    ,
    .example =
        "fragsim export snapshot.pickle --to chrome -p torch -o run.json",
    .options = options,
    .size = sizeof(struct export_values),
    .defaults = &(const struct export_values){.out = "-",
                                              .points = 20000,
                                              .cell = CELL_DEFAULTS},
    .args_min = 1,
    .args_max = 1,
    .run = export_run,
};
