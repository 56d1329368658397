/* verb_diff.c - the command diff: what grew between two traces, two moments of
 * one trace, or two result files. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/answers/held/held_report.h"
#include "sim/cli/cli.h"
#include "sim/cli/cli_versions.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "traces/name.h"

struct diff_values {
    struct common common;
    struct outputs outputs;
    const char *fail_over;
    struct texts at; /* moments, of BEFORE and of AFTER */
    unsigned by;     /* 0: the best; else 1 + enum holders_by */
    uint64_t limit, device;
};

struct diff {
    const struct call *call;
    const struct diff_values *values;
    struct difference_view view;
    FILE *out;
    struct frag_json *json; /* NULL: as text */
    uint64_t failures;      /* runs; for traces 0 or 1 */
    double growth;          /* of traces */
};

/* One trace and its moment. */
struct side {
    struct frag_trace *trace;
    const struct frag_device_trace *device;
    const char *at;
    char *name;
    uint64_t event;
    struct holders holders;
};

/* -- traces -------------------------------------------------------------- */

static enum frag_err open_side(struct diff *s, const char *path, const char *at,
                               struct side *out, struct frag_error *e)
{
    const struct trace_reading reading = {READING_RECORDED,
                                          .holds_alone = true};
    struct progress progress = progress_start(&s->values->common);

    out->at = at;
    FRAG_TRY(input_open(path, &reading, &progress, &out->trace, e));
    if (!s->values->common.quiet)
        input_say_notes(path, out->trace);
    out->name = frag_trace_name(path);
    if (!out->name)
        return frag_no_memory(e, "the name of %s", path);
    FRAG_TRY(input_device(out->trace, s->values->device, &out->device, e));
    return moment_read(out->trace, out->device, at, &out->event, e);
}

static void close_side(struct side *s)
{
    holders_close(&s->holders);
    frag_trace_close(s->trace);
    free(s->name);
}

static enum holders_by best(const struct side sides[2])
{
    const enum holders_by by = holders_best(sides[0].trace, sides[0].device);

    return by == HOLDERS_BY_SIZE
               ? by
               : holders_best(sides[1].trace, sides[1].device);
}

static enum frag_err find_groups(const struct diff *s, struct side sides[2],
                                 struct frag_error *e)
{
    const struct holders_options options = {
        .by = s->values->by ? s->values->by - 1 : best(sides),
        .short_paths = true};

    for (int i = 0; i < 2; i++)
        FRAG_TRY(holders_find(sides[i].trace, sides[i].device, sides[i].event,
                              &options, &sides[i].holders, e));
    return FRAG_OK;
}

static enum frag_err write_difference(const struct diff *s,
                                      const struct side *sides,
                                      const struct difference *d)
{
    struct difference_side both[2];

    for (int i = 0; i < 2; i++)
        both[i] = (struct difference_side){&sides[i].holders, sides[i].name,
                                           sides[i].at};
    if (!s->json)
        return difference_print(d, both, &s->view, s->out);
    difference_json(d, both, &s->view, s->json);
    return FRAG_OK;
}

static enum frag_err compare_sides(struct diff *s, struct side sides[2],
                                   struct frag_error *e)
{
    struct difference d;
    enum frag_err err;

    FRAG_TRY(find_groups(s, sides, e));
    FRAG_TRY(difference_find(&sides[0].holders, &sides[1].holders, &d, e));
    s->growth = difference_growth(sides[0].holders.requested,
                                  sides[1].holders.requested);
    s->failures = s->growth > s->view.most;
    err = write_difference(s, sides, &d);
    difference_close(&d);
    return err;
}

static enum frag_err compare_traces(struct diff *s, struct frag_error *e)
{
    const struct diff_values *v = s->values;
    const char *const *paths = v->common.args.items;
    struct side sides[2] = {{0}, {0}};
    const struct texts *at = &v->at;
    const char *moments[] = {at->count ? at->items[0] : "peak",
                             at->count ? at->items[at->count - 1] : "peak"};
    enum frag_err err = open_side(s, paths[0], moments[0], &sides[0], e);

    FRAG_THEN(err, open_side(s, paths[1], moments[1], &sides[1], e));
    FRAG_THEN(err, compare_sides(s, sides, e));
    close_side(&sides[0]);
    close_side(&sides[1]);
    return err;
}

/* -- results ------------------------------------------------------------- */

static enum frag_err compare_files(struct diff *s,
                                   const struct frag_loaded files[2],
                                   struct frag_error *e)
{
    struct run_changes r;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(run_changes_find(&files[0], &files[1], &r, e));
    for (uint64_t i = 0; i < r.count; i++)
        s->failures += run_is_worse(&r.items[i], s->view.most);
    if (s->json)
        run_changes_json(&r, &s->view, s->json);
    else
        err = run_changes_print(&r, &s->view, s->out);
    run_changes_close(&r);
    return err;
}

static enum frag_err compare_results(struct diff *s, struct frag_error *e)
{
    const char *const *paths = s->values->common.args.items;
    struct frag_loaded files[2] = {{0}, {0}};
    enum frag_err err = frag_results_load(paths[0], &files[0], e);

    FRAG_THEN(err, frag_results_load(paths[1], &files[1], e));
    for (size_t i = 0; i < 2 && err == FRAG_OK; i++)
        versions_note(&s->values->common, paths[i], &files[i]);
    FRAG_THEN(err, compare_files(s, files, e));
    frag_results_unload(&files[0]);
    frag_results_unload(&files[1]);
    return err;
}

/* -- the command --------------------------------------------------------- */

