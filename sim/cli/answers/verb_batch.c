/* verb_batch.c - the command batch: which batch sizes fit, from recordings at
 * other batch sizes. The analysis is in sim/answers/ and traces/scale/. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/answers/text/batch_text.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "traces/bytes/sink.h"
#include "traces/grow.h"

struct batch_values {
    struct common common;
    struct cell_values cell;
    struct outputs outputs;
    struct texts at;
};

struct command {
    const struct batch_values *values;
    struct batch_source *sources; /* those that are open */
    size_t source_count;
    uint64_t *at;
    size_t at_count;
    uint64_t at_room;
    struct policy_choice *policies;
    struct frag_params **params; /* of each policy */
    size_t policy_count;
    struct frag_bound bound;
    struct cell_settings settings;
    struct progress progress;
    struct scaling scaling;
};

/* -- the recordings ------------------------------------------------------ */

/* Reads the batch size at the start of a text, which ends before `end`. */
static bool read_batch(const char *text, const char *end, uint64_t *batch)
{
    char *after;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *batch = strtoull(text, &after, 10);
    return after == end && errno == 0 && *batch > 0;
}

/* Of a job that died, what the rest of its step would have needed must be
 * known. */
static enum frag_err check_reach(const struct command *c,
                                 const struct frag_trace *t,
                                 const struct frag_completion *reach,
                                 struct frag_error *e)
{
    if (reach->reach == FRAG_REACH_NO_STEP)
        return frag_fail(e, FRAG_INVALID,
                         "%.300s: the job died before a step was complete, so "
                         "the recording does not show what a step needs; pass "
                         "recordings at smaller batch sizes",
                         t->path);
    if (reach->reach != FRAG_REACH_WHOLE && c->values->cell.as_recorded)
        return frag_fail(e, FRAG_INVALID,
                         "%.300s: the job died, so its recording lacks "
                         "requests that the others have; without "
                         "--as-recorded it is completed",
                         t->path);
    return FRAG_OK;
}

static enum frag_err complete(const struct command *c, struct frag_trace *t,
                              const struct frag_device_trace **device,
                              struct frag_error *e)
{
    const struct trace_reading reading = cell_reading(&c->values->cell);
    struct frag_completion *reaches;
    enum frag_err err;

    FRAG_TRY(input_device(t, c->values->cell.device, device, e));
    reaches = calloc(t->device_count, sizeof(*reaches));
    if (!reaches)
        return frag_no_memory(e, "the recordings");
    err = reading.kind == READING_COMPLETED
              ? frag_trace_complete(t, &reading.completion, reaches, e)
              : frag_trace_reach(t, reading.completion.mark, reaches, e);
    if (err == FRAG_OK)
        err = check_reach(c, t, &reaches[*device - t->devices], e);
    free(reaches);
    return err;
}

static enum frag_err open_source(struct command *c, const char *text,
                                 struct frag_error *e)
{
    const struct trace_reading reading = {.kind = READING_RAW,
                                          .limit = c->values->cell.limit};
    const char *equals = strchr(text, '=');
    struct batch_source s = {0};
    struct frag_trace *t;

    if (!equals || !read_batch(text, equals, &s.batch))
        return frag_fail(e, FRAG_INVALID,
                         "expected BATCH=TRACE with a batch size of at least "
                         "1, such as 8=run.pickle, found %.200s",
                         text);
    FRAG_TRY(input_open(equals + 1, &reading, &c->progress, &t, e));
    s.trace = t;
    c->sources[c->source_count++] = s; /* closed from here on */
    FRAG_TRY(complete(c, t, &s.device, e));
    c->sources[c->source_count - 1] = s;
    if (!c->values->common.quiet)
        input_say_notes(equals + 1, t);
    return input_has_history(&(const struct input){t, s.device, equals + 1}, e);
}

static enum frag_err open_sources(struct command *c, struct frag_error *e)
{
    const struct texts *args = &c->values->common.args;

    c->sources = calloc(args->count + 1, sizeof(*c->sources));
    if (!c->sources)
        return frag_no_memory(e, "the recordings");
    for (size_t i = 0; i < args->count; i++)
        FRAG_TRY(open_source(c, args->items[i], e));
    return FRAG_OK;
}

static enum frag_err match_sources(struct command *c, struct frag_error *e)
{
    struct scale_recording *r = calloc(c->source_count + 1, sizeof(*r));
    enum frag_err err;

