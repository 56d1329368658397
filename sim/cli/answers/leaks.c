/* leaks.c - the command leaks: which places keep more memory in each step. */
#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/text/leaks_text.h"
#include "sim/cli/answers/text/step_options.h"

/* The largest value of reserved, under the policy, from the first examined step
 * on. */
static enum frag_err find_reserved(struct step_command *c,
                                   const struct input *in,
                                   const struct leaks *l,
                                   struct leaks_reach *reach,
                                   struct frag_error *e)
{
    struct step_table table;
    frag_size reserved = 0;

    FRAG_TRY(
        step_command_table(c, in, FRAG_UNLIMITED, &table, &reach->policy, e));
    for (uint64_t i = 0; i < table.count; i++)
        if (table.items[i].step > l->from &&
            table.items[i].peak_reserved > reserved)
            reserved = table.items[i].peak_reserved;
    step_table_close(&table);
    leaks_reach_find(l, reserved, reach);
    return FRAG_OK;
}

static enum frag_err show(struct step_command *c, const struct input *in,
                          const struct leaks *l, struct frag_error *e)
{
    struct leaks_reach reach = {.capacity = c->values->capacity};

    if (reach.capacity && l->verdict == LEAKS_FOUND)
        FRAG_TRY(find_reserved(c, in, l, &reach, e));
    if (c->json)
        leaks_json_put(in, l, &reach, c->json);
    else if (leaks_text_put(in, l, &reach, c->out, c->color) != FRAG_OK)
        return frag_no_memory(e, "the table of leaks");
    return c->values->picture ? draw_leaks(in, l, &reach, c->values->picture,
                                           c->values->keep, e)
                              : FRAG_OK;
}

static enum frag_err answer(struct step_command *c, const struct input *in,
                            struct frag_error *e)
{
    struct leaks l;
    enum frag_err err;

    FRAG_TRY(leaks_find(in->trace, in->device, c->values->cell.mark, &l, e));
    err = show(c, in, &l, e);
    leaks_close(&l);
    return err;
}

static int leaks_run(const struct call *call, const void *values)
{
    return step_command_run(call, values, answer);
}

static const struct option_row options[] = {
    STEP_OPTIONS("also say when the leaks will have filled this much memory",
                 "what each leak holds in each step, with its growth"),
    {0},
};

const struct verb verb_leaks = {
    .name = "leaks",
    .args = "TRACE...",
    .summary = "find the places that keep more memory from step to step",
    .about =
        "The command finds the steps of a recording, as `fragsim steps' does, "
        "and groups the blocks that outlive the step of their allocation by "
        "site: the innermost line of the user's own code in the stack of the "
        "allocation. In a recording without stacks they are grouped by size "
        "and stream. A group leaks if, in the second half of the steps, what "
        "it holds rises in most steps, falls back by less than half of what it "
        "gains, and has not stopped to rise at the end. So the setup of a "
        "program, the state of an optimizer, a cache that is full and the step "
        "that the recording cuts off are no leaks. A cache that still fills "
        "when the recording ends looks like a leak.\n\n"
        "The kind of a leak is `kept' if its blocks stay live, and `replaced' "
        "if each step replaces its block by a larger one. The confidence is "
        "the lower bound of the share of steps that grow (Wilson's 95 % "
        "interval): it is higher for a longer recording. Bytes are rounded up "
        "to 512 a block.\n\n"
        "The verdict is leak, none, or unknown: seven complete steps are "
        "needed. The exit code is 0 for each of them. A leak that adds memory "
        "in less than half of the steps is not found. If the job died of a "
        "failed request, the command says whether it died of growth: whether "
        "it would have needed no more than an earlier step if it had not "
        "leaked.\n\n"
        "In the example, a recording of the source tree, the program keeps the "
        "loss and a hidden layer of each step in a list, and with them the "
        "input of the step: three lines of the function w_leak are named, with "
        "2 MiB, 1 MiB and 340 KiB a step.",
    .example = "fragsim leaks traces/bundled/leak_frames.pickle.xz -c 80GiB "
               "-o leaks.svg",
    .options = options,
    .size = sizeof(struct step_values),
    .defaults = &(const struct step_values)STEP_DEFAULTS,
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = leaks_run,
};
