/* verb_check.c - the command check: judges traces by rules. The analysis is in
 * sim/answers/check/checks.h. */
#include "sim/answers/check/checks.h"

#include "sim/cli/answers/replay_options.h"
#include "sim/cli/answers/text/check_text.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/outputs.h"

struct check_values {
    struct common common;
    struct replay_values replay;
    struct outputs outputs;
    const char *rules;
};

struct visits {
    struct checks checks;
    struct replay_settings settings;
    struct progress progress;
};

static enum frag_err visit(void *user, const struct input *in,
                           struct frag_error *e)
{
    struct visits *v = user;

    progress_step(&v->progress, v->checks.count + 1, 0, " events", 1, in->name);
    return checks_add(&v->checks, &v->settings, in, e);
}

/* -- the question -------------------------------------------------------- */

/* The command line decides before the file of rules. */
static frag_size choose_capacity(const struct check_values *v,
                                 const struct gates *g)
{
    if (v->replay.capacity)
        return v->replay.capacity;
    return g->capacity ? g->capacity : FRAG_UNLIMITED;
}

static int misused(const struct call *call, const struct check_values *v)
{
    if (!v->rules)
        return cli_misuse(call, "expected --rules FILE, found none: there is "
                                "nothing to check");
    return outputs_check(call, &v->outputs);
}

/* -- the outcome --------------------------------------------------------- */

struct shown {
    const struct checks *checks;
    bool color;
};

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    const struct shown *s = user;

    if (j)
        checks_json(s->checks, j);
    else if (check_text(s->checks, out, s->color) != FRAG_OK)
        return frag_no_memory(e, "the table of the checks");
    return FRAG_OK;
}

static void put_after(void *user, struct frag_json *j)
{
    checks_json_answers(((const struct shown *)user)->checks, j);
}

static enum frag_err write_out(const struct call *call,
                               const struct check_values *v,
                               const struct checks *c, struct frag_error *e)
{
    struct shown shown = {c, cli_colors(&v->common, stdout)};

    return answer_write(call, &(const struct answer){put, put_after, &shown},
                        v->outputs.json, e);
}

static enum frag_err check_all(const struct call *call,
                               const struct check_values *v,
                               const struct gates *gates, struct unread *unread,
                               size_t *failed, struct frag_error *e)
{
    const struct check_question question = {gates, choose_capacity(v, gates)};
    struct visits visits = {.checks = {.question = &question},
                            .progress = progress_start(&v->common)};
    const struct inputs inputs =
        replay_inputs(&v->common, &v->replay, &visits.progress, unread);
    struct cell_settings cell;
    enum frag_err err;

    FRAG_TRY(cell_settings_read(&(const struct cell_values){0}, &cell, e));
    visits.settings = (struct replay_settings){
        &cell, v->replay.policy ? v->replay.policy : gates->policy,
        v->replay.mark, progress_tick, &visits.progress};
    err = inputs_each(&inputs, visit, &visits, e);
    progress_clear(&visits.progress);
    FRAG_THEN(err, write_out(call, v, &visits.checks, e));
    if (err == FRAG_OK)
        *failed = checks_failed(&visits.checks);
    checks_free(&visits.checks);
    return err;
}

static int check_run(const struct call *call, const void *values)
{
    const struct check_values *v = values;
    struct gates gates = {.path = NULL};
    struct unread unread = unread_of(call, &v->common);
    struct frag_error e = {""};
    size_t failed = 0;
    enum frag_err err;
    const int code = misused(call, v);

    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    err = gates_read(v->rules, &gates, &e);
    FRAG_THEN(err, check_all(call, v, &gates, &unread, &failed, &e));
    gates_free(&gates);
    if (err != FRAG_OK)
        return cli_fail(call, err, &e);
    return unread_exit(&unread, failed ? EXIT_NO : EXIT_DONE);
}

/* clang-format off */
#define AT(field) offsetof(struct check_values, field)
static const struct option_row options[] = {
    {"rules", 'r', "FILE", OPTION_TEXT, AT(rules), NULL,
     "file of rules; exit code 1 if one of them does not hold"},
    REPLAY_OPTIONS(AT, "memory of the device; it overrides the file of "
                       "rules (default: unlimited)"),
    OUTPUT_JSON_OPTION(AT, "the same as JSON; - is stdout"),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    {0},
};
/* clang-format on */

const struct verb verb_check = {
    .name = "check",
    .args = "TRACE...",
    .summary = "judge traces by rules",
    .about =
        "A file of rules has one rule a line, a comment begins with #. A rule "
        "is a measure, <= or >=, and a limit: `peak_reserved <= 20GiB', "
        "`fragmentation <= 25%', `growth_per_step <= 1MiB', `retries <= 0', "
        "`ooms <= 0', `driver_calls <= 500', `steps >= 10'. Further measures "
        "are peak_requested, peak_allocated, end_reserved and events. A size "
        "needs a unit unless it is 0; a share is a percentage or a number up "
        "to 1. The lines `policy TEXT' and `capacity SIZE', each at most "
        "once, set how the traces are replayed, unless --policy and "
        "--capacity do. A rule about a value that is not known, such as the "
        "growth of a trace with fewer than two steps, fails.\n\n"
        "A rule judges what happened, so the traces are taken as they were "
        "recorded: the trace of a job that died is not completed, and its "
        "peaks are those until its death, which a line below the table says. "
        "Such a job fails by the rule `deaths <= 0', which every file has "
        "without naming it, unless the file has `deaths <= 1'. Without a "
        "capacity the device refuses nothing; ooms then counts the reports of "
        "the recording, and retries its allocations during which segments "
        "were returned to the device, if these are more than the policy has "
        "in the replay.\n\n"
        "An example with a recording in traces/bundled/: with the rules "
        "`capacity 5.05GiB', `ooms <= 0' and `fragmentation <= 25%', `fragsim "
        "check lstm_varlen__cap_below.pickle.xz --rules FILE' prints that one "
        "OOM was found, and ends with 1.",
    .example = "fragsim check snapshot.pickle --rules nightly.rules",
    .options = options,
    .size = sizeof(struct check_values),
    .defaults = &(const struct check_values){.replay = REPLAY_DEFAULTS},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = check_run,
};
