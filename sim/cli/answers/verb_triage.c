/* verb_triage.c - the command triage: the answers of several commands about one
 * recording, on one page. Each part of the page is the output of a command,
 * with the command line that prints it again. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/answers/rest.h"
#include "sim/cli/answers/text/answer_page.h"
#include "sim/cli/child.h"
#include "sim/cli/cli.h"
#include "sim/cli/gnuplot/gnuplot.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/review/publish.h"
#include "sim/cli/scratch.h"
#include "traces/bytes/temporary.h"
#include "traces/name.h"
#include "traces/steps/complete.h"
#include "traces/torch_platforms.h"

struct triage_values {
    struct common common;
    const char *out, *program, *gpu;
    frag_size bounds[FRAG_BOUND_KINDS];
    bool force;
};

/* Words of a command line that stand for something else. */
#define THE_TRACE "@trace"
#define THE_WHOLE \
    "@whole" /* the trace of the run to the end, if there is one */
#define THE_BOUND    "@bound" /* the option of the capacity that follows */
#define THE_CAPACITY "@capacity"
#define THE_MOMENT   "@moment"
#define THE_DEVICE   "@device" /* the command runs once for each device */

enum { WORDS = 16, PICTURES = 2 };

/* A file that the command of a part draws. */
struct picture {
    const char *option, *name, *caption;
    bool is_over_time; /* it shows recorded events */
    bool is_view;      /* it is interactive */
};

static const char *suffix_of(const struct picture *p)
{
    return p->is_view ? ".html" : ".svg";
}

/* A part of the page: a heading, the command that answers it, and what the
 * command draws. */
static const struct part {
    const char *id, *heading, *question;
    const char *words[WORDS];
    struct picture pictures[PICTURES];
} parts[] = {
    {"why",
     "Why it died",
     "The failed request, the cause with its evidence, what changes of the "
     "settings and of the program would have done, and what the recording "
     "cannot tell.",
     {"explain", THE_TRACE, "-q"},
     {{"-o", "holes",
       "The segments at the failure, or at the end if no request failed, to "
       "scale: live blocks, holes and the request.",
       false, false},
      {"--map", "map",
       "The addresses of all blocks and holes up to the failure.", true,
       true}}},
    {"change",
     "What to change",
     "The simplest setting of PyTorch's allocator with which the job survives "
     "the capacity, and what each further setting buys.",
     {"tune", THE_WHOLE, "-q", "--no-hold-out", THE_BOUND, THE_CAPACITY},
     {{0}}},
    {"fits",
     "What fits",
     "The least bound from which on nothing fails, of each policy.",
     {"fit", THE_WHOLE, "-q", "-p", "torch", "-p",
      "torch:expandable_segments:True", "-p", "best_fit"},
     {{0}}},
    {"held",
     "Who holds the memory",
     "The live blocks at the request of which the job died, or, if it did not "
     "die, at the peak of the requested memory.",
     {"top", THE_TRACE, "-q", "--device", THE_DEVICE, "--at", THE_MOMENT},
     {{0}}},
    {"steps",
     "Steps",
     "What each step of the job needs.",
     {"steps", THE_WHOLE, "-q"},
     {{"-o", "steps",
       "The peaks of each step, and what is live where it begins.", true,
       false}}},
    {"growth",
     "Growth",
     "What remains from step to step, and how long that fits the capacity.",
     {"leaks", THE_WHOLE, "-q", "-c", THE_CAPACITY},
     {{"-o", "leaks", "What each leak holds in each step, and the peaks.", true,
       false}}},
    {"summary",
     "PyTorch's summary",
     "torch.cuda.memory_summary() at the same moment, and the fragmentation.",
     {"summary", THE_TRACE, "-q", "--at", THE_MOMENT},
     {{0}}},
};

enum { PARTS = sizeof(parts) / sizeof(*parts) };

/* The words of one run of a command. */
struct command {
    const char *words[WORDS];
    size_t count;
    char device[16];
};

