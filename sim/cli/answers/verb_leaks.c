/* verb_leaks.c - the command leaks: which places keep more memory in each step.
 */
#include <inttypes.h>
#include <math.h>

#include "sim/answers/sites.h"
#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/text/step_options.h"
#include "sim/cli/output/table.h"
#include "sim/results/row.h"
#include "traces/printable.h"
#include "traces/steps/complete.h"

/* By whether the windows are steps. */
static const char *const units[] = {"in 1000 events", "a step"};
static const char *const rates[] = {"bytes in 1000 events", "bytes a step"};

static const char *const kinds[] = {"kept", "replaced"};

/* ---- text ---- */

static void put_sizes(struct table *t, const struct leak *leak)
{
    char least[FRAG_SIZE_TEXT], most[FRAG_SIZE_TEXT];

    frag_size_format(leak->least, least);
    frag_size_format(leak->most, most);
    if (leak->least == leak->most)
        table_cell(t, false, "%s", least);
    else
        table_cell(t, false, "%s to %s", least, most);
}

static void add_row(struct table *t, const struct input *in,
                    const struct leak *leak)
{
    char site[SITE_TEXT];

    table_cell(t, false, "%s", site_text(in->trace, leak->stack, site));
    table_cell(t, false, "0x%" PRIx64, in->device->streams[leak->stream]);
    table_size(t, (frag_size)leak->rate);
    put_sizes(t, leak);
    table_size(t, leak->held);
    table_cell(t, false, "%" PRIu64 " of %" PRIu64, leak->growth.rises,
               leak->growth.steps);
    table_cell(t, false, "%s", kinds[leak->replaced]);
}

static enum frag_err put_table(const struct input *in, const struct leaks *l,
                               FILE *out, bool color)
{
    struct table table;
    char heads[96];

    snprintf(heads, sizeof(heads),
             "%s at|stream|%s|block sizes|left live|grows in|kind",
             l->verdict == LEAKS_FOUND ? "leaks" : "grows",
             rates[l->windows.by_steps]);
    table = table_of("lrrrrrl", heads);
    for (uint64_t i = 0; i < l->count; i++)
        add_row(&table, in, &l->items[i]);
    return table_print(&table, out, color);
}

/* The units as a number and, if times were recorded, as a time. */
static void put_units(const struct leaks *l, FILE *out, uint64_t count)
{
    if (l->windows.by_steps)
        fprintf(out, "%" PRIu64 " steps", count);
    else
        fprintf(out, "%" PRIu64 " events", count * 1000);
    if (!isnan(l->seconds_per_unit))
        fprintf(out, " (%.0f s)", (double)count * l->seconds_per_unit);
}

static void put_rate(const struct leaks *l, FILE *out)
{
    fprintf(out,
            "verdict: leak of %s %s. The leaks hold %s at the end. The peak "
            "of the examined half, %s, doubles in ",
            FRAG_SHOW_SIZE((frag_size)l->rate), units[l->windows.by_steps],
            FRAG_SHOW_SIZE(l->held), FRAG_SHOW_SIZE(l->peak));
    put_units(l, out, leaks_units_left(l, 0, l->peak));
    fputs(".\n", out);
}

static void put_verdict(const struct leaks *l, FILE *out)
{
    if (l->verdict == LEAKS_FOUND)
        put_rate(l, out);
    else if (l->verdict == LEAKS_NONE)
        fputs("verdict: none. No site keeps more and more memory.\n", out);
    else
        fprintf(out, "verdict: unknown. %s.\n", leaks_reasons[l->reason].text);
}

/* The evidence for the verdict. */
static void put_evidence(const struct leaks *l, FILE *out)
{
    const struct windows *w = &l->windows;

    if (w->steps.mark) {
        fprintf(out, "evidence: %" PRIu64 " complete steps between marks ",
                w->steps.count);
        printable_put(out, w->steps.mark);
    } else
        fputs("evidence: no marked steps", out);
    if (w->by_steps)
        fputs("; what is live there", out);
    else if (w->count)
        fprintf(out,
                "; what is live at the least of each of %" PRIu64
                " windows; the live memory came back %" PRIu64
                " time%s in the second half",
                w->count, w->returns, w->returns == 1 ? "" : "s");
    if (l->verdict == LEAKS_FOUND && !w->by_steps && l->items[0].rounds)
        fprintf(out, "; the line of the leak ran in %" PRIu64 " rounds",
                l->items[0].rounds + 1);
    fputs(".\n", out);
}

static void put_reach(const struct leaks *l, const struct leaks_reach *r,
                      FILE *out)
{
    if (!r->policy || l->verdict != LEAKS_FOUND)
        return;
    printable_put(out, r->policy);
    fprintf(out, " runs out of memory at a capacity of %s between ",
            FRAG_SHOW_SIZE(r->capacity));
    put_units(l, out, r->least);
    fputs(" after the last one, if each leaked block needs new memory, and ",
          out);
    put_units(l, out, r->most);
    fputs(", if no memory is lost to fragmentation.\n", out);
}

static enum frag_err put_text(const struct input *in, const struct leaks *l,
                              const struct leaks_reach *reach, FILE *out,
                              bool color)
{
    enum frag_err err = FRAG_OK;

    printable_line(out, "%s, %s", in->name,
                   FRAG_DEVICE_NAME(in->device->device));
    put_verdict(l, out);
    put_evidence(l, out);
    put_reach(l, reach, out);
    if (l->count)
        err = put_table(in, l, out, color);
    if (l->count && !in->device->stack)
        fputs("The recording has no stacks: blocks are grouped by size and "
              "stream.\n",
              out);
    return err;
}

/* ---- JSON ---- */

/* A rate a step, or null without marked steps. */
static double a_step(const struct leaks *l, double rate)
{
    return l->windows.by_steps ? rate : NAN;
}

