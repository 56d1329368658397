/* leaks_text.c - the verdict and the table of leaks, for people and as JSON. */
#include "sim/cli/answers/text/leaks_text.h"

#include <inttypes.h>
#include <math.h>

#include "sim/answers/sites.h"
#include "sim/cli/answers/text/step_options.h"
#include "sim/cli/output/table.h"
#include "traces/printable.h"

/* By whether the windows are steps. */
static const char *const units[] = {"in 1000 events", "a step"};
static const char *const rates[] = {"bytes in 1000 events", "bytes a step"};

static const char *const kinds[] = {"kept", "replaced"};

void leaks_reach_find(const struct leaks *l, frag_size reserved,
                      struct leaks_reach *reach)
{
    const struct windows *w = &l->windows;
    frag_size requested = 0;

    if (!reach->policy)
        return;
    for (uint64_t i = l->from; i < w->count; i++) {
        const double since = w->at[w->count - 1].units - w->at[i].units;
        const frag_size then = w->at[i].peak + (frag_size)(since * l->rate);

        requested = then > requested ? then : requested;
    }
    reach->least = leaks_units_left(l, reserved, reach->capacity);
    reach->most = leaks_units_left(l, requested, reach->capacity);
}

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

enum frag_err leaks_text_put(const struct input *in, const struct leaks *l,
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

/* A rate an event, or null with them. */
static double an_event(const struct leaks *l, double rate)
{
    return l->windows.by_steps ? NAN : rate / 1000;
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
    frag_json_text(j, "reason", leaks_reasons[leak->reason].word);
    frag_json_real(j, "growth_bytes_per_step", a_step(l, leak->rate));
    frag_json_real(j, "growth_bytes_per_event", an_event(l, leak->rate));
    frag_json_number(j, "least_block_bytes", leak->least);
    frag_json_number(j, "most_block_bytes", leak->most);
    frag_json_number(j, "num_blocks", leak->blocks);
    frag_json_number(j, "held_bytes", leak->held);
    frag_json_number(j, "num_windows_growing", leak->growth.rises);
    frag_json_number(j, "num_windows_examined", leak->growth.steps);
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

void leaks_json_put(const struct input *in, const struct leaks *l,
                    const struct leaks_reach *reach, struct frag_json *j)
{
    frag_json_new_object(j, 2, NULL);
    frag_json_text(j, "trace", in->name);
    frag_json_number(j, "device", in->device->device);
    frag_json_text(j, "verdict", leaks_verdict_names[l->verdict]);
    frag_json_text(j, "reason", leaks_reasons[l->reason].word);
    frag_json_real(j, "growth_bytes_per_step", a_step(l, l->rate));
    frag_json_real(j, "growth_bytes_per_event", an_event(l, l->rate));
    frag_json_number(j, "held_bytes", l->held);
    frag_json_number(j, "peak_requested_bytes", l->peak);
    step_source_json(j, &l->windows.steps);
    frag_json_bool(j, "by_marked_steps", l->windows.by_steps);
    frag_json_number(j, "num_windows",
                     l->windows.count ? l->windows.count - 1 : 0);
    frag_json_number(j, "num_returns", l->windows.returns);
    frag_json_real(j, "seconds_per_step", a_step(l, l->seconds_per_unit));
    put_reach_json(j, l, reach);
    frag_json_bool(j, "has_stacks", in->device->stack != NULL);
    step_notes_json(j, in->trace);
    frag_json_array(j, "leaks");
    for (uint64_t i = 0; i < l->count; i++)
        put_leak(j, in, l, &l->items[i]);
    frag_json_end(j);
    frag_json_end(j);
}
