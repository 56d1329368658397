/* verb_triage.c - the command triage: what happened to a job, what to do now,
 * and how sure that is, on one page with the evidence. */
#include <stdlib.h>
#include <string.h>

#include "sim/answers/moment.h"
#include "sim/cli/answers/text/verdict_text.h"
#include "sim/cli/answers/triage.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/gnuplot/gnuplot.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/review/publish.h"
#include "sim/cli/scratch.h"
#include "sim/validate/stats_file.h"
#include "traces/bytes/sink.h"
#include "traces/bytes/temporary.h"

struct triage_values {
    struct common common;
    const char *out, *program, *gpu, *json;
    frag_size bounds[FRAG_BOUND_KINDS];
    uint64_t device;
    bool force;
};

/* ---- the traces ---- */

/* Reads the trace for all commands. */
static enum frag_err open_trace(struct triage *t, const char *path,
                                struct frag_trace **out, struct frag_error *e)
{
    const struct trace_reading reading = {READING_RAW, .limit = 0};

    return input_open(path, &reading, t->progress, out, e);
}

static enum frag_err run_rest(struct triage *t, const struct triage_values *v,
                              struct frag_error *e)
{
    const struct rest_spec spec = {
        .program = v->program,
        .gpu = v->gpu,
        .page = v->out,
        .force = v->force,
        .progress = t->progress,
    };

    if (!v->program)
        return FRAG_OK;
    FRAG_TRY(rest_run(&spec, t->trace, &t->rest, e));
    return open_trace(t, t->rest.path, &t->whole, e);
}

/* ---- the device ---- */

static enum frag_err peak_of(const struct frag_device_trace *d, frag_size *peak,
                             struct frag_error *e)
{
    struct requested_peak found;

    FRAG_TRY(requested_peak_find(d, &found, e));
    *peak = found.bytes;
    return FRAG_OK;
}

/* The GPU on which the job died, or else that with the highest peak. */
static enum frag_err find_device(struct triage *t, uint64_t wanted,
                                 struct frag_error *e)
{
    const struct frag_trace *trace = t->trace;
    frag_size most = 0, peak;

    if (wanted != INPUT_ANY_DEVICE)
        return input_device(trace, wanted, &t->device, e);
    for (uint32_t i = 0; i < trace->device_count; i++) {
        const struct frag_device_trace *d = &trace->devices[i];

        if (d->device == FRAG_HOST_DEVICE)
            continue;
        FRAG_TRY(peak_of(d, &peak, e));
        if (frag_fatal_request(d) != FRAG_NEVER)
            peak = FRAG_UNLIMITED;
        if (!t->device || peak > most)
            t->device = d;
        most = peak > most ? peak : most;
    }
    return t->device
               ? FRAG_OK
               : frag_fail(e, FRAG_UNSUPPORTED,
                           "%s: expected the memory of a GPU, found only "
                           "that of the host, for which `fragsim explain' "
                           "and `fragsim fit' answer",
                           trace->path);
}

/* ---- the verdict ---- */

static void begin(void *user, unsigned stage, const char *name)
{
    progress_step(user, stage, VERDICT_STAGES + 1, " events", 1, name);
}

static enum frag_err read_total(const char *path, frag_size *total,
                                struct frag_error *e)
{
    struct frag_stats_file *stats;

    FRAG_TRY(frag_stats_file_of(NULL, path, &stats, e));
    *total = stats ? frag_stats_file_total(stats) : 0;
    frag_stats_file_close(stats);
    return FRAG_OK;
}

static enum frag_err decide(struct triage *t, struct cell_settings *settings,
                            struct frag_error *e)
{
    static const struct cell_values defaults = CELL_DEFAULTS;
    struct verdict_question q = {
        .trace = t->trace,
        .device = t->device,
        .rest = t->whole,
        .bound = t->bound,
        .settings = settings,
        .on = cli_threads(t->call, 0, true),
        .began = begin,
        .progress = progress_tick,
        .user = t->progress,
    };

    FRAG_TRY(cell_settings_read(&defaults, settings, e));
    settings->from_requests = true;
    settings->stop_at_oom = true;
    FRAG_TRY(read_total(t->path, &q.total, e));
    FRAG_TRY(verdict_make(&q, &t->verdict, e));
    t->has_verdict = true;
    progress_clear(t->progress);
    return FRAG_OK;
}

/* ---- the answers ---- */

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    const struct triage *t = user;

    (void)e;
    if (j)
        verdict_put_json(&t->verdict, j);
    else
        verdict_put_text(&t->verdict, out);
    return FRAG_OK;
}

static enum frag_err publish_page(struct triage *t, const char *out,
                                  struct frag_error *e)
{
    if (!out)
        return FRAG_OK;
    FRAG_TRY(triage_draw(t, e));
    progress_step(t->progress, VERDICT_STAGES + 1, VERDICT_STAGES + 1, " parts",
                  1, "the page");
    FRAG_TRY(triage_wait(t, e));
    progress_clear(t->progress);
    return publish(out, triage_write, t, e);
}

/* The text comes last, and not beside JSON on stdout. */
static enum frag_err answer(struct triage *t, const struct triage_values *v,
                            struct frag_error *e)
{
    const struct answer text = {put, NULL, t};

    FRAG_TRY(publish_page(t, v->out, e));
    if (v->json)
        FRAG_TRY(answer_write(t->call, &text, v->json, e));
    return sink_is_stdout(v->json) ? FRAG_OK
                                   : answer_write(t->call, &text, NULL, e);
}

static enum frag_err triage_all(struct triage *t, const struct triage_values *v,
                                struct frag_error *e)
{
    struct cell_settings settings;

