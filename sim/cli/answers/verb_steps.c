/* verb_steps.c - the command steps: what each step of a trace needs. */
#include <inttypes.h>

#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/text/step_options.h"
#include "sim/cli/answers/text/steps_text.h"
#include "traces/steps/complete.h"

static enum frag_err show(struct step_command *c,
                          const struct steps_subject *on,
                          const struct step_table *t, struct frag_error *e)
{
    if (c->json)
        steps_json_put(on, t, c->json);
    else if (steps_text_put(on, t, c->out, c->color) != FRAG_OK)
        return frag_no_memory(e, "the table of steps");
    return c->values->drawing.out ? draw_steps(on, t, &c->values->drawing, e)
                                  : FRAG_OK;
}

/* The first request that fails: in the replay at a capacity, else in the
 * recording. */
static uint64_t death_of(const struct step_command *c,
                         const struct frag_device_trace *d,
                         const struct step_table *t)
{
    if (!c->capacity)
        return frag_fatal_request(d);
    return t->summary.num_ooms ? t->summary.first_oom_event : FRAG_NEVER;
}

/* Of several traces, each is a rank. */
static enum frag_err add_rank(struct step_command *c, const struct input *in,
                              const struct step_table *t, struct frag_error *e)
{
    const struct frag_device_trace *d = in->device;
    const uint64_t death = death_of(c, d, t);
    struct rank rank = {
        .device = d->device,
        .sizes = {t->summary.peak_requested, t->summary.peak_reserved},
        .word = "-"};

    if (c->values->common.args.count < 2)
        return FRAG_OK;
    c->ranks.names[0] = "peak requested";
    c->ranks.names[1] = "peak reserved";
    c->ranks.keys[0] = "peak_requested";
    c->ranks.keys[1] = "peak_reserved";
    c->ranks.heading = "dies";
    if (death < d->count && d->time && d->time[death] > d->time[d->initial])
        snprintf(rank.word, sizeof(rank.word), "event %" PRIu64 ", at %.3f s",
                 death, (double)(d->time[death] - d->time[d->initial]) / 1e9);
    else if (death != FRAG_NEVER)
        snprintf(rank.word, sizeof(rank.word), "event %" PRIu64, death);
    return ranks_add(&c->ranks, in->name, &rank, e);
}

static enum frag_err answer(struct step_command *c, const struct input *in,
                            struct frag_error *e)
{
    struct steps_subject on = {in, NULL, FRAG_NO_BOUND};
    struct step_table table;
    enum frag_err err;

    FRAG_TRY(step_command_table(c, in, c->capacity, &table, &on.policy, e));
    on.bound = table.bound;
    err = show(c, &on, &table, e);
    FRAG_THEN(err, add_rank(c, in, &table, e));
    step_table_close(&table);
    return err;
}

static int steps_run(const struct call *call, const void *values)
{
    return step_command_run(call, values, answer);
}

static const struct option_row options[] = {
    STEP_OPTIONS(
        "memory of the device (default: as the recorded allocator ran, for its "
        "settings, else inf)",
        "the peaks of each step and what is live where it begins"),
    {0},
};

const struct verb verb_steps = {
    .name = "steps",
    .args = "TRACE...",
    .summary = "print what each step of a trace needs",
    .about =
        "A step is one iteration of a training or serving loop. The command "
        "finds the steps of a recording by its marks, such as Optimizer.step, "
        "or by the period of its events, says how alike consecutive steps "
        "are, and prints for each step its peaks, fragmentation, driver calls "
        "and time under a policy. The row `before' is the setup before the "
        "first complete step; the row `after' is a step that the recording "
        "cuts off, or the end of the program. A peak that grows from step to "
        "step is a question for `fragsim leaks'.\n\n"
        "The trace is replayed as it was recorded. If the job died of a "
        "failed request, its complete steps end before that request.\n\n"
        "Several traces are the ranks of a distributed job: below their steps "
        "is a table with a row for each, and the imbalance, which is the "
        "largest value divided by the mean. The column `dies' is the request "
        "that the recording, or with --capacity the replay, could not meet, "
        "and its time since the first event of the rank.\n\n"
        "In the example, a recording of the source tree, the job died after "
        "ten complete steps: its inputs vary, the peaks of these steps reach "
        "from 776 MiB to 3.12 GiB, and the step that it did not finish asks "
        "for 4.426 GiB.",
    .example = "fragsim steps traces/bundled/lstm_varlen__cap_below.pickle.xz "
               "-o steps.svg",
    .options = options,
    .size = sizeof(struct step_values),
    .defaults = &(const struct step_values)STEP_DEFAULTS,
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = steps_run,
};
