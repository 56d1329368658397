/* tune_report.c - prints savings, costs, held-out results, caveats and the
 * Pareto front of a finished search. */
#include "sim/cli/output/tune_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/cli/output/table.h"

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

static const char *settings_of(const struct tune_trial *t)
{
    return *t->text ? t->text : "PyTorch's default";
}

/* ---- the Pareto front: trials that no trial beats in memory and time ---- */

/* Whether trial i survives every case and no other surviving trial is at least
 * as good in both memory and seconds. Of equal trials the first is on the
 * front. */
static bool is_front(const struct tune_search *s, size_t i)
{
    const struct tune_trial *t = s->trials[i];

    for (size_t k = 0; k < s->case_count; k++)
        if (t->results[k].first_oom != FRAG_NEVER)
            return false;
    for (size_t k = 0; k < s->trial_count; k++) {
        const struct tune_trial *o = s->trials[k];
        bool survives = true;

        for (size_t c = 0; c < s->case_count; c++)
            survives = survives && o->results[c].first_oom == FRAG_NEVER;
        if (survives && o->value <= t->value && o->seconds <= t->seconds &&
            (o->value < t->value || o->seconds < t->seconds || k < i))
            return false;
    }
    return true;
}

/* ---- text ---- */

static void print_case(const struct tune_search *s, size_t i, FILE *out)
{
    const struct tune_result *base = &s->base[i];
    const struct tune_result *best = &s->trials[0]->results[i];
    char was[FRAG_SIZE_TEXT], is[FRAG_SIZE_TEXT], calls[32], time[32];

    fprintf(out,
            "# %s, device %" PRIu32 ": peak reserved %s -> %s, saves "
            "%.1f %%\n",
            s->cases[i].name, s->cases[i].device->device,
            size_text(base->peak, was), size_text(best->peak, is),
            100 * saving(base->peak, best->peak));
    fprintf(out,
            "#   driver calls %" PRIu64 " -> %" PRIu64 " (%s), modelled %.2f "
            "ms -> %.2f ms (%s)\n",
            base->calls, best->calls,
            change((double)base->calls, (double)best->calls, calls),
            1e3 * base->seconds, 1e3 * best->seconds,
            change(base->seconds, best->seconds, time));
    if (best->first_oom != FRAG_NEVER)
        fprintf(out, "#   runs out of memory at event %" PRIu64 "\n",
                best->first_oom);
}

/* Prints the notes of the trace of case i, unless the case before has the same
 * trace. */
static void print_notes(const struct tune_search *s, size_t i, FILE *out)
{
    const struct frag_trace *t = s->cases[i].trace;

    for (uint32_t k = 0;
         (!i || s->cases[i - 1].trace != t) && k < t->note_count; k++)
        fprintf(out, "# note on %s: %s\n", s->cases[i].name, t->notes[k]);
}

static void print_held_out(const struct tune_held_out *h, FILE *out)
{
    if (h->found.first_oom != FRAG_NEVER)
        fprintf(out, "# held out, %s: runs out of memory at event %" PRIu64,
                h->name, h->found.first_oom);
    else
        fprintf(out, "# held out, %s: saves %.1f %%", h->name,
                100 * saving(h->base.peak, h->found.peak));
    fprintf(out, "; tuned without it: %s\n",
            *h->text ? h->text : "PyTorch's default");
}

static void print_caveats(const struct tune_trial *best, FILE *out)
{
    for (int k = 0; k < TUNE_KNOB_COUNT; k++)
        if (tune_changes(&best->point, (enum tune_knob)k) &&
            *tune_knob_caveats[k])
            fprintf(out, "# %s: %s\n", tune_knob_names[k],
                    tune_knob_caveats[k]);
}

static void add_front_row(struct table *t, const struct tune_search *s,
                          const struct tune_trial *trial)
{
    uint64_t calls = 0;

    for (size_t i = 0; i < s->case_count; i++)
        calls += s->base[i].calls;
    table_cell(t, false, "#   %.1f %%", 100 * (1 - exp(trial->value)));
    table_cell(t, false, "%+" PRId64, (int64_t)(trial->calls - calls));
    table_cell(t, false, "%.2f ms", 1e3 * trial->seconds);
    table_cell(t, false, "%s", trial->excess > 0 ? "no" : "yes");
    table_cell(t, false, "%s", settings_of(trial));
}

