/* verb_report.c - the command report: writes a review of result files as one
 * page. The page itself is made in sim/cli/review/. */
#include "sim/cli/cli.h"
#include "sim/cli/cli_versions.h"
#include "sim/cli/gnuplot/drawing.h"
#include "sim/cli/page/page.h"
#include "sim/cli/review/review.h"

struct report_values {
    struct common common;
    const char *out, *baseline;
    struct drawing look;
    bool force;
};

static enum frag_err report(const struct call *call,
                            const struct report_values *v,
                            struct progress *progress, struct frag_error *e)
{
    const struct texts *args = &v->common.args;
    struct result_files files;
    struct review r = {.paths = args,
                       .files = &files,
                       .command = call->command,
                       .baseline_name = v->baseline,
                       .slowdown = 0.01,
                       .look = &v->look,
                       .progress = progress};
    enum frag_err err;

    FRAG_TRY(result_files_load(args->items, args->count, &files, e));
    for (size_t i = 0; i < files.count; i++)
        versions_note(&v->common, args->items[i], &files.files[i]);
    err = review_make(&r, e);
    if (err == FRAG_OK) {
        progress_step(progress, 0, 0, " figures", 1, "report");
        err = review_write(&r, v->out, e);
        review_free(&r);
    }
    result_files_free(&files);
    return err;
}

static int report_run(const struct call *call, const void *values)
{
    const struct report_values *v = values;
    struct progress progress = progress_start(&v->common);
    struct frag_error e = {""};
    enum frag_err err;
    int code;

    if (!page_is_named(v->out))
        return cli_misuse(call, PAGE_EXPECTED);
    code = cli_may_replace(call, v->out, v->force);
    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    err = report(call, v, &progress, &e);
    progress_clear(&progress);
    return cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct report_values, field)
static const struct option_row options[] = {
    PAGE_OPTION(AT(out)),
    FORCE_OPTION(AT(force)),
    {"baseline", 0, "POLICY", OPTION_TEXT, AT(baseline), NULL,
     "policy with which the others are compared; it must not know the future "
     "(default: torch, else a policy with torch's default parameters, else the "
     "first one)"},
    DRAWING_LOOK_OPTIONS(AT(look)),
    {0},
};
/* clang-format on */

const struct verb verb_report = {
    .name = "report",
    .args = "RESULTS... -o FILE",
    .summary = "write a review of policies as one page to read or print",
    .about =
        "The page states which policy or setting survives where others fail, "
        "what it saves and what it costs. It ranks the policies, and shows "
        "which policy survives at which capacity, memory against its cost in "
        "time, and each policy on each trace. Memory is what a policy needs, "
        "if the results have it (`fragsim sweep --need'), and else its peak "
        "reserved. Policies that know the future are bounds and stand apart. "
        "A capacity that none of the policies can survive, because the job "
        "asks for more, is named and counts for none. For each trace the page "
        "shows the notes of its reader, memory over events, the composition "
        "of the peak, and where runs fail. It ends with the provenance of the "
        "results and the commands that make the page again.\n\n"
        "The page is one file that contains its figures and refers to nothing "
        "on the network. gnuplot draws the figures.",
    .example = "fragsim report results.h5 -o policies.html",
    .options = options,
    .size = sizeof(struct report_values),
    .defaults = &(const struct report_values){.out = NULL},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = report_run,
};