/* What the commands printed. */
struct triage {
    const struct triage_values *values;
    struct progress *progress;
    const char *path;
    struct frag_bound bound;
    char capacity[FRAG_SIZE_TEXT]; /* its bytes */
    char tool[PATH_MAX];
    char *folder;
    char *texts[PARTS]; /* NULL before a command has run */
    int codes[PARTS];
    struct frag_trace *trace; /* for its notes */
    struct rest rest;         /* with --dry */
    bool draws;               /* gnuplot is installed */
};

/* ---- running ---- */

/* A device on which the job died is of interest where it died. */
static const char *moment_of(const struct frag_device_trace *d)
{
    const struct frag_recorded *r = &d->recorded;

    for (uint64_t i = 0; i < r->action_count; i++)
        if (r->actions[i].action == FRAG_OOM_REPORTED)
            return "oom";
    return d->added ? "oom" : "peak";
}

static bool runs_for_each_device(const struct part *part)
{
    for (size_t k = 0; k < WORDS && part->words[k]; k++)
        if (!strcmp(part->words[k], THE_DEVICE))
            return true;
    return false;
}

/* How often the command of a part runs. */
static uint32_t runs_of(const struct triage *t, const struct part *part)
{
    return runs_for_each_device(part) ? t->trace->device_count : 1;
}

/* The words of the command of a part, for its k-th run. A command for all
 * devices asks for one moment that all have. */
static void put_words(const struct triage *t, const struct part *part,
                      uint32_t k, struct command *c)
{
    const struct frag_trace *trace = t->trace;
    const bool is_for_one =
        trace->device_count == 1 || runs_for_each_device(part);

    c->count = 0;
    snprintf(c->device, sizeof(c->device), "%" PRIu32,
             trace->devices[k].device);
    for (size_t i = 0; i < WORDS && part->words[i]; i++) {
        const char *word = part->words[i];

        c->words[c->count++] =
            !strcmp(word, THE_TRACE)   ? t->path
            : !strcmp(word, THE_WHOLE) ? (t->rest.path ? t->rest.path : t->path)
            : !strcmp(word, THE_CAPACITY) ? t->capacity
            : !strcmp(word, THE_BOUND)
                ? (t->bound.kind == FRAG_BOUND_LIMIT ? "--process-limit" : "-c")
            : !strcmp(word, THE_DEVICE) ? c->device
            : !strcmp(word, THE_MOMENT)
                ? (is_for_one ? moment_of(&trace->devices[k]) : "peak")
                : word;
    }
}

/* Adds the text of the file to *text, after an empty line if there is text. */
static enum frag_err read_text(const char *path, char **text,
                               struct frag_error *e)
{
    FILE *in = fopen(path, "rbe");
    char *made = NULL;
    size_t size;
    FILE *to = open_memstream(&made, &size);
    int c;

    if (to && *text)
        fprintf(to, "%s\n", *text);
    while (in && to && (c = fgetc(in)) != EOF)
        fputc(c, to);
    if (in)
        fclose(in);
    if (!to || fclose(to) != 0) {
        free(made);
        return frag_no_memory(e, "the output of a command");
    }
    free(*text);
    *text = made;
    return in ? FRAG_OK
              : frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
}

/* Whether there is a picture that can be drawn: it shows one device, a picture
 * over time needs recorded events, and all but a view need gnuplot. */
static bool can_draw(const struct triage *t, const struct picture *picture)
{
    const struct frag_device_trace *d = t->trace->devices;

    return picture->name && (t->draws || picture->is_view) &&
           t->trace->device_count == 1 &&
           (!picture->is_over_time || d->count > d->initial);
}

