/* tune_report.c - prints savings, costs, held-out results, caveats, the ladder
 * and the Pareto front of a finished search. */
#include "sim/cli/output/tune_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/cli/output/table.h"
#include "traces/printable.h"
#include "traces/torch_sizes.h"

static const char *size_text(frag_size size, char text[FRAG_SIZE_TEXT])
{
    return frag_size_format(size, text);
}

static double saving(frag_size base, frag_size found)
{
    return base ? 1 - (double)found / (double)base : 0;
}

/* The relative change as "+12.3 %"; "new" if the base is 0 and the found value
 * is not. Returns text. */
static const char *change(double base, double found, char text[32])
{
    if (base > 0)
        snprintf(text, 32, "%+.1f %%", 100 * (found / base - 1));
    else
        snprintf(text, 32, found > 0 ? "new" : "+0.0 %%");
    return text;
}

const struct tune_trial *tune_shown(const struct tune_answer *a)
{
    return a->chosen ? a->chosen : a->search->trials[0];
}

static const char *settings_of(const struct tune_trial *t)
{
    return *t->text ? t->text : "PyTorch's default";
}

/* ---- the Pareto front: trials that no trial beats in memory and time ---- */

bool tune_is_front(const struct tune_search *s, size_t i)
{
    const struct tune_trial *t = s->trials[i];

    if (!t->survives)
        return false;
    for (size_t k = 0; k < s->trial_count; k++) {
        const struct tune_trial *o = s->trials[k];

        if (o->survives && o->value <= t->value && o->seconds <= t->seconds &&
            (o->value < t->value || o->seconds < t->seconds || k < i))
            return false;
    }
    return true;
}

/* ---- text ---- */

/* Names come from the inputs: printed as they are, a line break in one would
 * begin a line that is no comment. */
static void print_case_name(const struct tune_case *c, FILE *out)
{
    fputs("# ", out);
    printable_put(out, c->name);
    fprintf(out, ", device %" PRIu32 ": ", c->device->device);
}

static void print_case(const struct tune_answer *a, size_t i, FILE *out)
{
    const struct tune_result *base = &a->search->base[i];
    const struct tune_result *found = &tune_shown(a)->results[i];
    char was[FRAG_SIZE_TEXT], is[FRAG_SIZE_TEXT], calls[32], time[32];

    print_case_name(&a->search->cases[i], out);
    if (found->first_oom != FRAG_NEVER) {
        fprintf(out, "runs out of memory at event %" PRIu64 "\n",
                found->first_oom);
        return;
    }
    fprintf(out, "peak reserved %s -> %s, saves %.1f %%\n",
            size_text(base->peak, was), size_text(found->peak, is),
            100 * saving(base->peak, found->peak));
    fprintf(out,
            "#   driver calls %" PRIu64 " -> %" PRIu64 " (%s), modelled %.2f "
            "ms -> %.2f ms (%s)\n",
            base->calls, found->calls,
            change((double)base->calls, (double)found->calls, calls),
            1e3 * base->seconds, 1e3 * found->seconds,
            change(base->seconds, found->seconds, time));
}

static void print_impossible(const struct tune_answer *a, size_t i, FILE *out)
{
    const struct tune_need *need = &a->impossible[i].need;
    const frag_size capacity = a->search->goal.capacity;
    char asked[FRAG_SIZE_TEXT], has[FRAG_SIZE_TEXT], more[FRAG_SIZE_TEXT];

    print_case_name(&a->search->cases[a->impossible[i].of], out);
    fprintf(out,
            need->predicted
                ? "the completed trace asks for %s at event %" PRIu64
                  ", which is predicted, %s more than the capacity: if the job "
                  "goes on like this, no allocator can help at %s "
                  "(--as-recorded judges the recorded events alone)\n"
                : "the job asks for %s at event %" PRIu64 ", %s more than the "
                  "capacity: no allocator can help at %s\n",
            size_text(need->bytes, asked), need->event,
            size_text(need->bytes - capacity, more), size_text(capacity, has));
}

static void print_note(const struct tune_case *c, const char *text, FILE *out)
{
    fputs("# note on ", out);
    printable_put(out, c->name);
    fputs(": ", out);
    printable_put(out, text);
    fputc('\n', out);
}

/* Prints the notes of case i. Those of its trace are left out if the case
 * before has the same trace. */
static void print_notes(const struct tune_answer *a, size_t i, FILE *out)
{
    const struct tune_case *c = &a->search->cases[i];
    const struct frag_trace *t = c->trace;
    char text[TUNE_NOTE];

    for (uint32_t k = 0; (!i || c[-1].trace != t) && k < t->note_count; k++)
        print_note(c, t->notes[k], out);
    for (size_t k = 0; a->notes && k < a->notes[i].count; k++)
        print_note(c, tune_note(a, i, k, text), out);
}

const char *tune_note(const struct tune_answer *a, size_t i, size_t k,
                      char text[TUNE_NOTE])
{
    snprintf(text, TUNE_NOTE, "device %" PRIu32 ", %s: %s",
             a->search->cases[i].device->device, settings_of(tune_shown(a)),
             a->notes[i].texts[k]);
    return text;
}

static void print_held_out(const struct tune_held_out *h, FILE *out)
{
    fputs("# held out, ", out);
    printable_put(out, h->name);
    if (h->found.first_oom != FRAG_NEVER)
        fprintf(out, ": runs out of memory at event %" PRIu64,
                h->found.first_oom);
    else
        fprintf(out, ": saves %.1f %%",
                100 * saving(h->base.peak, h->found.peak));
    fprintf(out, "; tuned without it: %s\n",
            *h->text ? h->text : "PyTorch's default");
}

