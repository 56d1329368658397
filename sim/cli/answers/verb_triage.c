/* verb_triage.c - the command triage: what happened to a job, what to do now,
 * and how sure that is, on one page with the evidence. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/startup.h"
#include "sim/cli/answers/text/verdict_text.h"
#include "sim/cli/answers/triage.h"
#include "sim/cli/gnuplot/gnuplot.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/page/page.h"
#include "sim/cli/question_options.h"
#include "traces/bytes/sink.h"

struct triage_values {
    struct common common;
    struct question_values question;
    const char *out, *program, *json;
    bool force;
};

/* ---- the traces ---- */

struct work {
    const struct triage_values *values;
    struct question_asked asked;
    struct trace_reading reading;
    struct cell_settings settings;
    struct triage file; /* what all devices share */
    struct triages all;
    uint32_t refused;      /* devices without a bound */
    struct frag_error why; /* of the last of them */
};

static enum frag_err open_trace(struct work *w, const char *path,
                                struct frag_trace **out, struct frag_error *e)
{
    return input_open(path, &w->reading, w->file.progress, out, e);
}

static enum frag_err run_rest(struct work *w, struct frag_error *e)
{
    const struct triage_values *v = w->values;
    struct triage *t = &w->file;
    const struct rest_spec spec = {
        .program = v->program,
        .gpu = v->question.bound.gpu,
        .page = v->out,
        .force = v->force,
        .progress = t->progress,
    };

    if (!v->program)
        return FRAG_OK;
    FRAG_TRY(rest_run(&spec, t->trace, &t->rest, e));
    return open_trace(w, t->rest.path, &t->whole, e);
}

/* ---- the devices ---- */

static enum frag_err add_device(void *user, const struct input *in,
                                struct frag_error *e)
{
    struct work *w = user;
    struct triage *t;

    if (in->device->device == FRAG_HOST_DEVICE)
        return FRAG_OK;
    t = &w->all.items[w->all.count];
    *t = w->file;
    t->device = in->device;
    if (question_make(&w->asked, in->trace, in->device, &t->about, e) !=
        FRAG_OK) {
        w->refused++;
        w->why = *e;
        return FRAG_OK;
    }
    if (t->about.bound.bytes == FRAG_UNLIMITED && recording_tells(in->device))
        return frag_fail(e, FRAG_INVALID,
                         "--capacity, --process-limit: expected a finite size; "
                         "`fragsim fit' finds what the job needs");
    t->is_recorded = question_is_recorded(&t->about);
    w->all.count++;
    return FRAG_OK;
}

/* The GPUs on which a request failed come first. */
static void put_failed_first(struct triages *all)
{
    size_t failed = 0;

    for (size_t i = 0; i < all->count; i++) {
        const struct triage t = all->items[i];

        if (!explain_has_failure(t.device))
            continue;
        memmove(&all->items[failed + 1], &all->items[failed],
                (i - failed) * sizeof(t));
        all->items[failed++] = t;
    }
}

static enum frag_err say_left_out(struct work *w, struct frag_error *e)
{
    char text[sizeof(w->why.text) + 64];

    if (!w->all.count)
        return *e = w->why, FRAG_INVALID;
    snprintf(text, sizeof(text), "%" PRIu32 " of its GPUs have no answer: %s",
             w->refused, w->why.text);
    fprintf(stderr, "fragsim triage: %s\n", text);
    return frag_trace_note(w->file.trace, text, e);
}

static enum frag_err find_devices(struct work *w, struct frag_error *e)
{
    struct frag_trace *trace = w->file.trace;

    w->all.items = calloc(trace->device_count + 1, sizeof(*w->all.items));
    if (!w->all.items)
        return frag_no_memory(e, "the devices of %s", trace->path);
    FRAG_TRY(input_each_device(trace, "", w->values->question.device,
                               add_device, w, e));
    if (w->refused)
        FRAG_TRY(say_left_out(w, e));
    put_failed_first(&w->all);
    return w->all.count ? FRAG_OK
                        : frag_fail(e, FRAG_UNSUPPORTED,
                                    "%s: expected the memory of a GPU, found "
                                    "only that of the host, for which "
                                    "`fragsim explain' and `fragsim fit' "
                                    "answer",
                                    trace->path);
}

