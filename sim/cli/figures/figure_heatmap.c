/* figure_heatmap.c - figure: peak reserved over the lower bound, policy by
 * trace. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/figures/figure_limit.h"

enum { TRACES = 24 }; /* columns */

/* The runs in rows and columns. */
struct heatmap {
    struct ranking ranking; /* the best policy first */
    bool *shown;            /* for each policy */
    size_t count;           /* of columns: the first subjects */
};

static void put_subject(FILE *out, const struct selection *s,
                        const struct frag_loaded_run *r)
{
    put_cell(out, selection_trace(s, r));
    if (r->device)
        fprintf(out, ", device %" PRIu64, r->device);
}

static void heatmap_free(struct heatmap *h)
{
    ranking_free(&h->ranking);
    free(h->shown);
}

/* Sorts the policies, and sets which are shown. */
static bool find_rows(struct heatmap *h, size_t most)
{
    struct ranking *r = &h->ranking;
    const struct standing **list = calloc(r->count, sizeof(*list));

    h->shown = calloc(r->count, sizeof(*h->shown));
    qsort(r->rows, r->count, sizeof(*r->rows), standing_compare);
    for (size_t i = 0; list && i < r->count; i++)
        list[i] = &r->rows[i];
    if (list && h->shown)
        limit_policies(list, r->count, most, h->shown);
    free(list);
    return list && h->shown;
}

static enum frag_err heatmap_make(const struct selection *s,
                                  struct heatmap *out)
{
    struct heatmap h = {.shown = NULL};

    FRAG_TRY(ranking_make(s, &h.ranking));
    h.count = s->most[1] < h.ranking.subject_count ? s->most[1]
                                                   : h.ranking.subject_count;
    if (!find_rows(&h, s->most[0])) {
        heatmap_free(&h);
        return FRAG_NOMEM;
    }
    *out = h;
    return FRAG_OK;
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
static void put_row(FILE *out, const struct selection *s,
                    const struct heatmap *h, size_t row,
                    const struct standing *p)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct frag_loaded_run *r =
            h->ranking.cells[p->row * h->ranking.subject_count + i];

        put_place(out, s, row, i, p);
        fprintf(out, "\t%.6g\t%" PRIu64 "\n", r ? peak_over_bound(r) : 0.0,
                r ? r->run.summary.num_ooms : 0);
    }
    put_place(out, s, row, h->count, p);
    fprintf(out, "\t%.6g\t0\n", p->is_whole ? p->memory : 0.0);
}

static enum frag_err cells(FILE *out, const struct selection *s)
{
    struct heatmap h;
    size_t row = 0;

    FRAG_TRY(heatmap_make(s, &h));
    fputs("row\tcolumn\tpolicy\tratio\tooms\n", out);
    for (size_t i = 0; i < h.ranking.count; i++)
        if (h.shown[i])
            put_row(out, s, &h, row++, &h.ranking.rows[i]);
    heatmap_free(&h);
    return FRAG_OK;
}

static enum frag_err traces(FILE *out, const struct selection *s)
{
    struct heatmap h;

    FRAG_TRY(heatmap_make(s, &h));
    fputs("column\ttrace\n", out);
    for (size_t i = 0; i < h.count; i++) {
        fprintf(out, "%zu\t", i);
        put_subject(out, s, h.ranking.subjects[i].first);
        fputc('\n', out);
    }
    heatmap_free(&h);
    return FRAG_OK;
}

const struct figure figure_heatmap = {
    .name = "heatmap",
    .files = {{".tsv", cells}, {".traces.tsv", traces}},
    .limits = {{"policies", LIMIT_RULE_OF_POLICIES, 40, 56,
                limit_count_policies, false},
               {"traces", "the first traces; the mean is that of all traces",
                TRACES, TRACES, limit_count_subjects, false}},
    .policy_letters = 44,
};
