/* tune_report.c - prints savings, costs, caveats, and the ladder of settings.
 */
#include "sim/cli/output/tune_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/cli/output/table.h"
#include "traces/printable.h"
#include "traces/steps/complete.h"
#include "traces/torch_platforms.h"

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

static const char *settings_of(const char *text)
{
    return !text ? "the recorded settings" : *text ? text : "PyTorch's default";
}

/* ---- text ---- */

/* Names come from the inputs: printed as they are, a line break in one would
 * begin a line that is no comment. */
static void print_case_name(const struct tune_case *c, FILE *out)
{
    fputs("# ", out);
    printable_put(out, c->name);
    fprintf(out, ", %s: ", FRAG_DEVICE_NAME(c->device->device));
}

const char *tune_unknown(const struct tune_ladder *l, size_t i)
{
    const struct tune_case *c = &l->cases[i];
    const enum frag_untold untold = c->completion.untold;

    if (!tune_is_open(c) || tune_shown(l)->results[i].enough)
        return NULL;
    return untold ? frag_untold_words[untold]
                  : "the setting decides by the bound itself";
}

/* The promises for a job that died, and their limits. */
static void print_promise(const struct tune_ladder *l, size_t i, FILE *out)
{
    const struct tune_case *c = &l->cases[i];
    const struct tune_result *found = &tune_shown(l)->results[i];

    fprintf(out, "#   %s at %s", tune_outcome_words[found->outcome],
            FRAG_SHOW_BOUND(c->bound));
    if (found->need)
        fprintf(out, "; with steps like the recorded ones it needs %s",
                FRAG_SHOW_SIZE(found->need));
    if (found->enough)
        fprintf(out,
                ", and with a probability of %.0f %% no further step needs "
                "more than %s\n",
                100 * FRAG_SPREAD_LEVEL, FRAG_SHOW_SIZE(found->enough));
    else
        fprintf(out, "; what is enough for further steps is not known: %s\n",
                tune_unknown(l, i));
}

static void print_case(const struct tune_ladder *l, size_t i, FILE *out)
{
    const struct tune_case *c = &l->cases[i];
    const struct tune_result *base = &l->base[i];
    const struct tune_result *found = &tune_shown(l)->results[i];
    char calls[32], time[32];

    print_case_name(c, out);
    if (found->first_oom == FRAG_NEVER)
        fprintf(out, "peak reserved %s as recorded -> %s, saves %.1f %%\n",
                FRAG_SHOW_SIZE(base->peak), FRAG_SHOW_SIZE(found->peak),
                100 * saving(base->peak, found->peak));
    else
        fprintf(out, "a request fails at event %" PRIu64 "%s\n",
                found->first_oom,
                found->outcome == TUNE_FAILS ? "" : ", which is predicted");
    if (tune_is_open(c))
        print_promise(l, i, out);
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
    const struct tune_case *c = &a->ladder->cases[a->impossible[i].of];
    const struct requested_peak *peak = &a->impossible[i].peak;

    print_case_name(c, out);
    fprintf(out,
            "the job asks for %s at event %" PRIu64 ", %s more than the %s: no "
            "allocator can help at %s\n",
            FRAG_SHOW_SIZE(peak->bytes), peak->event,
            FRAG_SHOW_SIZE(peak->bytes - c->bound.bytes),
            frag_bound_words[c->bound.kind], FRAG_SHOW_BOUND(c->bound));
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
    const struct tune_case *c = &a->ladder->cases[i];
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
    snprintf(text, TUNE_NOTE, "%s, %s: %s",
             FRAG_DEVICE_NAME(a->ladder->cases[i].device->device),
             settings_of(tune_shown(a->ladder)->text), a->notes[i].texts[k]);
    return text;
}