/* ---- the verdicts ---- */

static void begin(void *user, unsigned stage, const char *name)
{
    progress_step(user, stage, VERDICT_STAGES + 1, " events", 1, name);
}

static enum frag_err decide(struct work *w, struct triage *t,
                            struct frag_error *e)
{
    const struct verdict_question q = {
        .about = t->about,
        .rest = t->whole,
        .settings = &w->settings,
        .on = cli_threads(t->call, 0, true),
        .began = begin,
        .progress = progress_tick,
        .user = t->progress,
    };

    FRAG_TRY(verdict_make(&q, &t->verdict, e));
    progress_clear(t->progress);
    return FRAG_OK;
}

/* ---- the answers ---- */

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    const struct triages *all = user;

    (void)e;
    for (size_t i = 0; i < all->count; i++) {
        if (j)
            verdict_put_json(&all->items[i].verdict, j);
        else
            verdict_put_text(&all->items[i].verdict, out);
    }
    return FRAG_OK;
}

/* The text comes last, and not beside JSON on stdout. */
static enum frag_err answer(struct work *w, struct frag_error *e)
{
    const struct triage_values *v = w->values;
    const struct answer text = {put, NULL, &w->all};

    if (v->out)
        FRAG_TRY(triage_write(&w->all, v->out, e));
    if (v->json)
        FRAG_TRY(answer_write(w->file.call, &text, v->json, e));
    return sink_is_stdout(v->json) ? FRAG_OK
                                   : answer_write(w->file.call, &text, NULL, e);
}

static enum frag_err triage_all(struct work *w, struct frag_error *e)
{
    struct triage *t = &w->file;

    FRAG_TRY(question_read(&w->values->question, t->path, &w->asked,
                           &w->reading, e));
    FRAG_TRY(question_settings(&w->settings, e));
    FRAG_TRY(open_trace(w, t->path, &t->trace, e));
    FRAG_TRY(run_rest(w, e));
    FRAG_TRY(find_devices(w, e));
    for (size_t i = 0; i < w->all.count; i++)
        FRAG_TRY(decide(w, &w->all.items[i], e));
    return answer(w, e);
}

static void close_all(struct work *w)
{
    for (size_t i = 0; i < w->all.count; i++)
        verdict_close(&w->all.items[i].verdict);
    free(w->all.items);
    frag_trace_close(w->file.whole);
    frag_trace_close(w->file.trace);
    free(w->file.rest.path);
}

/* The worst of the devices. */
static int exit_of(const struct triages *all)
{
    int code = EXIT_DONE;

    for (size_t i = 0; i < all->count; i++) {
        const struct verdict *v = &all->items[i].verdict;

        if (v->state == VERDICT_UNSEEN)
            return EXIT_INPUT;
        if (!v->ladder.chosen)
            code = EXIT_NO;
    }
    return code;
}

/* ---- the log of a server, in place of a recording ---- */

/* False if the file is no such log. */
static bool read_log(const char *path, struct startup *out)
{
    FILE *in = fopen(path, "r");

    if (!in)
        return false;
    startup_read(in, out);
    fclose(in);
    return out->server != NULL;
}

static enum frag_err put_log(void *user, FILE *out, struct frag_json *j,
                             struct frag_error *e)
{
    (void)e;
    if (!j) {
        startup_put(user, out);
        return FRAG_OK;
    }
    frag_json_new_object(j, 4, NULL);
    startup_json(user, j);
    frag_json_end(j);
    return FRAG_OK;
}

static int answer_log(const struct call *call, const struct triage_values *v,
                      struct startup *s)
{
    const struct answer a = {put_log, NULL, s};
    struct frag_error e = {""};
    enum frag_err err;

    if (v->out || v->program)
        return cli_misuse(call,
                          "%s is the log of a server: expected neither "
                          "-o nor --dry, which need a recording",
                          v->common.args.items[0]);
    err = answer_write(call, &a, v->json, &e);
    if (err != FRAG_OK)
        return cli_fail(call, err, &e);
    return s->failure ? EXIT_NO : EXIT_DONE;
}

