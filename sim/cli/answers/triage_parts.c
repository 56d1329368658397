/* triage_parts.c - the evidence on the page of triage: each part is what a
 * command prints, with the command line that prints it again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/text/verdict_text.h"
#include "sim/cli/answers/triage.h"
#include "sim/cli/child.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/tune_report.h"
#include "sim/cli/scratch.h"
#include "traces/facts.h"
#include "traces/name.h"
#include "traces/printable.h"

/* Words of a command line that stand for something else. */
#define THE_TRACE    "@trace"
#define THE_WHOLE    "@whole" /* the trace of the run to the end */
#define THE_BOUND    "@bound" /* the option of the capacity that follows */
#define THE_CAPACITY "@capacity"
#define THE_MOMENT   "@moment"
#define THE_POLICY   "@policy" /* PyTorch, with the settings of the trace */
#define THE_TOTAL    "@total"

/* ---- what the verdict's answers show ---- */

static void put_explained(const struct explain *x, FILE *out)
{
    printable_line(out, "%s, %s", x->trace->path,
                   FRAG_DEVICE_NAME(x->device->device));
    explain_put_text(x, out);
}

static void put_failure(const struct triage *t, FILE *out)
{
    put_explained(t->verdict.failure, out);
    verdict_put_action(&t->verdict, out);
}

static void put_here(const struct triage *t, FILE *out)
{
    put_explained(t->verdict.here, out);
    verdict_put_action(&t->verdict, out);
}

/* The notes of the trace have a place of their own on the page. */
static void put_settings(const struct triage *t, FILE *out)
{
    const struct verdict *v = &t->verdict;
    char *name = frag_trace_name(v->whole->path);
    struct tune_case tuned = v->tuned;
    struct tune_ladder ladder = v->ladder;

    tuned.name = name ? name : tuned.name;
    ladder.cases = &tuned;
    tune_print(
        &(const struct tune_answer){.ladder = &ladder, .about = &t->about},
        out);
    free(name);
}

static void put_needs(const struct triage *t, FILE *out)
{
    char text[VERDICT_TEXT];

    for (size_t i = 0; i < VERDICT_NEEDS; i++) {
        const struct verdict_need *n = &t->verdict.needs[i];

        printable_line(out, "%-28s  %s", *n->setting ? n->setting : "default",
                       n->bytes == FRAG_UNLIMITED ? "not known"
                                                  : FRAG_SHOW_SIZE(n->bytes));
    }
    printable_line(out, "%s", verdict_fits(&t->verdict, text));
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
     .picture = {"holes", holes, false, false},
     .put = put_failure,
     .is_of_recorded = true,
     .is_shown = has_failure},
    {"here",
     "With this memory",
     "The first request that fails in a replay with this memory, and what "
     "changes would do.",
     {"explain", THE_WHOLE, "-q", THE_BOUND, THE_CAPACITY},
     .picture = {"holes-here", holes, false, false},
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
     .picture = {"map", NULL, true, true},
     .is_shown = has_history},
    {"held",
     "Who holds the memory",
     "The live blocks at the request of which the job died, or, if it did not "
     "die, at the peak of the requested memory.",
     {"top", THE_TRACE, "-q", "--at", THE_MOMENT},
     .is_shown = NULL},
    {"steps",
     "Steps",
     "What each step of the job needs.",
     {"steps", THE_WHOLE, "-q"},
     .picture = {"steps",
                 "The peaks of each step, and what is live where it begins.",
                 true, false},
     .failures = "OOMs",
     .is_shown = has_history},
    {"growth",
     "Growth",
     "What remains from step to step, and how long that fits the memory.",
     {"leaks", THE_WHOLE, "-q", "-c", THE_CAPACITY},
     .picture = {"leaks", "What each leak holds in each step, and the peaks.",
                 true, false},
     .is_shown = has_history},
    {"summary",
     "PyTorch's summary",
     "torch.cuda.memory_summary() at the same moment, and the fragmentation.",
     {"summary", THE_TRACE, "-q", "--at", THE_MOMENT},
     .is_shown = NULL},
    {0},
};

bool triage_is_shown(const struct triage *t, const struct triage_part *part)
{
    return !part->is_shown || part->is_shown(t);
}

bool triage_is_copied(const struct triage *t, const struct triage_part *part)
{
    return !part->put || (part->is_of_recorded && !t->is_recorded);
}

char *triage_text(const struct triage *t, const struct triage_part *part)
{
    return scratch_path(t->folder, part->id, ".txt");
}

static const char *suffix_of(const struct triage_picture *p)
{
    return p->is_view ? ".html" : ".svg";
}

char *triage_picture(const struct triage *t,
                     const struct triage_picture *picture)
{
    return scratch_path(t->folder, picture->name, suffix_of(picture));
}

/* ---- command lines ---- */

/* The words of a command; the last is followed by NULL. */
struct command {
    const char *words[TRIAGE_WORDS + 6];
    size_t count;
    char device[16], total[FRAG_SIZE_TEXT], capacity[FRAG_SIZE_TEXT];
};

static const char *word_for(const struct triage *t, const struct command *c,
                            const char *word)
{
    const struct {
        const char *word, *means;
    } meanings[] = {
        {THE_TRACE, t->path},
        {THE_WHOLE, t->rest.path ? t->rest.path : t->path},
        {THE_CAPACITY, c->capacity},
        {THE_TOTAL, c->total},
        {THE_BOUND,
         t->about.bound.kind == FRAG_BOUND_LIMIT ? "--process-limit" : "-c"},
        {THE_MOMENT, facts_last_oom(t->device) >= 0 ? "oom" : "peak"},
        {THE_POLICY, t->trace->settings ? "torch@recorded" : "torch"},
    };

    for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
        if (!strcmp(word, meanings[i].word))
            return meanings[i].means;
    return word;
}

