/* tune.c - the command tune: finds the best PYTORCH_CUDA_ALLOC_CONF for traces.
 * The search itself is in sim/experiments/tune/. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/versions.h"
#include "sim/arena/arena.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/output/tune_files.h"
#include "sim/cli/output/tune_report.h"
#include "sim/cli/threads.h"
#include "sim/experiments/tune/memo.h"
#include "traces/bytes/sink.h"
#include "traces/grow.h"
#include "traces/name.h"

enum { EVALUATIONS = 400 };
static const double TOLERANCE = 0.01;

struct values {
    struct common common;
    struct cell_values cell;
    struct texts without;
    struct outputs outputs;
    const char *max_calls, *max_seconds, *tolerance, *torch_version, *verify;
    frag_size capacity;
    uint64_t seed, evaluations, jobs;
    bool no_vmm, fraction, no_hold_out, simplest;
};

struct tuning {
    const struct call *call;
    const struct values *values;
    struct progress progress;
    size_t searches; /* that began */
    struct cell_settings settings;
    struct tune_search search;
    struct tune_rule rule;
    const struct tune_trial *chosen; /* NULL: nothing is within the bounds */

    struct frag_trace **traces;
    size_t trace_count;
    struct tune_case *cases; /* their names are owned */
    size_t case_count;
    uint64_t case_room;
    struct tune_held_outs held_out;
    struct tune_impossible *impossible;
    size_t impossible_count;
    struct cell_notes *notes; /* [case_count] */
};

/* ---- progress ---- */

static void begin_progress(void *user, const struct tune_search *s)
{
    struct tuning *t = user;
    const size_t searches = 1 + (t->values->no_hold_out ? 0 : t->case_count);
    double events = 0;

    for (size_t i = 0; i < s->case_count; i++)
        events += (double)s->cases[i].device->count;
    progress_step(&t->progress, ++t->searches, searches, " events", events,
                  "tune");
}

static void tell_progress(void *user, uint64_t done, uint64_t total,
                          double saving)
{
    struct tuning *t = user;
    struct progress *p = &t->progress;

    snprintf(p->label, sizeof(p->label),
             "%" PRIu64 " of %" PRIu64 " tries, saves %.1f %%", done, total,
             100 * saving);
    (void)progress_tick(p, done, total); /* the search asks for a stop itself */
}

/* ---- options ---- */

/* Reads a number; *bound is unchanged if the option is not given. */
static enum frag_err read_bound(const char *option, const char *text,
                                double *bound, struct frag_error *e)
{
    char *end;
    double x;

    if (!text)
        return FRAG_OK;
    x = strtod(text, &end);
    if (end == text || *end || !(x >= 0) || !isfinite(x))
        return frag_fail(e, FRAG_INVALID,
                         "--%s: expected a number, 0 or more, found \"%.40s\"",
                         option, text);
    *bound = x;
    return FRAG_OK;
}

static enum frag_err forbid(struct tune_space *space, const char *name,
                            struct frag_error *e)
{
    char known[256] = "";

    for (int k = 0; k < TUNE_KNOB_COUNT; k++) {
        size_t used = strlen(known);

        if (!strcmp(tune_knob_names[k], name)) {
            space->allowed[k] = false;
            return FRAG_OK;
        }
        snprintf(known + used, sizeof(known) - used, "%s%s", k ? ", " : "",
                 tune_knob_names[k]);
    }
    return frag_fail(e, FRAG_INVALID,
                     "--without: \"%.40s\" is not a setting that is tuned; "
                     "those settings are %s",
                     name, known);
}

static enum frag_err restrict_to(struct tune_space *space, const char *text,
                                 struct frag_error *e)
{
    struct frag_error why;
    unsigned version;
    enum frag_err err = torch_version_read(text, &version, &why);

    if (err != FRAG_OK)
        return frag_fail(e, err, "--torch-version: %s", why.text);
    tune_restrict(space, version);
    return FRAG_OK;
}

static enum frag_err read_space(const struct values *v,
                                const struct cell_settings *settings,
                                struct tune_space *space, struct frag_error *e)
{
    for (int k = 0; k < TUNE_KNOB_COUNT; k++)
        space->allowed[k] = true;
    space->allowed[TUNE_EXPANDABLE] = !v->no_vmm;
    space->allowed[TUNE_GC] = space->allowed[TUNE_LIMIT] = v->fraction;
    for (size_t i = 0; i < v->without.count; i++)
        FRAG_TRY(forbid(space, v->without.items[i], e));
    if (v->torch_version)
        FRAG_TRY(restrict_to(space, v->torch_version, e));
    space->total = settings->total                 ? settings->total
                   : v->capacity != FRAG_UNLIMITED ? v->capacity
                                                   : FRAG_H200_TOTAL;
    return FRAG_OK;
}

static enum frag_err read_options(struct tuning *t, struct frag_error *e)
{
    const struct values *v = t->values;
    struct tune_search *s = &t->search;

