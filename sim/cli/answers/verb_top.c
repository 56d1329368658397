/* verb_top.c - the command top: what holds memory at one moment of a trace. */
#include <stdlib.h>

#include "sim/cli/answers/held/holders_report.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "traces/bytes/sink.h"
#include "traces/name.h"

struct top_values {
    struct common common;
    struct outputs outputs;
    const char *at, *filter, *folded;
    unsigned by; /* 0: the best; else 1 + enum holders_by */
    uint64_t limit, device;
};

/* The outputs of one run. */
struct top {
    const struct call *call;
    const struct top_values *values;
    struct sink json, folded;
};

/* Writes the groups by stack, whatever the grouping of the table is. */
static enum frag_err write_folded(struct top *s, const struct frag_trace *t,
                                  const struct frag_device_trace *d,
                                  uint64_t event, struct frag_error *e)
{
    const struct holders_options options = {.by = HOLDERS_BY_STACK,
                                            .filter = s->values->filter};
    struct holders h;

    FRAG_TRY(holders_find(t, d, event, &options, &h, e));
    holders_put_folded(&h, s->folded.out);
    holders_close(&h);
    return sink_commit(&s->folded, e);
}

static enum frag_err write_json(struct top *s, const struct holders *h,
                                const struct holders_view *view,
                                struct frag_error *e)
{
    struct frag_json j;

    cli_json_open(s->call, &j, s->json.out);
    holders_json(h, view, &j);
    frag_results_json_close(&j);
    return sink_commit(&s->json, e);
}

/* Writes all outputs. The table is left out if one of them goes to stdout. */
static enum frag_err write_all(struct top *s, const struct holders *h,
                               const char *name, struct frag_error *e)
{
    const struct top_values *v = s->values;
    const struct holders_view view = {name, v->at, v->filter, v->limit,
                                      cli_colors(&v->common, stdout)};

    if (v->folded)
        FRAG_TRY(write_folded(s, h->trace, h->device, h->event, e));
    if (v->outputs.json)
        FRAG_TRY(write_json(s, h, &view, e));
    if (sink_is_stdout(v->folded) || sink_is_stdout(v->outputs.json))
        return FRAG_OK;
    return holders_print(h, &view, stdout);
}

static enum frag_err show(struct top *s, const struct frag_trace *t,
                          struct frag_error *e)
{
    const struct top_values *v = s->values;
    const struct frag_device_trace *d;
    struct holders_options options = {.filter = v->filter, .steps = true};
    char *name = frag_trace_name(t->path);
    struct holders h;
    uint64_t event;
    enum frag_err err;

    if (!name)
        return frag_no_memory(e, "the name of %s", t->path);
    err = input_device(t, v->device, &d, e);
    if (err == FRAG_OK)
        err = moment_read(t, d, v->at, &event, e);
    if (err == FRAG_OK) {
        options.by = v->by ? v->by - 1 : holders_best(t, d);
        err = holders_find(t, d, event, &options, &h, e);
    }
    if (err == FRAG_OK) {
        err = write_all(s, &h, name, e);
        holders_close(&h);
    }
    free(name);
    return err;
}

static enum frag_err open_outputs(struct top *s, struct frag_error *e)
{
    if (s->values->outputs.json)
        FRAG_TRY(sink_open(&s->json, s->values->outputs.json, e));
    if (s->values->folded)
        FRAG_TRY(sink_open(&s->folded, s->values->folded, e));
    return FRAG_OK;
}

static enum frag_err answer(struct top *s, struct frag_error *e)
{
    const struct top_values *v = s->values;
    const struct trace_reading reading = {.kind = READING_RECORDED};
    struct progress progress = progress_start(&v->common);
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(input_open(v->common.args.items[0], &reading, &progress, &t, e));
    if (!v->common.quiet)
        input_say_notes(v->common.args.items[0], t);
    err = open_outputs(s, e);
    if (err == FRAG_OK)
        err = show(s, t, e);
    frag_trace_close(t);
    sink_abort(&s->json);
    sink_abort(&s->folded);
    return err;
}

static int top_run(const struct call *call, const void *values)
{
    struct top s = {.call = call, .values = values};
    struct outputs outputs = s.values->outputs;
    struct frag_error e = {""};
    int code;

    outputs.own[0] = s.values->folded;
    code = outputs_check(call, &outputs);
    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    return cli_fail(call, answer(&s, &e), &e);
}

/* clang-format off */
#define AT(field) offsetof(struct top_values, field)
#define X(name, text) "|" text
static const struct option_row options[] = {
    {"at", 0, "MOMENT",
     "peak (default: the first event at which most bytes are requested), oom "
     "(the last request that the recorded allocator could not meet), end, or "
     "the number of an event",
     OPTION_TEXT, AT(at), NULL},
    {"by", 0, "WORD",
     "group the blocks by site (the innermost frame of the program's own "
     "code), function (the site without its line), stack (all frames), size, "
     "class (sizes between two powers of 2), age (in steps), seconds or "
     "events (the age in these units), pool, stream or metadata (the text of "
     "_set_memory_metadata); auto (default) is site, and size if the recording has no stacks",
     OPTION_CHOICE, AT(by), "auto" HOLDERS_BY(X)},
    {"limit", 0, "N", "number of groups to print (default: 20; 0: all)",
     OPTION_NUMBER, AT(limit), NULL},
    {"filter", 0, "TEXT",
     "only blocks with a frame that contains TEXT in its function or in "
     "FILE:LINE",
     OPTION_TEXT, AT(filter), NULL},
    {"folded", 0, "FILE",
     "write folded stacks, one line a stack: frames from the outermost to the "
     "innermost, separated by semicolons, then the bytes; programs that draw "
     "flame graphs read it; - is stdout",
     OPTION_TEXT, AT(folded), NULL},
    OUTPUT_JSON_OPTION(AT, "the answer as JSON; - is stdout"),
    {"device", 0, "N", "number of the device (default: the only one)",
     OPTION_DEVICE, AT(device), NULL},
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    {0},
};
#undef X
/* clang-format on */

const struct verb verb_top = {
    .name = "top",
    .args = "TRACE",
    .summary = "what holds memory at one moment of a trace",
    .about =
        "The command groups the blocks that are live at the moment and prints "
        "the groups in the order of their bytes: held bytes, their share of "
        "all held bytes, the sum of the shares so far, the number of blocks, "
        "and the age of the oldest block in steps (in events if no steps were "
        "found). Bytes are those that the program requested. A block that is "
        "freed while another stream may still use it counts, because it holds "
        "memory.\n\n"
        "The recording is read as it is: if the job died, nothing is added "
        "after its end. A snapshot without history has one moment, its end; "
        "ages are then not known.\n\n"
        "An example with a recording that comes with fragsim: `fragsim top "
        "leak_frames.pickle.xz' shows that the site w_leak (train.py:164) "
        "holds most, in 60 blocks. With `--filter train.py:164 --by age', "
        "these "
        "blocks are of all ages: each step leaves one of 2 MiB behind.",
    .example = "fragsim top snapshot.pickle --by stack --folded peak.folded",
    .options = options,
    .size = sizeof(struct top_values),
    .defaults = &(const struct top_values){.at = "peak",
                                           .limit = 20,
                                           .device = INPUT_ANY_DEVICE},
    .args_min = 1,
    .args_max = 1,
    .run = top_run,
};