/* Adds the device where the trace has several. */
static void put_words(const struct triage *t, const struct triage_part *part,
                      struct command *c)
{
    c->count = 0;
    snprintf(c->device, sizeof(c->device), "%" PRIu32, t->device->device);
    frag_size_argument(tune_total(t->about.bound), c->total);
    frag_size_argument(t->about.bound.bytes, c->capacity);
    for (size_t i = 0; i < TRIAGE_WORDS && part->words[i]; i++)
        c->words[c->count++] = word_for(t, c, part->words[i]);
    if (t->trace->device_count > 1) {
        c->words[c->count++] = "--device";
        c->words[c->count++] = c->device;
    }
}

void triage_put_command(const struct triage *t, const struct triage_part *part,
                        FILE *out)
{
    struct command command;

    put_words(t, part, &command);
    fputs("fragsim", out);
    for (size_t k = 0; k < command.count; k++) {
        char *quoted = cli_quoted(command.words[k]);

        fprintf(out, " %s", quoted ? quoted : "...");
        free(quoted);
    }
    if (part->picture.name)
        fprintf(out, " -o %s%s", part->picture.name, suffix_of(&part->picture));
    fputc('\n', out);
}

/* ---- copies ---- */

/* The work of a copy. */
struct job {
    const struct triage *triage;
    const struct triage_part *part;
    char *file; /* of the picture; NULL: none is drawn; owned */
};

static int run_command(void *user)
{
    const struct job *job = user;
    const struct triage *t = job->triage;
    const struct triage_part *part = job->part;
    char *argv[TRIAGE_WORDS + 6];
    struct command c;

    put_words(t, part, &c);
    if (job->file) {
        c.words[c.count++] = "-o";
        c.words[c.count++] = job->file;
    }
    c.words[c.count] = NULL;
    memcpy(argv, c.words, (c.count + 1) * sizeof(*argv));
    if (child_copy_is_apart())
        input_lend(t->whole && strcmp(t->path, argv[1]) != 0 ? t->whole
                                                             : t->trace);
    return command_run(t->call->verbs, verb_find(t->call->verbs, argv[0]),
                       (int)c.count, argv, t->call->command);
}

/* Whether a picture can be drawn: one over time needs recorded events. */
static bool can_draw(const struct triage *t, const struct triage_picture *p)
{
    return p->name && (t->draws || p->is_view) &&
           (!p->is_over_time || has_history(t));
}

/* What the work prints goes to the file of that name. */
static enum frag_err start(struct triage *t, const struct triage_part *part,
                           const char *name, int (*work)(void *user),
                           pid_t *copy, struct frag_error *e)
{
    static const struct setting settings[] = {
        {"NO_COLOR", "1"}, {"CI", "1"}, {NULL, NULL}};
    char *output = scratch_path(t->folder, name, ".txt");
    struct job job = {.triage = t, .part = part};
    const struct child_work w = {work, &job, settings, output};
    enum frag_err err = output ? FRAG_OK : frag_no_memory(e, "a command");

    if (err == FRAG_OK && can_draw(t, &part->picture)) {
        job.file = triage_picture(t, &part->picture);
        err = job.file ? FRAG_OK : frag_no_memory(e, "a picture");
    }
    FRAG_THEN(err, child_copy(&w, copy, e));
    free(job.file);
    free(output);
    return err;
}

enum frag_err triage_start(struct triage *t, struct frag_error *e)
{
    for (size_t i = 0; triage_parts[i].id; i++)
        if (triage_is_copied(t, &triage_parts[i]) &&
            triage_is_shown(t, &triage_parts[i]))
            FRAG_TRY(start(t, &triage_parts[i], triage_parts[i].id, run_command,
                           &t->copies[i], e));
    return FRAG_OK;
}

/* Draws the moment of the failure that the part is about. */
static int draw(void *user)
{
    const struct job *job = user;
    const struct verdict *v = &job->triage->verdict;
    const struct drawing drawing = {.out = job->file};
    char *name = frag_trace_name(job->triage->path);
    struct frag_error e;
    const bool is_drawn = name && draw_holes(v->failure ? v->failure : v->here,
                                             name, &drawing, &e) == FRAG_OK;

    free(name);
    return is_drawn ? EXIT_DONE : EXIT_FILES;
}

enum frag_err triage_draw(struct triage *t, struct frag_error *e)
{
    return t->draws ? start(t, &triage_parts[!t->verdict.failure], "drawn",
                            draw, &t->drawer, e)
                    : FRAG_OK;
}

static enum frag_err wait_for(pid_t *copy, struct frag_error *e)
{
    const pid_t process = *copy;
    int code;

    *copy = 0;
    if (process)
        FRAG_TRY(child_wait(process, &code, e));
    return cli_interrupted() ? FRAG_CANCELLED : FRAG_OK;
}

enum frag_err triage_wait(struct triage *t, struct frag_error *e)
{
    enum frag_err err = wait_for(&t->drawer, e), other;

    for (size_t i = 0; i < TRIAGE_PARTS_MOST; i++) {
        (void)progress_tick(t->progress, i + 1, TRIAGE_PARTS_MOST);
        other = wait_for(&t->copies[i], e);
        err = err == FRAG_OK ? other : err;
    }
    return err;
}