    FRAG_TRY(cell_settings_read(&v->cell, &t->settings, e));
    t->settings.stop_at_oom = true;
    *s = (struct tune_search){
        .settings = &t->settings,
        .goal = {v->capacity, INFINITY, INFINITY},
        .seed = v->seed,
        .on = cli_threads(t->call, v->jobs, v->common.quiet),
        .evaluations = v->evaluations,
        .progress = {begin_progress, tell_progress, t},
    };
    t->rule.tolerance = v->simplest ? INFINITY : TOLERANCE;
    FRAG_TRY(read_bound("tolerance", v->tolerance, &t->rule.tolerance, e));
    FRAG_TRY(read_bound("max-calls-ratio", v->max_calls,
                        &s->goal.max_calls_ratio, e));
    FRAG_TRY(
        read_bound("max-seconds", v->max_seconds, &s->goal.max_seconds, e));
    return read_space(v, &t->settings, &s->space, e);
}

/* ---- the traces ---- */

static enum frag_err add_case(void *user, const struct input *in,
                              struct frag_error *e)
{
    struct tuning *t = user;
    struct tune_memo *memo;
    char *name;

    FRAG_TRY(input_has_history(in, e));
    if (!GROW(t->cases, t->case_room, t->case_count + 1))
        return FRAG_NOMEM;
    FRAG_TRY(tune_memo_open(in->device, in->trace->settings, TUNE_MEMO_LEAST,
                            &memo, e));
    name = strdup(in->name);
    if (!name) {
        tune_memo_close(memo);
        return FRAG_NOMEM;
    }
    t->cases[t->case_count++] =
        (struct tune_case){name, in->device, in->trace, memo};
    return FRAG_OK;
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

static enum frag_err open_traces(struct tuning *t, struct frag_error *e)
{
    const struct texts *paths = &t->values->common.args;

    t->traces = calloc(paths->count, sizeof(struct frag_trace *));
    if (!t->traces)
        return FRAG_NOMEM;
    for (size_t i = 0; i < paths->count; i++)
        FRAG_TRY(open_trace(t, paths->items[i], e));
    t->search.cases = t->cases;
    t->search.case_count = t->case_count;
    return FRAG_OK;
}

/* ---- the search ---- */

/* Finds the cases whose requests exceed the capacity with any allocator. */
static enum frag_err find_impossible(struct tuning *t, struct frag_error *e)
{
    t->impossible = calloc(t->case_count, sizeof(*t->impossible));
    if (!t->impossible)
        return FRAG_NOMEM;
    for (size_t i = 0; i < t->case_count; i++) {
        struct tune_need need;

        FRAG_TRY(tune_need(t->cases[i].device, t->values->capacity, &need, e));
        if (need.bytes > t->values->capacity)
            t->impossible[t->impossible_count++] =
                (struct tune_impossible){i, need};
    }
    return FRAG_OK;
}

/* Finds the notes of every case with the settings that are shown. */
static enum frag_err find_notes(struct tuning *t, struct frag_error *e)
{
    const struct tune_trial *shown =
        t->chosen ? t->chosen : t->search.trials[0];

