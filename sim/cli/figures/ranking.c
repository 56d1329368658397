/* ranking.c - collects the runs by policy and subject, finds the cells that are
 * compared, computes each policy's means, and orders the policies. */
#include "sim/cli/figures/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"

static bool is_same_subject(const struct frag_loaded_run *a,
                            const struct frag_loaded_run *b)
{
    return a->id.trace.device == b->id.trace.device && is_same_trace(a, b);
}

static bool is_same_policy(const struct frag_loaded_run *a,
                           const struct frag_loaded_run *b)
{
    return !strcmp(a->id.policy, b->id.policy);
}

/* The index of r's policy in g->rows, to which a new policy is added. */
static size_t policy_of(struct ranking *g, const struct frag_loaded_run *r)
{
    size_t i = 0;

    while (i < g->count && !is_same_policy(g->rows[i].first, r))
        i++;
    if (i == g->count)
        g->rows[g->count++] = (struct standing){.row = i, .first = r};
    return i;
}

static void learn_need(struct ranked_subject *s, const struct frag_summary *m)
{
    s->asked = frag_larger(s->asked, m->peak_requested);
    s->bound = frag_larger(frag_larger(s->bound, s->asked),
                           frag_larger(m->demand, m->lower_bound));
}

static size_t subject_of(struct ranking *g, const struct frag_loaded_run *r)
{
    size_t i = 0;

    while (i < g->subject_count && !is_same_subject(g->subjects[i].first, r))
        i++;
    if (i == g->subject_count)
        g->subjects[g->subject_count++] = (struct ranked_subject){.first = r};
    learn_need(&g->subjects[i], &r->run.summary);
    return i;
}

static int by_size(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int by_real(double a, double b)
{
    return (a > b) - (a < b);
}

/* The first of `count` numbers that is not 0; 0 if there is none. */
static int first_of(const int *orders, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (orders[i])
            return orders[i];
    return 0;
}

/* Groups the runs by policy and subject, the largest bound first. */
static int by_kind(const void *left, const void *right)
{
    const struct ranked_entry *a = left, *b = right;
    const int orders[] = {by_size(a->policy, b->policy),
                          by_size(a->subject, b->subject),
                          frag_bound_order(b->run->id.bound, a->run->id.bound),
                          by_size(a->order, b->order)};

    return first_of(orders, 4);
}

/* Groups the runs by cell. */
static int by_cell(const void *left, const void *right)
{
    const struct ranked_entry *a = left, *b = right;
    const int orders[] = {by_size(a->subject, b->subject),
                          frag_bound_order(b->run->id.bound, a->run->id.bound),
                          by_size(a->policy, b->policy),
                          by_size(a->order, b->order)};

    return first_of(orders, 4);
}

double peak_over_bound(const struct frag_loaded_run *r)
{
    const struct frag_summary *m = &r->run.summary;

    return m->lower_bound ? (double)m->peak_reserved / (double)m->lower_bound
                          : 1.0;
}

double need_over_bound(const struct frag_loaded_run *r)
{
    const struct frag_summary *m = &r->run.summary;

    return m->lower_bound && m->need != FRAG_UNLIMITED
               ? (double)m->need / (double)m->lower_bound
               : 1.0;
}

/* -- cells --------------------------------------------------------------- */

static bool is_same_cell(const struct ranked_entry *a,
                         const struct ranked_entry *b)
{
    return a->subject == b->subject &&
           !frag_bound_order(a->run->id.bound, b->run->id.bound);
}

static size_t count_candidates(const struct ranking *r)
{
    size_t count = 0;

    for (size_t i = 0; i < r->count; i++)
        count += !r->rows[i].is_offline;
    return count;
}

/* The number of runs from `from` on that are of one cell. Runs of a policy
 * after its first one are marked; *candidates are those with a run. */
static size_t read_cell(struct ranking *r, size_t from, size_t *candidates)
{
    struct ranked_entry *e = &r->entries[from];
    size_t n = 0;

    for (*candidates = 0; from + n < r->run_count && is_same_cell(e, &e[n]);
         n++) {
        struct standing *s = &r->rows[e[n].policy];

        e[n].is_repeated = n && e[n - 1].policy == e[n].policy;
        s->cells += !e[n].is_repeated;
        *candidates += !e[n].is_repeated && !s->is_offline;
    }
    return n;
}

static void judge_cells(struct ranking *r)
{
    const size_t all = count_candidates(r);
    size_t n, candidates;

    qsort(r->entries, r->run_count, sizeof(*r->entries), by_cell);
    for (size_t i = 0; i < r->run_count; i += n) {
        const struct ranked_entry *e = &r->entries[i];
        enum ranked_state state = RANKED_COMPARED;

        n = read_cell(r, i, &candidates);
        if (e->run->id.bound.bytes < r->subjects[e->subject].bound)
            state = RANKED_IMPOSSIBLE;
        else if (candidates < all)
            state = RANKED_UNSHARED;
        r->cell_count[state]++;
        r->subjects[e->subject].is_compared |= state == RANKED_COMPARED;
        for (size_t k = i; k < i + n; k++)
            r->entries[k].state = state;
    }
    for (size_t i = 0; i < r->subject_count; i++)
        r->subjects[i].is_compared |= !r->cell_count[RANKED_COMPARED];
    qsort(r->entries, r->run_count, sizeof(*r->entries), by_kind);
}

/* -- means --------------------------------------------------------------- */

/* Adds a roomiest run. s->reserved and s->need are sums of logarithms until
 * `finish`. */
static void add_roomiest(struct standing *s, const struct frag_loaded_run *r)
{
    const struct frag_summary *m = &r->run.summary;

    s->subjects++;
    s->failed += m->num_ooms > 0;
    s->ooms += m->num_ooms;
    s->reserved += log(peak_over_bound(r));
    s->need += log(need_over_bound(r));
    s->seconds += m->modelled_device_seconds;
    s->moved += m->bytes_moved;
    s->peak = frag_larger(s->peak, m->peak_reserved);
    if (!s->worst || peak_over_bound(r) > peak_over_bound(s->worst))
        s->worst = r;
    if (!s->worst_need || need_over_bound(r) > need_over_bound(s->worst_need))
        s->worst_need = r;
}

static bool is_counted(const struct ranked_entry *e)
{
    return e->state == RANKED_COMPARED && !e->is_repeated;
}

bool ranking_is_limited(const struct ranked_entry *e)
{
    return is_counted(e) && e->run->id.bound.bytes != FRAG_UNLIMITED;
}

static void count_cell(struct standing *s, const struct ranked_entry *e)
{
    s->compared += is_counted(e);
    s->limited += ranking_is_limited(e);
    s->survived += ranking_is_limited(e) && e->run->run.summary.num_ooms == 0;
}

/* Selects the roomiest runs among the cells that are compared, or among the
 * others, where none is selected yet. */
static void select_roomiest(struct ranking *r, bool compared)
{
    for (size_t i = 0; i < r->run_count; i++) {
        const struct ranked_entry *e = &r->entries[i];
        struct standing *s = &r->rows[e->policy];
        const struct frag_loaded_run **cell =
            &r->cells[e->policy * r->subject_count + e->subject];

        if (*cell || (e->state == RANKED_COMPARED) != compared)
            continue;
        *cell = e->run;
        if (!compared && s->compared)
            continue;
        add_roomiest(s, e->run);
        r->has_needs =
            r->has_needs && (e->run->run.summary.num_ooms > 0 ||
                             e->run->run.summary.need != FRAG_UNLIMITED);
    }
}

/* Whether the policy needs the future. A policy that is not in the list was
 * loaded from a file; it counts as one that does not. */
static bool knows_future(const char *text)
{
    char name[64];
    const struct frag_policy *p;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, ":@"), text);
    p = frag_policy_find(name);
    return p && p->needs & FRAG_NEEDS_FUTURE;
}

