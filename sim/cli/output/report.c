/* report.c - writes each run to the result file, JSON, CSV and the table. */
#include "sim/cli/output/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/cli/cli.h"

enum frag_err report_open(struct report *r, const struct frag_provenance *p,
                          const char *file, const char *json, const char *csv,
                          struct frag_error *e)
{
    enum frag_err err = FRAG_OK;

    *r = (struct report){
        .provenance = p,
        .has_table = !sink_is_stdout(json) && !sink_is_stdout(csv),
        .table = table_of(
            "nrprorrrrrrr",
            "trace|device|policy|bound|start|peak reserved|peak allocated|"
            "gap|overhead|fragmentation|OOMs|first OOM"),
    };
    if (file)
        err = frag_results_open(file, p, &r->file, e);
    if (err == FRAG_OK && json)
        err = sink_open(&r->json, json, e);
    if (err == FRAG_OK && csv)
        err = sink_open(&r->csv, csv, e);
    if (err != FRAG_OK) {
        report_abort(r);
        return err;
    }
    if (json)
        frag_results_json_open(&r->writer, r->json.out, p);
    if (csv)
        frag_results_csv_header(r->csv.out);
    r->table.optional = 2;
    return FRAG_OK;
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
    if (s->first_oom_event == FRAG_NEVER)
        table_cell(t, false, "-");
    else
        table_cell(t, true, "event %" PRIu64, s->first_oom_event);
}

enum frag_err report_add(struct report *r, const struct frag_run_identity *id,
                         const struct frag_run *run, struct frag_error *e)
{
    if (r->file)
        FRAG_TRY(frag_results_add(r->file, id, run, e));
    if (r->json.out)
        frag_results_json_row(&r->writer, id, run);
    if (r->csv.out)
        frag_results_csv_row(r->csv.out, id, run);
    if (r->has_table)
        add_row(&r->table, id, &run->summary);
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
    if (r->json.out)
        frag_results_json_row(&r->writer, &said, &none);
    if (r->csv.out)
        frag_results_csv_row(r->csv.out, &said, &none);
    if (r->has_table)
        add_failed_row(&r->table, id);
}

static void close_json(struct report *r)
{
    if (r->notes) {
        frag_json_line(&r->writer, 1);
        frag_json_end(&r->writer);
        cell_note_json(r->notes, &r->writer);
        frag_json_end(&r->writer);
        fputc('\n', r->json.out);
    } else {
        frag_results_json_close(&r->writer);
    }
}

enum frag_err report_commit(struct report *r, bool color, struct frag_error *e)
{
    enum frag_err err = FRAG_OK;

    if (r->json.out)
        close_json(r);
    if (r->file)
        err = frag_results_commit(
            r->file,
            r->provenance->started == FRAG_NO_TIME ? FRAG_NO_TIME : cli_now(),
            e);
    r->file = NULL;
    if (err == FRAG_OK && r->json.out)
        err = sink_commit(&r->json, e);
    if (err == FRAG_OK && r->csv.out)
        err = sink_commit(&r->csv, e);
    if (err == FRAG_OK && r->has_table)
        err = table_print(&r->table, stdout, color);
    report_abort(r);
    return err;
}

void report_abort(struct report *r)
{
    frag_results_abort(r->file);
    sink_abort(&r->json);
    sink_abort(&r->csv);
    table_free(&r->table);
    *r = (struct report){0};
}
