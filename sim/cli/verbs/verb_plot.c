/* verb_plot.c - the command plot: draws a figure of result files or of a trace,
 * with the scripts in plots/. */
#include <string.h>
#include <unistd.h>

#include "sim/cli/cli.h"
#include "sim/cli/cli_versions.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/figures/filter.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/page/page.h"
#include "sim/cli/review/view.h"
#include "traces/nearest.h"

struct plot_values {
    struct common common;
    struct wanted wanted;
    struct drawing drawing;
    const char *measure; /* NULL: the figure's */
    uint64_t limit;      /* 0: the figure's */
    uint64_t device;     /* INPUT_ANY_DEVICE: the only one */
    bool force;
};

/* Tells on stderr what the figure leaves out. */
static void tell(const struct plot_values *v, const struct figure_note *note)
{
    if (*note->shown && !v->common.quiet)
        fprintf(stderr, "fragsim plot: %s\n", note->shown);
}

static enum frag_err plot(const struct figure *f, const struct plot_values *v,
                          struct frag_error *e)
{
    const struct texts *args = &v->common.args;
    struct result_files files;
    struct figure_note note = {"", ""};
    struct selection s = {0};
    enum frag_err err;

    FRAG_TRY(result_files_load(args->items, args->count - 1, &files, e));
    for (size_t i = 0; i < files.count; i++)
        versions_note(&v->common, args->items[i], &files.files[i]);
    err = selection_choose(&files, &s, e);
    FRAG_THEN(err, selection_filter(&s, &v->wanted, e));
    FRAG_THEN(err, figure_draw(
                       f, &s, &(const struct figure_wish){v->limit, v->measure},
                       &v->drawing, &note, e));
    if (err == FRAG_OK)
        tell(v, &note);
    selection_free(&s);
    result_files_free(&files);
    return err;
}

/* -- figures of a trace -------------------------------------------------- */

static enum frag_err view_trace(const struct plot_values *v,
                                const struct frag_trace *t,
                                struct progress *progress, struct frag_error *e)
{
    struct view_wish wish = {.trace = t,
                             .policies = &v->wanted.policies,
                             .bounds = v->wanted.bounds,
                             .progress = progress};

    FRAG_TRY(input_device(t, v->device, &wish.device, e));
    FRAG_TRY(view_write(&wish, v->drawing.out, e));
    progress_clear(progress);
    if (!v->common.quiet) {
        input_say_notes(t->path, t);
        input_say_start(t->path, wish.device);
    }
    return FRAG_OK;
}

static enum frag_err plot_map(const struct plot_values *v, struct frag_error *e)
{
    struct progress progress = progress_start(&v->common);
    const struct trace_reading raw = {READING_RAW, .limit = 0};
    struct frag_trace *trace;
    enum frag_err err;

    FRAG_TRY(input_open(v->common.args.items[0], &raw, &progress, &trace, e));
    progress_step(&progress, 0, 0, " events", 1, "map");
    err = view_trace(v, trace, &progress, e);
    progress_clear(&progress);
    frag_trace_close(trace);
    return err;
}

/* The map is a page of one look. */
static int check_map(const struct call *call, const struct plot_values *v)
{
    const struct drawing *d = &v->drawing;

    if (v->common.args.count != 2)
        return cli_misuse(call, "map is of a trace: expected one trace, found "
                                "several");
    if (v->limit || v->measure || v->wanted.traces.count)
        return cli_misuse(call, "map is of a trace: --trace, --limit and "
                                "--measure are for runs of result files");
    if (v->wanted.policies.count > VIEW_RUNS)
        return cli_misuse(call,
                          "map is of a trace: expected one or two --policy, "
                          "found %zu",
                          v->wanted.policies.count);
    if (!page_is_named(d->out))
        return cli_misuse(call, "expected -o FILE.html: map is a page for a "
                                "browser");
    if (d->keep || d->title || d->theme)
        return cli_misuse(call, "--keep, --title and --theme are for gnuplot, "
                                "which draws no FILE.html");
    return cli_may_replace(call, d->out, v->force);
}

/* -- the command --------------------------------------------------------- */

