/* triage_parts.c - the evidence on the page of triage: each part is the answer
 * of a command, with the command line that prints it again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/text/verdict_text.h"
#include "sim/cli/answers/triage.h"
#include "sim/cli/output/tune_report.h"
#include "sim/cli/review/view.h"
#include "traces/facts.h"
#include "traces/name.h"
#include "traces/printable.h"
#include "traces/torch_sizes.h"

/* Words of a command line that stand for something else. */
#define THE_TRACE    "@trace"
#define THE_WHOLE    "@whole" /* the trace of the run to the end */
#define THE_BOUND    "@bound" /* the option of the capacity that follows */
#define THE_CAPACITY "@capacity"
#define THE_MOMENT   "@moment"
#define THE_POLICY   "@policy" /* PyTorch, with the settings of the trace */
#define THE_TOTAL    "@total"

/* ---- what the verdict's answers show ---- */

/* One picture is drawn: of the failure, if there is one. */
static enum frag_err put_explained(const struct triage *t,
                                   const struct explain *x,
                                   const struct shown *on, struct frag_error *e)
{
    const struct explain *failure = t->verdict.failure;

    verdict_put_explained(x, &t->verdict, on->out);
    return on->drawing.out && (!failure || x == failure)
               ? draw_holes(x, on->in.name, &on->drawing, e)
               : FRAG_OK;
}

static enum frag_err put_failure(const struct triage *t, const struct shown *on,
                                 struct frag_error *e)
{
    return put_explained(t, t->verdict.failure, on, e);
}

static enum frag_err put_here(const struct triage *t, const struct shown *on,
                              struct frag_error *e)
{
    return put_explained(t, t->verdict.here, on, e);
}

/* The notes of the trace have a place of their own on the page. */
static enum frag_err put_settings(const struct triage *t,
                                  const struct shown *on, struct frag_error *e)
{
    struct tune_case tuned = t->verdict.tuned;
    struct tune_ladder ladder = t->verdict.ladder;

    (void)e;
    tuned.name = on->in.name;
    ladder.cases = &tuned;
    tune_print(
        &(const struct tune_answer){.ladder = &ladder, .about = &t->about},
        on->out);
    return FRAG_OK;
}

static enum frag_err put_needs(const struct triage *t, const struct shown *on,
                               struct frag_error *e)
{
    char text[VERDICT_TEXT];

    (void)e;
    for (size_t i = 0; i < VERDICT_NEEDS; i++) {
        const struct verdict_need *n = &t->verdict.needs[i];

        printable_line(on->out, "%-28s  %s",
                       torch_is_followed(n->setting) ? TORCH_FOLLOWED
                       : *n->setting                 ? n->setting
                                                     : "default",
                       n->bytes == FRAG_UNLIMITED ? "not known"
                                                  : FRAG_SHOW_SIZE(n->bytes));
    }
    printable_line(on->out, "%s", verdict_fits(&t->verdict, text));
    return FRAG_OK;
}

static bool has_history(const struct triage *t)
{
    return recording_tells(t->device);
}

static bool has_failure(const struct triage *t)
{
    return explain_has_failure(t->device) || !has_history(t);
}

static bool has_here(const struct triage *t)
{
    const struct verdict *v = &t->verdict;

    return v->here && v->here != v->failure;
}

/* A job that fits as it is needs no other setting. */
static bool has_settings(const struct triage *t)
{
    return has_history(t) && t->verdict.action != VERDICT_NOTHING;
}

static bool has_stacks(const struct triage *t)
{
    return classes_are_told(t->trace, t->device);
}

/* ---- the parts ---- */

static const char holes[] = "The segments at the failure, or at the end if no "
                            "request failed, to scale: live blocks, holes and "
                            "the request.";

/* The first two show a failure: the recorded one, and that at the bound. */
const struct triage_part triage_parts[] = {
    {"why",
     "Why it failed",
     "The failed request, the cause with its evidence, what changes of the "
     "settings and of the program would have done, and what the recording "
     "cannot tell.",
     {"explain", THE_TRACE, "-q"},
     .picture = {"holes.svg", holes},
     .put = put_failure,
     .show = explain_show,
     .is_shown = has_failure},
    {"here",
     "With this memory",
     "The first request that fails in a replay with this memory, and what "
     "changes would do.",
     {"explain", THE_WHOLE, "-q", THE_BOUND, THE_CAPACITY},
     .picture = {"holes-here.svg", holes},
     .put = put_here,
     .is_shown = has_here},
    {"change",
     "Which setting",
     "The simplest setting of PyTorch's allocator with which the job survives, "
     "and what each further setting saves.",
     {"tune", THE_WHOLE, "-q", THE_BOUND, THE_CAPACITY},
     .put = put_settings,
     .is_shown = has_settings},
    {"fits",
     "What fits",
     "The least memory from which on nothing fails, with the recorded settings "
     "and with expandable segments.",
     {"fit", THE_WHOLE, "-q", "-p", THE_POLICY, "-p",
      "torch:expandable_segments:True", "--total", THE_TOTAL},
     .put = put_needs,
     .is_shown = has_history},
    {"map",
     "Memory map",
     "The addresses of all blocks and holes over time.",
     {"plot", THE_TRACE, "map", "-q", "-p", THE_POLICY},
     .picture = {"map.html", NULL},
     .is_shown = has_history},
    {"held",
     "Who holds the memory",
     "The live blocks at the request of which the job died, or, if it did not "
     "die, at the peak of the requested memory.",
     {"top", THE_TRACE, "-q", "--at", THE_MOMENT},
     .show = top_show},
    {"classes",
     "What the memory is for",
     "The same blocks by class, such as weights, activations or a cache.",
     {"top", THE_TRACE, "-q", "--at", THE_MOMENT, "--by", "class"},
     .show = classes_show,
     .is_shown = has_stacks},
    {"steps",
     "Steps",
     "What each step of the job needs.",
     {"steps", THE_WHOLE, "-q"},
     .picture = {"steps.svg",
                 "The peaks of each step, and what is live where it begins."},
     .failures = "OOMs",
     .show = steps_show,
     .is_shown = has_history},
    {"growth",
     "Growth",
     "What remains from step to step, and how long that fits the memory.",
     {"leaks", THE_WHOLE, "-q", "-c", THE_CAPACITY},
     .picture = {"leaks.svg",
                 "What each leak holds in each step, and the peaks."},
     .show = leaks_show,
     .is_shown = has_history},
    {"summary",
     "PyTorch's summary",
     "torch.cuda.memory_summary() at the same moment, and the fragmentation.",
     {"summary", THE_TRACE, "-q", "--at", THE_MOMENT},
     .show = summary_show},
    {0},
};

