/* leaks_text.c - the verdict and the table of leaks, for people and as JSON. */
#include "sim/cli/answers/text/leaks_text.h"

#include <inttypes.h>
#include <math.h>

#include "sim/answers/sites.h"
#include "sim/cli/answers/text/step_options.h"
#include "sim/cli/output/table.h"
#include "traces/printable.h"

static const char *const heads[] = {"leaks at",    "stream",    "bytes a step",
                                    "block sizes", "left live", "grows in",
                                    "confidence",  "kind"};

enum { HEADS = sizeof(heads) / sizeof(*heads) };

static const char *const kinds[] = {"kept", "replaced"};

void leaks_reach_find(const struct leaks *l, frag_size reserved,
                      struct leaks_reach *reach)
{
    frag_size requested = 0;

    if (!reach->policy)
        return;
    for (uint64_t i = l->from; i < l->steps.count; i++) {
        const double since = (double)(l->steps.count - 1 - i);
        const frag_size then =
            l->steps.items[i].peak + (frag_size)(since * l->bytes_per_step);

        requested = then > requested ? then : requested;
    }
    reach->least = leaks_steps_left(l, reserved, reach->capacity);
    reach->most = leaks_steps_left(l, requested, reach->capacity);
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
    table_size(t, (frag_size)leak->growth.slope);
    put_sizes(t, leak);
    table_size(t, leak->held);
    table_cell(t, false, "%" PRIu64 " of %" PRIu64, leak->growth.rises,
               leak->growth.steps);
    table_cell(t, false, "%.0f %%", leak->growth.confidence * 100);
    table_cell(t, false, "%s", kinds[leak->replaced]);
}

static enum frag_err put_table(const struct input *in, const struct leaks *l,
                               FILE *out, bool color)
{
    struct table table = {.columns = HEADS, .right = "lrrrrrrl"};
    enum frag_err err;

    for (size_t i = 0; i < HEADS; i++)
        table_cell(&table, false, "%s", heads[i]);
    for (uint64_t i = 0; i < l->count; i++)
        add_row(&table, in, &l->items[i]);
    err = table_print(&table, out, color);
    table_free(&table);
    return err;
}

/* The steps as a number and, if times were recorded, as a time. */
static void put_steps(FILE *out, uint64_t steps, double seconds)
{
    fprintf(out, "%" PRIu64 " steps", steps);
    if (!isnan(seconds))
        fprintf(out, " (%.0f s)", (double)steps * seconds);
}

static void put_rate(const struct leaks *l, FILE *out)
{
    char rate[FRAG_SIZE_TEXT], held[FRAG_SIZE_TEXT], peak[FRAG_SIZE_TEXT];

    fprintf(out,
            "verdict: leak of %s a step. The leaks hold %s after the last "
            "complete step. The peak of the steps, %s, doubles in ",
            frag_size_format((frag_size)l->bytes_per_step, rate),
            frag_size_format(l->held, held), frag_size_format(l->peak, peak));
    put_steps(out, leaks_steps_left(l, 0, l->peak), l->seconds_per_step);
    fputs(".\n", out);
}

static void put_verdict(const struct leaks *l, FILE *out)
{
    if (l->verdict == LEAKS_FOUND)
        put_rate(l, out);
    else if (l->verdict == LEAKS_NONE)
        fprintf(out,
                "verdict: none. No site keeps more memory from step to step "
                "in the steps %" PRIu64 " to %" PRIu64 ".\n",
                l->from + 1, l->steps.count);
    else
        fprintf(out,
                "verdict: unknown. The recording has %" PRIu64
                " complete steps; growth shows in %d or more.\n",
                l->steps.count, LEAKS_LEAST_STEPS);
}

static void put_source(const struct leaks *l, FILE *out)
{
    fprintf(out, "steps: %" PRIu64 ", found by: ", l->steps.count);
    step_source_put(out, &l->steps);
    if (!isnan(l->steps.likeness))
        fprintf(out,
                "; consecutive steps have %.0f %% of their events in common",
                l->steps.likeness * 100);
    if (!isnan(l->seconds_per_step))
        fprintf(out, "; %.3f s a step", l->seconds_per_step);
    fputc('\n', out);
}

static void put_death(const struct leaks *l, FILE *out)
{
    char request[FRAG_SIZE_TEXT], needed[FRAG_SIZE_TEXT],
        served[FRAG_SIZE_TEXT];

    if (l->died == FRAG_NEVER || l->verdict != LEAKS_FOUND)
        return;
    fprintf(out,
            "The job died at event %" PRIu64
            " of a request of %s. Without the leaks it would have needed %s "
            "then; an earlier step had %s: %s.\n",
            l->died, frag_size_format(l->request, request),
            frag_size_format(l->needed, needed),
            frag_size_format(l->served, served),
            l->by_growth ? "it died of growth"
                         : "the step was larger too, so growth alone is not "
                           "the cause");
}

