/* verb_explain.c - the command explain: why a request failed, and what would
 * have served it. The analysis is in sim/answers/explain/. */
#include <stdlib.h>

#include "policies/torch/platform.h"
#include "policies/torch/versions.h"
#include "sim/answers/explain/explain.h"
#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/cli.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/gnuplot/drawing.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/host_text.h"
#include "sim/cli/output/inputs.h"
#include "sim/validate/stats_file.h"
#include "traces/name.h"
#include "traces/printable.h"

struct explain_values {
    struct common common;
    const char *at, *stats, *settings, *json;
    struct drawing drawing; /* of the segments; out: NULL: none */
    const char *map;
    frag_size limit, bounds[FRAG_BOUND_KINDS], total;
    uint64_t device;
    bool force;
};

/* ---- the limits ---- */

/* Of 0 bytes if none is given. */
static struct frag_bound bound_of(const struct explain_values *v)
{
    const enum frag_bound_kind kind =
        v->bounds[FRAG_BOUND_LIMIT] ? FRAG_BOUND_LIMIT : FRAG_BOUND_CAPACITY;

    return frag_bound_at(v->bounds[kind], kind);
}

/* The file of counters supplies whatever the options leave open. */
static enum frag_err settle(const struct explain_values *v,
                            struct explain_options *o, frag_size *limit,
                            struct frag_error *e)
{
    struct frag_stats_file *stats;

    *o = (struct explain_options){
        .at = v->at,
        .bound = bound_of(v),
        .total = v->total,
        .progress = progress_tick,
    };
    FRAG_TRY(frag_stats_file_of(v->stats, v->common.args.items[0], &stats, e));
    *limit = v->limit;
    if (stats && !*limit)
        *limit = frag_stats_file_cap(stats);
    if (stats && !o->total)
        o->total = frag_stats_file_total(stats);
    frag_stats_file_close(stats);
    return FRAG_OK;
}

/* ---- the pictures ---- */

/* The drawing of --map: it looks as the other one. */
static struct drawing map_of(const struct explain_values *v)
{
    struct drawing map = v->drawing;

    map.out = v->map;
    return map;
}

/* A view of the events up to the failure. */
static struct frag_device_trace cut_at(const struct explain *x)
{
    struct frag_device_trace d = *x->device;

    d.count = x->event + 1;
    while (d.recorded.action_count &&
           d.recorded.actions[d.recorded.action_count - 1].event > x->event)
        d.recorded.action_count--;
    return d;
}

static enum frag_err draw_view(const struct explain_values *v,
                               const struct explain *x, struct trace_view *view,
                               struct frag_error *e)
{
    const struct drawing map = map_of(v);
    struct frag_params *params;
    char *name;
    enum frag_err err;

    FRAG_TRY(policy_choice_params(view->policy, x->used, NULL, x->trace->path,
                                  x->device->device, &params, e));
    name = frag_trace_name(x->trace->path);
    err = name ? FRAG_OK : frag_no_memory(e, "the map");
    if (err == FRAG_OK) {
        view->params = params;
        view->name = name;
        err = figure_draw_trace(&figure_map, view, &map, e);
    }
    free(name);
    free(params);
    return err;
}

/* Draws the addresses of all blocks and holes up to the failure. */
static enum frag_err draw_map(const struct explain_values *v,
                              const struct explain *x,
                              struct progress *progress, struct frag_error *e)
{
    const struct frag_device_trace cut = cut_at(x);
    struct trace_view view = {
        .trace = x->trace,
        .device = &cut,
        .bound = x->bound,
        .color = FIGURE_SIZE,
        .progress = progress,
    };
    struct policy_choice policy;
    enum frag_err err;

    if (!v->map)
        return FRAG_OK;
    FRAG_TRY(policy_choice_read("torch@recorded", &policy, e));
    view.policy = &policy;
    err = draw_view(v, x, &view, e);
    policy_choice_free(&policy);
    progress_clear(progress);
    if (err == FRAG_OK && !v->common.quiet)
        input_say_start(x->trace->path, x->device);
    return err;
}

/* Draws the moment of the failure, and what led there. */
static enum frag_err draw(const struct explain_values *v,
                          const struct input *in, const struct explain *x,
                          struct progress *progress, struct frag_error *e)
{
    if (v->map && !x->replayed)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s: the map shows events, and the snapshot has "
                         "no history",
                         x->trace->path);
    if (v->drawing.out)
        FRAG_TRY(draw_holes(x, in->name, &v->drawing, e));
    return draw_map(v, x, progress, e);
}

/* ---- the answers ---- */

struct explain_verb_work {
    const struct call *call;
    const struct explain_values *values;
    struct explain_options options;
    frag_size limit; /* of the recorded process; 0: not known */
    struct progress progress;
    FILE *out;
    struct frag_json *json; /* NULL: as text */
    bool first;
};

static void show(struct explain_verb_work *w, const struct explain *x)
{
    if (w->json) {
        frag_json_line(w->json, 2);
        explain_put_json(x, w->json, NULL);
        return;
    }
    if (!w->first)
        fputc('\n', w->out);
    printable_line(w->out, "%s, %s", x->trace->path,
                   FRAG_DEVICE_NAME(x->device->device));
    explain_put_text(x, w->out);
    w->first = false;
}

static enum frag_err visit(void *user, const struct input *in,
                           struct frag_error *e)
{
    struct explain_verb_work *w = user;
    const struct frag_device_trace *one;
    struct explain x;
    enum frag_err err;