static void print_caveats(const struct tune_trial *t, FILE *out)
{
    for (int k = 0; k < TUNE_KNOB_COUNT; k++)
        if (tune_changes(&t->point, (enum tune_knob)k) && *tune_knob_caveats[k])
            fprintf(out, "# %s: %s\n", tune_knob_names[k],
                    tune_knob_caveats[k]);
}

static uint64_t base_calls(const struct tune_search *s)
{
    uint64_t calls = 0;

    for (size_t i = 0; i < s->case_count; i++)
        calls += s->base[i].calls;
    return calls;
}

/* Adds the cells of what a trial costs, and its settings. */
static void add_costs(struct table *t, const struct tune_search *s,
                      const struct tune_trial *trial)
{
    table_cell(t, false, "%+" PRId64, (int64_t)(trial->calls - base_calls(s)));
    table_cell(t, false, "%.2f ms", 1e3 * trial->seconds);
    table_cell(t, false, "%s", trial->excess > 0 ? "no" : "yes");
    table_cell(t, false, "%s", settings_of(trial));
}

static void add_front_row(struct table *t, const struct tune_search *s,
                          const struct tune_trial *trial)
{
    table_cell(t, false, "#   %.1f %%", 100 * tune_saving(trial));
    add_costs(t, s, trial);
}

static void print_table(struct table *t, FILE *out)
{
    if (table_print(t, out, false) != FRAG_OK)
        fputs("#   (the host has no memory for the table)\n", out);
    table_free(t);
}

/* ---- the ladder ---- */

static void add_saving(struct table *t, const struct tune_trial *rung,
                       const struct tune_trial *before)
{
    if (!rung->survives) {
        table_cell(t, false, "OOM");
        table_cell(t, false, "%s", "");
        return;
    }
    table_cell(t, false, "%.1f %%", 100 * tune_saving(rung));
    if (before && before->survives)
        table_cell(t, false, "%+.1f %%",
                   100 * (tune_saving(rung) - tune_saving(before)));
    else
        table_cell(t, false, "%s", "");
}

static void print_ladder(const struct tune_answer *a, FILE *out)
{
    static const char *const heads[] = {
        "#   knobs", "saves",         "more",     "calls",
        "modelled",  "within bounds", "settings",
    };
    const struct tune_ladder l = tune_ladder(a->search, a->chosen);
    struct table t = {.columns = 7, .right = "lrrrrll"};

    for (size_t i = 0; i < 7; i++)
        table_cell(&t, false, "%s", heads[i]);
    for (size_t i = 0; i < l.count; i++) {
        table_cell(&t, false, "%s %u", l.rungs[i] == a->chosen ? "# *" : "#  ",
                   l.rungs[i]->size.knobs);
        add_saving(&t, l.rungs[i], i ? l.rungs[i - 1] : NULL);
        add_costs(&t, a->search, l.rungs[i]);
    }
    fprintf(out, "# what each further knob saves%s:\n",
            a->chosen ? "; * is chosen" : "");
    print_table(&t, out);
}

/* Says which setting was chosen, and what the best has beyond it. */
static void print_choice(const struct tune_answer *a, FILE *out)
{
    const struct tune_trial *best = a->search->trials[0];

    if (!a->chosen)
        fprintf(out,
                "# no setting was found within the bounds; the nearest is %s\n",
                settings_of(best));
    else if (a->chosen == best)
        fputs("# the chosen setting is the best that was found\n", out);
    else if (tune_saving(best) > tune_saving(a->chosen))
        fprintf(out,
                "# the chosen setting is simpler than the best that was found, "
                "which saves %.2f %% more\n",
                100 * (tune_saving(best) - tune_saving(a->chosen)));
    else
        fputs("# the chosen setting is simpler than the best that was found, "
              "which saves the same and takes no more time\n",
              out);
}

static void print_front(const struct tune_search *s, FILE *out)
{
    static const char *const heads[] = {"#   saves", "calls", "modelled",
                                        "within bounds", "settings"};
    struct table t = {.columns = 5, .right = "lrrll"};

    for (size_t i = 0; i < 5; i++)
        table_cell(&t, false, "%s", heads[i]);
    for (size_t i = 0; i < s->trial_count; i++)
        if (tune_is_front(s, i))
            add_front_row(&t, s, s->trials[i]);
    fprintf(out,
            t.count > t.columns
                ? "# of %zu settings tried, none is better than these in "
                  "both memory and time:\n"
                : "# of %zu settings tried, none survives\n",
            s->trial_count);
    if (t.count > t.columns)
        print_table(&t, out);
    else
        table_free(&t);
}

static void print_search(const struct tune_answer *a, FILE *out)
{
    const struct tune_search *s = a->search;

    for (size_t i = 0; i < s->case_count; i++)
        print_case(a, i, out);
    for (size_t i = 0; i < a->held_out.count; i++)
        print_held_out(&a->held_out.parts[i], out);
    print_caveats(tune_shown(a), out);
    print_ladder(a, out);
    print_front(s, out);
    print_choice(a, out);
}

/* The variable of the library that recorded the first trace. */
static const char *variable_of(const struct tune_search *s)
{
    return torch_variable_of(s->case_count ? s->cases[0].trace->settings
                                           : NULL);
}

void tune_print(const struct tune_answer *a, FILE *out)
{
    for (size_t i = 0; i < a->search->case_count; i++)
        print_notes(a, i, out);
    for (size_t i = 0; i < a->impossible_count; i++)
        print_impossible(a, i, out);
    if (!a->impossible_count)
        print_search(a, out);
    if (a->chosen && *a->chosen->text)
        fprintf(out, "export %s='%s'\n", variable_of(a->search),
                a->chosen->text);
    else if (a->chosen)
        fprintf(out, "unset %s # PyTorch's default is the answer\n",
                variable_of(a->search));
}