/* Reads "2%" as 0.02. */
static bool read_percent(const char *text, double *share)
{
    char *end;

    *share = strtod(text, &end) / 100;
    return *text >= '0' && *text <= '9' && !strcmp(end, "%") &&
           isfinite(*share);
}

/* Refuses options that have no meaning for result files. */
static int check_use(const struct call *call, const struct diff_values *v,
                     bool results)
{
    const char *const *paths = v->common.args.items;

    if (frag_results_is(paths[0]) != frag_results_is(paths[1]))
        return cli_misuse(call,
                          "expected two traces or two result files, found the "
                          "result file %s and %s, which is none; `fragsim "
                          "replay TRACE -o results.h5' makes a result file of "
                          "a trace",
                          paths[frag_results_is(paths[1])],
                          paths[frag_results_is(paths[0])]);
    if (!strcmp(paths[0], "-") && !strcmp(paths[1], "-"))
        return cli_misuse(call, "-: expected stdin once, found it 2 times");
    if (v->at.count > 2)
        return cli_misuse(call, "--at: expected at most two moments");
    if (results && (v->by || v->at.count || v->device != INPUT_ANY_DEVICE))
        return cli_misuse(call,
                          "--at, --by and --device are for traces; "
                          "%s is a result file",
                          paths[0]);
    return outputs_check(call, &v->outputs);
}

static int say_failures(const struct diff *s, bool results)
{
    if (!s->failures)
        return EXIT_DONE;
    if (results)
        fprintf(stderr,
                "fragsim diff: runs whose peak reserved grew by more than %s, "
                "or that have more OOMs: %" PRIu64 "\n",
                s->values->fail_over, s->failures);
    else
        fprintf(stderr,
                "fragsim diff: the requested memory grew by %.2f %%, more than "
                "%s\n",
                100 * s->growth, s->values->fail_over);
    return EXIT_NO;
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    struct diff *s = user;

    s->out = out;
    s->json = j;
    return frag_results_is(s->values->common.args.items[0])
               ? compare_results(s, e)
               : compare_traces(s, e);
}

static int diff_run(const struct call *call, const void *values)
{
    struct diff s = {.call = call, .values = values};
    const struct diff_values *v = s.values;
    const bool results = frag_results_is(v->common.args.items[0]);
    struct frag_error e = {""};
    enum frag_err err;
    int code = check_use(call, v, results);

    s.view =
        (struct difference_view){v->limit, NAN, cli_colors(&v->common, stdout)};
    if (code != EXIT_DONE)
        return code;
    if (v->fail_over && !read_percent(v->fail_over, &s.view.most))
        return cli_misuse(call,
                          "--fail-over: expected a percentage such as 2%%, "
                          "found \"%.40s\"",
                          v->fail_over);
    cli_catch_signals();
    err = answer_write(call, &(const struct answer){put, NULL, &s},
                       v->outputs.json, &e);
    return err == FRAG_OK ? say_failures(&s, results) : cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct diff_values, field)
#define X(name, text) "|" text
static const struct option_row options[] = {
    {"at", 0, "MOMENT", OPTION_LIST, AT(at), NULL,
     "for traces: the moment of both, as for `fragsim top': peak (default), "
     "oom, end, or the number of an event; a second --at is that of AFTER"},
    {"by", 0, "WORD", OPTION_CHOICE, AT(by), "auto" HOLDERS_BY(X),
     "for traces: the grouping, as for `fragsim top'; auto (default) is site, "
     "and size unless both recordings have stacks"},
    {"rows", 0, "N", OPTION_NUMBER, AT(limit), NULL,
     "for traces: number of groups to print (default: 20; 0: all)"},
    {"fail-over", 0, "PERCENT", OPTION_TEXT, AT(fail_over), NULL,
     "exit with 1 if the memory requested at the moment grew by more than "
     "PERCENT, such as 2%; for result files: if a run's peak reserved did, or "
     "if a run has more OOMs than before"},
    OUTPUT_JSON_OPTION(AT, "the answer as JSON; - is stdout"),
    {"device", 0, "N", OPTION_DEVICE, AT(device), NULL,
     "for traces: number of the device (default: the only one)"},
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    {0},
};
#undef X
/* clang-format on */

const struct verb verb_diff = {
    .name = "diff",
    .args = "BEFORE AFTER",
    .summary = "what grew between two traces or two result files",
    .about =
        "BEFORE and AFTER are two recordings, for example of the commit "
        "before and the commit after a change, or twice the same recording "
        "with two moments. The command groups the live blocks of both moments "
        "as `fragsim top' does and prints the groups that changed, the "
        "largest change first: the change, its share of the growth of all "
        "held bytes (below 0: against it; the shares sum to 100 %), the bytes "
        "before and after, the change of the number of blocks. A file is "
        "known by the last part of its path, so recordings of two folders "
        "match. A site that the change moved to another line, and one that "
        "holds the same bytes in another function or file, is one group; its "
        "name before is printed too. A block that is freed while another "
        "stream may still use it counts as held.\n\n"
        "If BEFORE and AFTER are result files, the command prints peak "
        "reserved, OOMs and driver calls of each run in both files. Runs "
        "match if trace, device, policy and capacity are equal. A run that "
        "only one file has is printed and does not count for --fail-over.\n\n"
        "An example with a recording that comes with fragsim: `fragsim diff "
        "leak_frames.pickle.xz leak_frames.pickle.xz --at 1000 --at "
        "3000' shows the site that grows from one moment to the other.",
    .example = "fragsim diff before.pickle after.pickle --fail-over 2%",
    .options = options,
    .size = sizeof(struct diff_values),
    .defaults =
        &(const struct diff_values){.limit = 20, .device = INPUT_ANY_DEVICE},
    .args_min = 2,
    .args_max = 2,
    .run = diff_run,
};
