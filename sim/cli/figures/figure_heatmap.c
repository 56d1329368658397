/* figure_heatmap.c - figure: peak reserved over the lower bound, policy by
 * trace. */
#include <inttypes.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/figures/ranking.h"

enum { TRACES = 24 }; /* columns */

static void put_subject(FILE *out, const struct selection *s,
                        const struct frag_loaded_run *r)
{
    put_cell(out, selection_trace(s, r));
    if (r->id.trace.device)
        fprintf(out, ", device %" PRIu32, r->id.trace.device);
}

static enum frag_err find(const struct figure_source *s, struct frag_error *e)
{
    (void)e;
    return ranking_make(s->runs, s->found);
}

static void release(void *found)
{
    ranking_free(found);
}

/* The number of columns for traces. */
static size_t columns(const struct figure_source *s)
{
    const struct ranking *r = s->found;
    const size_t most = s->runs->most[1];

    return most < r->subject_count ? most : r->subject_count;
}

/* -- files --------------------------------------------------------------- */

/* The row and column of a tile, and its policy. */
static void put_place(FILE *out, const struct selection *s, size_t row,
                      size_t column, const struct standing *p)
{
    fprintf(out, "%zu\t%zu\t", row, column);
    put_cell(out, selection_policy(s, p->first));
}

/* The tiles of a policy; ratio 0: there is no run. The last column is the mean
 * over all subjects. */
static void put_row(FILE *out, const struct figure_source *s, size_t row)
{
    const struct ranking *all = s->found;
    const struct standing *p = all->order[row];
    size_t i = 0;

    for (; i < columns(s); i++) {
        const struct frag_loaded_run *r =
            all->cells[p->row * all->subject_count + i];

        put_place(out, s->runs, row, i, p);
        fprintf(out, "\t%.6g\t%" PRIu64 "\n", r ? peak_over_bound(r) : 0.0,
                r ? r->run.summary.num_ooms : 0);
    }
    put_place(out, s->runs, row, i, p);
    fprintf(out, "\t%.6g\t0\n", p->is_whole ? p->reserved : 0.0);
}

static void cells(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct ranking *r = s->found;

    fputs("row\tcolumn\tpolicy\tratio\tooms\n", out);
    for (size_t i = 0; i < r->count && i < s->runs->most[0]; i++)
        put_row(out, s, i);
}

static void traces(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct ranking *r = s->found;

    fputs("column\ttrace\n", out);
    for (size_t i = 0; i < columns(s); i++) {
        fprintf(out, "%zu\t", i);
        put_subject(out, s->runs, r->subjects[i].first);
        fputc('\n', out);
    }
}

const struct figure figure_heatmap = {
    .name = "heatmap",
    .files = {{".tsv", cells}, {".traces.tsv", traces}},
    .size = sizeof(struct ranking),
    .find = find,
    .release = release,
    .limits = {{"policies", "the best policies", 40, 56,
                ranking_count_policies},
               {"traces", "the first traces; the mean is that of all traces",
                TRACES, TRACES, ranking_count_subjects}},
    .policy_letters = 44,
};