    t->notes = calloc(t->case_count, sizeof(*t->notes));
    if (!t->notes)
        return frag_no_memory(e, "the notes");
    for (size_t i = 0; i < t->case_count; i++)
        FRAG_TRY(tune_notes(&t->search, i, shown->text, &t->notes[i], e));
    return FRAG_OK;
}

static enum frag_err search(struct tuning *t, struct frag_error *e)
{
    FRAG_TRY(tune_search_run(&t->search, e));
    t->chosen = tune_choose(&t->search, &t->rule);
    FRAG_TRY(find_notes(t, e));
    return t->values->no_hold_out
               ? FRAG_OK
               : tune_hold_out(&t->search, &t->rule, &t->held_out, e);
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
        .search = &t->search,
        .chosen = t->chosen,
        .held_out = t->held_out,
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
    if (t->impossible_count)
        return say(t, e);
    err = search(t, e);
    progress_clear(&t->progress);
    FRAG_TRY(err);
    if (t->values->verify)
        FRAG_TRY(tune_files_write(t->values->verify, &t->search,
                                  t->chosen ? t->chosen : t->search.trials[0],
                                  e));
    return say(t, e);
}

static void close_all(struct tuning *t)
{
    tune_search_close(&t->search);
    tune_held_outs_close(&t->held_out);
    for (size_t i = 0; i < t->case_count; i++) {
        free((void *)(uintptr_t)t->cases[i].name);
        tune_memo_close(t->cases[i].memo);
    }
    for (size_t i = 0; i < t->trace_count; i++)
        frag_trace_close(t->traces[i]);
    free(t->impossible);
    free(t->notes);
    free(t->cases);
    free(t->traces);
}

static int check_options(const struct call *call, const struct values *v)
{
    struct outputs o = v->outputs;

    if (v->simplest && v->tolerance)
        return cli_misuse(call, "--simplest allows any saving; leave out "
                                "--tolerance");
    if (v->simplest && v->capacity == FRAG_UNLIMITED)
        return cli_misuse(call, "--simplest looks for a setting that survives "
                                "a capacity; pass --capacity");
    if (sink_is_stdout(v->verify))
        return cli_misuse(call, "--verify-with writes several files, and not "
                                "to stdout");
    o.own[0] = v->verify;
    return outputs_check(call, &o);
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
    cli_catch_signals();
    err = tune_all(&t, &e);
    close_all(&t);
    return err == FRAG_OK && !t.chosen ? EXIT_NO : cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct values, field)
static const struct option_row options[] = {
    {"capacity", 'c', "SIZE",
     "memory of the device; the job must survive with it (default: inf)",
     OPTION_SIZE, AT(capacity), NULL},
    {"max-calls-ratio", 0, "R",
     "upper bound on extra driver calls, relative to the default settings: "
     "0.01 is 1 % (default: no bound)",
     OPTION_TEXT, AT(max_calls), NULL},
    {"max-seconds", 0, "X",
     "upper bound on extra seconds in the driver, compared with the default "
     "settings, by the cost model (default: no bound)",
     OPTION_TEXT, AT(max_seconds), NULL},
    {"tolerance", 0, "R",
     "choose the simplest setting beside which no other saves more than R of "
     "the best saving, nor more than R / 10 of the default's peak for each "
     "knob that it has more; 0: the best setting (default: 0.01, that is 1 %)",
     OPTION_TEXT, AT(tolerance), NULL},
    {"simplest", 0, NULL,
     "choose the simplest setting that survives the capacity and stays within "
     "the bounds, whatever it saves",
     OPTION_SWITCH, AT(simplest), NULL},
    {"torch-version", 0, "VERSION",
     "use only settings and values that this version of PyTorch knows, such "
     "as 2.6; the placement stays that of 2.11 (default: those of 2.11)",
     OPTION_TEXT, AT(torch_version), NULL},
    {"no-vmm", 0, NULL,
     "use no settings that need the driver's virtual memory calls: no "
     "expandable segments",
     OPTION_SWITCH, AT(no_vmm), NULL},
    {"without", 0, "SETTING", "do not change this setting; repeat the option "
                              "for more settings",
     OPTION_LIST, AT(without), NULL},
    {"fraction", 0, NULL,
     "also try a memory limit (per_process_memory_fraction), and garbage "
     "collection below it; the job then fails if it needs more memory than in "
     "the trace",
     OPTION_SWITCH, AT(fraction), NULL},
    {"seed", 0, "N", "seed of the annealing (default: 1)",
     OPTION_NUMBER, AT(seed), NULL},
    {"evaluations", 0, "N", "number of settings that the annealing tries "
                            "(default: 400)",
     OPTION_NUMBER, AT(evaluations), NULL},
    {"no-hold-out", 0, NULL,
     "skip the hold-out test, which repeats the search without a part of the "
     "traces and runs the setting that it finds on that part",
     OPTION_SWITCH, AT(no_hold_out), NULL},
    {"verify-with", 0, "FILE",
     "write files for a run on a real device that verifies the figures: jobs "
     "as JSON lines (events, conf, cap, predicted), and the event streams "
     "beside them",
     OPTION_TEXT, AT(verify), NULL},
    OUTPUT_JSON_OPTION(AT, "the result as JSON; - is stdout"),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    {"jobs", 'j', "N", "number of threads (default: the processors that the "
                       "process may use)",
     OPTION_NUMBER, AT(jobs), NULL},
    CELL_MODEL_OPTIONS(AT),
    {0},
};
/* clang-format on */

const struct verb verb_tune = {
    .name = "tune",
    .args = "TRACE...",
    .summary = "find the best PYTORCH_CUDA_ALLOC_CONF for traces",
    .about =
        "The command searches for the settings of PyTorch's allocator that "
        "minimize peak reserved memory: the geometric mean, over all traces, "
        "of its ratio to the peak with the default settings. Every trace must "
        "stay within the bounds. The search is a coarse grid, then simulated "
        "annealing, then coordinate descent. The same seed finds the same "
        "settings.\n\n"
        "Of the settings found, the command chooses the simplest that saves "
        "almost as much as the best; --tolerance says how much. The simpler of "
        "two settings has fewer knobs: each setting that differs from "
        "PyTorch's default is one, and a list of roundup_power2_divisions is "
        "one for each of its intervals. With equally many, a switch is simpler "
        "than a size, a size than a rounding of requests, and that than a "
        "memory limit.\n\n"
        "The output is comments and one line that exports the variable, so "
        "that a shell can source it. The comments state what the setting "
        "saves, what it costs, how it does on steps (or, with several traces, "
        "on whole traces) that were held out of the search, what it cannot "
        "be combined with, what each further knob saves, and which settings "
        "no other setting beats in both memory and time.\n\n"
        "If no setting is within the bounds, the exit code is 1 and every line "
        "is a comment. The command does not search if the requests of the job "
        "alone exceed the capacity, because then no allocator can help.",
    .example = "fragsim tune snapshot.pickle --capacity 24GiB "
               "--max-calls-ratio 0.01",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.cell = CELL_DEFAULTS,
                                       .capacity = FRAG_UNLIMITED,
                                       .seed = 1,
                                       .evaluations = EVALUATIONS},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = tune_run_verb,
};