static void put_reach(const struct leaks *l, const struct leaks_reach *r,
                      FILE *out)
{
    char capacity[FRAG_SIZE_TEXT];

    if (!r->policy || l->verdict != LEAKS_FOUND)
        return;
    printable_put(out, r->policy);
    fprintf(out, " runs out of memory at a capacity of %s between ",
            frag_size_format(r->capacity, capacity));
    put_steps(out, r->least, l->seconds_per_step);
    fputs(" after the last complete one, if each leaked block needs new "
          "memory, and ",
          out);
    put_steps(out, r->most, l->seconds_per_step);
    fputs(", if no memory is lost to fragmentation.\n", out);
}

enum frag_err leaks_text_put(const struct input *in, const struct leaks *l,
                             const struct leaks_reach *reach, FILE *out,
                             bool color)
{
    enum frag_err err = FRAG_OK;

    printable_line(out, "%s, device %" PRIu32, in->name, in->device->device);
    put_verdict(l, out);
    put_source(l, out);
    put_death(l, out);
    put_reach(l, reach, out);
    if (l->count)
        err = put_table(in, l, out, color);
    if (l->count && !in->device->stack)
        fputs("The recording has no stacks: blocks are grouped by size and "
              "stream.\n",
              out);
    step_notes_put(out, in->trace);
    return err;
}

/* ---- JSON ---- */

static void put_leak(struct frag_json *j, const struct input *in,
                     const struct leak *leak)
{
    const struct frag_frame *site = site_of(in->trace, leak->stack);
    const char *const *strings = in->trace->strings;

    frag_json_line(j, 4);
    frag_json_object(j, NULL);
    frag_json_text(j, "function", site ? strings[site->function] : NULL);
    frag_json_text(j, "file", site ? strings[site->file] : NULL);
    frag_json_count(j, "line", site ? site->line : UINT64_MAX);
    frag_json_number(j, "stream", in->device->streams[leak->stream]);
    frag_json_text(j, "kind", kinds[leak->replaced]);
    frag_json_real(j, "growth_bytes_per_step", leak->growth.slope);
    frag_json_number(j, "least_block_bytes", leak->least);
    frag_json_number(j, "most_block_bytes", leak->most);
    frag_json_number(j, "num_blocks", leak->blocks);
    frag_json_number(j, "held_bytes", leak->held);
    frag_json_number(j, "num_steps_growing", leak->growth.rises);
    frag_json_number(j, "num_steps_examined", leak->growth.steps);
    frag_json_real(j, "confidence", leak->growth.confidence);
    frag_json_end(j);
}

static void put_reach_json(struct frag_json *j, const struct leaks *l,
                           const struct leaks_reach *r)
{
    const bool is_known = r->policy && l->verdict == LEAKS_FOUND;

    frag_json_text(j, "policy", r->policy);
    frag_json_count(j, "capacity_bytes", r->policy ? r->capacity : UINT64_MAX);
    frag_json_count(j, "least_steps_to_oom", is_known ? r->least : UINT64_MAX);
    frag_json_count(j, "most_steps_to_oom", is_known ? r->most : UINT64_MAX);
    frag_json_real(j, "least_seconds_to_oom",
                   is_known ? (double)r->least * l->seconds_per_step : NAN);
    frag_json_real(j, "most_seconds_to_oom",
                   is_known ? (double)r->most * l->seconds_per_step : NAN);
}

void leaks_json_put(const struct input *in, const struct leaks *l,
                    const struct leaks_reach *reach, struct frag_json *j)
{
    frag_json_line(j, 2);
    frag_json_object(j, NULL);
    frag_json_text(j, "trace", in->name);
    frag_json_number(j, "device", in->device->device);
    frag_json_text(j, "verdict", leaks_verdict_names[l->verdict]);
    frag_json_real(j, "growth_bytes_per_step", l->bytes_per_step);
    frag_json_number(j, "held_bytes", l->held);
    frag_json_number(j, "peak_requested_bytes", l->peak);
    step_source_json(j, &l->steps);
    frag_json_real(j, "seconds_per_step", l->seconds_per_step);
    frag_json_count(j, "died_at_event", l->died);
    frag_json_bool(j, "died_of_growth", l->by_growth);
    put_reach_json(j, l, reach);
    frag_json_bool(j, "has_stacks", in->device->stack != NULL);
    step_notes_json(j, in->trace);
    frag_json_array(j, "leaks");
    for (uint64_t i = 0; i < l->count; i++)
        put_leak(j, in, &l->items[i]);
    frag_json_end(j);
    frag_json_end(j);
}
