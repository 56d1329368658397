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
    uint32_t device;
    uint64_t total;    /* 0: none */
    uint64_t fit;      /* the least that serves the trace at all: between it and
                          the need a larger bound may fail */
    uint64_t step;     /* 1: exact; else only multiples of it were tried */
    uint64_t headroom; /* at the need */
    uint64_t fails_above; /* spans above fit that fail, with --frontier */
    uint64_t
        fits; /* 1 if the need is at most the size that was named, else 0 */
    double headroom_ratio;
    struct frag_summary unlimited;
    struct frag_capacity_span need; /* all of it no value if there is none */
};

/* A span's row in the frontier; UINT64_MAX: no value. */
struct step {
    const char *trace, *policy, *start;
    uint32_t device;
    uint64_t exact;
    struct frag_capacity_span span;
};

/* clang-format off */
#define ROW struct fit_row
static const struct frag_column row_columns[] = {
    TEXT("trace", trace), NUMBER("device", device), TEXT("policy", policy),
    TEXT("bound", bound), NUMBER("events", unlimited.events),
    POSITIVE("total_bytes", total),
    NUMBER("lower_bound_bytes", unlimited.lower_bound),
    NUMBER("peak_allocated_bytes", unlimited.peak_allocated),
    NUMBER("peak_reserved_bytes", unlimited.peak_reserved),
    NUMBER("need_bytes", need.from), NUMBER("fit_bytes", fit),
    NUMBER("step_bytes", step), NUMBER("headroom_bytes", headroom),
    NUMBER("headroom_ratio", headroom_ratio),
    NUMBER("need_peak_reserved_bytes", need.run.peak_reserved),
    NUMBER("need_num_alloc_retries", need.run.num_alloc_retries),
    NUMBER("need_modelled_device_seconds", need.run.modelled_device_seconds),
    NUMBER("fails_above", fails_above), TEXT("start", start),
    NUMBER("fits", fits), END};
#undef ROW

#define ROW struct step
static const struct frag_column step_columns[] = {
    TEXT("trace", trace), NUMBER("device", device), TEXT("policy", policy),
    NUMBER("from_bytes", span.from), NUMBER("to_bytes", span.to),
    NUMBER("exact", exact), NUMBER("first_oom_event", span.run.first_oom_event),
    NUMBER("peak_reserved_bytes", span.run.peak_reserved),
    NUMBER("num_alloc_retries", span.run.num_alloc_retries),
    TEXT("start", start), END};
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
    const bool has_need = frag_capacity_survives(&found->need);
    const struct frag_capacity_span *of =
        has_need ? &found->need : &found->unlimited;
    struct fit_row row = {
        .trace = on->name,
        .device = on->device->device,
        .policy = on->policy->text,
        .bound = frag_bound_words[on->kind],
        .start = frag_start_names[of->run.start],
        .total = on->settings->total,
        .unlimited = found->unlimited.run,
        .need = found->need,
        .fit = fit ? fit->from : UINT64_MAX,
        .step = of->exact ? 1 : FRAG_CAPACITY_STEP,
        .headroom = found->need.from - found->need.run.peak_allocated,
        .headroom_ratio =
            (double)found->need.from / (double)found->need.run.peak_allocated -
            1,
        .fails_above = UINT64_MAX,
        .fits = UINT64_MAX,
    };

    if (!has_need) {
        memset(&row.need, 0xff, sizeof(row.need)); /* UINT64_MAX and NAN */
        row.headroom = UINT64_MAX;
        row.headroom_ratio = NAN;
    }
    if (r->size != FRAG_UNLIMITED)
        row.fits = row.need.from <= r->size;
    if (fit && r->texts.own.out)
        row.fails_above = count_fails(&found->spans, fit);
    return row;
}

static void add_to_table(struct table *t, const struct fit_row *row)
{
    const bool is_empty =
        !strcmp(row->start, frag_start_names[FRAG_START_EMPTY]);

    table_cell(t, false, "%s", row->trace);
    table_device(t, row->device);
    table_cell(t, false, "%s", row->policy);
    table_cell(t, false, "%s", is_empty ? "" : row->start);
    table_size_or(t, row->need.from, "nowhere");
    table_count(t, row->need.from);
    table_share(t, row->headroom_ratio);
    table_size(t, row->unlimited.peak_allocated);
    table_count(t, row->need.run.num_alloc_retries);
    table_size(t, row->unlimited.peak_reserved);
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
        .exact = span->exact,
        .span = *span,
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
    table_device(t, row->device);
    if (row->need.from == UINT64_MAX)
        table_cell(t, true, "%s fits in no size", row->policy);
    else
        table_cell(t, !row->fits, "%s %s in %s: it needs %s, %s %s",
                   row->policy, is, FRAG_SHOW_SIZE(r->size),
                   FRAG_SHOW_SIZE(row->need.from),
                   FRAG_SHOW_SIZE(row->fits ? r->size - row->need.from
                                            : row->need.from - r->size),
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
