/* verb_top.c - the command top: what holds memory at one moment of a trace. */
#include "sim/cli/answers/held/held_report.h"
#include "sim/cli/answers/text/ranks_text.h"
#include "sim/cli/answers/text/shown.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "traces/bytes/sink.h"

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
    struct progress progress;
    struct unread unread;
    FILE *out;
    struct frag_json *json; /* NULL: as text */
    struct ranks ranks;     /* of several traces */
    uint64_t shown;         /* devices */
};

/* Writes the groups by stack, whatever the grouping of the table is. */
static enum frag_err write_folded(const struct top *s, const struct input *in,
                                  uint64_t event, struct frag_error *e)
{
    const struct holders_options options = {.by = HOLDERS_BY_STACK,
                                            .filter = s->values->filter};
    const struct frag_device_trace *one;
    struct holders h;
    struct sink sink;

    FRAG_TRY(input_device(in->trace, s->values->device, &one, e));
    FRAG_TRY(holders_find(in->trace, one, event, &options, &h, e));
    if (sink_open(&sink, s->values->folded, e) != FRAG_OK) {
        holders_close(&h);
        return FRAG_IO;
    }
    holders_put_folded(&h, sink.out);
    holders_close(&h);
    return sink_commit(&sink, e);
}

/* Of several traces, each is a rank, and so are the largest of its groups. */
static enum frag_err add_rank(struct top *s, const struct holders *h,
                              const char *name, struct frag_error *e)
{
    struct rank rank = {.device = h->device->device,
                        .sizes = {h->requested + h->pending}};

    if (s->values->common.args.count < 2)
        return FRAG_OK;
    if (h->count)
        snprintf(rank.word, sizeof(rank.word), "%s in %s",
                 FRAG_SHOW_SIZE(h->items[0].bytes), h->items[0].name);
    return ranks_add(&s->ranks, name, &rank, e);
}

static enum frag_err write_groups(struct top *s, const struct holders *h,
                                  const char *name, struct frag_error *e)
{
    const struct top_values *v = s->values;
    const struct holders_view view = {name, v->at, v->filter, v->limit,
                                      cli_colors(&v->common, stdout)};

    FRAG_TRY(add_rank(s, h, name, e));
    if (s->json)
        holders_json(h, &view, s->json);
    if (s->json || sink_is_stdout(v->folded))
        return FRAG_OK;
    if (s->shown++)
        fputc('\n', s->out);
    return holders_print(h, &view, s->out);
}

static enum frag_err visit(void *user, const struct input *in,
                           struct frag_error *e)
{
    struct top *s = user;
    const struct top_values *v = s->values;
    struct holders_options options = {
        .by = v->by ? v->by - 1 : holders_best(in->trace, in->device),
        .filter = v->filter,
        .steps = true};
    struct holders h;
    uint64_t event;
    enum frag_err err;

    progress_clear(&s->progress);
    if (!in->device->count && !input_replays(in, v->device))
        return FRAG_OK; /* nothing was recorded on it, but on another one */
    FRAG_TRY(moment_read(in->trace, in->device, v->at, &event, e));
    FRAG_TRY(holders_find(in->trace, in->device, event, &options, &h, e));
    if (!v->by && options.by == HOLDERS_BY_SITE && holders_is_one(&h)) {
        holders_close(&h);
        options.by = HOLDERS_BY_CALLER;
        FRAG_TRY(holders_find(in->trace, in->device, event, &options, &h, e));
    }
    err = v->folded ? write_folded(s, in, event, e) : FRAG_OK;
    FRAG_THEN(err, write_groups(s, &h, in->name, e));
    holders_close(&h);
    return err;
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    struct top *s = user;
    const struct top_values *v = s->values;
    const struct inputs inputs = {
        &v->common.args,  v->device,    {READING_RECORDED, .holds_alone = true},
        !v->common.quiet, &s->progress, &s->unread};

    s->out = out;
    s->json = j;
    FRAG_TRY(inputs_each(&inputs, visit, s, e));
    if (j || !s->ranks.count || !s->shown)
        return FRAG_OK;
    fputc('\n', out);
    return ranks_print(&s->ranks, out, cli_colors(&v->common, stdout));
}

static void put_after(void *user, struct frag_json *j)
{
    const struct top *s = user;

    if (s->ranks.count)
        ranks_json(&s->ranks, j);
}

static const struct top_values defaults = {
    .at = "peak", .limit = 20, .device = INPUT_ANY_DEVICE};

