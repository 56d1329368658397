/* verb_leaks.c - the command leaks: which places keep more memory in each step.
 */
#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/text/leaks_text.h"
#include "sim/cli/answers/text/step_options.h"
#include "traces/steps/complete.h"

/* The largest value of reserved, under the policy, in the parts of the trace
 * that reach beyond the first examined place. */
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
        if (table.items[i].to > l->windows.at[l->from].event &&
            table.items[i].peak_reserved > reserved)
            reserved = table.items[i].peak_reserved;
    step_table_close(&table);
    leaks_reach_find(l, reserved, reach);
    return FRAG_OK;
}

static enum frag_err show(struct step_command *c, const struct input *in,
                          const struct leaks *l, struct frag_error *e)
{
    struct leaks_reach reach = {.capacity = c->capacity};

    if (reach.capacity && l->verdict == LEAKS_FOUND)
        FRAG_TRY(find_reserved(c, in, l, &reach, e));
    if (c->json)
        leaks_json_put(in, l, &reach, c->json);
    else if (leaks_text_put(in, l, &reach, c->out, c->color) != FRAG_OK)
        return frag_no_memory(e, "the table of leaks");
    return c->values->drawing.out
               ? draw_leaks(in, l, &reach, &c->values->drawing, e)
               : FRAG_OK;
}

static enum frag_err answer(struct step_command *c, const struct input *in,
                            struct frag_error *e)
{
    const uint64_t died = frag_fatal_request(in->device);
    struct leaks l;
    enum frag_err err;

    FRAG_TRY(leaks_find(in->trace, in->device,
                        died == FRAG_NEVER ? in->device->count : died,
                        c->values->cell.mark, &l, e));
    c->fails |= c->values->fail && l.verdict == LEAKS_FOUND;
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
    ONE_GPU_OPTION(STEP_AT(bound.gpu)),
    {"fail", 0, NULL, OPTION_SWITCH, STEP_AT(fail), NULL,
     "exit code 1 if the verdict of a trace is leak"},
    {0},
};

const struct verb verb_leaks = {
    .name = "leaks",
    .args = "TRACE...",
    .summary = "find the places that keep more and more memory",
    .about =
        "A leak outlives the work that made it, and the live memory after "
        "that work rises. The command groups the blocks that outlive a step "
        "by site: the innermost line of the user's own code in the stack of "
        "the allocation; in a recording without stacks by size and stream. A "
        "group grows if, in the second half or in the last quarter of the "
        "recording, what it holds rises throughout, falls back by at most a "
        "quarter of what it gains, and has not stopped to rise at the end. So "
        "the setup of a program, the state of an optimizer, a cache that is "
        "full and the step that the recording cuts off are no leaks. Nor is a "
        "group that grows while the memory of the whole program does not.\n\n"
        "Marked steps (Optimizer.step, ProfilerStep, or --step-mark) prove "
        "where work ends; seven complete ones are needed. Without them, as in "
        "a server, the recording is cut into 32 windows, and what is live is "
        "compared where least is live in each. Then nothing is called a leak "
        "that looks like the layers of one pass, the load of a model or the "
        "cache of one generation: most of what is allocated must be freed, "
        "and between the blocks of a site the program must have allocated by "
        "its own lines, outside of one call of a module. Or the stacks show 64 "
        "rounds of the program's own loop: each with a backward pass or an "
        "optimizer; or each with a call of a module of which most stays; or, "
        "if one line alone grows, each adding a block of one size or replacing "
        "one block outside of all modules.\n\n"
        "The verdict is leak, none, or unknown, with the reason why the "
        "recording cannot tell, and what grows in it. The exit code is 0 for "
        "each; with --fail it is 1 for a leak. The evidence is printed with "
        "it. The kind of a leak is `kept' if its blocks stay live, and "
        "`replaced' if its block is replaced by a larger one again and again. "
        "A cache that still fills when the recording ends looks like a leak. "
        "Whether a job died of a leak is said by `fragsim explain'.\n\n"
        "In the example, a recording of the source tree, the program keeps "
        "the loss and a hidden layer of each step in a list, and with them "
        "the input of the step: three lines of the function w_leak are named, "
        "with 2 MiB, 1 MiB and 546 KiB a step.",
    .example = "fragsim leaks traces/bundled/leak_frames.pickle.xz -c 80GiB "
               "-o leaks.svg",
    .options = options,
    .size = sizeof(struct step_values),
    .defaults = &(const struct step_values)STEP_DEFAULTS,
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = leaks_run,
};