static void finish(struct ranking *r)
{
    size_t subjects = 0;

    for (size_t i = 0; i < r->subject_count; i++)
        subjects += r->subjects[i].is_compared;
    for (size_t i = 0; i < r->count; i++) {
        struct standing *s = &r->rows[i];

        s->reserved = exp(s->reserved / (double)s->subjects);
        s->need = exp(s->need / (double)s->subjects);
        s->memory = r->has_needs ? s->need : s->reserved;
        s->worst = r->has_needs ? s->worst_need : s->worst;
        s->is_whole = s->subjects >= subjects && !s->failed;
    }
}

/* -- the order ----------------------------------------------------------- */

static int by_rank(const void *left, const void *right)
{
    const struct standing *a = *(const struct standing *const *)left;
    const struct standing *b = *(const struct standing *const *)right;
    const int orders[] = {
        by_size(a->limited - a->survived, b->limited - b->survived),
        b->is_whole - a->is_whole,
        by_real(a->memory, b->memory),
        by_real(a->seconds, b->seconds),
        strcmp(a->first->id.policy, b->first->id.policy),
    };

    return first_of(orders, sizeof(orders) / sizeof(*orders));
}

static void rank(struct ranking *r)
{
    for (size_t i = 0; i < r->count; i++)
        r->order[i] = &r->rows[i];
    qsort(r->order, r->count, sizeof(*r->order), by_rank);
    for (size_t i = 0; i < r->count; i++)
        r->rows[r->order[i]->row].rank = i;
}

static void enter(const struct selection *s, struct ranking *r)
{
    for (; r->run_count < s->count; r->run_count++) {
        const struct frag_loaded_run *run = s->runs[r->run_count];

        r->entries[r->run_count] =
            (struct ranked_entry){.run = run,
                                  .policy = policy_of(r, run),
                                  .subject = subject_of(r, run),
                                  .order = r->run_count};
    }
}

static void compare(struct ranking *r)
{
    for (size_t i = 0; i < r->count; i++)
        r->rows[i].is_offline = knows_future(r->rows[i].first->id.policy);
    judge_cells(r);
    for (size_t i = 0; i < r->run_count; i++)
        count_cell(&r->rows[r->entries[i].policy], &r->entries[i]);
    select_roomiest(r, true);
    select_roomiest(r, false);
    finish(r);
    rank(r);
}

enum frag_err ranking_make(const struct selection *s, struct ranking *out)
{
    struct ranking r = {.rows = calloc(s->count, sizeof(*r.rows)),
                        .order = calloc(s->count, sizeof(*r.order)),
                        .subjects = calloc(s->count, sizeof(*r.subjects)),
                        .entries = calloc(s->count, sizeof(*r.entries)),
                        .has_needs = s->count > 0};

    if (r.rows && r.order && r.subjects && r.entries) {
        enter(s, &r);
        r.cells = calloc(r.count * r.subject_count, sizeof(*r.cells));
    }
    if (!r.cells) {
        ranking_free(&r);
        return FRAG_NOMEM;
    }
    compare(&r);
    *out = r;
    return FRAG_OK;
}

void ranking_free(struct ranking *r)
{
    free(r->rows);
    free(r->order);
    free(r->subjects);
    free(r->entries);
    free(r->cells);
    *r = (struct ranking){0};
}

size_t ranking_count_policies(const void *found)
{
    return ((const struct ranking *)found)->count;
}

size_t ranking_count_subjects(const void *found)
{
    return ((const struct ranking *)found)->subject_count;
}
