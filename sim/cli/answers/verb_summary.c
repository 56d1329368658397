/* verb_summary.c - the command summary: PyTorch's memory summary at any event,
 * under the recorded allocator or any policy. The analysis is in
 * sim/answers/summary/. */
#include <stdlib.h>

#include "sim/answers/moment.h"
#include "sim/answers/summary/summary.h"
#include "sim/cli/answers/text/shown.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/host_text.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/progress.h"
#include "sim/experiments/recording.h"
#include "sim/validate/stats_file.h"

struct summary_values {
    struct common common;
    struct texts policies, bounds[FRAG_BOUND_KINDS];
    const char *at, *stats, *json;
    uint64_t device;
    frag_size limit, total;
    bool force;
};

struct summary_work {
    const struct summary_values *values;
    struct policy_choice *policies;
    size_t policy_count;
    struct bound_choice *bounds;
    size_t bound_count;
    struct cell_settings settings;
    frag_size limit; /* of the recorded allocator; 0: not known */
    frag_size total; /* of the recorded device; 0: not known */
    struct progress *progress;
    FILE *out;
    struct frag_json *json; /* NULL: as text */
    size_t count;           /* summaries that were written */
};

/* -- one summary ---------------------------------------------------------- */

static void show(struct summary_work *w, const struct input *in,
                 const struct summary *s)
{
    struct frag_json *j = w->json;
    FILE *out = w->out;

    progress_clear(w->progress);
    if (j) {
        frag_json_new_object(j, 2, NULL);
        frag_json_text(j, "trace", in->name);
        summary_json(s, j);
        frag_json_line(j, 3);
        frag_json_texts(j, "notes", in->trace->notes, in->trace->note_count);
        frag_json_end(j);
    } else {
        if (w->count)
            fputc('\n', out);
        summary_print_counters(s, out);
        summary_print_pools(s, out);
        summary_print_fragmentation(s, out);
    }
    w->count++;
}

static enum frag_err make(struct summary_work *w, const struct input *in,
                          uint64_t event, const struct frag_params *params,
                          struct frag_bound bound, struct frag_error *e)
{
    const struct summary_spec spec = {
        .trace = in->trace,
        .device = in->device,
        .event = event,
        .params = params,
        .recorded_total = w->total,
        .settings = &w->settings,
        .bound = bound,
        .progress = progress_tick,
        .user = w->progress,
    };
    struct summary s;

    progress_step(w->progress, w->count + 1, w->count + 1, " events", 1,
                  in->name);
    FRAG_TRY(summary_make(&spec, &s, e));
    show(w, in, &s);
    summary_close(&s);
    return FRAG_OK;
}

/* Whether the policy is the recorded allocator itself: its settings, on the
 * recorded device. */
static bool is_recorded(const struct summary_work *w,
                        const struct policy_choice *p,
                        const struct frag_device_trace *d)
{
    return p->recorded && !*p->given &&
           !w->values->bounds[FRAG_BOUND_CAPACITY].count &&
           !w->values->bounds[FRAG_BOUND_LIMIT].count &&
           summary_has_recorded(d);
}

static enum frag_err make_policy(struct summary_work *w, const struct input *in,
                                 uint64_t event, const struct policy_choice *p,
                                 struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    struct frag_params *params;
    struct bound_facts facts;

    if (is_recorded(w, p, in->device))
        return make(w, in, event, NULL, recording_bound(in->trace, in->device),
                    e);
    FRAG_TRY(input_has_history(in, e));
    FRAG_TRY(recording_facts(in->trace, in->device, &facts, e));
    FRAG_TRY(policy_choice_params_of(p, in->trace, in->device, &params, e));
    for (size_t i = 0; err == FRAG_OK && i < w->bound_count; i++)
        err = make(w, in, event, params,
                   bound_choice_of(&w->bounds[i], p, &facts), e);
    free(params);
    return err;
}

