/* review.c - orders the policies, and selects the baseline, the choice, the
 * best PyTorch setting and the ceiling. */
#include "sim/cli/review/review.h"

#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "traces/printable.h"

/* Seconds from the first point of a run's series to its last; 0 if the trace
 * has no times or the run no series. Events that rebuild the state before the
 * recording have no time. */
static double duration(const struct frag_loaded_run *r)
{
    const struct frag_run *m = &r->run;
    uint64_t first = 0;

    while (first < m->point_count && !m->points[first].time)
        first++;
    if (first == m->point_count)
        return 0;
    return (double)(m->points[m->point_count - 1].time -
                    m->points[first].time) /
           1e9;
}

static double recorded(const struct ranking *r)
{
    double sum = 0;

    for (size_t i = 0; i < r->subject_count; i++)
        sum += duration(r->subjects[i].first);
    return sum;
}

static size_t failures(const struct standing *s)
{
    return s->limited - s->survived;
}

static int by_worth(const void *left, const void *right)
{
    const struct standing *a = left, *b = right;

    if (a->is_whole == b->is_whole && failures(a) != failures(b))
        return failures(a) < failures(b) ? -1 : 1;
    return standing_compare(a, b);
}

const char *review_setting(const struct standing *s)
{
    const char *policy = s->first->policy;

    if (!strcmp(policy, "cuda_async"))
        return "backend:cudaMallocAsync";
    if (!strncmp(policy, "torch:", 6) && printable_is(policy) &&
        !strchr(policy, '\''))
        return policy + 6;
    return NULL;
}

double review_extra(const struct review *r, const struct standing *s)
{
    return r->recorded > 0 ? (s->seconds - r->baseline->seconds) / r->recorded
                           : 0;
}

static bool is_affordable(const struct review *r, const struct standing *s)
{
    return s->is_whole && !s->is_offline && review_extra(r, s) <= r->slowdown;
}

static void set_baseline(struct review *r, const struct standing *s,
                         enum review_baseline kind)
{
    if (r->baseline)
        return;
    r->baseline = s;
    r->baseline_kind = kind;
}

static enum frag_err named_baseline(struct review *r, struct frag_error *e)
{
    const char *name = r->baseline_name;

    for (size_t i = 0; i < r->ranking.count; i++)
        if (!strcmp(r->order[i].first->policy, name))
            set_baseline(r, &r->order[i], BASELINE_NAMED);
    if (!r->baseline)
        return frag_fail(e, FRAG_INVALID,
                         "--baseline: the results have no run of %s; they have "
                         "one of %s",
                         name, r->ranking.rows[0].first->policy);
    if (r->baseline->is_offline)
        return frag_fail(e, FRAG_INVALID,
                         "--baseline: %s knows the future: it is a bound, not "
                         "a policy that can run; name another one",
                         name);
    return FRAG_OK;
}

/* Whether a run is of torch with these parameters on every trace, of any
 * release. */
static bool has_params(const struct frag_loaded_run *run, const char *params)
{
    static const char release[] = "torch_version:";
    const char *own = run->run.params;

    if (!strncmp(own, release, strlen(release)))
        own += strcspn(own, ",") + 1;
    return !strncmp(run->policy, "torch:", 6) && !strcmp(own, params);
}

/* The candidate whose runs came first. */
static const struct standing *first_candidate(const struct review *r)
{
    const struct standing *first = NULL;

    for (size_t i = 0; i < r->ranking.count; i++)
        if (!r->order[i].is_offline && (!first || r->order[i].row < first->row))
            first = &r->order[i];
    return first;
}

static enum frag_err usual_baseline(struct review *r, struct frag_error *e)
{
    struct frag_params *plain;

    FRAG_TRY(frag_params_read(frag_policy_find("torch"), "", &plain, e));
    for (size_t i = 0; i < r->ranking.count; i++)
        if (!strcmp(r->order[i].first->policy, "torch"))
            set_baseline(r, &r->order[i], BASELINE_PLAIN);
    for (size_t i = 0; i < r->ranking.count; i++)
        if (has_params(r->order[i].first, plain->text))
            set_baseline(r, &r->order[i], BASELINE_EQUAL);
    free(plain);
    set_baseline(r, first_candidate(r), BASELINE_FIRST);
    if (r->baseline)
        return FRAG_OK;
    return frag_fail(e, FRAG_INVALID,
                     "every policy of the results knows the future: such a "
                     "policy is a bound and cannot be recommended; add runs of "
                     "another policy, for example -p torch");
}

static enum frag_err find_baseline(struct review *r, struct frag_error *e)
{
    return r->baseline_name ? named_baseline(r, e) : usual_baseline(r, e);
}

static size_t count_impossible(const struct ranking *g)
{
    size_t count = 0;

    for (size_t i = 0; i < g->run_count; i++)
        count += is_impossible(g, &g->entries[i]);
    return count;
}

/* Selects the first policy of each kind in r->order. */
static void choose(struct review *r)
{
    r->impossible = count_impossible(&r->ranking);
    for (size_t i = 0; i < r->ranking.count; i++) {
        const struct standing *s = &r->order[i];

        r->is_limited = r->is_limited || s->limited;
        if (!r->ceiling && s->is_whole && !s->is_offline)
            r->ceiling = s;
        if (!r->choice && is_affordable(r, s))
            r->choice = s;
        if (!r->setting && is_affordable(r, s) &&
            (review_setting(s) || s == r->baseline))
            r->setting = s;
    }
    if (!r->choice)
        r->choice = r->baseline;
    if (r->setting == r->baseline)
        r->setting = NULL;
}

/* The need of a policy decides whether a job runs; its peak without a bound
 * does not. */
static void compare_needs(struct review *r)
{
    for (size_t i = 0; r->ranking.has_needs && i < r->ranking.count; i++) {
        r->order[i].memory = r->order[i].need;
        r->order[i].worst = r->order[i].worst_need;
    }
}

enum frag_err review_make(struct review *r, struct frag_error *e)
{
    enum frag_err err = selection_choose(r->files, &r->runs, e);

    FRAG_THEN(err, ranking_make(&r->runs, &r->ranking));
    if (err == FRAG_OK) {
        r->order = calloc(r->ranking.count, sizeof(*r->order));
        err = r->order ? FRAG_OK : FRAG_NOMEM;
    }
    if (err == FRAG_OK) {
        memcpy(r->order, r->ranking.rows, r->ranking.count * sizeof(*r->order));
        compare_needs(r);
        qsort(r->order, r->ranking.count, sizeof(*r->order), by_worth);
        r->recorded = recorded(&r->ranking);
        err = find_baseline(r, e);
    }
    if (err == FRAG_OK)
        choose(r);
    else
        review_free(r);
    return err;
}

void review_free(struct review *r)
{
    selection_free(&r->runs);
    ranking_free(&r->ranking);
    free(r->order);
    r->order = NULL;
}
