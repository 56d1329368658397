/* verb_tune.c - the command tune: finds the PYTORCH_CUDA_ALLOC_CONF that
 * jobs need. The settings are in sim/experiments/tune/. */
#include <stdlib.h>
#include <string.h>

#include "policies/torch/versions.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/output/tune_report.h"
#include "sim/cli/question_options.h"
#include "sim/version.h"
#include "traces/bytes/sink.h"
#include "traces/grow.h"
#include "traces/name.h"
#include "traces/printable.h"
#include "traces/text.h"

struct tune_values {
    struct common common;
    struct question_values question;
    struct texts without;
    struct outputs outputs;
    const char *torch_version;
    uint64_t jobs;
};

struct tuning {
    const struct call *call;
    const struct tune_values *values;
    struct progress progress;
    struct unread unread;
    struct cell_settings settings;
    struct question_asked asked; /* of the file that is read */
    struct tune_ladder ladder;

    struct frag_trace **traces;
    size_t trace_count;
    struct tune_case *cases; /* their names are owned */
    struct question *about;  /* [case_count] */
    size_t case_count;
    uint64_t case_room, about_room;
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

/* Checks the keys that no setting shall have. */
static enum frag_err check_without(const struct texts *without,
                                   struct frag_error *e)
{
    char known[256] = "";

    for (const struct torch_setting *s = torch_known_settings; s->name; s++)
        if (tune_has_key(s->name))
            text_add(known, sizeof(known), ", ", "%s", s->name);
    for (size_t i = 0; i < without->count; i++)
        if (!tune_has_key(without->items[i]))
            return frag_fail(e, FRAG_INVALID,
                             "--without: \"%.40s\" is not a setting that is "
                             "tried; those settings are %s",
                             without->items[i], known);
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

    FRAG_TRY(question_settings(&t->settings, e));
    t->ladder = (struct tune_ladder){
        .settings = &t->settings,
        .without = &v->without,
        .on = cli_threads(t->call, v->jobs, v->common.quiet),
        .progress = {begin_progress, tell_progress, t},
    };
    FRAG_TRY(
        read_version(t, e)); /* refuses a wrong text before a file is read */
    return check_without(&v->without, e);
}

/* ---- the traces ---- */

static enum frag_err add_case(void *user, const struct input *in,
                              struct frag_error *e)
{
    struct tuning *t = user;
    struct question about;
    char *name;

    FRAG_TRY(input_tells(in, e));
    FRAG_TRY(question_make(&t->asked, in->trace, in->device, &about, e));
    if (!GROW(t->cases, t->case_room, t->case_count + 1) ||
        !GROW(t->about, t->about_room, t->case_count + 1))
        return FRAG_NOMEM;
    name = strdup(in->name);
    if (!name)
        return FRAG_NOMEM;
    t->about[t->case_count] = about;
    return tune_case_make(&about, name, in->trace, in->device,
                          &t->cases[t->case_count++], e);
}

static enum frag_err open_trace(struct tuning *t, const char *path,
                                struct frag_error *e)
{
    struct trace_reading reading;
    struct frag_trace *trace;
    enum frag_err err = FRAG_NOMEM;
    char *name;

    FRAG_TRY(question_read(&t->values->question, path, &t->asked, &reading, e));
    t->asked.or_least = true;
    reading.kind = READING_COMPLETED;
    reading.threads = t->values->jobs;
    FRAG_TRY(input_open(path, &reading, &t->progress, &trace, e));
    t->traces[t->trace_count++] = trace;
    name = frag_trace_name(path);
    if (name)
        err = input_each_device(trace, name, t->values->question.device,
                                add_case, t, e);
    free(name);
    return err;
}

/* Drops the cases of a trace of which a device cannot be used. */
static enum frag_err use_trace(void *user, const char *path,
                               struct frag_error *e)
{
    struct tuning *t = user;
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
    t->traces =
        calloc(t->values->common.args.count, sizeof(struct frag_trace *));
    if (!t->traces)
        return FRAG_NOMEM;
    FRAG_TRY(unread_each(&t->unread, use_trace, t, e));
    t->ladder.cases = t->cases;
    t->ladder.case_count = t->case_count;
    return read_version(t, e);
}

/* ---- the settings ---- */

/* Finds the notes of every case with the settings that are shown. */
static enum frag_err find_notes(struct tuning *t, struct frag_error *e)
{
    t->notes = calloc(t->case_count, sizeof(*t->notes));
    if (!t->notes)
        return frag_no_memory(e, "the notes");
    for (size_t i = 0; i < t->case_count; i++)
        FRAG_TRY(tune_notes(&t->ladder, i, t->ladder.best, &t->notes[i], e));
    return FRAG_OK;
}

static enum frag_err climb(struct tuning *t, struct frag_error *e)
{
    FRAG_TRY(tune_climb(&t->ladder, e));
    return find_notes(t, e);
}

/* ---- all of it ---- */

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    (void)e;
    if (j)
        tune_print_json(user, j);
    else
        tune_print(user, out);
    return FRAG_OK;
}

