#include "sim/cli/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"

/* A run, with the numbers of its policy and its subject. */
struct entry {
    const struct frag_loaded_run *run;
    size_t policy, subject, order;
};

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

/* The number of the kind that r is of: that of an entry before it, or *count,
 * which grows. heads: the first entry of each kind. */
static size_t number(const struct frag_loaded_run **heads, size_t *count,
                     const struct frag_loaded_run *r,
                     bool (*is_same)(const struct frag_loaded_run *,
                                     const struct frag_loaded_run *))
{
    for (size_t i = 0; i < *count; i++)
        if (is_same(heads[i], r))
            return i;
    heads[*count] = r;
    return (*count)++;
}

/* Runs of a policy on a subject stand together, the roomiest first. */
static int by_kind(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;

    if (a->policy != b->policy)
        return a->policy < b->policy ? -1 : 1;
    if (a->subject != b->subject)
        return a->subject < b->subject ? -1 : 1;
    if (a->run->capacity != b->run->capacity)
        return a->run->capacity > b->run->capacity ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Peak reserved over the lower bound, 1 where nothing was served. */
static double over_bound(const struct frag_loaded_run *r)
{
    const struct frag_summary *m = &r->run.summary;

    return m->lower_bound ? (double)m->peak_reserved / (double)m->lower_bound
                          : 1.0;
}

/* memory is the sum of logarithms until all are in. */
static void add_roomiest(struct standing *s, const struct frag_loaded_run *r)
{
    const struct frag_summary *m = &r->run.summary;

    s->subjects++;
    s->failed += m->num_ooms > 0;
    s->ooms += m->num_ooms;
    s->memory += log(over_bound(r));
    s->seconds += m->modelled_device_seconds;
    s->moved += m->bytes_moved;
    if (m->peak_reserved > s->peak)
        s->peak = m->peak_reserved;
    if (!s->worst || over_bound(r) > over_bound(s->worst))
        s->worst = r;
}

static void add(struct standing *s, const struct entry *entries, size_t i)
{
    const struct entry *e = &entries[i];

    if (e->run->capacity != FRAG_UNLIMITED) {
        s->limited++;
        s->survived += e->run->run.summary.num_ooms == 0;
    }
    if (!i || entries[i - 1].policy != e->policy ||
        entries[i - 1].subject != e->subject)
        add_roomiest(s, e->run);
}

/* A policy that is not registered came from a file and is not known to. */
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
        s->is_offline = knows_future(s->first->policy);
        s->is_whole = s->subjects == r->subjects && !s->failed;
    }
}

enum frag_err ranking_make(const struct selection *s, struct ranking *out)
{
    const struct frag_loaded_run **heads = calloc(2 * s->count, sizeof(*heads));
    struct entry *entries = calloc(s->count, sizeof(*entries));
    struct ranking r = {calloc(s->count, sizeof(*r.rows)), 0, 0};
    bool done = heads && entries && r.rows;

    for (size_t i = 0; done && i < s->count; i++) {
        const struct frag_loaded_run *run = s->runs[i];

        entries[i] = (struct entry){
            run, number(heads, &r.count, run, is_same_policy),
            number(heads + s->count, &r.subjects, run, is_same_subject), i};
        if (!r.rows[entries[i].policy].first)
            r.rows[entries[i].policy].first = run;
    }
    if (done) {
        qsort(entries, s->count, sizeof(*entries), by_kind);
        for (size_t i = 0; i < s->count; i++)
            add(&r.rows[entries[i].policy], entries, i);
        finish(&r);
        *out = r;
    } else {
        free(r.rows);
    }
    free(entries);
    free(heads);
    return done ? FRAG_OK : FRAG_NOMEM;
}

void ranking_free(struct ranking *r)
{
    free(r->rows);
    *r = (struct ranking){0};
}
