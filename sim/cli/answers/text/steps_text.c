/* steps_text.c - the table of steps, for people and as JSON. */
#include "sim/cli/answers/text/steps_text.h"

#include <inttypes.h>
#include <math.h>

#include "sim/cli/answers/text/step_options.h"
#include "sim/cli/output/table.h"
#include "traces/printable.h"

static void add_row(struct table *t, const struct step_part *p)
{
    if (p->kind == STEP_COMPLETE)
        table_cell(t, false, "%" PRIu64, p->step);
    else
        table_cell(t, false, "%s", step_part_names[p->kind]);
    table_cell(t, false, "%" PRIu64, p->from);
    table_cell(t, false, "%" PRIu64, p->to - p->from);
    table_size(t, p->live);
    table_size(t, p->peak_requested);
    table_size(t, p->peak_reserved);
    table_share(t, p->fragmentation);
    table_cell(t, false, "%" PRIu64, p->driver_calls);
    table_cell(t, p->retries > 0, "%" PRIu64, p->retries);
    table_cell(t, p->ooms > 0, "%" PRIu64, p->ooms);
    if (isnan(p->seconds))
        table_cell(t, false, "-");
    else
        table_cell(t, false, "%.3f", p->seconds);
}

static void put_head(const struct steps_subject *on, const struct step_table *t,
                     FILE *out)
{
    printable_line(out,
                   "%s, %s, policy %s, bound %s: %" PRIu64 " complete steps",
                   on->in->name, FRAG_DEVICE_NAME(on->in->device->device),
                   on->policy, FRAG_SHOW_BOUND(on->bound), t->steps.count);
    fputs("steps found by: ", out);
    step_source_put(out, &t->steps);
    if (!isnan(t->steps.likeness))
        fprintf(out,
                "; consecutive steps have %.0f %% of their events in common",
                t->steps.likeness * 100);
    fputc('\n', out);
    if (!t->steps.count)
        fputs("The one row is the whole trace. If the recording has other "
              "marks, --step-mark NAME finds the steps by them.\n",
              out);
}

enum frag_err steps_text_put(const struct steps_subject *on,
                             const struct step_table *t, FILE *out, bool color)
{
    struct table table = table_of(
        "rrrrrrrrrrr", "step|from event|events|live at begin|peak requested|"
                       "peak reserved|fragmentation|driver calls|retries|OOMs|"
                       "seconds");
    enum frag_err err;

    put_head(on, t, out);
    for (uint64_t i = 0; i < t->count; i++)
        add_row(&table, &t->items[i]);
    err = table_print(&table, out, color);
    return err;
}

static void put_part(struct frag_json *j, const struct step_part *p)
{
    frag_json_new_object(j, 4, NULL);
    frag_json_text(j, "part", step_part_names[p->kind]);
    frag_json_count(j, "step", p->step ? p->step : UINT64_MAX);
    frag_json_number(j, "from_event", p->from);
    frag_json_number(j, "to_event", p->to);
    frag_json_number(j, "live_at_begin_bytes", p->live);
    frag_json_number(j, "peak_requested_bytes", p->peak_requested);
    frag_json_number(j, "peak_allocated_bytes", p->peak_allocated);
    frag_json_number(j, "peak_reserved_bytes", p->peak_reserved);
    frag_json_real(j, "fragmentation_ratio", p->fragmentation);
    frag_json_number(j, "num_driver_calls", p->driver_calls);
    frag_json_number(j, "num_alloc_retries", p->retries);
    frag_json_number(j, "num_ooms", p->ooms);
    frag_json_real(j, "seconds", p->seconds);
    frag_json_end(j);
}

void steps_json_put(const struct steps_subject *on, const struct step_table *t,
                    struct frag_json *j)
{
    frag_json_new_object(j, 2, NULL);
    frag_json_text(j, "trace", on->in->name);
    frag_json_number(j, "device", on->in->device->device);
    frag_json_text(j, "policy", on->policy);
    frag_json_count(j, "capacity_bytes",
                    frag_bound_of(on->bound, FRAG_BOUND_CAPACITY));
    frag_json_count(j, "process_limit_bytes",
                    frag_bound_of(on->bound, FRAG_BOUND_LIMIT));
    step_source_json(j, &t->steps);
    frag_json_number(j, "peak_requested_bytes", t->summary.peak_requested);
    frag_json_number(j, "peak_reserved_bytes", t->summary.peak_reserved);
    step_notes_json(j, on->in->trace);
    frag_json_array(j, "parts");
    for (uint64_t i = 0; i < t->count; i++)
        put_part(j, &t->items[i]);
    frag_json_end(j);
    frag_json_end(j);
}