/* Writes the JSON, and then the text unless the JSON went to stdout. */
static enum frag_err say(const struct tuning *t, struct frag_error *e)
{
    struct tune_answer found = {
        .ladder = &t->ladder,
        .about = t->about,
        .notes = t->notes,
    };
    const struct answer answer = {put, NULL, &found};
    const char *json = t->values->outputs.json;

    if (json)
        FRAG_TRY(answer_write(t->call, &answer, json, e));
    return sink_is_stdout(json) ? FRAG_OK
                                : answer_write(t->call, &answer, NULL, e);
}

static enum frag_err tune_all(struct tuning *t, struct frag_error *e)
{
    enum frag_err err;

    FRAG_TRY(read_options(t, e));
    FRAG_TRY(open_traces(t, e));
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
    free(t->notes);
    free(t->about);
    free(t->cases);
    free(t->traces);
}

static int tune_run_verb(const struct call *call, const void *values)
{
    struct tuning t = {.call = call, .values = values};
    struct frag_error e = {""};
    enum frag_err err;
    int code = outputs_check(call, &t.values->outputs);

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
    QUESTION_OPTIONS(AT),
    {"torch-version", 0, "VERSION", OPTION_TEXT, AT(torch_version), NULL,
     "try only settings that this version of PyTorch knows, such as 2.6 "
     "(default: the oldest that may have written the recordings)"},
    {"without", 0, "SETTING", OPTION_LIST, AT(without), NULL,
     "do not try this setting, such as expandable_segments where the driver's "
     "virtual memory calls are missing; repeat the option for more settings"},
    OUTPUT_JSON_OPTION(AT, "the result as JSON; - is stdout"),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    JOBS_OPTION(AT(jobs)),
    {0},
};
/* clang-format on */

const struct verb verb_tune = {
    .name = "tune",
    .args = "TRACE...",
    .summary = "find the PYTORCH_CUDA_ALLOC_CONF that a job needs",
    .about =
        "The command runs the traces with the few settings of PyTorch's "
        "allocator that a person would try, the simplest first: the recorded "
        "ones, PyTorch's default, expandable segments, max_split_size_mb:128, "
        "and expandable segments with pages of 12 MiB. It tries none that the "
        "release of PyTorch that wrote a recording does not know.\n\n"
        "Of each it says whether it is enough for the memory in question, and "
        "what the job needs: the least memory from which on nothing fails. "
        "The memory is that of the options, or else that which the recorded "
        "job had. If the recorded settings are enough, they stay. Otherwise "
        "the setting that leaves most room is chosen, and one with more knobs "
        "only if each of them saves at least 1 % of the need. With -c inf, or "
        "if nothing tells how much memory the job had, the setting with the "
        "least need is chosen, and the answer says so. Every trace must stay "
        "within its memory.\n\n"
        "A setting is enough if nothing fails in the whole run. The rest of a "
        "job that died is not known: there it is enough if at least nine of "
        "ten recorded jobs in this state lived with such a setting, and worth "
        "trying if fewer did. What is worth trying is a comment, with the "
        "count.\n\n"
        "The output is comments and one line that exports the variable, so "
        "that a shell can source it. The comments state what the setting "
        "saves of the recorded peak, what it costs, what it cannot be "
        "combined with, and all settings that were tried. If none is known to "
        "be enough, the exit code is 1 and every line is a comment.",
    .example = "fragsim tune snapshot.pickle --capacity 24GiB",
    .options = options,
    .size = sizeof(struct tune_values),
    .defaults = &(const struct tune_values){.question = QUESTION_DEFAULTS},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = tune_run_verb,
};
