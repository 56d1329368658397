/* verb_tune.c - the command tune: finds the simplest PYTORCH_CUDA_ALLOC_CONF
 * that saves memory on traces. The settings are in sim/experiments/tune/. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/versions.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/output/tune_report.h"
#include "sim/experiments/recording.h"
#include "sim/version.h"
#include "traces/bytes/sink.h"
#include "traces/grow.h"
#include "traces/name.h"
#include "traces/printable.h"
#include "traces/text.h"

struct tune_values {
    struct common common;
    struct cell_values cell;
    struct texts without;
    struct outputs outputs;
    const char *worth, *torch_version;
    uint64_t jobs;
    bool no_vmm, simplest;
};

struct tuning {
    const struct call *call;
    const struct tune_values *values;
    struct progress progress;
    struct unread unread;
    struct cell_settings settings;
    struct texts without;
    struct bound_choice *bounds; /* one */
    struct tune_ladder ladder;

    struct frag_trace **traces;
    size_t trace_count;
    struct tune_case *cases; /* their names are owned */
    size_t case_count;
    uint64_t case_room;
    struct tune_impossible *impossible;
    size_t impossible_count;
    struct cell_notes *notes; /* [case_count] */
};

/* ---- progress ---- */

static void begin_progress(void *user, const struct tune_case *cases,
                           size_t count)
{
    struct tuning *t = user;
    double events = 0;

    for (size_t i = 0; i < count; i++)
        events += (double)cases[i].device->count;
    progress_step(&t->progress, 1, 1, " events", events / (double)count,
                  "tune");
}

static void tell_progress(void *user, uint64_t done, uint64_t total)
{
    struct tuning *t = user;

    (void)progress_tick(&t->progress, done, total); /* the runs ask for a stop
                                                       themselves */
}

/* ---- options ---- */

/* *worth is unchanged if the option is not given. */
static enum frag_err read_worth(const char *text, double *worth,
                                struct frag_error *e)
{
    char *end;
    double x;

    if (!text)
        return FRAG_OK;
    x = strtod(text, &end);
    if (end == text || *end || !(x >= 0) || !isfinite(x))
        return frag_fail(e, FRAG_INVALID,
                         "--worth: expected a number, 0 or more, found "
                         "\"%.40s\"",
                         text);
    *worth = x;
    return FRAG_OK;
}

static enum frag_err read_bounds(struct tuning *t, struct frag_error *e)
{
    size_t count;

    FRAG_TRY(bound_choices_read(t->values->cell.bounds, &t->bounds, &count, e));
    return count == 1 ? FRAG_OK
                      : frag_fail(e, FRAG_INVALID,
                                  "--capacity, --process-limit: expected one "
                                  "bound, found %zu",
                                  count);
}

/* The bound that the job must survive: by default that under which it ran. Of a
 * limit that is known as an interval, the least. */
static enum frag_err find_bound(const struct tuning *t, struct tune_case *c,
                                struct frag_error *e)
{
    static const struct policy_choice recorded = {.recorded = true};
    struct bound_facts facts;

    FRAG_TRY(recording_facts(c->trace, c->device, &facts, e));
    c->recorded = facts.recorded;
    if (facts.recorded.least)
        facts.recorded.bytes = facts.recorded.least;
    c->bound = bound_choice_of(t->bounds, &recorded, &facts);
    return FRAG_OK;
}

/* Checks the keys that no setting shall have, and adds that of --no-vmm. */
static enum frag_err read_without(struct tuning *t, struct frag_error *e)
{
    const struct tune_values *v = t->values;
    char known[256] = "";

    for (const struct torch_setting *s = torch_known_settings; s->name; s++)
        if (tune_has_key(s->name))
            text_add(known, sizeof(known), ", ", "%s", s->name);
    for (size_t i = 0; i < v->without.count; i++) {
        if (!tune_has_key(v->without.items[i]))
            return frag_fail(e, FRAG_INVALID,
                             "--without: \"%.40s\" is not a setting that is "
                             "tried; those settings are %s",
                             v->without.items[i], known);
        if (!texts_append(&t->without, v->without.items[i]))
            return frag_no_memory(e, "the settings");
    }
    if (v->no_vmm && !texts_append(&t->without, "expandable_segments"))
        return frag_no_memory(e, "the settings");
    return FRAG_OK;
}

