/* compare_report.c - turns each compared cell into a row, and writes the row as
 * JSON, CSV and a table line. */
#include "sim/cli/output/compare_report.h"

#include <inttypes.h>
#include <math.h>

#include "sim/results/row.h"

/* A row as the table of columns reads it; NAN and UINT64_MAX: no value. */
struct compare_row {
    const char *trace, *policy, *difference, *costs;
    uint64_t device, capacity, limit, same, runs;
    uint64_t reserved, reserved_real, ooms, ooms_real, first, first_real;
    uint64_t calls, calls_real, leaked;
    double modelled, measured, ratio, pace, paced, event, event_real;
};

/* Of the simulation, but for those that are called real. `pace' is what a fixed
 * series of calls took around the run over what the model says of it. */
/* clang-format off */
#define ROW struct compare_row
static const struct frag_column row_columns[] = {
    TEXT("trace", trace), NUMBER("device", device), TEXT("policy", policy),
    NUMBER("capacity_bytes", capacity), NUMBER("process_limit_bytes", limit),
    NUMBER("same", same), TEXT("difference", difference),
    NUMBER("peak_reserved_bytes", reserved),
    NUMBER("real_peak_reserved_bytes", reserved_real), NUMBER("num_ooms", ooms),
    NUMBER("real_num_ooms", ooms_real), NUMBER("first_oom_event", first),
    NUMBER("real_first_oom_event", first_real), NUMBER("num_calls", calls),
    NUMBER("real_num_calls", calls_real), NUMBER("runs", runs),
    NUMBER("modelled_seconds", modelled), NUMBER("measured_seconds", measured),
    NUMBER("modelled_ratio", ratio), NUMBER("pace", pace),
    NUMBER("paced_ratio", paced), NUMBER("ns_per_event", event),
    NUMBER("real_ns_per_event", event_real), NUMBER("leaked_bytes", leaked),
    TEXT("costs", costs), END};
#undef ROW
/* clang-format on */

static uint64_t sum_calls(const struct frag_summary *s)
{
    uint64_t sum = 0;

    for (int i = 0; i < FRAG_CALL_COUNT; i++)
        sum += s->calls[i];
    return sum;
}

static double modelled_of(const struct compared *c)
{
    double ns = 0;

    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        ns += (double)c->calls[i].modelled;
    return ns / 1e9;
}

static struct compare_row make_row(const struct compared *c, const char *costs)
{
    const struct frag_summary *s = &c->simulated, *r = &c->real;
    double modelled = modelled_of(c), measured = (double)c->measured / 1e9;

    return (struct compare_row){
        .trace = c->id.trace.name,
        .policy = c->id.policy,
        .difference = c->difference,
        .costs = costs,
        .device = c->id.trace.device,
        .capacity = frag_bound_of(c->id.bound, FRAG_BOUND_CAPACITY),
        .limit = frag_bound_of(c->id.bound, FRAG_BOUND_LIMIT),
        .same = !c->differs,
        .runs = c->runs,
        .reserved = s->peak_reserved,
        .reserved_real = r->peak_reserved,
        .ooms = s->num_ooms,
        .ooms_real = r->num_ooms,
        .first = s->first_oom_event,
        .first_real = r->first_oom_event,
        .calls = sum_calls(s),
        .calls_real = sum_calls(r),
        .leaked = c->leaked,
        .modelled = modelled,
        .measured = measured,
        .ratio = c->measured ? modelled / measured : NAN,
        .pace = c->pace,
        .paced = c->measured ? modelled * c->pace / measured : NAN,
        .event = s->ns_per_event,
        .event_real = r->ns_per_event,
    };
}

static void put_seconds(struct table *t, double seconds)
{
    table_cell(t, false, "%.3f ms", 1e3 * seconds);
}

static void add_to_table(struct table *t, const struct compare_row *row)
{
    table_cell(t, false, "%s", row->trace);
    table_device(t, (uint32_t)row->device);
    table_cell(t, false, "%s", row->policy);
    table_size(t, row->capacity);
    table_size(t, row->reserved_real);
    if (row->first_real == FRAG_NEVER)
        table_cell(t, false, "-");
    else
        table_cell(t, false, "event %" PRIu64, row->first_real);
    table_cell(t, false, "%" PRIu64, row->calls_real);
    if (row->leaked)
        table_cell(t, true, "leaked %" PRIu64 " B", row->leaked);
    else
        table_cell(t, !row->same, "%s", row->same ? "yes" : row->difference);
    put_seconds(t, row->modelled);
    put_seconds(t, row->measured);
    table_cell(t, false, "%.2f", row->ratio);
    table_cell(t, false, "%.2f", row->paced);
}

static void add_to_json(struct frag_json *j, const struct compare_row *row,
                        const struct compared *c)
{
    frag_json_new_object(j, 2, NULL);
    frag_row_json(j, row_columns, row);
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
    if (r->texts.json.out)
        add_to_json(&r->texts.writer, &row, c);
    if (r->texts.csv.out)
        frag_row_csv(r->texts.csv.out, row_columns, &row);
    r->rows++;
    r->wrong += c->differs || c->leaked;
}

enum frag_err compare_report_open(struct compare_report *r,
                                  const struct call *call,
                                  const struct outputs *to,
                                  struct frag_error *e)
{
    *r = (struct compare_report){.costs = r->costs};
    FRAG_TRY(report_texts_open(
        &r->texts, to,
        table_of("nrprrrrlrrrr",
                 "trace|device|policy|bound|peak reserved|first OOM|"
                 "calls|same|modelled|measured|ratio|paced"),
        e));
    if (to->json)
        cli_json_open(call, &r->texts.writer, r->texts.json.out);
    if (to->csv)
        frag_header_csv(r->texts.csv.out, row_columns);
    return FRAG_OK;
}

enum frag_err compare_report_commit(struct compare_report *r, bool color,
                                    struct frag_error *e)
{
    if (r->texts.json.out)
        frag_results_json_close(&r->texts.writer);
    return report_texts_commit(&r->texts, color, e);
}
