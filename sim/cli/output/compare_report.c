/* compare_report.c - turns each compared cell into a row, and writes the row as
 * JSON, CSV and a table line. */
#include "sim/cli/output/compare_report.h"

#include <inttypes.h>
#include <math.h>

#include "sim/results/row.h"

/* A row as the table of columns reads it; NAN: no value. */
struct compare_row {
    struct compared of;
    const char *costs;
    uint64_t same, calls, calls_real;
    double modelled, measured, ratio, paced;
};

/* Of the simulation, but for those that are called real. `pace' is what a fixed
 * series of calls took around the run over what the model says of it. */
/* clang-format off */
#define ROW struct compare_row
static const struct frag_column row_columns[] = {
    TEXT("trace", of.id.trace.name), NUMBER("device", of.id.trace.device),
    TEXT("policy", of.id.policy), BOUND(of.id.bound), NUMBER("same", same),
    TEXT("difference", of.difference),
    NUMBER("peak_reserved_bytes", of.simulated.peak_reserved),
    NUMBER("real_peak_reserved_bytes", of.real.peak_reserved),
    NUMBER("num_ooms", of.simulated.num_ooms),
    NUMBER("real_num_ooms", of.real.num_ooms),
    NUMBER("first_oom_event", of.simulated.first_oom_event),
    NUMBER("real_first_oom_event", of.real.first_oom_event),
    NUMBER("num_calls", calls), NUMBER("real_num_calls", calls_real),
    NUMBER("runs", of.runs), NUMBER("modelled_seconds", modelled),
    NUMBER("measured_seconds", measured), NUMBER("modelled_ratio", ratio),
    NUMBER("pace", of.pace), NUMBER("paced_ratio", paced),
    NUMBER("ns_per_event", of.simulated.ns_per_event),
    NUMBER("real_ns_per_event", of.real.ns_per_event),
    NUMBER("leaked_bytes", of.leaked), TEXT("costs", costs), END};
#undef ROW
/* clang-format on */

static double modelled_of(const struct compared *c)
{
    double ns = 0;

    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        ns += (double)c->calls[i].modelled;
    return ns / 1e9;
}

static struct compare_row make_row(const struct compared *c, const char *costs)
{
    const double modelled = modelled_of(c),
                 measured = (double)c->measured / 1e9;

    return (struct compare_row){
        .of = *c,
        .costs = costs,
        .same = !c->differs,
        .calls = frag_calls_sum(c->simulated.calls),
        .calls_real = frag_calls_sum(c->real.calls),
        .modelled = modelled,
        .measured = measured,
        .ratio = c->measured ? modelled / measured : NAN,
        .paced = c->measured ? modelled * c->pace / measured : NAN,
    };
}

static void put_seconds(struct table *t, double seconds)
{
    table_cell(t, false, "%.3f ms", 1e3 * seconds);
}

static void add_to_table(struct table *t, const struct compare_row *row)
{
    const struct compared *c = &row->of;

    table_cell(t, false, "%s", c->id.trace.name);
    table_device(t, c->id.trace.device);
    table_cell(t, false, "%s", c->id.policy);
    table_size(t, frag_bound_of(c->id.bound, FRAG_BOUND_CAPACITY));
    table_size(t, c->real.peak_reserved);
    table_event(t, false, c->real.first_oom_event);
    table_count(t, row->calls_real);
    if (c->leaked)
        table_cell(t, true, "leaked %" PRIu64 " B", c->leaked);
    else
        table_cell(t, c->differs, "%s", c->differs ? c->difference : "yes");
    put_seconds(t, row->modelled);
    put_seconds(t, row->measured);
    table_cell(t, false, "%.2f", row->ratio);
    table_cell(t, false, "%.2f", row->paced);
}

static void add_calls(struct frag_json *j, const struct compared *c)
{
    frag_json_new_array(j, 3, "calls");
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        if (!c->calls[i].calls)
            continue;
        frag_json_new_object(j, 4, NULL);
        frag_json_text(j, "call", frag_driver_call_names[i]);
        JSON_ROW(j, frag_twin_cost, &c->calls[i], NUMBER("count", calls),
                 NS("modelled_seconds", modelled),
                 NS("measured_seconds", measured));
        frag_json_end(j);
    }
    frag_json_end(j);
    frag_json_end(j);
}

void compare_report_add(struct compare_report *r, const struct compared *c)
{
    const struct compare_row row = make_row(c, r->costs);

    add_to_table(&r->texts.table, &row);
    report_texts_add(&r->texts, &row);
    if (r->texts.json.out)
        add_calls(&r->texts.writer, c);
    r->rows++;
    r->wrong += c->differs || c->leaked;
}

enum frag_err compare_report_open(struct compare_report *r,
                                  const struct call *call,
                                  const struct outputs *to,
                                  struct frag_error *e)
{
    const struct frag_provenance by = cli_provenance(call);

    *r = (struct compare_report){.costs = r->costs};
    FRAG_TRY(report_texts_open(
        &r->texts, &by, to,
        table_of("nrprrrrlrrrr",
                 "trace|device|policy|bound|peak reserved|first OOM|"
                 "calls|same|modelled|measured|ratio|paced"),
        row_columns, e));
    return FRAG_OK;
}
