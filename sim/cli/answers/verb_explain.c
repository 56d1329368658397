/* verb_explain.c - the command explain: why a request failed, and what would
 * have served it. The analysis is in sim/answers/explain/. */
#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/text/shown.h"
#include "sim/cli/answers/text/verdict_text.h"
#include "sim/cli/gnuplot/drawing.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/host_text.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/question_options.h"
#include "traces/printable.h"

struct explain_values {
    struct common common;
    struct question_values question;
    const char *at, *json;
    struct drawing drawing; /* of the segments; out: NULL: none */
    bool force;
};

/* ---- the answers ---- */

struct explain_verb_work {
    const struct call *call;
    const struct explain_values *values;
    struct question_asked asked;
    struct trace_reading reading;
    struct cell_settings settings;
    struct progress *progress;
    FILE *out;
    struct frag_json *json; /* NULL: as text */
    bool first;
};

static void show(struct explain_verb_work *w, const struct explain *x,
                 const struct verdict *v)
{
    if (w->json) {
        frag_json_new_object(w->json, 2, NULL);
        explain_put_json(x, w->json);
        if (v)
            verdict_put_json_action(v, w->json);
        frag_json_end(w->json);
        return;
    }
    if (!w->first)
        fputc('\n', w->out);
    verdict_put_explained(x, v, w->out);
    w->first = false;
}

static enum frag_err finish(struct explain_verb_work *w, const struct input *in,
                            const struct explain *x, const struct verdict *v,
                            struct frag_error *e)
{
    progress_clear(w->progress);
    if (*x->release && !w->values->common.quiet)
        printable_line(stderr, "%s: %s: %s", in->trace->path,
                       FRAG_DEVICE_NAME(in->device->device), x->release);
    show(w, x, v);
    return w->values->drawing.out
               ? draw_holes(x, in->name, &w->values->drawing, e)
               : FRAG_OK;
}

static void begin(void *user, unsigned stage, const char *name)
{
    progress_step(user, stage, VERDICT_STAGES, " events", 1, name);
}

/* The failure, recorded or at the bound that was asked for, and what to do. */
static enum frag_err explain_failure(struct explain_verb_work *w,
                                     const struct input *in,
                                     const struct question *about,
                                     struct frag_error *e)
{
    const struct verdict_question q = {
        .about = *about,
        .at = w->values->at,
        .settings = &w->settings,
        .on = cli_threads(w->call, 0, true),
        .began = begin,
        .progress = progress_tick,
        .user = w->progress,
    };
    struct verdict v;
    enum frag_err err;

    FRAG_TRY(verdict_make(&q, &v, e));
    err = finish(w, in,
                 v.here && (!v.failure || w->asked.bound.bytes) ? v.here
                                                                : v.failure,
                 &v, e);
    verdict_close(&v);
    return err;
}

/* What is held at the end, where nothing failed and no bound is known. */
static enum frag_err explain_end(struct explain_verb_work *w,
                                 const struct input *in, struct frag_error *e)
{
    const struct explain_options options = {
        .trace = in->trace,
        .device = in->device,
        .at = w->values->at,
        .total = w->asked.total,
        .progress = progress_tick,
        .user = w->progress,
    };
    struct explain x;
    enum frag_err err;

    begin(w->progress, VERDICT_STAGES, in->name);
    FRAG_TRY(explain_make(&options, &x, e));
    err = finish(w, in, &x, NULL, e);
    explain_close(&x);
    return err;
}

static enum frag_err visit(void *user, const struct input *in,
                           struct frag_error *e)
{
    struct explain_verb_work *w = user;
    const struct frag_device_trace *one;
    struct question about;

    if (w->values->drawing.out)
        FRAG_TRY(input_device(in->trace, w->values->question.device, &one, e));
    if (in->device->device == FRAG_HOST_DEVICE)
        return host_text_show(in, w->out, w->json, &w->first, e);
    if (question_make(&w->asked, in->trace, in->device, &about, e) != FRAG_OK)
        return explain_end(w, in, e);
    return explain_failure(w, in, &about, e);
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    struct explain_verb_work *w = user;
    const struct inputs in = {
        .paths = &w->values->common.args,
        .device = w->values->question.device,
        .reading = w->reading,
        .says_notes = !w->values->common.quiet,
        .progress = w->progress,
    };
    enum frag_err err;

