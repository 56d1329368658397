/* verb_steps.c - the command steps: what each step of a trace needs. */
#include <inttypes.h>
#include <math.h>

#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/text/step_options.h"
#include "sim/cli/output/table.h"
#include "sim/results/row.h"
#include "traces/printable.h"
#include "traces/steps/complete.h"

static void add_row(struct table *t, const struct step_part *p)
{
    if (p->kind == STEP_COMPLETE)
        table_cell(t, false, "%" PRIu64, p->step);
    else
        table_cell(t, false, "%s", step_part_names[p->kind]);
    table_cell(t, false, "%" PRIu64, p->from);
    table_cell(t, false, "%" PRIu64, p->to - p->from);
    table_size(t, p->live);
    table_size(t, p->peak_requested);
    table_size(t, p->peak_reserved);
    table_share(t, p->fragmentation);
    table_cell(t, false, "%" PRIu64, p->driver_calls);
    table_cell(t, p->retries > 0, "%" PRIu64, p->retries);
    table_cell(t, p->ooms > 0, "%" PRIu64, p->ooms);
    if (isnan(p->seconds))
        table_cell(t, false, "-");
    else
        table_cell(t, false, "%.3f", p->seconds);
}

static void put_head(const struct steps_subject *on, const struct step_table *t,
                     FILE *out)
{
    printable_line(out,
                   "%s, %s, policy %s, bound %s: %" PRIu64 " complete steps",
                   on->in->name, FRAG_DEVICE_NAME(on->in->device->device),
                   on->policy, FRAG_SHOW_BOUND(on->bound), t->steps.count);
    fputs("steps found by: ", out);
    step_source_put(out, &t->steps);
    if (!isnan(t->steps.likeness))
        fprintf(out,
                "; consecutive steps have %.0f %% of their events in common",
                t->steps.likeness * 100);
    fputc('\n', out);
    if (!t->steps.count)
        fputs("The one row is the whole trace. If the recording has other "
              "marks, --step-mark NAME finds the steps by them.\n",
              out);
}

static enum frag_err put_text(const struct steps_subject *on,
                              const struct step_table *t, FILE *out, bool color)
{
    struct table table = table_of(
        "rrrrrrrrrrr", "step|from event|events|live at begin|peak requested|"
                       "peak reserved|fragmentation|driver calls|retries|OOMs|"
                       "seconds");

    put_head(on, t, out);
    for (uint64_t i = 0; i < t->count; i++)
        add_row(&table, &t->items[i]);
    return table_print(&table, out, color);
}

/* clang-format off */ /* clang-format on */

static void put_json(const struct steps_subject *on, const struct step_table *t,
                     struct frag_json *j)
{
    frag_json_new_object(j, 2, NULL);
    frag_json_text(j, "trace", on->in->name);
    frag_json_number(j, "device", on->in->device->device);
    frag_json_text(j, "policy", on->policy);
    JSON_ROW(j, steps_subject, on, BOUND(bound));
    step_source_json(j, &t->steps);
    frag_json_number(j, "peak_requested_bytes", t->summary.peak_requested);
    frag_json_number(j, "peak_reserved_bytes", t->summary.peak_reserved);
    frag_json_texts(j, "notes", on->in->trace->notes,
                    on->in->trace->note_count);
    JSON_ROWS(j, "parts", 3, step_part, t->items, t->count,
              WORD("part", kind, step_part_names), POSITIVE("step", step),
              NUMBER("from_event", from), NUMBER("to_event", to),
              NUMBER("live_at_begin_bytes", live),
              NUMBER("peak_requested_bytes", peak_requested),
              NUMBER("peak_allocated_bytes", peak_allocated),
              NUMBER("peak_reserved_bytes", peak_reserved),
              NUMBER("fragmentation_ratio", fragmentation),
              NUMBER("num_driver_calls", driver_calls),
              NUMBER("num_alloc_retries", retries), NUMBER("num_ooms", ooms),
              NUMBER("seconds", seconds));
    frag_json_end(j);
}

static enum frag_err show(struct step_command *c,
                          const struct steps_subject *on,
                          const struct step_table *t, struct frag_error *e)
{
    if (c->json)
        put_json(on, t, c->json);
    else
        FRAG_TRY(put_text(on, t, c->out, c->color));
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

enum frag_err steps_show(const struct shown *on, struct frag_error *e)
{
    return step_command_show(on, 0, answer, e);
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