/* clang-format off */ /* clang-format on */

/* The reason and the growth, of all or of one. */
static void put_growth(struct frag_json *j, const struct leaks *l,
                       enum leaks_reason reason, double rate)
{
    frag_json_text(j, "reason", leaks_reasons[reason].word);
    frag_json_real(j, "growth_bytes_per_step", a_step(l, rate));
    frag_json_real(j, "growth_bytes_per_event",
                   l->windows.by_steps ? NAN : rate / 1000);
}

static void put_leak(struct frag_json *j, const struct input *in,
                     const struct leaks *l, const struct leak *leak)
{
    const struct frag_frame *site = site_of(in->trace, leak->stack);
    const char *const *strings = in->trace->strings;

    frag_json_new_object(j, 4, NULL);
    frag_json_text(j, "function", site ? strings[site->function] : NULL);
    frag_json_text(j, "file", site ? strings[site->file] : NULL);
    frag_json_count(j, "line", site ? site->line : UINT64_MAX);
    frag_json_number(j, "stream", in->device->streams[leak->stream]);
    frag_json_text(j, "kind", kinds[leak->replaced]);
    put_growth(j, l, leak->reason, leak->rate);
    JSON_ROW(j, leak, leak, NUMBER("least_block_bytes", least),
             NUMBER("most_block_bytes", most), NUMBER("num_blocks", blocks),
             NUMBER("held_bytes", held),
             NUMBER("num_windows_growing", growth.rises),
             NUMBER("num_windows_examined", growth.steps));
    frag_json_end(j);
}

static void put_reach_json(struct frag_json *j, const struct leaks *l,
                           const struct leaks_reach *r)
{
    const bool is_known = r->policy && l->verdict == LEAKS_FOUND;
    const bool by_steps = l->windows.by_steps;

    frag_json_text(j, "policy", r->policy);
    frag_json_count(j, "capacity_bytes", r->policy ? r->capacity : UINT64_MAX);
    frag_json_count(j, "least_steps_to_oom",
                    is_known && by_steps ? r->least : UINT64_MAX);
    frag_json_count(j, "most_steps_to_oom",
                    is_known && by_steps ? r->most : UINT64_MAX);
    frag_json_real(j, "least_seconds_to_oom",
                   is_known ? (double)r->least * l->seconds_per_unit : NAN);
    frag_json_real(j, "most_seconds_to_oom",
                   is_known ? (double)r->most * l->seconds_per_unit : NAN);
}

static void put_json(const struct input *in, const struct leaks *l,
                     const struct leaks_reach *reach, struct frag_json *j)
{
    frag_json_new_object(j, 2, NULL);
    frag_json_text(j, "trace", in->name);
    frag_json_number(j, "device", in->device->device);
    frag_json_text(j, "verdict", leaks_verdict_names[l->verdict]);
    put_growth(j, l, l->reason, l->rate);
    JSON_ROW(j, leaks, l, NUMBER("held_bytes", held),
             NUMBER("peak_requested_bytes", peak));
    step_source_json(j, &l->windows.steps);
    frag_json_bool(j, "by_marked_steps", l->windows.by_steps);
    frag_json_number(j, "num_windows",
                     l->windows.count ? l->windows.count - 1 : 0);
    frag_json_number(j, "num_returns", l->windows.returns);
    frag_json_real(j, "seconds_per_step", a_step(l, l->seconds_per_unit));
    put_reach_json(j, l, reach);
    frag_json_bool(j, "has_stacks", in->device->stack != NULL);
    frag_json_texts(j, "notes", in->trace->notes, in->trace->note_count);
    frag_json_new_array(j, 3, "leaks");
    for (uint64_t i = 0; i < l->count; i++)
        put_leak(j, in, l, &l->items[i]);
    frag_json_end(j);
    frag_json_end(j);
}

/* ---- the command ---- */

/* Fills the units that are left. They are least if every leaked block needs new
 * memory beyond what the policy holds in the parts of the trace that reach
 * beyond the first examined place, and most if it wastes none. */
static enum frag_err find_reach(struct step_command *c, const struct input *in,
                                const struct leaks *l,
                                struct leaks_reach *reach, struct frag_error *e)
{
    const struct windows *w = &l->windows;
    struct step_table table;
    frag_size reserved = 0, requested = 0;

    FRAG_TRY(
        step_command_table(c, in, FRAG_UNLIMITED, &table, &reach->policy, e));
    for (uint64_t i = 0; i < table.count; i++)
        if (table.items[i].to > w->at[l->from].event &&
            table.items[i].peak_reserved > reserved)
            reserved = table.items[i].peak_reserved;
    step_table_close(&table);
    for (uint64_t i = l->from; i < w->count; i++) {
        const double since = w->at[w->count - 1].units - w->at[i].units;
        const frag_size then = w->at[i].peak + (frag_size)(since * l->rate);

        requested = then > requested ? then : requested;
    }
    reach->least = leaks_units_left(l, reserved, reach->capacity);
    reach->most = leaks_units_left(l, requested, reach->capacity);
    return FRAG_OK;
}

static enum frag_err show(struct step_command *c, const struct input *in,
                          const struct leaks *l, struct frag_error *e)
{
    struct leaks_reach reach = {.capacity = c->capacity};

    if (reach.capacity && l->verdict == LEAKS_FOUND)
        FRAG_TRY(find_reach(c, in, l, &reach, e));
    if (c->json)
        put_json(in, l, &reach, c->json);
    else
        FRAG_TRY(put_text(in, l, &reach, c->out, c->color));
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

enum frag_err leaks_show(const struct shown *on, struct frag_error *e)
{
    return step_command_show(on, on->capacity, answer, e);
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
