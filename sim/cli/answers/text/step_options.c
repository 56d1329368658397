/* step_options.c - reads the traces of a command about steps, and writes its
 * answers to one output. */
#include "sim/cli/answers/text/step_options.h"

#include <stdlib.h>

#include "sim/cli/output/answer.h"
#include "sim/results/row.h"
#include "traces/printable.h"

static const char *const sources[] = {"none", "marks", "period"};

enum frag_err step_command_table(struct step_command *c, const struct input *in,
                                 frag_size capacity, struct step_table *out,
                                 const char **policy, struct frag_error *e)
{
    const char *given =
        c->values->policy ? c->values->policy : recording_policy(in->trace);
    struct policy_choice choice;
    struct frag_params *params;
    enum frag_err err;

    FRAG_TRY(policy_choice_read(given, &choice, e));
    err = policy_choice_params_of(&choice, in->trace, in->device, &params, e);
    if (err == FRAG_OK) {
        const struct frag_bound bound =
            recording_bound_for(in->trace, in->device, &choice, capacity);
        const bool repeats = bound_repeats(
            &choice, bound, recording_bound(in->trace, in->device));
        const struct step_spec spec = {
            .trace = in->trace,
            .device = in->device,
            .mark = c->values->cell.mark,
            .policy = params,
            .settings = &c->settings,
            .bound = bound,
            .repeats = repeats,
            .progress = progress_tick,
            .user = c->progress,
        };

        progress_step(c->progress, 0, 0, " events", 1, in->name);
        err = step_table_make(&spec, out, e);
        progress_clear(c->progress);
        free(params);
    }
    *policy = given;
    policy_choice_free(&choice);
    return err;
}

void step_source_put(FILE *out, const struct frag_steps *s)
{
    if (!s->count && s->mark) {
        fputs("none; no complete step lies between the marks ", out);
        printable_put(out, s->mark);
        return;
    }
    fputs(s->source == FRAG_STEPS_PERIOD ? "period of the events"
                                         : sources[s->source],
          out);
    if (!s->mark)
        return;
    fputc(' ', out);
    printable_put(out, s->mark);
}

void step_source_json(struct frag_json *j, const struct frag_steps *s)
{
    JSON_ROW(j, frag_steps, s, WORD("steps_source", source, sources),
             TEXT("mark", mark), NUMBER("likeness", likeness),
             NUMBER("num_steps", count));
}

static void put_notes(FILE *out, const struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        printable_line(out, "note: %s", t->notes[i]);
}

static enum frag_err visit(void *user, const struct input *in,
                           struct frag_error *e)
{
    struct step_command *c = user;
    const struct frag_device_trace *one;

    if (!input_replays(in, c->values->cell.device))
        return FRAG_OK;
    FRAG_TRY(input_has_history(in, e));
    if (c->values->drawing.out)
        FRAG_TRY(input_device(in->trace, c->values->cell.device, &one, e));
    progress_clear(c->progress);
    if (c->shown++ && !c->json)
        fputc('\n', c->out);
    FRAG_TRY(c->answer(c, in, e));
    if (!c->json && !c->values->common.quiet)
        put_notes(c->out, in->trace);
    return FRAG_OK;
}

/* How the traces are read: as they were recorded, since the question is what
 * happened. */
static struct trace_reading reading_of(const struct step_values *v)
{
    return (struct trace_reading){READING_RECORDED, .limit = v->cell.limit,
                                  .completion = {.mark = v->cell.mark}};
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    struct step_command *c = user;
    const struct step_values *v = c->values;
    const struct inputs inputs = {&v->common.args, v->cell.device,
                                  reading_of(v),   false,
                                  c->progress,     &c->unread};

    c->out = out;
    c->json = j;
    FRAG_TRY(inputs_each(&inputs, visit, c, e));
    if (j || !c->ranks.count)
        return FRAG_OK;
    fputc('\n', out);
    return ranks_print(&c->ranks, out, c->color);
}

static void put_after(void *user, struct frag_json *j)
{
    const struct step_command *c = user;

    if (c->ranks.count)
        ranks_json(&c->ranks, j);
}

static enum frag_err run(struct step_command *c, struct frag_error *e)
{
    const struct step_values *v = c->values;

    struct frag_bound bound;

    FRAG_TRY(cell_settings_read(&v->cell, &c->settings, e));
    FRAG_TRY(one_bound_read(&v->bound, &bound, e));
    c->capacity =
        bound.bytes == FRAG_UNLIMITED ? v->bound.capacity : bound.bytes;
    c->color = !v->json && cli_colors(&v->common, stdout);
    return answer_write(c->call, &(const struct answer){put, put_after, c},
                        v->json, e);
}

static int may_write(const struct call *call, const struct step_values *v)
{
    const int code = cli_may_write(call, v->json, v->force);

    if (code != EXIT_DONE || !v->drawing.out)
        return code;
    if (v->common.args.count > 1)
        return cli_misuse(call, "-o draws one trace; found %zu",
                          v->common.args.count);
    return drawing_check(call, &v->drawing, v->force);
}

enum frag_err step_command_show(const struct shown *on, frag_size capacity,
                                step_answer *answer, struct frag_error *e)
{
    struct step_values values = STEP_DEFAULTS;
    struct step_command c = {.call = on->call,
                             .values = &values,
                             .capacity = capacity,
                             .progress = on->progress,
                             .out = on->out};

    values.drawing = on->drawing;
    FRAG_TRY(cell_settings_read(&values.cell, &c.settings, e));
    return answer(&c, &on->in, e);
}

int step_command_run(const struct call *call, const struct step_values *values,
                     step_answer *answer)
{
    struct progress progress = progress_start(&values->common);
    struct step_command c = {.call = call,
                             .values = values,
                             .progress = &progress,
                             .unread = unread_of(call, &values->common),
                             .answer = answer};
    struct frag_error e = {""};
    enum frag_err err;
    int code = may_write(call, values);

    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    err = run(&c, &e);
    progress_clear(&progress);
    ranks_free(&c.ranks);
    code = cli_fail(call, err, &e);
    return unread_exit(&c.unread,
                       code == EXIT_DONE && c.fails ? EXIT_NO : code);
}
