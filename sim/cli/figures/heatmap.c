/* heatmap.c - figure: peak reserved over the lower bound, policy by trace. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/figures/ranking.h"

static void put_subject(FILE *out, const struct frag_loaded_run *r)
{
    put_cell(out, r->trace);
    if (r->device)
        fprintf(out, ", device %" PRIu64, r->device);
}

/* One row of the file; ratio 0 if r is NULL: there is no run. */
static void put_run(FILE *out, size_t row, size_t column,
                    const struct standing *s, const struct frag_loaded_run *r)
{
    fprintf(out, "%zu\t%zu\t", row, column);
    put_cell(out, s->first->policy);
    fprintf(out, "\t%.6g\t%" PRIu64 "\n", r ? peak_over_bound(r) : 0.0,
            r ? r->run.summary.num_ooms : 0);
}

/* The rows of a policy; the last column is the mean. */
static void put_row(FILE *out, const struct ranking *r, size_t row)
{
    const struct standing *s = &r->rows[row];

    for (size_t i = 0; i < r->subject_count; i++)
        put_run(out, row, i, s, r->cells[s->row * r->subject_count + i]);
    fprintf(out, "%zu\t%zu\t", row, r->subject_count);
    put_cell(out, s->first->policy);
    fprintf(out, "\t%.6g\t0\n", s->is_whole ? s->memory : 0.0);
}

static enum frag_err cells(FILE *out, const struct selection *s)
{
    struct ranking r;

    FRAG_TRY(ranking_make(s, &r));
    qsort(r.rows, r.count, sizeof(*r.rows), standing_compare);
    fputs("row\tcolumn\tpolicy\tratio\tooms\n", out);
    for (size_t i = 0; i < r.count; i++)
        put_row(out, &r, i);
    ranking_free(&r);
    return FRAG_OK;
}

static enum frag_err traces(FILE *out, const struct selection *s)
{
    struct ranking r;

    FRAG_TRY(ranking_make(s, &r));
    fputs("column\ttrace\n", out);
    for (size_t i = 0; i < r.subject_count; i++) {
        fprintf(out, "%zu\t", i);
        put_subject(out, r.subjects[i].first);
        fputc('\n', out);
    }
    ranking_free(&r);
    return FRAG_OK;
}

const struct figure figure_heatmap = {
    .name = "heatmap",
    .files = {{".tsv", cells}, {".traces.tsv", traces}},
};