/* The release whose keys may be used. The cases are known. */
static enum frag_err read_version(struct tuning *t, struct frag_error *e)
{
    const char *text = t->values->torch_version;
    struct frag_error why;
    enum frag_err err;

    t->ladder.version = tune_release(t->cases, t->case_count);
    if (!text)
        return FRAG_OK;
    err = torch_version_read(text, &t->ladder.version, &why);
    if (err != FRAG_OK)
        return frag_fail(e, err, "--torch-version: %s", why.text);
    if (t->ladder.version == TORCH_LATER) {
        t->ladder.version = TORCH_NEWEST;
        if (t->case_count && !t->values->common.quiet)
            printable_line(
                stderr,
                "PyTorch %s is not known to fragsim %s (knows "
                "PyTorch up to 2.%d): the settings are those of 2.%d",
                text, frag_version, TORCH_NEWEST, TORCH_NEWEST);
    }
    return FRAG_OK;
}

static enum frag_err read_options(struct tuning *t, struct frag_error *e)
{
    const struct tune_values *v = t->values;

    FRAG_TRY(cell_settings_read(&v->cell, &t->settings, e));
    t->settings.from_requests = true; /* or only some settings would be charged
                                         for what the recorded job held */
    t->settings.stop_at_oom = true;
    t->ladder = (struct tune_ladder){
        .settings = &t->settings,
        .worth = v->simplest ? INFINITY : TUNE_WORTH,
        .without = &t->without,
        .on = cli_threads(t->call, v->jobs, v->common.quiet),
        .progress = {begin_progress, tell_progress, t},
    };
    FRAG_TRY(read_bounds(t, e));
    FRAG_TRY(read_worth(v->worth, &t->ladder.worth, e));
    FRAG_TRY(
        read_version(t, e)); /* refuses a wrong text before a file is read */
    return read_without(t, e);
}

/* ---- the traces ---- */

static enum frag_err add_case(void *user, const struct input *in,
                              struct frag_error *e)
{
    struct tuning *t = user;
    char *name;

    FRAG_TRY(input_has_history(in, e));
    if (!GROW(t->cases, t->case_room, t->case_count + 1))
        return FRAG_NOMEM;
    name = strdup(in->name);
    if (!name)
        return FRAG_NOMEM;
    t->cases[t->case_count++] = (struct tune_case){
        .name = name,
        .device = in->device,
        .trace = in->trace,
        .completion = recording_known(in->trace, in->device)->completion};
    return find_bound(t, &t->cases[t->case_count - 1], e);
}

static enum frag_err open_trace(struct tuning *t, const char *path,
                                struct frag_error *e)
{
    const struct cell_values *v = &t->values->cell;
    struct trace_reading reading = cell_reading(v);
    struct frag_trace *trace;
    enum frag_err err = FRAG_NOMEM;
    char *name;

    reading.threads = t->values->jobs;
    FRAG_TRY(input_open(path, &reading, &t->progress, &trace, e));
    t->traces[t->trace_count++] = trace;
    name = frag_trace_name(path);
    if (name)
        err = input_each_device(trace, name, v->device, add_case, t, e);
    free(name);
    return err;
}

/* Drops the cases of a trace of which a device cannot be used. */
static enum frag_err use_trace(struct tuning *t, const char *path,
                               struct frag_error *e)
{
    const size_t before = t->case_count;
    const enum frag_err err = open_trace(t, path, e);

    if (err == FRAG_OK)
        return FRAG_OK;
    while (t->case_count > before)
        free((void *)(uintptr_t)t->cases[--t->case_count].name);
    return unread_add(&t->unread, err, e);
}

static enum frag_err open_traces(struct tuning *t, struct frag_error *e)
{
    const struct texts *paths = &t->values->common.args;