    if (!r)
        return frag_no_memory(e, "the recordings");
    for (size_t i = 0; i < c->source_count; i++)
        r[i] =
            (struct scale_recording){c->sources[i].batch, c->sources[i].device,
                                     c->sources[i].trace->path};
    err = scale_open(r, c->source_count, &c->scaling, e);
    free(r);
    return err;
}

/* -- the options --------------------------------------------------------- */

static enum frag_err add_at(struct command *c, const char *list,
                            struct frag_error *e)
{
    for (const char *at = list;; at++) {
        const char *end = at + strcspn(at, ",");

        if (!GROW(c->at, c->at_room, c->at_count + 1))
            return frag_no_memory(e, "the batch sizes");
        if (!read_batch(at, end, &c->at[c->at_count]))
            return frag_fail(e, FRAG_INVALID,
                             "--at: expected batch sizes of at least 1, such "
                             "as 8,16,32, found %.200s",
                             list);
        c->at_count++;
        at = end;
        if (!*at)
            return FRAG_OK;
    }
}

static enum frag_err read_bound(struct command *c, struct frag_error *e)
{
    struct bound_choice *list = NULL;
    size_t count;
    enum frag_err err =
        bound_choices_read(c->values->cell.bounds, &list, &count, e);

    if (err == FRAG_OK && (count != 1 || list[0].kind == BOUND_SHARE ||
                           list[0].kind == BOUND_RECORDED))
        err =
            frag_fail(e, FRAG_INVALID,
                      "-c, --process-limit: expected one bound in bytes, such "
                      "as 12GiB; a "
                      "list or a share of a peak has no meaning for a batch "
                      "size");
    if (err == FRAG_OK)
        c->bound = list[0].fixed;
    free(list);
    return err;
}

/* Settings of the recordings are those of the largest batch. */
static enum frag_err read_policies(struct command *c, struct frag_error *e)
{
    const struct batch_source *last = &c->sources[0];

    for (size_t i = 1; i < c->source_count; i++)
        last = c->sources[i].batch > last->batch ? &c->sources[i] : last;
    c->params = calloc(c->policy_count + 1, sizeof(*c->params));
    if (!c->params)
        return frag_no_memory(e, "policies");
    for (size_t i = 0; i < c->policy_count; i++) {
        for (size_t k = 0; k < i; k++)
            if (!strcmp(c->policies[k].text, c->policies[i].text))
                return frag_fail(e, FRAG_INVALID,
                                 "-p %.200s appears twice; pass it once",
                                 c->policies[i].text);
        FRAG_TRY(policy_choice_params(&c->policies[i], last->trace->settings,
                                      last->trace->releases, last->trace->path,
                                      last->device->device, &c->params[i], e));
    }
    return FRAG_OK;
}

static enum frag_err read_options(struct command *c, struct frag_error *e)
{
    const struct batch_values *v = c->values;

    for (size_t i = 0; i < v->at.count; i++)
        FRAG_TRY(add_at(c, v->at.items[i], e));
    FRAG_TRY(read_bound(c, e));
    FRAG_TRY(policy_choices_read(&v->cell.policies, &c->policies,
                                 &c->policy_count, e));
    FRAG_TRY(cell_settings_read(&v->cell, &c->settings, e));
    c->settings.stop_at_oom = true;
    return FRAG_OK;
}

/* -- the answer ---------------------------------------------------------- */

static enum frag_err show(const struct call *call, const struct command *c,
                          const struct batch_report *r, struct frag_error *e)
{
    const struct outputs *o = &c->values->outputs;
    struct sink sink;

    if (o->json) {
        FRAG_TRY(sink_open(&sink, o->json, e));
        batch_json(r, call, sink.out);
        FRAG_TRY(sink_commit(&sink, e));
    }
    if (sink_is_stdout(o->json))
        return FRAG_OK;
    return batch_text(r, stdout, cli_colors(&c->values->common, stdout), e);
}

static enum frag_err answer(const struct call *call, struct command *c,
                            struct frag_error *e)
{
    const struct batch_question q = {
        .scaling = &c->scaling,
        .settings = &c->settings,
        .bound = c->bound,
        .policies = c->policies,
        .params = c->params,
        .policy_count = c->policy_count,
        .at = c->at,
        .at_count = c->at_count,
        .tick = progress_tick,
        .user = &c->progress,
    };
    struct batch_answer a;
    const struct batch_report r = {&q, &a, c->sources, c->source_count};
    enum frag_err err;

