/* ranking.c - collects the runs by policy and subject, and computes each
 * policy's means. */
#include "sim/cli/figures/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"

static bool is_same_subject(const struct frag_loaded_run *a,
                            const struct frag_loaded_run *b)
{
    return a->device == b->device && is_same_trace(a, b);
}

static bool is_same_policy(const struct frag_loaded_run *a,
                           const struct frag_loaded_run *b)
{
    return !strcmp(a->policy, b->policy);
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

static frag_size larger(frag_size a, frag_size b)
{
    return a > b ? a : b;
}

static void learn_need(struct ranked_subject *s, const struct frag_summary *m)
{
    s->asked = larger(s->asked, m->peak_requested);
    s->bound = larger(s->bound, larger(m->demand, m->lower_bound));
}

bool is_impossible(const struct ranking *g, const struct ranked_entry *e)
{
    return e->run->bound.bytes < g->subjects[e->subject].bound;
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

/* Groups the runs by policy and subject, the largest bound first. */
static int by_kind(const void *left, const void *right)
{
    const struct ranked_entry *a = left, *b = right;

    if (a->policy != b->policy)
        return a->policy < b->policy ? -1 : 1;
    if (a->subject != b->subject)
        return a->subject < b->subject ? -1 : 1;
    if (frag_bound_order(a->run->bound, b->run->bound))
        return -frag_bound_order(a->run->bound, b->run->bound);
    return a->order < b->order ? -1 : a->order > b->order;
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

/* Adds a roomiest run. s->memory and s->need are sums of logarithms until
 * `finish`. */
static void add_roomiest(struct standing *s, const struct frag_loaded_run *r)
{
    const struct frag_summary *m = &r->run.summary;

    s->subjects++;
    s->failed += m->num_ooms > 0;
    s->ooms += m->num_ooms;
    s->memory += log(peak_over_bound(r));
    s->need += log(need_over_bound(r));
    s->seconds += m->modelled_device_seconds;
    s->moved += m->bytes_moved;
    if (m->peak_reserved > s->peak)
        s->peak = m->peak_reserved;
    if (!s->worst || peak_over_bound(r) > peak_over_bound(s->worst))
        s->worst = r;
    if (!s->worst_need || need_over_bound(r) > need_over_bound(s->worst_need))
        s->worst_need = r;
}

static void add(struct ranking *r, size_t i)
{
    const struct ranked_entry *e = &r->entries[i];
    struct standing *s = &r->rows[e->policy];

    if (e->run->bound.bytes != FRAG_UNLIMITED && !is_impossible(r, e)) {
        s->limited++;
        s->survived += e->run->run.summary.num_ooms == 0;
    }
    if (i && e[-1].policy == e->policy && e[-1].subject == e->subject)
        return;
    r->cells[e->policy * r->subject_count + e->subject] = e->run;
    r->has_needs = r->has_needs && (e->run->run.summary.num_ooms > 0 ||
                                    e->run->run.summary.need != FRAG_UNLIMITED);
    add_roomiest(s, e->run);
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
    for (size_t i = 0; i < r->count; i++) {
        struct standing *s = &r->rows[i];

        s->memory = exp(s->memory / (double)s->subjects);
        s->need = exp(s->need / (double)s->subjects);
        s->is_offline = knows_future(s->first->policy);
        s->is_whole = s->subjects == r->subject_count && !s->failed;
    }
}

static void enter(const struct selection *s, struct ranking *r)
{
    for (; r->run_count < s->count; r->run_count++) {
        const struct frag_loaded_run *run = s->runs[r->run_count];

        r->entries[r->run_count] = (struct ranked_entry){
            run, policy_of(r, run), subject_of(r, run), r->run_count};
    }
    qsort(r->entries, r->run_count, sizeof(*r->entries), by_kind);
}

enum frag_err ranking_make(const struct selection *s, struct ranking *out)
{
    struct ranking r = {.rows = calloc(s->count, sizeof(*r.rows)),
                        .subjects = calloc(s->count, sizeof(*r.subjects)),
                        .entries = calloc(s->count, sizeof(*r.entries)),
                        .has_needs = s->count > 0};

    if (r.rows && r.subjects && r.entries) {
        enter(s, &r);
        r.cells = calloc(r.count * r.subject_count, sizeof(*r.cells));
    }
    if (!r.cells) {
        ranking_free(&r);
        return FRAG_NOMEM;
    }
    for (size_t i = 0; i < r.run_count; i++)
        add(&r, i);
    finish(&r);
    *out = r;
    return FRAG_OK;
}

void ranking_free(struct ranking *r)
{
    free(r->rows);
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

int standing_compare(const void *left, const void *right)
{
    const struct standing *a = left, *b = right;

    if (a->is_whole != b->is_whole)
        return a->is_whole ? -1 : 1;
    if (a->memory != b->memory)
        return a->memory < b->memory ? -1 : 1;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return strcmp(a->first->policy, b->first->policy);
}