    t->traces = calloc(paths->count, sizeof(struct frag_trace *));
    if (!t->traces)
        return FRAG_NOMEM;
    FRAG_TRY(unread_names(&t->unread, e));
    for (size_t i = 0; i < paths->count; i++)
        if (!unread_has(&t->unread, paths->items[i]))
            FRAG_TRY(use_trace(t, paths->items[i], e));
    FRAG_TRY(unread_end(&t->unread, e));
    t->ladder.cases = t->cases;
    t->ladder.case_count = t->case_count;
    return read_version(t, e);
}

/* ---- the settings ---- */

static bool any_open(const struct tuning *t)
{
    bool any = false;

    for (size_t i = 0; i < t->case_count; i++)
        any |= tune_is_open(&t->cases[i]);
    return any;
}

/* Finds the cases whose requests exceed their bound with any allocator. */
static enum frag_err find_impossible(struct tuning *t, struct frag_error *e)
{
    t->impossible = calloc(t->case_count, sizeof(*t->impossible));
    if (!t->impossible)
        return FRAG_NOMEM;
    for (size_t i = 0; i < t->case_count; i++) {
        struct requested_peak peak;

        FRAG_TRY(requested_peak_find(t->cases[i].device, &peak, e));
        if (peak.bytes > t->cases[i].bound.bytes)
            t->impossible[t->impossible_count++] =
                (struct tune_impossible){i, peak};
    }
    return FRAG_OK;
}

/* Finds the notes of every case with the settings that are shown. */
static enum frag_err find_notes(struct tuning *t, struct frag_error *e)
{
    t->notes = calloc(t->case_count, sizeof(*t->notes));
    if (!t->notes)
        return frag_no_memory(e, "the notes");
    for (size_t i = 0; i < t->case_count; i++)
        FRAG_TRY(
            tune_notes(&t->ladder, i, tune_shown(&t->ladder), &t->notes[i], e));
    return FRAG_OK;
}

static enum frag_err climb(struct tuning *t, struct frag_error *e)
{
    FRAG_TRY(tune_climb(&t->ladder, e));
    return find_notes(t, e);
}

/* ---- all of it ---- */

static enum frag_err say_json(const struct tuning *t,
                              const struct tune_answer *answer,
                              struct frag_error *e)
{
    struct frag_json j;
    struct sink sink;

    FRAG_TRY(sink_open(&sink, t->values->outputs.json, e));
    cli_json_open(t->call, &j, sink.out);
    tune_print_json(answer, &j);
    frag_results_json_close(&j);
    return sink_commit(&sink, e);
}

/* Writes the JSON, and then the text unless the JSON went to stdout. */
static enum frag_err say(const struct tuning *t, struct frag_error *e)
{
    const struct tune_answer answer = {
        .ladder = &t->ladder,
        .impossible = t->impossible,
        .impossible_count = t->impossible_count,
        .notes = t->notes,
    };
    const char *json = t->values->outputs.json;
    struct sink sink;

    if (json)
        FRAG_TRY(say_json(t, &answer, e));
    if (sink_is_stdout(json))
        return FRAG_OK;
    FRAG_TRY(sink_open(&sink, "-", e));
    tune_print(&answer, sink.out);
    return sink_commit(&sink, e);
}

static enum frag_err tune_all(struct tuning *t, struct frag_error *e)
{
    enum frag_err err;

    FRAG_TRY(read_options(t, e));
    FRAG_TRY(open_traces(t, e));
    FRAG_TRY(find_impossible(t, e));
    if (t->impossible_count && !any_open(t))
        return say(t, e);
    err = climb(t, e);
    progress_clear(&t->progress);
    FRAG_TRY(err);
    return say(t, e);
}

static void close_all(struct tuning *t)
{
    tune_ladder_close(&t->ladder);
    for (size_t i = 0; i < t->case_count; i++)
        free((void *)(uintptr_t)t->cases[i].name);
    for (size_t i = 0; i < t->trace_count; i++)
        frag_trace_close(t->traces[i]);
    free(t->impossible);
    free(t->notes);
    free(t->cases);
    free(t->traces);
    free(t->without.items);
    free(t->bounds);
}

static int check_options(const struct call *call, const struct tune_values *v)
{
    if (v->simplest && v->worth)
        return cli_misuse(call, "--simplest allows any saving; leave out "
                                "--worth");
    return outputs_check(call, &v->outputs);
}