static void print_front(const struct tune_search *s, FILE *out)
{
    static const char *const heads[] = {"#   saves", "calls", "modelled",
                                        "within bounds", "settings"};
    struct table t = {.columns = 5, .right = "lrrll"};

    for (size_t i = 0; i < 5; i++)
        table_cell(&t, false, "%s", heads[i]);
    for (size_t i = 0; i < s->trial_count; i++)
        if (is_front(s, i))
            add_front_row(&t, s, s->trials[i]);
    fprintf(out,
            t.count > t.columns
                ? "# of %zu settings tried, none is better than these in "
                  "both memory and time:\n"
                : "# of %zu settings tried, none survives\n",
            s->trial_count);
    if (t.count > t.columns && table_print(&t, out, false) != FRAG_OK)
        fputs("#   (the host has no memory for the table)\n", out);
    table_free(&t);
}

void tune_print(const struct tune_answer *a, FILE *out)
{
    const struct tune_search *s = a->search;
    const struct tune_trial *best = s->trials[0];

    for (size_t i = 0; i < s->case_count; i++)
        print_notes(s, i, out);
    for (size_t i = 0; i < s->case_count; i++)
        print_case(s, i, out);
    for (size_t i = 0; i < a->held_out_count; i++)
        print_held_out(&a->held_out[i], out);
    print_caveats(best, out);
    print_front(s, out);
    if (best->excess > 0)
        fputs("# no setting was found within the bounds; this is the nearest\n",
              out);
    if (*best->text)
        fprintf(out, "export PYTORCH_CUDA_ALLOC_CONF='%s'\n", best->text);
    else
        fputs("unset PYTORCH_CUDA_ALLOC_CONF # nothing is better than the "
              "default\n",
              out);
}

/* ---- JSON ---- */

static void json_result(struct frag_json *j, const char *key,
                        const struct tune_result *r)
{
    frag_json_object(j, key);
    frag_json_number(j, "peak_reserved_bytes", r->peak);
    frag_json_number(j, "driver_calls", r->calls);
    frag_json_real(j, "modelled_device_seconds", r->seconds);
    frag_json_count(j, "first_oom_event", r->first_oom);
    frag_json_end(j);
}

static void json_cases(struct frag_json *j, const struct tune_search *s)
{
    frag_json_line(j, 3);
    frag_json_array(j, "cases");
    for (size_t i = 0; i < s->case_count; i++) {
        frag_json_line(j, 4);
        frag_json_object(j, NULL);
        frag_json_text(j, "trace", s->cases[i].name);
        frag_json_number(j, "device", s->cases[i].device->device);
        json_result(j, "default", &s->base[i]);
        json_result(j, "best", &s->trials[0]->results[i]);
        frag_json_texts(j, "notes", s->cases[i].trace->notes,
                        s->cases[i].trace->note_count);
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void json_held_out(struct frag_json *j, const struct tune_answer *a)
{
    frag_json_line(j, 3);
    frag_json_array(j, "held_out");
    for (size_t i = 0; i < a->held_out_count; i++) {
        const struct tune_held_out *h = &a->held_out[i];

        frag_json_line(j, 4);
        frag_json_object(j, NULL);
        frag_json_text(j, "part", h->name);
        frag_json_text(j, "settings", h->text);
        json_result(j, "default", &h->base);
        json_result(j, "found", &h->found);
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void json_trial(struct frag_json *j, const char *key,
                       const struct tune_trial *t)
{
    frag_json_object(j, key);
    frag_json_text(j, "settings", t->text);
    frag_json_real(j, "saving_ratio", 1 - exp(t->value));
    frag_json_number(j, "driver_calls", t->calls);
    frag_json_real(j, "modelled_device_seconds", t->seconds);
    frag_json_bool(j, "within_bounds", !(t->excess > 0));
    frag_json_end(j);
}

static void json_front(struct frag_json *j, const struct tune_search *s)
{
    frag_json_line(j, 3);
    frag_json_array(j, "pareto");
    for (size_t i = 0; i < s->trial_count; i++)
        if (is_front(s, i)) {
            frag_json_line(j, 4);
            json_trial(j, NULL, s->trials[i]);
        }
    frag_json_end(j);
}

void tune_print_json(const struct tune_answer *a, struct frag_json *j)
{
    const struct tune_search *s = a->search;

    frag_json_line(j, 2);
    frag_json_object(j, NULL);
    json_trial(j, "best", s->trials[0]);
    frag_json_number(j, "settings_tried", s->trial_count);
    frag_json_number(j, "seed", s->seed);
    json_cases(j, s);
    json_held_out(j, a);
    json_front(j, s);
    frag_json_end(j);
}