static enum frag_err run_words(struct triage *t, size_t i, uint32_t device,
                               char *const *files, struct frag_error *e)
{
    static const struct setting settings[] = {
        {"NO_COLOR", "1"}, {"CI", "1"}, {NULL, NULL}};
    const char *argv[WORDS + 2 * PICTURES + 2] = {t->tool};
    size_t n = 1;
    char *output = scratch_path(t->folder, parts[i].id, ".txt");
    struct command command;
    struct child child = {.argv = argv, .settings = settings, .output = output};
    enum frag_err err;

    if (!output)
        return frag_no_memory(e, "the output of a command");
    put_words(t, &parts[i], device, &command);
    for (size_t k = 0; k < command.count; k++)
        argv[n++] = command.words[k];
    for (size_t k = 0; k < PICTURES; k++)
        if (files[k]) {
            argv[n++] = parts[i].pictures[k].option;
            argv[n++] = files[k];
        }
    progress_step(t->progress, i + 1, PARTS, " parts", 1, parts[i].words[0]);
    err = child_run(&child, &t->codes[i], e);
    if (err == FRAG_OK)
        err = read_text(output, &t->texts[i], e);
    if (err == FRAG_OK && cli_interrupted())
        err = FRAG_CANCELLED;
    free(output);
    return err;
}

static enum frag_err run_part(struct triage *t, size_t i, struct frag_error *e)
{
    char *files[PICTURES] = {NULL};
    enum frag_err err = FRAG_OK;

    for (size_t k = 0; err == FRAG_OK && k < PICTURES; k++) {
        const struct picture *picture = &parts[i].pictures[k];

        if (!can_draw(t, picture))
            continue;
        files[k] = scratch_path(t->folder, picture->name, suffix_of(picture));
        err = files[k] ? FRAG_OK : frag_no_memory(e, "a picture");
    }
    for (uint32_t k = 0; err == FRAG_OK && k < runs_of(t, &parts[i]); k++)
        err = run_words(t, i, k, files, e);
    for (size_t k = 0; k < PICTURES; k++)
        free(files[k]);
    return err;
}

/* Reads the trace as the commands do: an input that cannot be read is reported
 * once, and the notes say what the answers rest on. */
static enum frag_err open_trace(struct triage *t, struct frag_error *e)
{
    const struct trace_reading reading = {READING_COMPLETED, .limit = 0};

    return input_open(t->path, &reading, t->progress, &t->trace, e);
}

static enum frag_err find_tool(struct triage *t, struct frag_error *e)
{
    const ssize_t n = readlink("/proc/self/exe", t->tool, sizeof(t->tool) - 1);

    if (n < 0)
        return frag_fail(e, FRAG_IO, "/proc/self/exe: %s", strerror(errno));
    t->tool[n] = '\0';
    return FRAG_OK;
}

static enum frag_err run_rest(struct triage *t, struct frag_error *e)
{
    const struct rest_spec spec = {
        .tool = t->tool,
        .program = t->values->program,
        .gpu = t->values->gpu,
        .page = t->values->out,
        .force = t->values->force,
        .progress = t->progress,
    };

    return rest_run(&spec, t->trace, &t->rest, e);
}

static enum frag_err run_all(struct triage *t, struct frag_error *e)
{
    FRAG_TRY(find_tool(t, e));
    FRAG_TRY(open_trace(t, e));
    t->draws = gnuplot_is_installed();
    if (t->values->program)
        FRAG_TRY(run_rest(t, e));
    FRAG_TRY(scratch_make(&t->folder, e));
    for (size_t i = 0; i < PARTS; i++)
        FRAG_TRY(run_part(t, i, e));
    return FRAG_OK;
}

/* ---- the verdict ---- */

/* The rest of the line of `text` that begins with `start`, without blanks at
 * its ends; "" if there is none. The length is in *length. */
static const char *line_after(const char *text, const char *start,
                              size_t *length)
{
    for (const char *at = text; at && *at;) {
        const char *end = at + strcspn(at, "\n");

        if (!strncmp(at, start, strlen(start))) {
            at += strlen(start);
            while (isblank((unsigned char)*at))
                at++;
            *length = (size_t)(end - at);
            return at;
        }
        at = *end ? end + 1 : end;
    }
    *length = 0;
    return "";
}

/* Why the job died: explain's sentence and the line of evidence that follows
 * it.
 */
static void put_cause(const char *text, FILE *out)
{
    static const char *const starts[] = {"the job died ",
                                         "the request failed "};
    size_t length = 0;

    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts) && !length; i++) {
        const char *cause = line_after(text, starts[i], &length);
        const char *evidence = cause + length + strspn(cause + length, "\n ");

        if (length)
            fprintf(out, "The %s%.*s: %.*s. ", starts[i] + strlen("the "),
                    (int)length, cause, (int)strcspn(evidence, "\n"), evidence);
    }
    if (!length)
        fputs("The recording shows no failed request. ", out);
}