/* Reports all figures' names. */
static int no_such_figure(const struct call *call, const char *name)
{
    struct nearest near = nearest_among("figure", name);
    char names[NEAREST_NAMES];

    for (size_t i = 0; figures[i]; i++)
        nearest_try(&near, figures[i]->name);
    nearest_try(&near, "map");
    if (access(name, F_OK) == 0)
        return cli_misuse(call,
                          "%s: expected the name of a figure after the files, "
                          "found a file; the figures are %s",
                          name, near.known);
    return cli_misuse(call, "there is no figure \"%s\"%s", name,
                      nearest_names(&near, "figures", names));
}

static int plot_run(const struct call *call, const void *values)
{
    const struct plot_values *v = values;
    const char *name = v->common.args.items[v->common.args.count - 1];
    const bool is_map = !strcmp(name, "map");
    const struct figure *f = figure_find(name);
    struct frag_error e = {""};
    int code;

    if (!f && !is_map)
        return no_such_figure(call, name);
    code = is_map ? check_map(call, v)
                  : drawing_check(call, &v->drawing, v->force);
    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    return cli_fail(call, is_map ? plot_map(v, &e) : plot(f, v, &e), &e);
}

/* clang-format off */
#define AT(field) offsetof(struct plot_values, field)
static const struct option_row options[] = {
    {"output", 'o', "FILE", OPTION_TEXT, AT(drawing.out), NULL,
     "file of the figure: .svg, .png or .pdf; of a map .html"},
    FORCE_OPTION(AT(force)),
    {"trace", 0, "NAME", OPTION_LIST, AT(wanted.traces), NULL,
     "draw only the runs of this trace; NAME may be a pattern such as 'bert*'; "
     "repeat the option for more traces"},
    {"policy", 'p', "POLICY", OPTION_LIST, AT(wanted.policies), NULL,
     "draw only the runs of this policy, or of those that the pattern matches; "
     "repeat the option for more policies. For a map: one or two policies, side "
     "by side (default: torch)"},
    {"capacity", 'c', "SIZE,...", OPTION_LIST,
     AT(wanted.bounds[FRAG_BOUND_CAPACITY]), NULL,
     "draw only the runs on a device of this capacity, such as 24GiB, 0.9x or "
     "inf. For a map: memory of the device (default: inf)"},
    {"rows", 0, "N", OPTION_NUMBER, AT(limit), NULL,
     "draw at most N runs, policies or lines; the figure says what it leaves "
     "out and by which rule (default: by the figure, such as 12 runs of a "
     "timeline)"},
    {"device", 0, "N", OPTION_DEVICE, AT(device), NULL,
     "for a map: number of the device, if there are several"},
    {"measure", 0, "COLUMN", OPTION_TEXT, AT(measure), NULL,
     "for compare: the number of a run that is compared, a column of `fragsim "
     "help results' such as overhead, need_bytes or modelled_device_seconds "
     "(default: peak_reserved_bytes)"},
    DRAWING_LOOK_OPTIONS(AT(drawing)),
    DRAWING_KEEP_OPTION(AT(drawing)),
    {0},
};
/* clang-format on */

const struct verb verb_plot = {
    .name = "plot",
    .args = "RESULTS...|TRACE FIGURE -o FILE",
    .summary = "draw a figure of result files or of a trace",
    .about = "The figures are:"
#define FIGURE(name, text) "\n\n" #name ": " text "."
#include "sim/cli/figures/figure_list.h"
#undef FIGURE
             "\n\nmap: of a trace: addresses over events under one policy or "
             "two, as a page for a browser, FILE.html: one zooms into blocks, "
             "sees their stacks, and compares the policies.\n\n"
             "gnuplot draws each other figure with a script. --keep keeps the "
             "script, so that you can edit it and run it yourself.",
    .words =
#define FIGURE(name, text) " " #name
#include "sim/cli/figures/figure_list.h"
#undef FIGURE
        " map",
    .example = "fragsim plot results.h5 compare -o compare.svg",
    .options = options,
    .size = sizeof(struct plot_values),
    .defaults = &(const struct plot_values){.device = INPUT_ANY_DEVICE},
    .args_min = 2,
    .args_max = SIZE_MAX,
    .run = plot_run,
};