/* ---- the command ---- */

static int check_options(const struct call *call, const char *path,
                         const struct triage_values *v)
{
    int code;

    if (v->out && !page_is_named(v->out))
        return cli_misuse(call, PAGE_EXPECTED);
    if (!strcmp(path, "-"))
        return cli_misuse(call, "expected the name of a file, found \"-\": "
                                "the commands of the page read it again");
    if (v->program && !v->out)
        return cli_misuse(call, "--dry writes its trace beside the page of -o");
    code = cli_may_write(call, v->json, v->force);
    return code == EXIT_DONE && v->out ? cli_may_replace(call, v->out, v->force)
                                       : code;
}

static int triage_run(const struct call *call, const void *values)
{
    const struct triage_values *v = values;
    struct progress progress = progress_start(&v->common);
    struct work w = {.values = v,
                     .file = {.call = call,
                              .progress = &progress,
                              .path = v->common.args.items[0]}};
    struct frag_error e = {""};
    struct startup log;
    enum frag_err err;
    int code = check_options(call, w.file.path, v);

    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    w.file.draws = gnuplot_is_installed();
    err = triage_all(&w, &e);
    progress_clear(&progress);
    if (err == FRAG_CORRUPT && !w.file.trace && read_log(w.file.path, &log))
        return answer_log(call, v, &log);
    code = err == FRAG_OK ? exit_of(&w.all) : cli_fail(call, err, &e);
    close_all(&w);
    return code;
}

/* clang-format off */
#define AT(field) offsetof(struct triage_values, field)
static const struct option_row options[] = {
    QUESTION_OPTIONS(AT),
    PAGE_OPTION(AT(out)),
    {"json", 0, "FILE", OPTION_TEXT, AT(json), NULL,
     "write the verdict as JSON; - is stdout"},
    {"dry", 0, "PROGRAM", OPTION_TEXT, AT(program), NULL,
     "run this command line, the program of the job, without a GPU to its end: "
     "its trace takes the place of the predicted rest of a job that died, and "
     "is kept beside the page as NAME-dry.pickle; --gpu is its GPU too; see "
     "`fragsim help dry'"},
    FORCE_OPTION(AT(force)),
    {0},
};
/* clang-format on */

const struct verb verb_triage = {
    .name = "triage",
    .args = "SNAPSHOT",
    .summary = "what to do about a failed job: the answers on one page",
    .about =
        "The answer has three short parts: what happened, in plain words; what "
        "to do now, one action; and how sure that is. The first line says for "
        "which memory: that of the options, or that which the recorded job "
        "had. The action is the first of these that holds:"
#define X(name, word, text) "\n\n" word ": " text "."
    VERDICT_ACTIONS(X)
#undef X
        "\n\n"
        "No change is promised that was not replayed. A setting is enough if "
        "nothing fails in the whole run or, for a job that died, at least "
        "nine of ten recorded jobs in its state lived with it; it is worth "
        "trying if fewer did, and then it is not exported. Below stands what "
        "the job needs, and the smallest GPU that has it. With -o, the parts "
        "are on a "
        "page, and the evidence follows them: explain, tune, fit, a memory "
        "map, top, steps, leaks and summary, each with the command line that "
        "prints it again.\n\n"
        "The recording of a job that died is completed with steps like those "
        "before. With --dry, its own program says what it would have "
        "requested: the program runs without a GPU to its end, on a GPU that "
        "never refuses, and the answers are those of that whole run. The page "
        "says whether its requests begin like the recorded ones.\n\n"
        "The file may also be what vLLM or SGLang printed while it started: "
        "then the answer says what each part took of the memory, and, if the "
        "server died, whether at its start or when it served, since the advice "
        "is the opposite; the exit code is 1 if it died.\n\n"
        "A part that cannot be answered holds the message of its command.",
    .example = "fragsim triage oom.pickle -o review.html",
    .options = options,
    .size = sizeof(struct triage_values),
    .defaults = &(const struct triage_values){.question = QUESTION_DEFAULTS},
    .args_min = 1,
    .args_max = 1,
    .run = triage_run,
};
