/* fit_report.c - turns the spans of a capacity search into one row for each
 * policy and one row for each span, as JSON, CSV and a table line. */
#include "sim/cli/output/fit_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/results/row.h"

/* A policy's row; UINT64_MAX and NAN: no value. */
struct fit_row {
    const char *trace, *policy;
    const char *bound; /* what need and fit are: a capacity or a limit */
    const char *start; /* of the run at the need, else of the one without */
    uint64_t device, events, total;
    uint64_t lower_bound, peak_allocated, peak_reserved; /* without a bound */
    uint64_t need; /* the least bound from which on nothing fails */
    uint64_t fit;  /* the least that serves the trace at all: between it and
                      the need a larger bound may fail */
    uint64_t step; /* 1: exact; else only multiples of it were tried */
    uint64_t headroom, need_reserved, retries; /* at the need */
    uint64_t fails_above; /* spans above fit that fail, with --frontier */
    uint64_t
        fits; /* 1 if the need is at most the size that was named, else 0 */
    double headroom_ratio, seconds;
};

/* A span's row in the frontier; UINT64_MAX: no value. */
struct step {
    const char *trace, *policy, *start;
    uint64_t device, from, to, exact, first_oom, peak_reserved, retries;
};

/* clang-format off */
#define ROW struct fit_row
static const struct frag_column row_columns[] = {
    TEXT("trace", trace), NUMBER("device", device), TEXT("policy", policy),
    TEXT("bound", bound), NUMBER("events", events),
    NUMBER("total_bytes", total), NUMBER("lower_bound_bytes", lower_bound),
    NUMBER("peak_allocated_bytes", peak_allocated),
    NUMBER("peak_reserved_bytes", peak_reserved), NUMBER("need_bytes", need),
    NUMBER("fit_bytes", fit), NUMBER("step_bytes", step),
    NUMBER("headroom_bytes", headroom),
    NUMBER("headroom_ratio", headroom_ratio),
    NUMBER("need_peak_reserved_bytes", need_reserved),
    NUMBER("need_num_alloc_retries", retries),
    NUMBER("need_modelled_device_seconds", seconds),
    NUMBER("fails_above", fails_above), TEXT("start", start),
    NUMBER("fits", fits), END};
#undef ROW

#define ROW struct step
static const struct frag_column step_columns[] = {
    TEXT("trace", trace), NUMBER("device", device), TEXT("policy", policy),
    NUMBER("from_bytes", from), NUMBER("to_bytes", to), NUMBER("exact", exact),
    NUMBER("first_oom_event", first_oom),
    NUMBER("peak_reserved_bytes", peak_reserved),
    NUMBER("num_alloc_retries", retries), TEXT("start", start), END};
#undef ROW
/* clang-format on */

static const struct frag_capacity_span *
first_survivor(const struct frag_capacity_spans *spans)
{
    for (size_t i = 0; i < spans->count; i++)
        if (frag_capacity_survives(&spans->items[i]))
            return &spans->items[i];
    return NULL;
}

static void describe_need(const struct frag_capacity_span *need,
                          struct fit_row *row)
{
    row->need = need->from;
    row->step = need->exact ? 1 : FRAG_CAPACITY_STEP;
    row->headroom = need->from - need->run.peak_allocated;
    row->headroom_ratio =
        (double)need->from / (double)need->run.peak_allocated - 1;
    row->need_reserved = need->run.peak_reserved;
    row->retries = need->run.num_alloc_retries;
    row->seconds = need->run.modelled_device_seconds;
    row->start = frag_start_names[need->run.start];
}

static uint64_t count_fails(const struct frag_capacity_spans *spans,
                            const struct frag_capacity_span *fit)
{
    uint64_t fails = 0;

    for (; fit < spans->items + spans->count; fit++)
        fails += !frag_capacity_survives(fit);
    return fails;
}

static struct fit_row make_row(const struct fit_report *r,
                               const struct fit_subject *on,
                               const struct fit_found *found)
{
    const struct frag_capacity_span *fit = first_survivor(&found->spans);
    const struct frag_summary *unlimited = &found->unlimited.run;
    struct fit_row row = {
        .trace = on->name,
        .device = on->device->device,
        .policy = on->policy->text,
        .bound = frag_bound_words[on->kind],
        .start = frag_start_names[unlimited->start],
        .events = unlimited->events,
        .total = on->settings->total ? on->settings->total : UINT64_MAX,
        .lower_bound = unlimited->lower_bound,
        .peak_allocated = unlimited->peak_allocated,
        .peak_reserved = unlimited->peak_reserved,
        .need = UINT64_MAX,
        .fit = fit ? fit->from : UINT64_MAX,
        .step = found->unlimited.exact ? 1 : FRAG_CAPACITY_STEP,
        .headroom = UINT64_MAX,
        .headroom_ratio = NAN,
        .need_reserved = UINT64_MAX,
        .retries = UINT64_MAX,
        .seconds = NAN,
        .fails_above = UINT64_MAX,
        .fits = UINT64_MAX,
    };

    if (frag_capacity_survives(&found->need))
        describe_need(&found->need, &row);
    if (r->size != FRAG_UNLIMITED)
        row.fits = row.need <= r->size;
    if (fit && r->texts.own.out)
        row.fails_above = count_fails(&found->spans, fit);
    return row;
}