bool triage_is_shown(const struct triage *t, const struct triage_part *part)
{
    return !part->is_shown || part->is_shown(t);
}

/* ---- the answers ---- */

static const char *moment(const struct triage *t)
{
    return facts_last_oom(t->device) >= 0 ? "oom" : "peak";
}

/* The whole run, if there is one, for a part whose command reads its trace. */
static struct input input_of(const struct triage *t,
                             const struct triage_part *part)
{
    return t->whole && !strcmp(part->words[1], THE_WHOLE)
               ? (struct input){t->whole, t->verdict.device, NULL}
               : (struct input){t->trace, t->device, NULL};
}

static enum frag_err put_text(const struct triage *t,
                              const struct triage_part *part, struct shown *on,
                              struct frag_error *e)
{
    char *name = frag_trace_name(on->in.trace->path);
    enum frag_err err = name ? FRAG_OK : frag_no_memory(e, "an answer");

    on->in.name = name;
    FRAG_THEN(err, part->put && (t->is_recorded || !part->show)
                       ? part->put(t, on, e)
                       : part->show(on, e));
    free(name);
    return err;
}

static enum frag_err put_view(const struct triage *t, FILE *out,
                              struct frag_error *e)
{
    static const struct texts no_bounds[FRAG_BOUND_KINDS];
    const char *policy = recording_policy(t->trace);
    const struct texts policies = {&policy, 1};

    return view_inline(&(const struct view_wish){.trace = t->trace,
                                                 .device = t->device,
                                                 .policies = &policies,
                                                 .bounds = no_bounds,
                                                 .progress = t->progress},
                       out, e);
}

enum frag_err triage_put_answer(const struct triage *t,
                                const struct triage_part *part, struct page *p,
                                FILE *text, struct frag_error *e)
{
    const char *caption = part->picture.caption;
    struct shown on = {.call = t->call,
                       .in = input_of(t, part),
                       .at = moment(t),
                       .capacity = t->about.bound.bytes,
                       .total = t->about.total,
                       .out = text,
                       .progress = t->progress};

    if (part->picture.name && !caption)
        return put_view(t, p->out, e);
    if (caption && t->draws)
        FRAG_TRY(page_picture(p, &on.drawing.out, e));
    FRAG_TRY(put_text(t, part, &on, e));
    return on.drawing.out && access(on.drawing.out, R_OK) == 0
               ? page_figure(p, caption, caption, e)
               : FRAG_OK;
}

/* ---- command lines ---- */

static void put_quoted(FILE *out, const char *word)
{
    char *quoted = cli_quoted(word);

    fprintf(out, " %s", quoted ? quoted : "...");
    free(quoted);
}

void triage_put_command(const struct triage *t, const struct triage_part *part,
                        FILE *out)
{
    const struct frag_bound bound = t->about.bound;
    char total[FRAG_SIZE_TEXT], capacity[FRAG_SIZE_TEXT];
    const char *const meanings[][2] = {
        {THE_TRACE, t->path},
        {THE_WHOLE, t->rest.path ? t->rest.path : t->path},
        {THE_CAPACITY, capacity},
        {THE_TOTAL, total},
        {THE_BOUND, bound.kind == FRAG_BOUND_LIMIT ? "--process-limit" : "-c"},
        {THE_MOMENT, moment(t)},
        {THE_POLICY, recording_policy(t->trace)},
    };

    frag_size_argument(tune_total(bound), total);
    frag_size_argument(bound.bytes, capacity);
    fputs("fragsim", out);
    for (const char *const *word = part->words; *word; word++) {
        const char *means = *word;

        for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
            means = strcmp(*word, meanings[i][0]) ? means : meanings[i][1];
        put_quoted(out, means);
    }
    if (t->trace->device_count > 1)
        fprintf(out, " --device %" PRIu32, t->device->device);
    if (part->picture.name)
        fprintf(out, " -o %s", part->picture.name);
    fputc('\n', out);
}
