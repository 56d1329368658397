/* limit.c - orders runs by how much they tell, and takes the first. */
#include "sim/cli/figures/limit.h"

#include <stdlib.h>
#include <string.h>

enum frag_err limit_count_runs(const struct selection *s, size_t *out)
{
    *out = s->count;
    return FRAG_OK;
}

enum frag_err limit_count_policies(const struct selection *s, size_t *out)
{
    struct ranking r;

    FRAG_TRY(ranking_make(s, &r));
    *out = r.count;
    ranking_free(&r);
    return FRAG_OK;
}

enum frag_err limit_count_subjects(const struct selection *s, size_t *out)
{
    struct ranking r;

    FRAG_TRY(ranking_make(s, &r));
    *out = r.subject_count;
    ranking_free(&r);
    return FRAG_OK;
}

/* -- runs ---------------------------------------------------------------- */

/* A run and its place among the runs that are chosen. */
struct candidate {
    struct entry entry;
    bool is_repeat; /* a run before it has equally many OOMs and bytes */
    size_t turn;    /* in which its subject chooses it, from 0 */
};

/* Below 0 if a is worse than b. */
static int worse(const struct frag_loaded_run *a,
                 const struct frag_loaded_run *b)
{
    const struct frag_summary *x = &a->run.summary, *y = &b->run.summary;
    double p = peak_over_bound(a), q = peak_over_bound(b);

    if (x->num_ooms != y->num_ooms)
        return x->num_ooms > y->num_ooms ? -1 : 1;
    return (p < q) - (p > q);
}

/* By subject; in a subject, repeated runs last, else the worst first. */
static int by_subject(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    int order = worse(a->entry.run, b->entry.run);

    if (a->entry.subject != b->entry.subject)
        return a->entry.subject < b->entry.subject ? -1 : 1;
    if (a->is_repeat != b->is_repeat)
        return a->is_repeat ? 1 : -1;
    return order ? order : (a->entry.order > b->entry.order ? 1 : -1);
}

/* The order in which runs are chosen. */
static int by_turn(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    int order = worse(a->entry.run, b->entry.run);

    if (a->is_repeat != b->is_repeat)
        return a->is_repeat ? 1 : -1;
    if (a->turn != b->turn)
        return a->turn < b->turn ? -1 : 1;
    return order ? order : (a->entry.order > b->entry.order ? 1 : -1);
}

static int by_order(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    return a->entry.order < b->entry.order ? -1 : 1;
}

/* The number of candidates from i on that belong to one group. */
static size_t group(const struct candidate *list, size_t count, size_t i)
{
    size_t n = i;

    while (n < count && list[n].entry.subject == list[i].entry.subject &&
           list[n].is_repeat == list[i].is_repeat)
        n++;
    return n - i;
}

static void find_repeats(struct candidate *list, size_t count)
{
    qsort(list, count, sizeof(*list), by_subject);
    for (size_t i = 1; i < count; i++)
        list[i].is_repeat =
            list[i].entry.subject == list[i - 1].entry.subject &&
            !worse(list[i - 1].entry.run, list[i].entry.run);
}

/* Worst, best, next worst, next best: turns 0, 1, 2, 3. */
static void take_turns(struct candidate *list, size_t count)
{
    qsort(list, count, sizeof(*list), by_subject);
    for (size_t i = 0, n; i < count; i += n) {
        n = group(list, count, i);
        for (size_t k = 0; k < n; k++)
            list[i + k].turn = k < (n + 1) / 2 ? 2 * k : 2 * (n - 1 - k) + 1;
    }
}

enum frag_err limit_choose_runs(const struct selection *s, size_t most,
                                struct selection *out)
{
    size_t n = most < s->count ? most : s->count;
    struct ranking r;
    struct candidate *list;
    enum frag_err err;

    FRAG_TRY(ranking_make(s, &r));
    list = calloc(s->count, sizeof(*list));
    err = list ? FRAG_OK : FRAG_NOMEM;
    for (size_t i = 0; list && i < s->count; i++)
        list[i].entry = r.entries[i];
    if (list) {
        find_repeats(list, s->count);
        take_turns(list, s->count);
        qsort(list, s->count, sizeof(*list), by_turn);
        qsort(list, n, sizeof(*list), by_order);
    }
    for (size_t i = 0; err == FRAG_OK && i < n; i++)
        err = selection_add(out, list[i].entry.run);
    free(list);
    ranking_free(&r);
    return err;
}

/* -- policies ------------------------------------------------------------ */

/* How soon a policy is shown. */
static int rank(const struct standing *s)
{
    if (!strcmp(s->first->policy, "torch"))
        return 0;
    return s->is_offline ? 2 : 1;
}

void limit_policies(const struct standing *const *policies, size_t count,
                    size_t most, bool *shown)
{
    for (int now = 0; now <= 2; now++)
        for (size_t i = 0; i < count; i++)
            if (rank(policies[i]) == now) {
                shown[i] = most > 0;
                most -= most > 0;
            }
}
