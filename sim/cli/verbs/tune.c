/* tune.c - the command tune: finds the best PYTORCH_CUDA_ALLOC_CONF for traces.
 * The search itself is in sim/experiments/tune/. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/arena/arena.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/output/tune_files.h"
#include "sim/cli/output/tune_report.h"
#include "sim/cli/threads.h"
#include "sim/experiments/tune/split.h"
#include "traces/bytes/sink.h"
#include "traces/grow.h"
#include "traces/name.h"

enum { EVALUATIONS = 400 };

struct values {
    struct common common;
    struct cell_values cell;
    struct texts without;
    struct outputs outputs;
    const char *max_calls, *max_seconds, *verify;
    frag_size capacity;
    uint64_t seed, evaluations, jobs;
    bool no_vmm, fraction, no_hold_out;
};

struct tuning {
    const struct call *call;
    const struct values *values;
    struct progress progress;
    struct cell_settings settings;
    struct tune_search search;

    struct frag_trace **traces;
    size_t trace_count;
    struct tune_case *cases; /* their names are owned */
    size_t case_count;
    uint64_t case_room;
    struct tune_held_out *held_out;
    size_t held_out_count;
};

/* ---- options ---- */

static enum frag_err read_bound(const char *option, const char *text,
                                double *bound, struct frag_error *e)
{
    char *end;
    double x;

    *bound = INFINITY;
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

static enum frag_err read_options(struct tuning *t, struct frag_error *e)
{
    const struct values *v = t->values;
    struct tune_search *s = &t->search;

    FRAG_TRY(cell_settings_read(&v->cell, &t->settings, e));
    t->settings.stop_at_oom = true;
    *s = (struct tune_search){
        .settings = &t->settings,
        .goal = {.capacity = v->capacity},
        .seed = v->seed,
        .on = cli_threads(t->call, v->jobs, v->common.quiet),
        .evaluations = v->evaluations,
    };
    FRAG_TRY(read_bound("max-calls-ratio", v->max_calls,
                        &s->goal.max_calls_ratio, e));
    FRAG_TRY(
        read_bound("max-seconds", v->max_seconds, &s->goal.max_seconds, e));
    for (int k = 0; k < TUNE_KNOB_COUNT; k++)
        s->space.allowed[k] = true;
    s->space.allowed[TUNE_EXPANDABLE] = !v->no_vmm;
    s->space.allowed[TUNE_GC] = s->space.allowed[TUNE_LIMIT] = v->fraction;
    for (size_t i = 0; i < v->without.count; i++)
        FRAG_TRY(forbid(&s->space, v->without.items[i], e));
    s->space.total = t->settings.total               ? t->settings.total
                     : v->capacity != FRAG_UNLIMITED ? v->capacity
                                                     : FRAG_H200_TOTAL;
    return FRAG_OK;
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
    t->cases[t->case_count++] = (struct tune_case){name, in->device, in->trace};
    return FRAG_OK;
}

static enum frag_err open_trace(struct tuning *t, const char *path,
                                struct frag_error *e)
{
    const struct cell_values *v = &t->values->cell;
    struct frag_trace *trace;
    enum frag_err err = FRAG_NOMEM;
    char *name;

    FRAG_TRY(input_open(path, v->limit, &t->progress, &trace, e));
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

/* ---- held out ---- */

/* Runs the same search on `cases`, and then runs its best settings on `part`.
 */
static enum frag_err hold_out(struct tuning *t, const struct tune_case *cases,
                              size_t count, const struct tune_case *part,
                              const char *name, struct frag_error *e)
{
    struct tune_held_out *h = &t->held_out[t->held_out_count];
    struct tune_search s = t->search;
    enum frag_err err;

    s.cases = cases;
    s.case_count = count;
    s.space.reference = 0;
    s.base = NULL;
    s.trials = NULL;
    s.trial_count = 0;
    s.known = NULL;
    err = tune_search_run(&s, e);
    if (err == FRAG_OK) {
        *h = (struct tune_held_out){.name = strdup(name),
                                    .text = strdup(s.trials[0]->text)};
        t->held_out_count++;
        err = h->name && h->text ? FRAG_OK : FRAG_NOMEM;
    }
    if (err == FRAG_OK)
        err = tune_run(&t->settings, &s.on.stop, part, FRAG_UNLIMITED, "",
                       &h->base, e);
    if (err == FRAG_OK)
        err = tune_run(&t->settings, &s.on.stop, part, s.goal.capacity, h->text,
                       &h->found, e);
    tune_search_close(&s);
    return err;
}

/* Holds out the second half of the only trace. */
static enum frag_err hold_out_half(struct tuning *t, struct frag_error *e)
{
    struct tune_halves halves;
    struct tune_case first = t->cases[0], rest = t->cases[0];
    enum frag_err err;

    err = tune_split(t->cases[0].device, &halves, e);
    if (err == FRAG_UNSUPPORTED)
        return FRAG_OK; /* the trace is too short to hold out a part */
    FRAG_TRY(err);
    first.device = &halves.first;
    rest.device = &halves.rest;
    err = hold_out(t, &first, 1, &rest, "the second half", e);
    tune_halves_close(&halves);
    return err;
}

/* Holds out each of several traces in turn. */
static enum frag_err hold_out_each(struct tuning *t, struct frag_error *e)
{
    struct tune_case *others = calloc(t->case_count, sizeof(*others));
    enum frag_err err = others ? FRAG_OK : FRAG_NOMEM;

    for (size_t i = 0; err == FRAG_OK && i < t->case_count; i++) {
        for (size_t k = 0, n = 0; k < t->case_count; k++)
            if (k != i)
                others[n++] = t->cases[k];
        err = hold_out(t, others, t->case_count - 1, &t->cases[i],
                       t->cases[i].name, e);
    }
    free(others);
    return err;
}

static enum frag_err validate(struct tuning *t, struct frag_error *e)
{
    if (t->values->no_hold_out)
        return FRAG_OK;
    t->held_out = calloc(t->case_count, sizeof(*t->held_out));
    if (!t->held_out)
        return FRAG_NOMEM;
    return t->case_count == 1 ? hold_out_half(t, e) : hold_out_each(t, e);
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
    const struct tune_answer answer = {&t->search, t->held_out,
                                       t->held_out_count};
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
    FRAG_TRY(read_options(t, e));
    FRAG_TRY(open_traces(t, e));
    FRAG_TRY(tune_search_run(&t->search, e));
    FRAG_TRY(validate(t, e));
    if (t->values->verify)
        FRAG_TRY(tune_files_write(t->values->verify, &t->search, e));
    return say(t, e);
}

static void close_all(struct tuning *t)
{
    tune_search_close(&t->search);
    for (size_t i = 0; i < t->held_out_count; i++) {
        free(t->held_out[i].name);
        free(t->held_out[i].text);
    }
    for (size_t i = 0; i < t->case_count; i++)
        free((void *)(uintptr_t)t->cases[i].name);
    for (size_t i = 0; i < t->trace_count; i++)
        frag_trace_close(t->traces[i]);
    free(t->held_out);
    free(t->cases);
    free(t->traces);
}

static int check_outputs(const struct call *call, const struct values *v)
{
    struct outputs o = v->outputs;

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
    int code = check_outputs(call, t.values);
    bool within = false;

    if (code != EXIT_DONE)
        return code;
    t.progress = progress_start(&t.values->common);
    cli_catch_signals();
    err = tune_all(&t, &e);
    if (err == FRAG_OK)
        within = t.search.trials[0]->excess <= 0;
    close_all(&t);
    return err == FRAG_OK && !within ? EXIT_NO : cli_fail(call, err, &e);
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
        "The output is comments and one line that exports the variable, so "
        "that a shell can source it. The comments state what the settings "
        "save, what they cost, how they do on steps (or, with several traces, "
        "on whole traces) that were held out of the search, what they cannot "
        "be combined with, and which settings no other setting beats in both "
        "memory and time. The exit code is 1 if no settings are within the "
        "bounds.",
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