/* -- the trace ------------------------------------------------------------ */

/* The allocator if the user names none. */
static enum frag_err make_default(struct summary_work *w,
                                  const struct input *in, uint64_t event,
                                  struct frag_error *e)
{
    struct policy_choice p;
    enum frag_err err;

    FRAG_TRY(policy_choice_read(
        summary_has_recorded(in->device) ? "torch@recorded" : "torch", &p, e));
    err = make_policy(w, in, event, &p, e);
    policy_choice_free(&p);
    return err;
}

static enum frag_err visit(void *user, const struct input *in,
                           struct frag_error *e)
{
    struct summary_work *w = user;
    bool first = !w->count;
    uint64_t event;

    if (in->device->device == FRAG_HOST_DEVICE && !w->values->policies.count) {
        w->count++;
        return host_text_show(in, w->out, w->json, &first, e);
    }
    FRAG_TRY(moment_read(in->trace, in->device, w->values->at, &event, e));
    if (!w->values->policies.count)
        return make_default(w, in, event, e);
    for (size_t i = 0; i < w->policy_count; i++)
        FRAG_TRY(make_policy(w, in, event, &w->policies[i], e));
    return FRAG_OK;
}

/* The limit and the total of the recorded allocator, from the options and the
 * file of counters. */
static enum frag_err find_limits(struct summary_work *w, struct frag_error *e)
{
    const struct summary_values *v = w->values;
    struct frag_stats_file *stats;

    w->limit = v->limit;
    w->total = v->total;
    FRAG_TRY(frag_stats_file_of(v->stats, v->common.args.items[0], &stats, e));
    if (!stats)
        return FRAG_OK;
    if (!w->limit)
        w->limit = frag_stats_file_limit(stats);
    if (!w->total)
        w->total = frag_stats_file_total(stats);
    frag_stats_file_close(stats);
    return FRAG_OK;
}

/* The caller frees the choices, on error too. */
static enum frag_err read_choices(struct summary_work *w, struct frag_error *e)
{
    const struct summary_values *v = w->values;
    const struct cell_values cell = {.total = v->total};

    FRAG_TRY(
        policy_choices_read(&v->policies, &w->policies, &w->policy_count, e));
    FRAG_TRY(bound_choices_read(v->bounds, &w->bounds, &w->bound_count, e));
    return cell_settings_read(&cell, &w->settings, e);
}

static void free_choices(struct summary_work *w)
{
    policy_choices_free(w->policies, w->policy_count);
    free(w->bounds);
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    struct summary_work *w = user;
    const struct summary_values *v = w->values;
    struct inputs inputs = {.paths = &v->common.args,
                            .device = v->device,
                            .says_notes = !v->common.quiet,
                            .progress = w->progress};
    enum frag_err err;

    w->out = out;
    w->json = j;
    FRAG_TRY(read_choices(w, e));
    FRAG_TRY(find_limits(w, e));
    inputs.reading = (struct trace_reading){READING_RECORDED, .limit = w->limit,
                                            .ignores_file = true};
    err = inputs_each(&inputs, visit, w, e);
    progress_clear(w->progress);
    return err;
}

static const struct summary_values defaults = {.at = "end",
                                               .device = INPUT_ANY_DEVICE};

enum frag_err summary_show(const struct shown *on, struct frag_error *e)
{
    struct summary_values values = defaults;
    struct summary_work w = {.values = &values,
                             .total = on->total,
                             .progress = on->progress,
                             .out = on->out};
    enum frag_err err = read_choices(&w, e);

    values.at = on->at;
    FRAG_THEN(err, visit(&w, &on->in, e));
    free_choices(&w);
    return err;
}