/* Warnings for the user before exporting a setting. */
static const struct {
    const char *key, *text;
} caveats[] = {
    {"expandable_segments",
     "not on Windows or WSL, nor with cudaIpcGetMemHandle (custom all-reduce "
     "of inference servers), some NCCL and RDMA registrations"},
    {"large_segment_size_mb",
     "PyTorch 2.11 and later; an older PyTorch does not know it"},
    {"max_split_size_mb",
     "a free block of at least this size serves no smaller request"},
};

static void print_caveats(const struct tune_rung *r, FILE *out)
{
    for (size_t i = 0; i < sizeof(caveats) / sizeof(*caveats); i++)
        if (!r->recorded && strstr(r->text, caveats[i].key))
            fprintf(out, "# %s: %s\n", caveats[i].key, caveats[i].text);
}

/* ---- the ladder ---- */

static uint64_t base_calls(const struct tune_ladder *l)
{
    uint64_t calls = 0;

    for (size_t i = 0; i < l->case_count; i++)
        calls += l->base[i].calls;
    return calls;
}

static void add_rung(struct table *t, const struct tune_ladder *l,
                     const struct tune_rung *r)
{
    table_cell(t, false, "%s %u", r == l->chosen ? "# *" : "#  ", r->knobs);
    table_cell(t, false, "%s", tune_outcome_words[r->outcome]);
    if (r->outcome == TUNE_FAILS)
        table_cell(t, false, "%s", "");
    else
        table_cell(t, false, "%.1f %%", 100 * tune_saving(r));
    table_cell(t, false, "%+" PRId64, (int64_t)(r->calls - base_calls(l)));
    table_cell(t, false, "%s%s", settings_of(r->text),
               r->recorded && r->text ? ", as recorded" : "");
}

static void print_ladder(const struct tune_ladder *l, FILE *out)
{
    struct table t =
        table_of("llrrl", "#   knobs|outcome|saves|calls|settings");

    for (size_t i = 0; i < l->count; i++)
        add_rung(&t, l, &l->rungs[i]);
    fprintf(out,
            "# settings tried, of those that PyTorch 2.%u knows, the simplest "
            "first%s:\n",
            l->version, l->chosen ? "; * is chosen" : "");
    if (table_print(&t, out, false) != FRAG_OK)
        fputs("#   (the host has no memory for the table)\n", out);
}

/* Says why the setting was chosen. */
static void print_choice(const struct tune_ladder *l, FILE *out)
{
    if (!l->chosen)
        fputs("# none of them is known to stay within the bounds, so none is "
              "exported\n",
              out);
    else if (!isfinite(l->worth))
        fputs("# the chosen setting is the first within the bounds\n", out);
    else
        fprintf(out,
                "# no other saves %.1f %% of the peak more for each further "
                "knob\n",
                100 * l->worth);
}

static void print_climb(const struct tune_answer *a, FILE *out)
{
    for (size_t i = 0; i < a->ladder->case_count; i++)
        print_case(a->ladder, i, out);
    print_caveats(tune_shown(a->ladder), out);
    print_ladder(a->ladder, out);
    print_choice(a->ladder, out);
}

static void print_export(const struct tune_ladder *l, FILE *out)
{
    const char *variable =
        torch_variable_of(l->case_count ? l->cases[0].trace->settings : NULL);

    if (!l->chosen && l->nearest && l->nearest->text)
        fprintf(out, "# not exported: %s='%s'\n", variable, l->nearest->text);
    if (!l->chosen)
        return;
    if (!l->chosen->text)
        fputs("# each job keeps the settings that it had\n", out);
    else if (*l->chosen->text)
        fprintf(out, "export %s='%s'\n", variable, l->chosen->text);
    else
        fprintf(out, "unset %s # PyTorch's default is the answer\n", variable);
}

void tune_print(const struct tune_answer *a, FILE *out)
{
    for (size_t i = 0; i < a->ladder->case_count; i++)
        print_notes(a, i, out);
    for (size_t i = 0; i < a->impossible_count; i++)
        print_impossible(a, i, out);
    if (!a->ladder->count)
        return;
    print_climb(a, out);
    print_export(a->ladder, out);
}
