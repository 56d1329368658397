/* tune_report.c - prints savings, costs, caveats, and the ladder of settings.
 */
#include "sim/cli/output/tune_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/cli/output/table.h"
#include "traces/printable.h"
#include "traces/torch_platforms.h"
#include "traces/torch_sizes.h"

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
    return !text                     ? "the recorded settings"
           : torch_is_followed(text) ? TORCH_FOLLOWED
           : *text                   ? text
                                     : "PyTorch's default";
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

/* What was recorded, and what the settings of the decision would have saved: if
 * the replay reserves as much as the recorded allocator did. */
static void print_peaks(const struct tune_ladder *l, size_t i, FILE *out)
{
    const frag_size recorded = l->cases[i].peak;
    const struct tune_result *found = &l->best->results[i];

    if (!recorded)
        fputs("peak reserved was not recorded", out);
    else
        fprintf(out, "peak reserved %s as recorded", FRAG_SHOW_SIZE(recorded));
    if (found->first_oom != FRAG_NEVER)
        fprintf(out, "; a request fails at event %" PRIu64 "%s\n",
                found->first_oom,
                found->outcome == TUNE_FAILS ? "" : ", which is predicted");
    else if (tune_is_exact(l, i))
        fprintf(out, " -> %s, saves %.1f %%\n", FRAG_SHOW_SIZE(found->peak),
                100 * (1 - (double)found->peak / (double)recorded));
    else
        fputs("; what a setting saves is not known, for a replay of the "
              "recording does not reserve the same\n",
              out);
}

/* How sure that is, for a job that died. */
static void print_odds(const struct tune_ladder *l, size_t i, FILE *out)
{
    const struct tune_case *c = &l->cases[i];
    const struct tune_result *found = &l->best->results[i];

    fprintf(out, "#   the job died; this is %s",
            odds_words[found->odds.verdict]);
    if (found->odds.of)
        fprintf(out, ": of %u recorded jobs in this state %u lived with it",
                found->odds.of, found->odds.lived);
    if (found->need)
        fprintf(out, "; with steps like the recorded ones it needs %s",
                FRAG_SHOW_SIZE(found->need));
    if (!found->enough)
        fprintf(out, "; what further steps need is not known%s%s",
                c->completion.untold ? ": " : "",
                frag_untold_words[c->completion.untold]);
    fputc('\n', out);
}

static void print_case(const struct tune_answer *a, size_t i, FILE *out)
{
    const struct tune_ladder *l = a->ladder;
    const struct tune_result *base = &l->base[i];
    const struct tune_result *found = &l->best->results[i];
    char calls[32], time[32], text[QUESTION_TEXT];

    print_case_name(&l->cases[i], out);
    if (a->about)
        fprintf(out, "%s\n#   ", question_text(&a->about[i], text));
    print_peaks(l, i, out);
    if (l->cases[i].live.bytes > l->cases[i].bound.bytes)
        fprintf(out,
                "#   its requests alone need %s at event %" PRIu64
                ": no allocator can help at %s\n",
                FRAG_SHOW_SIZE(l->cases[i].live.bytes), l->cases[i].live.event,
                FRAG_SHOW_BOUND(l->cases[i].bound));
    if (tune_is_open(&l->cases[i]))
        print_odds(l, i, out);
    fprintf(out,
            "#   driver calls %" PRIu64 " -> %" PRIu64 " (%s), modelled %.2f "
            "ms -> %.2f ms (%s)\n",
            base->calls, found->calls,
            change((double)base->calls, (double)found->calls, calls),
            1e3 * base->seconds, 1e3 * found->seconds,
            change(base->seconds, found->seconds, time));
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
             settings_of(a->ladder->best->text), a->notes[i].texts[k]);
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

/* Of one case the need; of several, only how it compares. */
static void add_need(struct table *t, const struct tune_ladder *l,
                     const struct tune_rung *r)
{
    const frag_size need = l->case_count == 1 ? r->results[0].need : 0;

    if (need)
        table_cell(t, false, "%s%s", r->results[0].is_most ? "at most " : "",
                   FRAG_SHOW_SIZE(need));
    else
        table_cell(t, false, "%s", l->case_count == 1 ? "not known" : "");
    if (r->outcome == TUNE_FAILS)
        table_cell(t, false, "%s", "");
    else
        table_cell(t, false, "%+.1f %%", 100 * (r->ratio - 1));
}

static void add_rung(struct table *t, const struct tune_ladder *l,
                     const struct tune_rung *r)
{
    table_cell(t, false, "%s %u", r == l->best ? "# *" : "#  ", r->knobs);
    table_cell(t, false, "%s", odds_words[r->odds.verdict]);
    add_need(t, l, r);
    table_cell(t, false, "%+" PRId64, (int64_t)(r->calls - base_calls(l)));
    table_cell(t, false, "%s%s", settings_of(r->text),
               r->recorded && r->text ? ", as recorded" : "");
}

static void print_ladder(const struct tune_ladder *l, FILE *out)
{
    struct table t = table_of(
        "llrrrl", "#   knobs|is it enough|need|of recorded|calls|settings");

    for (size_t i = 0; i < l->count; i++)
        add_rung(&t, l, &l->rungs[i]);
    fprintf(out,
            "# settings tried, of those that PyTorch 2.%u knows, the simplest "
            "first; * is the best:\n",
            l->version);
    if (table_print(&t, out, false) != FRAG_OK)
        fputs("#   (the host has no memory for the table)\n", out);
}

static void print_export(const struct tune_ladder *l, FILE *out)
{
    const struct tune_rung *best = l->best;
    const char *sign = l->chosen ? "" : "# ";
    const char *variable =
        torch_variable_of(l->case_count ? l->cases[0].trace->settings : NULL);

    if (best->odds.verdict == ODDS_NOT) {
        fputs("# none of them is enough, so none is exported\n", out);
        return;
    }
    if (!l->chosen)
        fputs("# worth trying, but not known to be enough, so not exported:\n",
              out);
    if (!best->text)
        fprintf(out, "# each job keeps the settings that it had\n");
    else if (torch_is_followed(best->text))
        fputs("# the program sets its settings itself: nothing to export\n",
              out);
    else if (*best->text)
        fprintf(out, "%sexport %s='%s'\n", sign, variable, best->text);
    else
        fprintf(out, "%sunset %s # PyTorch's default is the answer\n", sign,
                variable);
}

void tune_print(const struct tune_answer *a, FILE *out)
{
    const struct tune_ladder *l = a->ladder;

    for (size_t i = 0; a->notes && i < l->case_count; i++)
        print_notes(a, i, out);
    for (size_t i = 0; i < l->case_count; i++)
        print_case(a, i, out);
    print_caveats(l->best, out);
    print_ladder(l, out);
    print_export(l, out);
}
