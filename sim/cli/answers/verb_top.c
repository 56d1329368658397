/* verb_top.c - the command top: what holds memory at one moment of a trace. */
#include <stdlib.h>

#include "sim/cli/answers/held/holders_report.h"
#include "sim/cli/answers/text/ranks_text.h"
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
    struct frag_json j;
    struct ranks ranks; /* of several traces */
    uint64_t shown;     /* traces */
    bool is_open;
};

static bool is_quiet(const struct top *s)
{
    return sink_is_stdout(s->values->folded) ||
           sink_is_stdout(s->values->outputs.json);
}

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

/* Writes all outputs of a trace. The table is left out if one of them goes to
 * stdout. */
static enum frag_err write_all(struct top *s, const struct holders *h,
                               const char *name, struct frag_error *e)
{
    const struct top_values *v = s->values;
    const struct holders_view view = {name, v->at, v->filter, v->limit,
                                      cli_colors(&v->common, stdout)};

    if (v->folded)
        FRAG_TRY(write_folded(s, h->trace, h->device, h->event, e));
    if (v->outputs.json)
        holders_json(h, &view, &s->j);
    FRAG_TRY(add_rank(s, h, name, e));
    if (is_quiet(s))
        return FRAG_OK;
    if (s->shown++)
        putchar('\n');
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
    FRAG_THEN(err, moment_read(t, d, v->at, &event, e));
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
    if (s->json.out)
        cli_json_open(s->call, &s->j, s->json.out);
    return FRAG_OK;
}

/* Answers for one trace. The outputs are opened when the first was read. */
static enum frag_err answer(struct top *s, const char *path,
                            struct frag_error *e)
{
    const struct trace_reading reading = {.kind = READING_RECORDED};
    struct progress progress = progress_start(&s->values->common);
    struct frag_trace *t;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(input_open(path, &reading, &progress, &t, e));
    if (!s->values->common.quiet)
        input_say_notes(path, t);
    if (!s->is_open)
        err = open_outputs(s, e);
    s->is_open = true;
    FRAG_THEN(err, show(s, t, e));
    frag_trace_close(t);
    return err;
}

/* The ranks, and the ends of the outputs. */
static enum frag_err finish(struct top *s, struct frag_error *e)
{
    if (s->ranks.count && !is_quiet(s)) {
        putchar('\n');
        FRAG_TRY(ranks_print(&s->ranks, stdout,
                             cli_colors(&s->values->common, stdout), e));
    }
    if (!s->values->outputs.json)
        return FRAG_OK;
    if (s->ranks.count) {
        frag_json_line(&s->j, 1);
        frag_json_end(&s->j);
        ranks_json(&s->ranks, &s->j);
        frag_json_end(&s->j);
        fputc('\n', s->json.out);
    } else {
        frag_results_json_close(&s->j);
    }
    return sink_commit(&s->json, e);
}

static enum frag_err answer_all(struct top *s, struct unread *unread,
                                struct frag_error *e)
{
    const struct texts *paths = &s->values->common.args;

    FRAG_TRY(unread_names(unread, e));
    for (size_t i = 0; i < paths->count; i++) {
        enum frag_err err = FRAG_OK;

        if (!unread_has(unread, paths->items[i]))
            err = answer(s, paths->items[i], e);
        if (err != FRAG_OK)
            FRAG_TRY(unread_add(unread, err, e));
    }
    FRAG_TRY(unread_end(unread, e));
    return finish(s, e);
}

static int top_run(const struct call *call, const void *values)
{
    const struct top_values *v = values;
    struct top s = {.call = call,
                    .values = v,
                    .ranks = {.names = {"held"},
                              .keys = {"held"},
                              .heading = "most of it"}};
    struct unread unread = unread_of(call, &v->common);
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
    code = cli_fail(call, answer_all(&s, &unread, &e), &e);
    sink_abort(&s.json);
    sink_abort(&s.folded);
    ranks_free(&s.ranks);
    return unread_exit(&unread, code);
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
     "code), function (the site without its line), stack (all frames), size, "
     "class (sizes between two powers of 2), age (in steps), seconds or events "
     "(the age in these units), pool, stream or metadata (the text of "
     "_set_memory_metadata); auto (default) is site, and size if the recording "
     "has no stacks"},
    {"rows", 0, "N", OPTION_NUMBER, AT(limit), NULL,
     "number of groups to print (default: 20; 0: all)"},
    {"filter", 0, "TEXT", OPTION_TEXT, AT(filter), NULL,
     "only blocks with a frame that contains TEXT in its function or in "
     "FILE:LINE"},
    {"folded", 0, "FILE", OPTION_TEXT, AT(folded), NULL,
     "write folded stacks, one line a stack: frames from the outermost to the "
     "innermost, separated by semicolons, then the bytes; programs that draw "
     "flame graphs read it; - is stdout"},
    OUTPUT_JSON_OPTION(AT, "the answer as JSON; - is stdout"),
    {"device", 0, "N", OPTION_DEVICE, AT(device), NULL,
     "number of the device (default: the only one)"},
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
    .defaults = &(const struct top_values){.at = "peak",
                                           .limit = 20,
                                           .device = INPUT_ANY_DEVICE},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = top_run,
};