/* By that grouping and 1, or 0: the best one. */
static enum frag_err show(const struct shown *on, enum holders_by by,
                          struct frag_error *e)
{
    struct top_values values = defaults;
    struct top s = {.values = &values, .out = on->out};

    values.common.color = COLOR_NEVER;
    values.at = on->at;
    values.by = by;
    return visit(&s, &on->in, e);
}

enum frag_err top_show(const struct shown *on, struct frag_error *e)
{
    return show(on, 0, e);
}

enum frag_err classes_show(const struct shown *on, struct frag_error *e)
{
    return show(on, HOLDERS_BY_CLASS + 1, e);
}

bool classes_are_told(const struct frag_trace *t,
                      const struct frag_device_trace *d)
{
    return holders_best(t, d) != HOLDERS_BY_SIZE;
}

static int top_run(const struct call *call, const void *values)
{
    const struct top_values *v = values;
    struct top s = {.call = call,
                    .values = v,
                    .progress = progress_start(&v->common),
                    .unread = unread_of(call, &v->common),
                    .ranks = {.names = {"held"},
                              .keys = {"held"},
                              .heading = "most of it"}};
    struct outputs outputs = v->outputs;
    struct frag_error e = {""};
    int code;

    outputs.own[0] = v->folded;
    code = outputs_check(call, &outputs);
    if (code != EXIT_DONE)
        return code;
    if (v->folded && v->common.args.count > 1)
        return cli_misuse(call, "--folded writes one trace; found %zu",
                          v->common.args.count);
    cli_catch_signals();
    code =
        cli_fail(call,
                 answer_write(call, &(const struct answer){put, put_after, &s},
                              outputs.json, &e),
                 &e);
    progress_clear(&s.progress);
    ranks_free(&s.ranks);
    return unread_exit(&s.unread, code);
}

/* clang-format off */
#define AT(field) offsetof(struct top_values, field)
#define X(name, text) "|" text
static const struct option_row options[] = {
    {"at", 0, "MOMENT", OPTION_TEXT, AT(at), NULL,
     "peak (default: the first event at which most bytes are requested), oom "
     "(the last request that the recorded allocator could not meet), end, or "
     "the number of an event"},
    {"by", 0, "WORD", OPTION_CHOICE, AT(by), "auto" HOLDERS_BY(X),
     "group the blocks by site (the innermost frame of the program's own "
     "code), function (the site without its line), caller (the innermost frame "
     "that is not PyTorch's, also of a library), stack (all frames), class "
     "(what the block is for: weights, gradients, optimizer, activations, "
     "cache of keys and values, CUDA graphs, workspaces, communication, or not "
     "told), size, age (in steps, or in events if no steps were found), pool, "
     "stream or metadata (the text of _set_memory_metadata); auto (default) is "
     "site, caller if one site holds nine tenths, and size if the recording has "
     "no stacks"},
    {"rows", 0, "N", OPTION_NUMBER, AT(limit), NULL,
     "number of groups to print (default: 20; 0: all)"},
    {"filter", 0, "TEXT", OPTION_TEXT, AT(filter), NULL,
     "only blocks with a frame that contains TEXT in its function or in "
     "FILE:LINE"},
    {"folded", 0, "FILE", OPTION_TEXT, AT(folded), NULL,
     "write folded stacks, one line a stack: frames from the outermost to the "
     "innermost, separated by semicolons, then the bytes; programs that draw "
     "flame graphs read it; - is stdout"},
    OUTPUT_JSON_OPTION(AT, "the same as JSON; - is stdout"),
    {"device", 0, "N", OPTION_DEVICE, AT(device), NULL,
     "only this device of the trace (default: all)"},
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    {0},
};
#undef X
/* clang-format on */

const struct verb verb_top = {
    .name = "top",
    .args = "TRACE...",
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
        "Several traces are the ranks of a distributed job: below their "
        "groups is a table with a row for each, and the imbalance, which is "
        "the largest value divided by the mean.\n\n"
        "An example with a recording that comes with fragsim: `fragsim top "
        "leak_frames.pickle.xz' shows that the site w_leak (train.py:164) "
        "holds most, in 60 blocks. With `--filter train.py:164 --by age', "
        "these blocks are of all ages: each step leaves one of 2 MiB behind.",
    .example = "fragsim top snapshot.pickle --by stack --folded peak.folded",
    .options = options,
    .size = sizeof(struct top_values),
    .defaults = &defaults,
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = top_run,
};