static int tune_run_verb(const struct call *call, const void *values)
{
    struct tuning t = {.call = call, .values = values};
    struct frag_error e = {""};
    enum frag_err err;
    int code = check_options(call, t.values);

    if (code != EXIT_DONE)
        return code;
    t.progress = progress_start(&t.values->common);
    t.unread = unread_of(call, &t.values->common);
    cli_catch_signals();
    err = tune_all(&t, &e);
    close_all(&t);
    return unread_exit(&t.unread, err == FRAG_OK && !t.ladder.chosen
                                      ? EXIT_NO
                                      : cli_fail(call, err, &e));
}

/* clang-format off */
#define AT(field) offsetof(struct tune_values, field)
static const struct option_row options[] = {
    {"capacity", 'c', "SIZE", OPTION_LIST, AT(cell.bounds[FRAG_BOUND_CAPACITY]),
     NULL,
     "memory of the device, beyond which the driver refuses: the job must "
     "survive with it; a size such as 24GiB, a share of the trace's peak "
     "requested such as 0.9x, or inf (default: the bound under which the "
     "recorded job ran)"},
    CELL_LIMIT_OPTION(AT),
    {"worth", 0, "R", OPTION_TEXT, AT(worth), NULL,
     "what each further knob must save, of the peak (default: 0.01, that is 1 "
     "%)"},
    {"simplest", 0, NULL, OPTION_SWITCH, AT(simplest), NULL,
     "choose the first setting that survives, whatever it saves"},
    {"torch-version", 0, "VERSION", OPTION_TEXT, AT(torch_version), NULL,
     "try only settings that this version of PyTorch knows, such as 2.6 "
     "(default: the oldest that may have written the recordings)"},
    {"no-vmm", 0, NULL, OPTION_SWITCH, AT(no_vmm), NULL,
     "try no settings that need the driver's virtual memory calls: no "
     "expandable segments"},
    {"without", 0, "SETTING", OPTION_LIST, AT(without), NULL,
     "do not try this setting; repeat the option for more settings"},
    OUTPUT_JSON_OPTION(AT, "the result as JSON; - is stdout"),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    JOBS_OPTION(AT(jobs)),
    CELL_MODEL_OPTIONS(AT),
    {0},
};
/* clang-format on */

const struct verb verb_tune = {
    .name = "tune",
    .args = "TRACE...",
    .summary = "find the simplest PYTORCH_CUDA_ALLOC_CONF that saves memory",
    .about =
        "The command runs the traces with the few settings of PyTorch's "
        "allocator that a person would try, the simplest first: the recorded "
        "ones, PyTorch's default, expandable segments, max_split_size_mb:128, "
        "and expandable segments with pages of 12 MiB. It tries none that the "
        "release of PyTorch that wrote a recording does not know. It chooses "
        "the first that survives, and a later one only if each further knob "
        "saves at least 1 % of the peak (--worth).\n\n"
        "What a setting saves is the share of peak reserved memory that the "
        "job as it was recorded needs in addition: the geometric mean over "
        "all traces. Every trace must survive its bound.\n\n"
        "Each answer says one of three words: survives, of a run that is "
        "known to its end; serves what was recorded, of a job that died; or "
        "fails. A setting for a job that died is exported only if its bound "
        "is enough for further steps with a probability of 90 %, judged by "
        "how the peaks of its complete steps differ. Otherwise the setting is "
        "a comment, which says what would be enough, if the steps tell.\n\n"
        "The output is comments and one line that exports the variable, so "
        "that a shell can source it. The comments state what the setting "
        "saves, what it costs, what it cannot be combined with, and all "
        "settings that were tried.\n\n"
        "If no setting survives, the exit code is 1 and every line is a "
        "comment. If the requests of a complete run alone exceed the bound, "
        "none is tried, because then no allocator can help.",
    .example = "fragsim tune snapshot.pickle --capacity 24GiB",
    .options = options,
    .size = sizeof(struct tune_values),
    .defaults = &(const struct tune_values){.cell = CELL_DEFAULTS},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = tune_run_verb,
};