static int summary_run(const struct call *call, const void *values)
{
    const struct summary_values *v = values;
    struct progress progress = progress_start(&v->common);
    struct summary_work w = {.values = v, .progress = &progress};
    struct frag_error e = {""};
    enum frag_err err;
    int code = cli_may_write(call, v->json, v->force);

    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    err =
        answer_write(call, &(const struct answer){put, NULL, &w}, v->json, &e);
    free_choices(&w);
    return cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct summary_values, field)
static const struct option_row options[] = {
    {"at", 0, "MOMENT", OPTION_TEXT, AT(at), NULL,
     "the event after which the summary is made: peak (of requested memory), "
     "oom (the last recorded one), end (default), or the index of an event"},
    {"policy", 'p', "POLICY", OPTION_LIST, AT(policies), NULL,
     "NAME or NAME:PARAMS, as in `fragsim replay'; repeat the option for more "
     "policies (default: torch@recorded, or torch if no allocator was "
     "recorded)"},
    {"capacity", 'c', "SIZE,...", OPTION_LIST, AT(bounds[FRAG_BOUND_CAPACITY]),
     NULL,
     "memory of the device: a size such as 24GiB, a share of the trace's peak "
     "requested such as 0.9x, or inf (default: that of the recorded device for "
     "torch@recorded, else inf)"},
    {"device", 0, "N", OPTION_DEVICE, AT(device), NULL,
     "only this device of the trace (default: all)"},
    RECORDED_LIMIT_OPTION(AT(limit)),
    {"total", 0, "SIZE", OPTION_TOTAL, AT(total), NULL,
     "memory of the device (default: `total_memory' of the counters, or an "
     "H200's; with a policy, the capacity)"},
    {"stats", 0, "FILE", OPTION_TEXT, AT(stats), NULL,
     "memory_stats of the recorded allocator as JSON (default: NAME.json "
     "beside NAME.pickle; `none' reads no file); only its `cap' and "
     "`total_memory' are read"},
    {"json", 0, "FILE", OPTION_TEXT, AT(json), NULL,
     "write the exact numbers as JSON; - is stdout"},
    FORCE_OPTION(AT(force)),
    {0},
};
/* clang-format on */

const struct verb verb_summary = {
    .name = "summary",
    .args = "TRACE",
    .summary = "print PyTorch's memory summary at any event, with the "
               "fragmentation",
    .about =
        "The first table is the text of torch.cuda.memory_summary(), line for "
        "line, as it would have been printed directly after the event --at. "
        "Cur Usage is the value after that event, Peak Usage the largest one "
        "up to it, Tot Alloc and Tot Freed the sums of all growth and of all "
        "decrease. The second table, which PyTorch does not have, is the "
        "fragmentation at the event, with its formulas. Peaks in it are those "
        "up to the event.\n\n"
        "By default the allocator is the recorded one: the torch policy "
        "repeats it with the recorded settings, memory limit and addresses, "
        "and its counters equal PyTorch's (`fragsim validate' checks this). "
        "With -p, the requests go to a policy on a simulated device. A policy "
        "other than torch has no large and small pools, so these rows are "
        "left out; a number that it does not have is -, and null in JSON: the "
        "counts of non-releasable blocks and of oversize blocks, and the peak "
        "of active blocks.\n\n"
        "If the recording began after the start of the job, the counters "
        "cannot include what happened before; a line below the tables and "
        "`cautions' in JSON say so. Of a snapshot without history, the "
        "current values are printed, and - for all others.\n\n"
        "The example below finds 8944 MiB reserved for 8266 MiB requested at "
        "the peak of a training run: 7.3 % fragmentation. Of the 672045 KiB "
        "that are free, 659757 KiB are non-releasable, so empty_cache would "
        "return almost nothing at this event; the largest request that needs "
        "no new segment has 399360 KiB.",
    .example = "fragsim summary traces/bundled/gpt2_train.pickle.xz --at peak",
    .options = options,
    .size = sizeof(struct summary_values),
    .defaults = &defaults,
    .args_min = 1,
    .args_max = 1,
    .run = summary_run,
};
