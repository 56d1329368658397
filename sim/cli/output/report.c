/* report.c - writes each run to the result file, JSON, CSV and the table. */
#include "sim/cli/output/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/cli/cli.h"

enum frag_err report_texts_open(struct report_texts *r,
                                const struct frag_provenance *p,
                                const struct outputs *to, struct table table,
                                const struct frag_column *columns,
                                struct frag_error *e)
{
    enum frag_err err;

    *r = (struct report_texts){
        .table = table,
        .has_table = !sink_is_stdout(to->json) && !sink_is_stdout(to->csv) &&
                     !sink_is_stdout(to->own[0]),
        .columns = columns,
    };
    r->table.optional = 2; /* the trace and the device */
    err = sink_open(&r->json, to->json, e);
    FRAG_THEN(err, sink_open(&r->csv, to->csv, e));
    FRAG_THEN(err, sink_open(&r->own, to->own[0], e));
    if (err != FRAG_OK) {
        report_texts_abort(r);
        return err;
    }
    if (to->json)
        frag_results_json_open(&r->writer, r->json.out, p);
    if (to->csv)
        frag_header_csv(r->csv.out, columns);
    return FRAG_OK;
}

void report_texts_add(struct report_texts *r, const void *row)
{
    if (r->csv.out)
        frag_row_csv(r->csv.out, r->columns, row);
    if (r->json.out) {
        frag_json_new_object(&r->writer, 2, NULL);
        frag_row_json(&r->writer, r->columns, row);
    }
}

static void close_json(struct report_texts *r)
{
    frag_json_line(&r->writer, 1);
    frag_json_end(&r->writer);
    if (r->notes)
        cell_note_json(r->notes, &r->writer);
    frag_json_end(&r->writer);
    fputc('\n', r->json.out);
}

enum frag_err report_texts_commit(struct report_texts *r, bool color,
                                  struct frag_error *e)
{
    enum frag_err err;

    if (r->json.out)
        close_json(r);
    err = sink_commit(&r->json, e);
    FRAG_THEN(err, sink_commit(&r->csv, e));
    FRAG_THEN(err, sink_commit(&r->own, e));
    if (err == FRAG_OK && r->has_table)
        err = table_print(&r->table, stdout, color);
    if (err == FRAG_OK && r->has_table && r->below.count > r->below.columns)
        err = table_print(&r->below, stdout, color);
    report_texts_abort(r);
    return err;
}

void report_texts_abort(struct report_texts *r)
{
    sink_abort(&r->json);
    sink_abort(&r->csv);
    sink_abort(&r->own);
    table_free(&r->table);
    table_free(&r->below);
}

enum frag_err report_open(struct report *r, const struct frag_provenance *p,
                          const struct outputs *to, struct frag_error *e)
{
    enum frag_err err;

    *r = (struct report){.provenance = p};
    if (to->hdf5)
        FRAG_TRY(frag_results_open(to->hdf5, p, &r->file, e));
    err = report_texts_open(
        &r->texts, p, to,
        table_of("nrprorrrrrrr",
                 "trace|device|policy|bound|start|peak reserved|peak allocated|"
                 "gap|overhead|fragmentation|OOMs|first OOM"),
        frag_summary_columns, e);
    if (err != FRAG_OK)
        report_abort(r);
    return err;
}

/* A run that began empty, as nearly all do, needs no word. */
static const char *start_cell(const struct frag_summary *s)
{
    return s->start == FRAG_START_EMPTY ? "" : frag_start_names[s->start];
}

static void add_row(struct table *t, const struct frag_run_identity *id,
                    const struct frag_summary *s)
{
    table_cell(t, false, "%s", id->trace.name);
    table_device(t, id->trace.device);
    table_cell(t, false, "%s", id->policy);
    table_bound(t, id->bound);
    table_cell(t, false, "%s", start_cell(s));
    table_size(t, s->peak_reserved);
    table_size(t, s->peak_allocated);
    if (s->optimal)
        table_cell(t, false, "optimal");
    else
        table_share(t, s->gap_to_bound);
    if (isfinite(s->overhead))
        table_cell(t, false, "%.3f", s->overhead);
    else
        table_cell(t, false, "-");
    table_share(t, s->fragmentation_ratio);
    table_cell(t, s->num_ooms, "%" PRIu64, s->num_ooms);
    table_event(t, true, s->first_oom_event);
}

static void add_result(struct report_texts *r,
                       const struct frag_run_identity *id,
                       const struct frag_run *run)
{
    const struct frag_result_row row = frag_result_row(id, run);

    report_texts_add(r, &row);
    if (!r->json.out)
        return;
    frag_json_texts(&r->writer, "notes", id->trace.notes, id->trace.note_count);
    frag_json_end(&r->writer);
}

enum frag_err report_add(struct report *r, const struct frag_run_identity *id,
                         const struct frag_run *run, struct frag_error *e)
{
    if (r->file)
        FRAG_TRY(frag_results_add(r->file, id, run, e));
    add_result(&r->texts, id, run);
    if (r->texts.has_table)
        add_row(&r->texts.table, id, &run->summary);
    r->runs++;
    r->failed_runs += run->summary.num_ooms > 0;
    r->events += run->summary.events;
    return FRAG_OK;
}

/* The first columns are the cell, which the row names. */
static void add_failed_row(struct table *t, const struct frag_run_identity *id)
{
    table_cell(t, false, "%s", id->trace.name);
    table_device(t, id->trace.device);
    table_cell(t, false, "%s", id->policy);
    table_bound(t, id->bound);
    table_cell(t, false, "%s", "");
    table_cell(t, true, "failed");
    for (size_t i = 6; i < t->columns; i++)
        table_cell(t, false, "-");
}

void report_add_failed(struct report *r, const struct frag_run_identity *id,
                       char *params, const char *error)
{
    struct frag_run_identity said = *id;
    struct frag_run none = {.params = params};

    memset(&none.summary, 0xff, sizeof(none.summary)); /* no number: UINT64_MAX
                                                          and NaN */
    said.trace.notes = &error;
    said.trace.note_count = 1;
    add_result(&r->texts, &said, &none);
    if (r->texts.has_table)
        add_failed_row(&r->texts.table, id);
}

enum frag_err report_commit(struct report *r, bool color, struct frag_error *e)
{
    const int64_t end =
        r->provenance->started == FRAG_NO_TIME ? FRAG_NO_TIME : cli_now();
    enum frag_err err = FRAG_OK;

    if (r->file)
        err = frag_results_commit(r->file, end, e);
    r->file = NULL;
    FRAG_THEN(err, report_texts_commit(&r->texts, color, e));
    report_abort(r);
    return err;
}

void report_abort(struct report *r)
{
    frag_results_abort(r->file);
    report_texts_abort(&r->texts);
    *r = (struct report){0};
}