    if (w->values->drawing.out || w->values->map)
        FRAG_TRY(input_device(in->trace, w->values->device, &one, e));
    if (in->device->device == FRAG_HOST_DEVICE)
        return host_text_show(in, w->out, w->json, &w->first, e);
    w->options.trace = in->trace;
    w->options.device = in->device;
    w->options.user = &w->progress;
    progress_step(&w->progress, 0, 0, " events", 1, in->name);
    if (w->values->settings)
        FRAG_TRY(torch_check_names(w->values->settings, e));
    w->options.settings = w->values->settings;
    err = explain_make(&w->options, &x, e);
    if (err == FRAG_OK) {
        if (*x.release && !w->values->common.quiet)
            printable_line(stderr, "%s: %s: %s", in->trace->path,
                           FRAG_DEVICE_NAME(in->device->device), x.release);
        show(w, &x);
        err = draw(w->values, in, &x, &w->progress, e);
        explain_close(&x);
    }
    return err;
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    struct explain_verb_work *w = user;
    const struct texts *paths = &w->values->common.args;
    const struct inputs in = {
        .paths = paths,
        .device = w->values->device,
        .reading = {READING_RAW, .limit = w->limit, .ignores_file = true},
        .says_notes = !w->values->common.quiet,
        .progress = &w->progress,
    };
    enum frag_err err;

    w->out = out;
    w->json = j;
    err = inputs_each(&in, visit, w, e);
    progress_clear(&w->progress);
    return err;
}

static enum frag_err write_all(struct explain_verb_work *w,
                               struct frag_error *e)
{
    FRAG_TRY(settle(w->values, &w->options, &w->limit, e));
    return answer_write(w->call, &(const struct answer){put, NULL, w},
                        w->values->json, e);
}

static int explain_run(const struct call *call, const void *values)
{
    const struct explain_values *v = values;
    const struct drawing map = map_of(v);
    struct explain_verb_work w = {.call = call, .values = v, .first = true};
    struct frag_error e = {""};
    int code;

    if (bound_of(v).bytes && (v->at || v->limit))
        return cli_misuse(call, "--capacity and --process-limit explain the "
                                "first failure of a replay: they exclude --at "
                                "and --limit");
    if (v->bounds[FRAG_BOUND_CAPACITY] && v->bounds[FRAG_BOUND_LIMIT])
        return cli_misuse(call, "--capacity bounds the device, --process-limit "
                                "the process: expected one of them");
    code = cli_may_write(call, v->json, v->force);
    if (code == EXIT_DONE && v->drawing.out)
        code = drawing_check(call, &v->drawing, v->force);
    if (code == EXIT_DONE && v->map)
        code = drawing_check(call, &map, v->force);
    if (code != EXIT_DONE)
        return code;
    w.progress = progress_start(&v->common);
    cli_catch_signals();
    return cli_fail(call, write_all(&w, &e), &e);
}

/* clang-format off */
#define AT(field) offsetof(struct explain_values, field)
static const struct option_row options[] = {
    {"at", 0, "EVENT", OPTION_TEXT, AT(at), NULL,
     "explain the failure of this event, if several requests failed (default: "
     "the last one)"},
    {"limit", 0, "SIZE", OPTION_SIZE, AT(limit), NULL,
     "memory limit that was set in the recorded process (default: `cap' of the "
     "counters; else it is inferred)"},
    {"capacity", 'c', "SIZE", OPTION_SIZE, AT(bounds[FRAG_BOUND_CAPACITY]),
     NULL,
     "explain instead the first request that fails in a replay on a device of "
     "this capacity, beyond which the driver refuses"},
    {"process-limit", 0, "SIZE", OPTION_SIZE, AT(bounds[FRAG_BOUND_LIMIT]),
     NULL,
     "the same under a memory limit of the process, as "
     "set_per_process_memory_fraction sets it, beyond which the allocator "
     "refuses before the driver is asked"},
    {"total", 0, "SIZE", OPTION_TOTAL, AT(total), NULL,
     "memory of the device, to learn what was held outside PyTorch (default: "
     "`total_memory' of the counters)"},
    STATS_OPTION(AT(stats)),
    {"settings", 0, "CONF", OPTION_TEXT, AT(settings), NULL,
     "PYTORCH_CUDA_ALLOC_CONF of the recorded process (default: the recorded "
     "one)"},
    {"device", 0, "N", OPTION_DEVICE, AT(device), NULL,
     "number of the device (default: all)"},
    {"output", 'o', "FILE", OPTION_TEXT, AT(drawing.out), NULL,
     "draw the segments at the failure to scale, with their holes and the "
     "request: .svg, .png or .pdf"},
    {"map", 0, "FILE", OPTION_TEXT, AT(map), NULL,
     "draw the addresses of all blocks and holes up to the failure, as "
     "`fragsim plot SNAPSHOT map' does: .svg, .png or .pdf"},
    DRAWING_OPTIONS(AT(drawing)),
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
        "Then it replays the recording with changes: other settings, calls of "
        "torch.cuda.empty_cache(), one block freed, a higher limit; against "
        "demand, a smaller batch, and the layer that holds most of the forward "
        "pass computed again. The recording of a job that died is completed "
        "first: the step in which it died is finished, and steps like the "
        "recorded ones follow. A change survives if no request of a complete "
        "run fails; it serves what was recorded if no recorded or predicted "
        "request of a job that died fails, which is no promise; it fails if "
        "one of them does. Beside the advice stands what the recording cannot "
        "tell.",
    .example = "fragsim explain traces/bundled/"
               "lstm_varlen__cap_below.pickle.xz -o holes.svg",
    .options = options,
    .size = sizeof(struct explain_values),
    .defaults = &(const struct explain_values){.device = INPUT_ANY_DEVICE},
    .args_min = 1,
    .args_max = 1,
    .run = explain_run,
};