/* The reason in a line of tune: what follows the name of the trace. */
static void put_reason(const char *text, FILE *out)
{
    const char *found = text ? strstr(text, "no allocator can help") : NULL;
    const char *from = found;

    if (!found)
        return;
    while (from > text && from[-1] != '\n')
        from--;
    from = strstr(from, ": ");
    fprintf(out, ": %.*s", (int)strcspn(from + 2, "\n"), from + 2);
}

/* How a setting fares: what a job that died would have requested is predicted
 * at best. */
static const char *outcome(const struct triage *t, bool is_one, char text[128])
{
    bool died = false;

    for (uint32_t i = 0; !t->rest.path && i < t->trace->device_count; i++)
        died = died || t->trace->devices[i].added ||
               frag_fatal_request(&t->trace->devices[i]) != FRAG_NEVER;
    snprintf(text, 128,
             died
                 ? "serve%s what was recorded, and steps like it, at %s, which "
                   "is no promise"
                 : "survive%s at %s",
             is_one ? "s" : "", FRAG_SHOW_BOUND(t->bound));
    return text;
}

/* Whether the row of tune's table that has no knob ends without an OOM. */
static bool default_survives(const char *text)
{
    size_t length;
    const char *row = line_after(text, "#   0 ", &length);

    return length && strncmp(row, "OOM", 3) != 0;
}

/* What to do: the line of tune that exports a setting, or why there is none. */
static void put_change(const struct triage *t, const char *text, int code,
                       FILE *out)
{
    const char *variable = torch_variable_of(t->trace->settings);
    const char *setting;
    char line[64], how[128];
    size_t length;

    snprintf(line, sizeof(line), "export %s=", variable);
    setting = line_after(text, line, &length);
    if (length && default_survives(text))
        fprintf(out,
                "PyTorch's default settings %s; with %s=%.*s the job reserves "
                "less.",
                outcome(t, false, how), variable, (int)length, setting);
    else if (length)
        fprintf(out, "The setting %s=%.*s %s.", variable, (int)length, setting,
                outcome(t, true, how));
    else if (code == EXIT_DONE)
        fprintf(out, "PyTorch's default settings %s.", outcome(t, false, how));
    else if (code == EXIT_NO) {
        fprintf(out, "No setting of PyTorch's allocator survives at %s",
                FRAG_SHOW_BOUND(t->bound));
        put_reason(text, out);
        fputc('.', out);
    } else
        fputs("No setting was looked for; the part below says why.", out);
}

static const char *text_of(const struct triage *t, const char *id, int *code)
{
    for (size_t i = 0; i < PARTS; i++)
        if (!strcmp(parts[i].id, id)) {
            *code = t->codes[i];
            return t->texts[i];
        }
    return "";
}

/* A leak fills every capacity in the end, whatever the setting. */
static void put_leak(const char *text, FILE *out)
{
    size_t length;
    const char *leak = line_after(text, "verdict: leak of", &length);
    const char *end = length ? strstr(leak, ". ") : NULL;

    if (end)
        fprintf(out, " It leaks %.*s, which no setting stops.",
                (int)(end - leak), leak);
}

/* What --dry put in the place of the guessed rest. */
static void put_rest(const struct triage *t, struct answer_page *p)
{
    char text[2048];

    snprintf(text, sizeof(text),
             "The answers about what to change, what fits, the steps and the "
             "growth are those of the whole job: its program, %.200s, ran "
             "without a GPU to its end, and its trace is %.200s. %s",
             t->values->program, t->rest.path, t->rest.alike);
    answer_page_paragraph(p, text);
}

static enum frag_err put_verdict(const struct triage *t, struct answer_page *p,
                                 struct frag_error *e)
{
    char *verdict = NULL;
    size_t size;
    FILE *out = open_memstream(&verdict, &size);
    const char *text;
    int code = 0;