    FRAG_TRY(open_trace(t, t->path, &t->trace, e));
    FRAG_TRY(find_device(t, v->device, e));
    FRAG_TRY(run_rest(t, v, e));
    if (v->out) {
        FRAG_TRY(scratch_make(&t->folder, e));
        t->draws = gnuplot_is_installed();
        FRAG_TRY(triage_start(t, e));
    }
    FRAG_TRY(decide(t, &settings, e));
    return answer(t, v, e);
}

static void close_all(struct triage *t)
{
    struct frag_error ignored;

    if (t->folder)
        (void)!triage_wait(t, &ignored);
    temporary_remove(t->folder);
    if (t->has_verdict)
        verdict_close(&t->verdict);
    frag_trace_close(t->whole);
    frag_trace_close(t->trace);
    free(t->rest.path);
}

/* ---- the command ---- */

static int check_bound(const struct call *call, const struct triage *t,
                       const struct triage_values *v)
{
    if (t->bound.bytes && t->bound.bytes != FRAG_UNLIMITED &&
        !(t->bound.kind == FRAG_BOUND_LIMIT && v->bounds[FRAG_BOUND_CAPACITY]))
        return EXIT_DONE;
    return cli_misuse(call, "expected either --capacity SIZE, the finite "
                            "memory of the device on which the job shall "
                            "run, or --process-limit SIZE");
}

static int check_options(const struct call *call, const struct triage *t,
                         const struct triage_values *v)
{
    int code;

    if (v->out && !publish_can(v->out))
        return cli_misuse(call, "expected -o FILE.html or FILE.pdf");
    code = check_bound(call, t, v);
    if (code != EXIT_DONE)
        return code;
    if (!strcmp(t->path, "-"))
        return cli_misuse(call, "expected the name of a file, found \"-\": "
                                "the commands of the page read it again");
    if (v->program && !v->out)
        return cli_misuse(call, "--dry writes its trace beside the page of -o");
    if (v->gpu && !v->program)
        return cli_misuse(call, "--gpu is for the program of --dry");
    code = cli_may_write(call, v->json, v->force);
    return code == EXIT_DONE && v->out ? cli_may_replace(call, v->out, v->force)
                                       : code;
}

static int triage_run(const struct call *call, const void *values)
{
    const struct triage_values *v = values;
    struct progress progress = progress_start(&v->common);
    struct triage t = {
        .call = call, .progress = &progress, .path = v->common.args.items[0]};
    struct frag_error e = {""};
    enum frag_err err;
    int code;

    t.bound =
        frag_bound_at(0, v->bounds[FRAG_BOUND_LIMIT] ? FRAG_BOUND_LIMIT
                                                     : FRAG_BOUND_CAPACITY);
    t.bound.bytes = v->bounds[t.bound.kind];
    code = check_options(call, &t, v);
    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    snprintf(t.capacity, sizeof(t.capacity), "%lluB",
             (unsigned long long)t.bound.bytes);
    err = triage_all(&t, v, &e);
    progress_clear(&progress);
    close_all(&t);
    return cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct triage_values, field)
static const struct option_row options[] = {
    {"capacity", 'c', "SIZE", OPTION_SIZE, AT(bounds[FRAG_BOUND_CAPACITY]),
     NULL, "memory of the device on which the job shall run"},
    {"process-limit", 0, "SIZE", OPTION_SIZE, AT(bounds[FRAG_BOUND_LIMIT]),
     NULL,
     "instead of it, a memory limit of the process, as "
     "set_per_process_memory_fraction sets it"},
    PAGE_OPTION(AT(out)),
    {"json", 0, "FILE", OPTION_TEXT, AT(json), NULL,
     "write the verdict as JSON; - is stdout"},
    {"device", 0, "N", OPTION_DEVICE, AT(device), NULL,
     "number of the device (default: the one on which the job died, or else "
     "the one that needs most)"},
    {"dry", 0, "PROGRAM", OPTION_TEXT, AT(program), NULL,
     "run this command line, the program of the job, without a GPU to its end: "
     "its trace takes the place of the predicted rest of a job that died, and "
     "is kept beside the page as NAME-dry.pickle; see `fragsim help dry'"},
    {"gpu", 0, "NAME", OPTION_TEXT, AT(gpu), NULL,
     "the GPU of --dry, as for `fragsim dry'"},
    FORCE_OPTION(AT(force)),
    {0},
};
/* clang-format on */

const struct verb verb_triage = {
    .name = "triage",
    .args = "SNAPSHOT --capacity SIZE",
    .summary = "what to do about a failed job: the answers on one page",
    .about =
        "The answer has three short parts: what happened, in plain words; what "
        "to do now, one action; and how sure that is. The action is the first "
        "of these that holds:"
#define X(name, word, text) "\n\n" word ": " text "."
    VERDICT_ACTIONS(X)
#undef X
        "\n\n"
        "No change is promised that was not replayed. Below stands what the "
        "job needs, and the GPUs that have it. With -o, the parts are on a "
        "page, and the evidence follows them: explain, tune, fit, a memory "
        "map, top, steps, leaks and summary, each with the command line that "
        "prints it again.\n\n"
        "The recording of a job that died is completed with steps like those "
        "before. With --dry, its own program says what it would have "
        "requested: the program runs without a GPU to its end, on a GPU that "
        "never refuses, and the answers are those of that whole run. The page "
        "says whether its requests begin like the recorded ones.\n\n"
        "A part that cannot be answered holds the message of its command.",
    .example = "fragsim triage oom.pickle --capacity 24GiB -o review.html",
    .options = options,
    .size = sizeof(struct triage_values),
    .defaults = &(const struct triage_values){.device = INPUT_ANY_DEVICE},
    .args_min = 1,
    .args_max = 1,
    .run = triage_run,
};
