/* figure_pareto.c - figure: memory against modelled driver seconds, one point
 * for each policy. */
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
    return a->is_whole && !a->is_offline && a->reserved <= b->reserved &&
           a->seconds <= b->seconds &&
           (a->reserved < b->reserved || a->seconds < b->seconds);
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
    const struct standing *a = *(const struct standing *const *)left;
    const struct standing *b = *(const struct standing *const *)right;

    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    if (a->reserved != b->reserved)
        return a->reserved > b->reserved ? -1 : 1;
    return strcmp(a->first->id.policy, b->first->id.policy);
}

/* The policy, the number of other policies on the same point, and the reason if
 * the policy cannot be on the front: OOMs, the future, missing traces. */
static void put_name(FILE *out, const struct selection *runs,
                     const struct ranking *r, const struct standing *s,
                     size_t others)
{
    put_cell(out, selection_policy(runs, s->first));
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
    return a->reserved == b->reserved && a->seconds == b->seconds &&
           a->is_whole == b->is_whole && a->is_offline == b->is_offline;
}

/* Memory is peak reserved in bytes with one subject, and the mean of peak
 * reserved over lower bound with several. */
static void put_point(FILE *out, const struct selection *s,
                      const struct ranking *r, const struct standing *p,
                      size_t others, bool is_named)
{
    frag_size bound =
        r->subject_count == 1 ? p->worst->run.summary.lower_bound : 0;

    put_name(out, s, r, p, others);
    fprintf(out, "\t%.15g\t%.9g\t%s\t%" PRIu64 "\t%zu\t",
            r->subject_count == 1 ? (double)p->peak : p->reserved, p->seconds,
            kind(r, p), bound, r->subject_count);
    put_trace(out, s);
    fprintf(out, "\t%d\n", is_named);
}

/* -- points and names ---------------------------------------------------- */

/* One or more policies with equal results. */
struct pareto_place {
    const struct standing *first; /* the first of `count` neighbours */
    size_t at;                    /* its place by seconds */
    size_t count;
    bool is_first; /* its name is shown before those of other places */
    bool is_named;
};

/* The ranking by seconds, and its places. */
struct pareto {
    struct ranking ranking;
    struct pareto_place *places;
    size_t count;
};

/* The order in which places get names: those of the front and torch, then the
 * best. */
static int by_claim(const void *left, const void *right)
{
    const struct pareto_place *a = left, *b = right;

    if (a->is_first != b->is_first)
        return a->is_first ? -1 : 1;
    return a->first->rank < b->first->rank ? -1 : 1;
}

static int by_row(const void *left, const void *right)
{
    const struct pareto_place *a = left, *b = right;

    return a->at < b->at ? -1 : 1;
}

static bool is_torch(const struct standing *s)
{
    return !strcmp(s->first->id.policy, "torch");
}

static void find_places(struct pareto *p)
{
    const struct ranking *r = &p->ranking;

    for (size_t i = 0; i < r->count; i++) {
        const struct standing *s = r->order[i];
        struct pareto_place *last = i ? &p->places[p->count - 1] : NULL;

        if (last && on_one_point(last->first, s)) {
            last->count++;
            last->is_first = last->is_first || is_torch(s);
        } else {
            p->places[p->count++] = (struct pareto_place){
                s, i, 1, is_torch(s) || !strcmp(kind(r, s), "front"), false};
        }
    }
}

static enum frag_err find(const struct figure_source *s, struct frag_error *e)
{
    struct pareto *p = s->found;
    struct ranking *r = &p->ranking;

    (void)e;
    FRAG_TRY(ranking_make(s->runs, r));
    p->places = calloc(r->count, sizeof(*p->places));
    if (!p->places)
        return FRAG_NOMEM;
    qsort(r->order, r->count, sizeof(*r->order), by_seconds);
    find_places(p);
    return FRAG_OK;
}

static void release(void *found)
{
    struct pareto *p = found;

    ranking_free(&p->ranking);
    free(p->places);
}

static void rows(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct pareto *p = s->found;

    qsort(p->places, p->count, sizeof(*p->places), by_claim);
    for (size_t i = 0; i < p->count; i++)
        p->places[i].is_named = i < s->runs->most[0];
    qsort(p->places, p->count, sizeof(*p->places), by_row);
    fputs("policy\tmemory\tseconds\tkind\tbound\tsubjects\ttrace\tnamed\n",
          out);
    for (size_t i = 0; i < p->count; i++)
        put_point(out, s->runs, &p->ranking, p->places[i].first,
                  p->places[i].count - 1, p->places[i].is_named);
}

static size_t count_places(const void *found)
{
    return ((const struct pareto *)found)->count;
}

const struct figure figure_pareto = {
    .name = "pareto",
    .files = {{".tsv", rows}},
    .size = sizeof(struct pareto),
    .find = find,
    .release = release,
    .limits = {{"names of points",
                "those on the line, torch, and the best of the others", 16, 32,
                count_places}},
    .policy_letters = 40,
};