    if (!out)
        return frag_no_memory(e, "the verdict");
    put_cause(text_of(t, "why", &code), out);
    text = text_of(t, "change", &code);
    put_change(t, text, code, out);
    put_leak(text_of(t, "growth", &code), out);
    if (fclose(out) != 0) {
        free(verdict);
        return frag_no_memory(e, "the verdict");
    }
    answer_page_verdict(p, verdict);
    free(verdict);
    if (t->rest.path)
        put_rest(t, p);
    return FRAG_OK;
}

/* ---- the page ---- */

static void put_command(const struct triage *t, const struct part *part,
                        uint32_t device, FILE *out)
{
    struct command command;

    put_words(t, part, device, &command);
    fputs("fragsim", out);
    for (size_t k = 0; k < command.count; k++) {
        char *quoted = cli_quoted(command.words[k]);

        fprintf(out, " %s", quoted ? quoted : "...");
        free(quoted);
    }
    for (size_t k = 0; k < PICTURES; k++)
        if (can_draw(t, &part->pictures[k]))
            fprintf(out, " %s %s%s", part->pictures[k].option,
                    part->pictures[k].name, suffix_of(&part->pictures[k]));
    fputc('\n', out);
}

static enum frag_err put_commands(const struct triage *t,
                                  const struct part *part,
                                  struct answer_page *p, struct frag_error *e)
{
    FILE *out = answer_page_text(p);

    if (!out)
        return frag_no_memory(e, "the page");
    for (uint32_t k = 0; k < runs_of(t, part); k++)
        put_command(t, part, k, out);
    return answer_page_text_end(p, e);
}

/* A command that draws nothing says why in its text. */
static enum frag_err put_pictures(const struct triage *t,
                                  const struct part *part,
                                  struct answer_page *p, struct frag_error *e)
{
    enum frag_err err = FRAG_OK;

    for (size_t k = 0; err == FRAG_OK && k < PICTURES; k++) {
        const struct picture *picture = &part->pictures[k];
        char *file;

        if (!can_draw(t, picture))
            continue;
        file = scratch_path(t->folder, picture->name, suffix_of(picture));
        if (!file)
            return frag_no_memory(e, "a picture");
        if (access(file, R_OK) == 0)
            err = picture->is_view
                      ? answer_page_view(p, file, e)
                      : answer_page_figure(p, file, picture->caption, e);
        free(file);
    }
    return err;
}

static enum frag_err put_part(const struct triage *t, size_t i,
                              struct answer_page *p, struct frag_error *e)
{
    FILE *out;

    answer_page_section(p, parts[i].heading, parts[i].id);
    answer_page_paragraph(p, parts[i].question);
    FRAG_TRY(put_commands(t, &parts[i], p, e));
    FRAG_TRY(put_pictures(t, &parts[i], p, e));
    out = answer_page_text(p);
    if (!out)
        return frag_no_memory(e, "the page");
    fputs(t->texts[i], out);
    return answer_page_text_end(p, e);
}

static enum frag_err write_page(void *user, FILE *out, struct frag_error *e)
{
    struct triage *t = user;
    const char *links[PARTS][2];
    struct answer_page p;
    char title[256], *name = frag_trace_name(t->path);

    if (!name)
        return frag_no_memory(e, "the page");
    snprintf(title, sizeof(title), "Triage of %.200s", name);
    free(name);
    answer_page_open(&p, out, title);
    FRAG_TRY(put_verdict(t, &p, e));
    answer_page_notes(&p, "What the answers rest on, and where they stop",
                      t->trace->notes, t->trace->note_count);
    for (size_t i = 0; i < PARTS; i++) {
        links[i][0] = parts[i].id;
        links[i][1] = parts[i].heading;
    }
    answer_page_links(&p, (const char *const(*)[2])links, PARTS);
    if (!t->draws)
        answer_page_paragraph(&p, "Some figures are left out, because gnuplot, "
                                  "which draws them, is not installed.");
    for (size_t i = 0; i < PARTS; i++)
        FRAG_TRY(put_part(t, i, &p, e));
    answer_page_close(&p);
    return FRAG_OK;
}

