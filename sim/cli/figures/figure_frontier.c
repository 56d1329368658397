/* figure_frontier.c - figure: which policy survives which capacity, and where
 * the other policies fail.
 *
 * With one subject (ranking.h) a column is a capacity in bytes. With several,
 * it is a capacity in bytes too, or relative to the subject's peak requested
 * and rounded to a thousandth, whichever makes fewer columns: a sweep over
 * "1.05x" or over "24GiB" makes one column. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/figures/ranking.h"

enum { COLUMNS = 9 }; /* capacities for which there is room */

/* Sums over the runs of one policy in one column. */
struct tile {
    size_t runs, survived; /* under a bound that a policy can survive */
    size_t impossible;     /* under another one */
    uint64_t ooms;
    double done; /* share of the events before the first OOM, sum over runs */
};

struct frontier {
    struct ranking ranking;
    bool in_bytes;           /* a column is a bound in bytes, not a share */
    struct frag_bound *keys; /* of the columns, ascending; a share is in
                                thousandths */
    size_t count;
    struct tile *tiles; /* [policies][columns] */
};

static double share(const struct frontier *f, const struct ranked_entry *e)
{
    frag_size asked = f->ranking.subjects[e->subject].asked;

    return asked ? (double)e->run->id.bound.bytes / (double)asked : 1.0;
}

static struct frag_bound key_of(const struct frontier *f,
                                const struct ranked_entry *e)
{
    struct frag_bound key = e->run->id.bound;

    if (key.bytes != FRAG_UNLIMITED && !f->in_bytes)
        key.bytes = (frag_size)(1000 * share(f, e) + 0.5);
    return key;
}

static int by_key(const void *left, const void *right)
{
    const struct frag_bound *a = left, *b = right;

    return frag_bound_order(*a, *b);
}

static void find_keys(struct frontier *f, bool in_bytes)
{
    const struct ranking *r = &f->ranking;

    f->in_bytes = in_bytes;
    f->count = 0;
    for (size_t i = 0; i < r->run_count; i++)
        f->keys[i] = key_of(f, &r->entries[i]);
    qsort(f->keys, r->run_count, sizeof(*f->keys), by_key);
    for (size_t i = 0; i < r->run_count; i++)
        if (!i || by_key(&f->keys[i], &f->keys[f->count - 1]))
            f->keys[f->count++] = f->keys[i];
}

static void find_columns(struct frontier *f)
{
    size_t shares;

    find_keys(f, false);
    shares = f->count;
    find_keys(f, true);
    if (f->ranking.subject_count > 1 && shares <= f->count)
        find_keys(f, false);
}

static void add(struct frontier *f, const struct ranked_entry *e)
{
    const struct frag_summary *m = &e->run->run.summary;
    const struct frag_bound key = key_of(f, e);
    const struct frag_bound *at =
        bsearch(&key, f->keys, f->count, sizeof(key), by_key);
    struct tile *t = &f->tiles[e->policy * f->count + (size_t)(at - f->keys)];

    if (e->state == RANKED_IMPOSSIBLE) {
        t->impossible++;
        return;
    }
    t->runs++;
    t->survived += m->num_ooms == 0;
    t->ooms += m->num_ooms;
    t->done +=
        m->num_ooms == 0 ? 1.0 : (double)m->first_oom_event / (double)m->events;
}

static enum frag_err find(const struct figure_source *s, struct frag_error *e)
{
    struct frontier *f = s->found;
    struct ranking *r = &f->ranking;

    (void)e;
    f->keys = calloc(s->runs->count, sizeof(*f->keys));
    if (!f->keys)
        return FRAG_NOMEM;
    FRAG_TRY(ranking_make(s->runs, r));
    find_columns(f);
    f->tiles = calloc(r->count * f->count, sizeof(*f->tiles));
    if (!f->tiles)
        return FRAG_NOMEM;
    for (size_t i = 0; i < r->run_count; i++)
        add(f, &r->entries[i]);
    return FRAG_OK;
}

static void release(void *found)
{
    struct frontier *f = found;

    ranking_free(&f->ranking);
    free(f->keys);
    free(f->tiles);
}

/* -- the file ------------------------------------------------------------ */

/* "8.477 GiB" and "1.05x", or "unlimited" and nothing. */
static void put_column(FILE *out, const struct frontier *f, size_t column)
{
    const struct frag_bound key = f->keys[column];
    frag_size asked = f->ranking.subjects[0].asked;

    if (key.bytes == FRAG_UNLIMITED)
        fputs("unlimited\t", out);
    else if (!f->in_bytes)
        fprintf(out, "%s%.4gx\t",
                key.kind == FRAG_BOUND_LIMIT ? "process limit " : "",
                (double)key.bytes / 1000);
    else if (f->ranking.subject_count > 1)
        fprintf(out, "%s\t", FRAG_SHOW_BOUND(key));
    else
        fprintf(out, "%s\t%.4gx", FRAG_SHOW_BOUND(key),
                asked ? (double)key.bytes / (double)asked : 0.0);
}

/* The column that is shown at place i of n: the places are evenly spaced from
 * the first column to the last. */
static size_t column_at(const struct frontier *f, size_t i, size_t n)
{
    return n < 2 ? 0 : i * (f->count - 1) / (n - 1);
}

static void put_tiles(FILE *out, const struct frontier *f, size_t row,
                      const struct selection *s)
{
    const struct standing *p = f->ranking.order[row];
    size_t shown = f->count < s->most[1] ? f->count : s->most[1];

    for (size_t i = 0; i < shown; i++) {
        size_t column = column_at(f, i, shown);
        const struct tile *t = &f->tiles[p->row * f->count + column];

        fprintf(out, "%zu\t%zu\t", row, i);
        put_cell(out, selection_policy(s, p->first));
        fputc('\t', out);
        put_column(out, f, column);
        fprintf(out, "\t%zu\t%zu\t%" PRIu64 "\t%.6g\t", t->runs, t->survived,
                t->ooms, t->runs ? t->done / (double)t->runs : 0.0);
        put_trace(out, s);
        fprintf(out, "\t%zu\t%zu\n", t->impossible,
                f->ranking.cell_count[RANKED_IMPOSSIBLE]);
    }
}

static void rows(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct frontier *f = s->found;

    fputs("row\tcolumn\tpolicy\tcapacity\tshare\truns\tsurvived\tooms\tdone\t"
          "trace\timpossible\thopeless\n",
          out);
    for (size_t i = 0; i < f->ranking.count && i < s->runs->most[0]; i++)
        put_tiles(out, f, i, s->runs);
}

static size_t count_columns(const void *found)
{
    return ((const struct frontier *)found)->count;
}

static const char *lacks(const struct selection *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->runs[i]->id.bound.bytes != FRAG_UNLIMITED)
            return NULL;
    return "it needs runs on a limited device, such as those of fragsim "
           "replay -c 1.05x,1.1x,1.2x";
}

const struct figure figure_frontier = {
    .name = "frontier",
    .files = {{".tsv", rows}},
    .size = sizeof(struct frontier),
    .find = find,
    .release = release,
    .limits = {{"policies", "those that survive most", 40, 60,
                ranking_count_policies},
               {"capacities", "capacities at even distances in their order",
                COLUMNS, COLUMNS, count_columns}},
    .policy_letters = 40,
    .lacks = lacks,
};