static void add_to_table(struct table *t, const struct fit_row *row)
{
    const bool is_empty =
        !strcmp(row->start, frag_start_names[FRAG_START_EMPTY]);

    table_cell(t, false, "%s", row->trace);
    table_device(t, (uint32_t)row->device);
    table_cell(t, false, "%s", row->policy);
    table_cell(t, false, "%s", is_empty ? "" : row->start);
    table_size_or(t, row->need, "nowhere");
    table_count(t, row->need);
    table_share(t, row->headroom_ratio);
    table_size(t, row->peak_allocated);
    table_count(t, row->retries);
    table_size(t, row->peak_reserved);
    table_size_or(t, row->fit, "nowhere");
}

static struct step make_step(const struct fit_row *row,
                             const struct frag_capacity_span *span)
{
    return (struct step){
        .trace = row->trace,
        .device = row->device,
        .policy = row->policy,
        .start = frag_start_names[span->run.start],
        .from = span->from,
        .to = span->to,
        .exact = span->exact,
        .first_oom = span->run.first_oom_event,
        .peak_reserved = span->run.peak_reserved,
        .retries = span->run.num_alloc_retries,
    };
}

static void add_steps(struct fit_report *r, const struct fit_row *row,
                      const struct frag_capacity_spans *spans)
{
    struct frag_json *j = r->texts.json.out ? &r->texts.writer : NULL;

    if (j)
        frag_json_new_array(j, 3, "frontier");
    for (size_t i = 0; i < spans->count; i++) {
        const struct step step = make_step(row, &spans->items[i]);

        frag_row_csv(r->texts.own.out, step_columns, &step);
        if (!j)
            continue;
        frag_json_line(j, 4);
        frag_object_json(j, NULL, step_columns, &step);
    }
    if (j)
        frag_json_end(j);
}

static enum frag_err note(const struct fit_subject *on,
                          const struct fit_found *found,
                          struct cell_note_list *list, struct row_notes *out,
                          struct frag_error *e)
{
    const bool fits = frag_capacity_survives(&found->need);
    const struct cell_result result = {
        .settings = on->settings,
        .policy = on->policy,
        .trace = on->trace,
        .device = on->device,
        .bound = {.bytes = fits ? found->need.from : FRAG_UNLIMITED,
                  .kind = on->kind},
        .summary = &found->need.run,
        .params = on->params,
    };

    return row_notes_make(&result, list, out, e);
}

static void say_fit(struct fit_report *r, const struct fit_row *row)
{
    struct table *t = &r->texts.below;
    const char *is = row->fits ? "fits" : "does not fit";

    if (row->fits == UINT64_MAX)
        return;
    r->misfits += !row->fits;
    table_cell(t, false, "%s", row->trace);
    table_device(t, (uint32_t)row->device);
    if (row->need == UINT64_MAX)
        table_cell(t, true, "%s fits in no size", row->policy);
    else
        table_cell(t, !row->fits, "%s %s in %s: it needs %s, %s %s",
                   row->policy, is, FRAG_SHOW_SIZE(r->size),
                   FRAG_SHOW_SIZE(row->need),
                   FRAG_SHOW_SIZE(row->fits ? r->size - row->need
                                            : row->need - r->size),
                   row->fits ? "less" : "more");
}

static void add_row(struct fit_report *r, const struct fit_row *row,
                    const struct row_notes *notes,
                    const struct frag_capacity_spans *spans)
{
    struct frag_json *j = &r->texts.writer;

    add_to_table(&r->texts.table, row);
    say_fit(r, row);
    report_texts_add(&r->texts, row);
    if (j->out)
        frag_json_texts(j, "notes", notes->items, notes->count);
    if (r->texts.own.out && spans->count)
        add_steps(r, row, spans);
    if (j->out)
        frag_json_end(j);
}

enum frag_err fit_report_add(struct fit_report *r, const struct fit_subject *on,
                             const struct fit_found *found,
                             struct cell_note_list *notes, struct frag_error *e)
{
    const struct fit_row row = make_row(r, on, found);
    struct row_notes own;
    enum frag_err err = note(on, found, notes, &own, e);

    if (err == FRAG_OK)
        add_row(r, &row, &own, &found->spans);
    row_notes_free(&own);
    return err;
}

enum frag_err fit_report_open(struct fit_report *r, const struct call *call,
                              const struct outputs *to, frag_size size,
                              struct frag_error *e)
{
    const struct frag_provenance by = cli_provenance(call);
    struct report_texts *const x = &r->texts;

    *r = (struct fit_report){.size = size};
    FRAG_TRY(report_texts_open(
        x, &by, to,
        table_of("nrporrrrrrr", "trace|device|policy|start|need|bytes|headroom|"
                                "peak allocated|retries|unlimited|serves from"),
        row_columns, e));
    x->below = table_of("nrl", "trace|device");
    table_cell(&x->below, false, "%s", "");
    x->below.optional = 2;
    if (x->own.out)
        frag_header_csv(x->own.out, step_columns);
    return FRAG_OK;
}
