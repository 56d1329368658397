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
        if (r->subjects[i].is_compared)
            sum += duration(r->subjects[i].first);
    return sum;
}

const char *review_setting(const struct standing *s)
{
    const char *policy = s->first->id.policy;

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

/* Always true of the baseline. */
static bool is_affordable(const struct review *r, const struct standing *s)
{
    return !s->is_offline && review_extra(r, s) <= r->slowdown;
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
        if (!strcmp(r->ranking.order[i]->first->id.policy, name))
            set_baseline(r, r->ranking.order[i], BASELINE_NAMED);
    if (!r->baseline)
        return frag_fail(e, FRAG_INVALID,
                         "--baseline: the results have no run of %s; they have "
                         "one of %s",
                         name, r->ranking.rows[0].first->id.policy);
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
    return !strncmp(run->id.policy, "torch:", 6) && !strcmp(own, params);
}

/* The candidate whose runs came first. */
static const struct standing *first_candidate(const struct review *r)
{
    for (size_t i = 0; i < r->ranking.count; i++)
        if (!r->ranking.rows[i].is_offline)
            return &r->ranking.rows[i];
    return NULL;
}

static enum frag_err usual_baseline(struct review *r, struct frag_error *e)
{
    struct frag_params *plain;

    FRAG_TRY(frag_params_read(frag_policy_find("torch"), "", &plain, e));
    for (size_t i = 0; i < r->ranking.count; i++)
        if (!strcmp(r->ranking.order[i]->first->id.policy, "torch"))
            set_baseline(r, r->ranking.order[i], BASELINE_PLAIN);
    for (size_t i = 0; i < r->ranking.count; i++)
        if (has_params(r->ranking.order[i]->first, plain->text))
            set_baseline(r, r->ranking.order[i], BASELINE_EQUAL);
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

/* Selects the first policy of each kind in the order, and the last one. */
static void choose(struct review *r)
{
    for (size_t i = 0; i < r->ranking.count; i++) {
        const struct standing *s = r->ranking.order[i];

        r->is_limited = r->is_limited || s->limited;
        if (s->is_offline)
            continue;
        r->loser = s;
        if (!r->ceiling)
            r->ceiling = s;
        if (!r->choice && is_affordable(r, s))
            r->choice = s;
        if (!r->setting && is_affordable(r, s) &&
            (review_setting(s) || s == r->baseline))
            r->setting = s;
    }
    if (r->setting == r->baseline)
        r->setting = NULL;
    for (size_t i = 0; i < r->ranking.run_count; i++)
        r->impossible += r->ranking.entries[i].state == RANKED_IMPOSSIBLE;
}

enum frag_err review_make(struct review *r, struct frag_error *e)
{
    enum frag_err err = selection_choose(r->files, &r->runs, e);

    FRAG_THEN(err, ranking_make(&r->runs, &r->ranking));
    if (err == FRAG_OK)
        r->recorded = recorded(&r->ranking);
    FRAG_THEN(err, find_baseline(r, e));
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
}