    progress_step(&c->progress, 0, 0, " events", 1, "batch sizes");
    err = batch_answer(&q, &a, e);
    progress_clear(&c->progress);
    if (err == FRAG_OK)
        err = show(call, c, &r, e);
    batch_close(&a);
    return err;
}

static enum frag_err run_all(const struct call *call, struct command *c,
                             struct frag_error *e)
{
    FRAG_TRY(read_options(c, e));
    FRAG_TRY(open_sources(c, e));
    FRAG_TRY(read_policies(c, e));
    FRAG_TRY(match_sources(c, e));
    return answer(call, c, e);
}

static void close_all(struct command *c)
{
    scale_close(&c->scaling);
    for (size_t i = 0; c->params && i < c->policy_count; i++)
        free(c->params[i]);
    free(c->params);
    policy_choices_free(c->policies, c->policy_count);
    for (size_t i = 0; i < c->source_count; i++)
        frag_trace_close(c->sources[i].trace);
    free(c->sources);
    free(c->at);
}

static int batch_run(const struct call *call, const void *values)
{
    struct command c = {.values = values};
    struct frag_error e = {""};
    enum frag_err err;
    const int code = outputs_check(call, &c.values->outputs);

    if (code != EXIT_DONE)
        return code;
    c.progress = progress_start(&c.values->common);
    cli_catch_signals();
    err = run_all(call, &c, &e);
    close_all(&c);
    return cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct batch_values, field)
static const struct option_row options[] = {
    {"at", 0, "BATCH,...",
     "answer for these batch sizes; without it, the largest batch size that "
     "fits is searched",
     OPTION_LIST, AT(at), NULL},
    CELL_POLICY_OPTION(AT),
    {"capacity", 'c', "SIZE",
     "memory of the device, such as 24GiB, or inf (default)", OPTION_LIST,
     AT(cell.bounds[FRAG_BOUND_CAPACITY]), NULL},
    CELL_LIMIT_OPTION(AT),
    OUTPUT_JSON_OPTION(AT, "the same as JSON, with the largest batch size of "
                           "each policy; - is stdout"),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    CELL_CHECK_OPTIONS(AT, ""),
    CELL_MODEL_OPTIONS(AT),
    {0},
};
/* clang-format on */

const struct verb verb_batch = {
    .name = "batch",
    .args = "BATCH=TRACE...",
    .summary = "predict the peak at other batch sizes, and the largest batch "
               "that fits",
    .about =
        "The recordings are of one program at two or more batch sizes; record "
        "the same number of steps in each; recordings of different programs "
        "are refused. The recording at the largest batch "
        "is the template: each of its requests is matched with a request of "
        "the others by order, size and life. The size of a request is then a "
        "line over the batch: weights do not grow, activations do. The trace "
        "of another batch size has the events of the template with these "
        "sizes, and every policy replays it. A replay ends at the first OOM, "
        "as the job would.\n\n"
        "The table says what limits the batch: the constant part of the peak, "
        "the bytes of one sample more, and the share of the peak that grows. "
        "With --at, the answer is for these batch sizes. Without it, the "
        "largest batch size that fits is searched by halving; the search "
        "assumes that a batch size fits if a larger one does, and replays the "
        "batch sizes just above the result as a check.\n\n"
        "What is between the batch sizes that were recorded is more certain "
        "than what is beyond them. Libraries may choose another algorithm at "
        "another batch size, with another workspace; the output says how many "
        "requests have no partner, or partners of uncertain meaning. A third "
        "recording helps.\n\n"
        "Low and high say how sure the peak reserved is: every batch size is "
        "replayed several times, with other sizes of the requests that are "
        "not known for sure (10 % smaller, 10 % larger, constant, absent, and "
        "so on). A workspace that no longer fits into a free block takes a new "
        "segment, so a small difference may change the peak much. A note says "
        "if the range exceeds 2 %, and the line below the table says if it "
        "changes the largest batch, among the batch sizes that were "
        "replayed. low_largest and high_largest in JSON are the largest batch "
        "that fits in all replays, and in at least one.\n\n"
        "A recording of a job that died is completed; if the "
        "job died before a step was complete, it is refused. Pass --limit if "
        "the recorded allocator had a memory limit: retries of allocations "
        "are otherwise taken for empty_cache calls.",
    .example = "fragsim batch 4=run4.pickle 8=run8.pickle --at 12,16 -c 24GiB",
    .options = options,
    .size = sizeof(struct batch_values),
    .defaults = &(const struct batch_values){.cell = CELL_DEFAULTS},
    .args_min = 2,
    .args_max = SIZE_MAX,
    .run = batch_run,
};