    w->out = out;
    w->json = j;
    err = inputs_each(&in, visit, w, e);
    progress_clear(w->progress);
    return err;
}

static enum frag_err write_all(struct explain_verb_work *w,
                               struct frag_error *e)
{
    FRAG_TRY(question_read(&w->values->question,
                           w->values->common.args.items[0], &w->asked,
                           &w->reading, e));
    FRAG_TRY(question_settings(&w->settings, e));
    return answer_write(w->call, &(const struct answer){put, NULL, w},
                        w->values->json, e);
}

enum frag_err explain_show(const struct shown *on, struct frag_error *e)
{
    const struct explain_values values = {
        .common.quiet = true,
        .question.device = on->in.device->device,
        .drawing = on->drawing,
    };
    struct explain_verb_work w = {.call = on->call,
                                  .values = &values,
                                  .asked.total = on->total,
                                  .progress = on->progress,
                                  .out = on->out,
                                  .first = true};

    FRAG_TRY(question_settings(&w.settings, e));
    return visit(&w, &on->in, e);
}

static int explain_run(const struct call *call, const void *values)
{
    const struct explain_values *v = values;
    struct progress progress = progress_start(&v->common);
    struct explain_verb_work w = {
        .call = call, .values = v, .progress = &progress, .first = true};
    struct frag_error e = {""};
    int code = EXIT_DONE;

    if (v->at && one_bound_is_given(&v->question.bound))
        code = cli_misuse(call, "--capacity, --gpu and --process-limit explain "
                                "the first failure of a replay: they exclude "
                                "--at");
    if (code == EXIT_DONE)
        code = cli_may_write(call, v->json, v->force);
    if (code == EXIT_DONE && v->drawing.out)
        code = drawing_check(call, &v->drawing, v->force);
    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    return cli_fail(call, write_all(&w, &e), &e);
}

/* clang-format off */
#define AT(field) offsetof(struct explain_values, field)
static const struct option_row options[] = {
    {"at", 0, "EVENT", OPTION_TEXT, AT(at), NULL,
     "explain the failure of this event, if several requests failed (default: "
     "the last one)"},
    QUESTION_OPTIONS(AT),
    {"output", 'o', "FILE", OPTION_TEXT, AT(drawing.out), NULL,
     "draw the segments at the failure to scale, with their holes and the "
     "request: .svg, .png or .pdf"},
    DRAWING_KEEP_OPTION(AT(drawing)),
    {"json", 0, "FILE", OPTION_TEXT, AT(json), NULL,
     "write the answer as JSON; - is stdout"},
    FORCE_OPTION(AT(force)),
    {0},
};
/* clang-format on */

const struct verb verb_explain = {
    .name = "explain",
    .args = "SNAPSHOT",
    .summary = "why a request failed, and what would have served it",
    .about =
        "The command replays a recording of PyTorch exactly, with its settings "
        "and at its memory limit, up to the request that failed. It prints "
        "the request, what was reserved and by which pools and streams, what "
        "pins the segments that are nearly empty, and the cause:"
#define X(name, word, phrase, text) "\n\n" word ": " text "."
    EXPLAIN_CAUSES(X)
#undef X
        "\n\n"
        "Then it replays the recording with changes of the program: calls of "
        "torch.cuda.empty_cache(), one block freed; against demand, a smaller "
        "batch, and the layer that holds most of the forward pass computed "
        "again. Of settings and of a higher limit it says what `fragsim tune' "
        "finds. The recording of a job that died is completed first: the step "
        "in which it died is finished, and steps like the recorded ones "
        "follow. A change survives if no request of a complete run fails; it "
        "serves what was recorded if no recorded or predicted request of a "
        "job that died fails, which is no promise; it fails if one of them "
        "does. At the end stands what to do now, as `fragsim triage' says it.",
    .example = "fragsim explain traces/bundled/"
               "lstm_varlen__cap_below.pickle.xz -o holes.svg",
    .options = options,
    .size = sizeof(struct explain_values),
    .defaults = &(const struct explain_values){.question = QUESTION_DEFAULTS},
    .args_min = 1,
    .args_max = 1,
    .run = explain_run,
};
