/* pareto.c - figure: memory against modelled driver seconds, one point for each
 * policy. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/figures/ranking.h"

/* Whether a beats b in both measures. Offline and incomplete policies beat
 * none.
 */
static bool beats(const struct standing *a, const struct standing *b)
{
    return a->is_whole && !a->is_offline && a->memory <= b->memory &&
           a->seconds <= b->seconds &&
           (a->memory < b->memory || a->seconds < b->seconds);
}

static const char *kind(const struct ranking *r, const struct standing *s)
{
    if (!s->is_whole)
        return "failed";
    if (s->is_offline)
        return "offline";
    for (size_t i = 0; i < r->count; i++)
        if (beats(&r->rows[i], s))
            return "beaten";
    return "front";
}

/* The order in which the script connects the front: left to right. */
static int by_seconds(const void *left, const void *right)
{
    const struct standing *a = left, *b = right;

    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    if (a->memory != b->memory)
        return a->memory > b->memory ? -1 : 1;
    return strcmp(a->first->policy, b->first->policy);
}

/* The policy, the number of other policies on the same point, and the reason if
 * the policy cannot be on the front: OOMs, the future, missing traces. */
static void put_name(FILE *out, const struct ranking *r,
                     const struct standing *s, size_t others)
{
    put_cell(out, s->first->policy);
    if (others)
        fprintf(out, " and %zu more", others);
    put_ooms(out, s->ooms);
    if (s->is_offline)
        fputs(", knows the future", out);
    if (s->subjects < r->subject_count)
        fprintf(out, " (%zu of %zu traces)", s->subjects, r->subject_count);
}

static bool on_one_point(const struct standing *a, const struct standing *b)
{
    return a->memory == b->memory && a->seconds == b->seconds &&
           a->is_whole == b->is_whole && a->is_offline == b->is_offline;
}

/* Memory is peak reserved in bytes with one subject, and the mean of peak
 * reserved over lower bound with several. */
static void put_point(FILE *out, const struct selection *s,
                      const struct ranking *r, const struct standing *p,
                      size_t others)
{
    frag_size bound =
        r->subject_count == 1 ? p->worst->run.summary.lower_bound : 0;

    put_name(out, r, p, others);
    fprintf(out, "\t%.15g\t%.9g\t%s\t%" PRIu64 "\t%zu\t",
            r->subject_count == 1 ? (double)p->peak : p->memory, p->seconds,
            kind(r, p), bound, r->subject_count);
    put_trace(out, s);
    fputc('\n', out);
}

static enum frag_err rows(FILE *out, const struct selection *s)
{
    struct ranking r;

    FRAG_TRY(ranking_make(s, &r));
    qsort(r.rows, r.count, sizeof(*r.rows), by_seconds);
    fputs("policy\tmemory\tseconds\tkind\tbound\tsubjects\ttrace\n", out);
    for (size_t i = 0, next; i < r.count; i = next) {
        for (next = i + 1; next < r.count; next++)
            if (!on_one_point(&r.rows[i], &r.rows[next]))
                break;
        put_point(out, s, &r, &r.rows[i], next - i - 1);
    }
    ranking_free(&r);
    return FRAG_OK;
}

const struct figure figure_pareto = {
    .name = "pareto",
    .files = {{".tsv", rows}},
};
