/* verb_plot.c - figures of a result file, drawn by the scripts in plots/. */
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/figure.h"

struct values {
    struct common common;
    struct texts runs;
    const char *out, *keep;
    bool force;
};

static bool can_draw(const char *out)
{
    static const char *const suffixes[] = {".svg", ".png", ".pdf"};
    const char *dot = strrchr(out, '.');

    for (size_t i = 0; dot && i < sizeof(suffixes) / sizeof(*suffixes); i++)
        if (!strcmp(dot, suffixes[i]))
            return true;
    return false;
}

static enum frag_err plot(const struct figure *f, const struct values *v,
                          struct frag_error *e)
{
    const struct texts *args = &v->common.args;
    struct result_files files;
    struct selection s = {0};
    enum frag_err err;

    FRAG_TRY(result_files_load(args->items, args->count - 1, &files, e));
    err = selection_choose(&files, &v->runs, &s, e);
    if (err == FRAG_OK)
        err = figure_draw(f, &s, v->out, v->keep, e);
    selection_free(&s);
    result_files_free(&files);
    return err;
}

/* "a, b and c" of the names of all figures. */
static int no_such_figure(const struct call *call, const char *name)
{
    char known[256] = "";
    size_t at = 0;

    for (size_t i = 0; figures[i] && at < sizeof(known); i++)
        at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s",
                               !i               ? ""
                               : figures[i + 1] ? ", "
                                                : " and ",
                               figures[i]->name);
    return cli_misuse(call, "there is no figure \"%s\"; there are %s", name,
                      known);
}

static int plot_run(const struct call *call, const void *values)
{
    const struct values *v = values;
    const char *name = v->common.args.items[v->common.args.count - 1];
    const struct figure *f = figure_find(name);
    struct frag_error e = {""};
    int code;

    if (!f)
        return no_such_figure(call, name);
    if (!v->out || !can_draw(v->out))
        return cli_misuse(call, "expected -o FILE.svg, FILE.png or FILE.pdf");
    code = cli_may_replace(call, v->out, v->force);
    if (code != EXIT_DONE)
        return code;
    return cli_fail(call, plot(f, v, &e), &e);
}

/* clang-format off */
#define AT(field) offsetof(struct values, field)
static const struct option_row options[] = {
    {"output", 'o', "FILE", "the figure: .svg, .png or .pdf", OPTION_TEXT,
     AT(out), NULL},
    {"force", 'f', NULL, "write over a figure that exists", OPTION_SWITCH,
     AT(force), NULL},
    {"run", 0, "N,...", "only these runs, as numbered in /runs (default: all)",
     OPTION_LIST, AT(runs), NULL},
    {"keep", 0, "DIR", "keep the gnuplot script and its data there",
     OPTION_TEXT, AT(keep), NULL},
    {0},
};
/* clang-format on */

const struct verb verb_plot = {
    .name = "plot",
    .args = "RESULTS... FIGURE -o FILE",
    .summary = "draw a figure of result files",
    .about = "The figures:"
#define FIGURE(name, text) "\n\n" #name ": " text "."
#include "sim/cli/figures.h"
#undef FIGURE
             "\n\nEach is drawn by gnuplot with a script that can be kept, "
             "edited and run by hand.",
    .example = "fragsim plot results.h5 compare -o compare.svg",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.out = NULL},
    .args_min = 2,
    .args_max = SIZE_MAX,
    .run = plot_run,
};