static enum frag_err triage_all(struct triage *t, struct frag_error *e)
{
    FRAG_TRY(run_all(t, e));
    return publish(t->values->out, write_page, t, e);
}

static int triage_run(const struct call *call, const void *values)
{
    const struct triage_values *v = values;
    struct progress progress = progress_start(&v->common);
    struct triage t = {
        .values = v, .progress = &progress, .path = v->common.args.items[0]};
    struct frag_error e = {""};
    enum frag_err err;
    int code;

    if (!publish_can(v->out))
        return cli_misuse(call, "expected -o FILE.html or FILE.pdf");
    t.bound.kind =
        v->bounds[FRAG_BOUND_LIMIT] ? FRAG_BOUND_LIMIT : FRAG_BOUND_CAPACITY;
    t.bound.bytes = v->bounds[t.bound.kind];
    if (!t.bound.bytes || t.bound.bytes == FRAG_UNLIMITED ||
        (t.bound.kind == FRAG_BOUND_LIMIT && v->bounds[FRAG_BOUND_CAPACITY]))
        return cli_misuse(call, "expected either --capacity SIZE, the finite "
                                "memory of the device on which the job shall "
                                "run, or --process-limit SIZE");
    if (!strcmp(t.path, "-"))
        return cli_misuse(call, "expected the name of a file, found \"-\": "
                                "several commands read it, and stdin can be "
                                "read once only");
    if (v->gpu && !v->program)
        return cli_misuse(call, "--gpu is for the program of --dry");
    code = cli_may_replace(call, v->out, v->force);
    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    snprintf(t.capacity, sizeof(t.capacity), "%lluB",
             (unsigned long long)t.bound.bytes);
    err = triage_all(&t, &e);
    progress_clear(&progress);
    for (size_t i = 0; i < PARTS; i++)
        free(t.texts[i]);
    temporary_remove(t.folder);
    frag_trace_close(t.trace);
    free(t.rest.path);
    return cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct triage_values, field)
static const struct option_row options[] = {
    {"capacity", 'c', "SIZE",
     "memory of the device on which the job shall run", OPTION_SIZE,
     AT(bounds[FRAG_BOUND_CAPACITY]), NULL},
    {"process-limit", 0, "SIZE",
     "instead of it, a memory limit of the process, as "
     "set_per_process_memory_fraction sets it",
     OPTION_SIZE, AT(bounds[FRAG_BOUND_LIMIT]), NULL},
    PAGE_OPTION(AT(out)),
    {"dry", 0, "PROGRAM",
     "run this command line, the program of the job, without a GPU to its end: "
     "its trace takes the place of the predicted rest of a job that died, and "
     "is kept beside the page as NAME-dry.pickle; see `fragsim help dry'",
     OPTION_TEXT, AT(program), NULL},
    {"gpu", 0, "NAME", "the GPU of --dry, as for `fragsim dry'", OPTION_TEXT,
     AT(gpu), NULL},
    FORCE_OPTION(AT(force)),
    {0},
};
/* clang-format on */

const struct verb verb_triage = {
    .name = "triage",
    .args = "SNAPSHOT --capacity SIZE -o FILE",
    .summary = "all answers about a failed job on one page",
    .about =
        "The page begins with a verdict of two sentences: why the job died, "
        "and "
        "what to export so that it survives on a device of this capacity. A "
        "box says what the answers rest on and where they stop. The parts "
        "follow: explain, tune, fit, top, steps, leaks and summary, each with "
        "the command line that prints it again.\n\n"
        "The recording of a job that died is completed with steps like those "
        "before. With --dry, its own program says what it would have "
        "requested: the program runs without a GPU to its end, on a GPU that "
        "never refuses, and tune, fit, steps and leaks answer for that whole "
        "run. The page says whether its requests begin like the recorded "
        "ones.\n\n"
        "A part that cannot be answered holds the message of its command.",
    .example = "fragsim triage oom.pickle --capacity 24GiB -o review.html",
    .options = options,
    .size = sizeof(struct triage_values),
    .defaults = &(const struct triage_values){.out = NULL},
    .args_min = 1,
    .args_max = 1,
    .run = triage_run,
};
