/* frontier.c - figure: which policy survives which capacity, and where the
 * other policies fail.
 *
 * With one subject (ranking.h) a column is a capacity in bytes. With several,
 * it is a capacity relative to the subject's peak requested, rounded to a
 * thousandth: a sweep over "1.05x" makes one column. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/figures/ranking.h"

/* Sums over the runs of one policy in one column. */
struct tile {
    size_t runs, survived;
    uint64_t ooms;
    double done; /* share of the events before the first OOM, sum over runs */
};

struct frontier {
    struct ranking ranking;
    uint64_t *keys; /* of the columns, ascending; FRAG_UNLIMITED last */
    size_t count;
    struct tile *tiles; /* [policies][columns] */
};

static double share(const struct frontier *f, const struct entry *e)
{
    frag_size asked = f->ranking.subjects[e->subject].asked;

    return asked ? (double)e->run->capacity / (double)asked : 1.0;
}

static uint64_t key_of(const struct frontier *f, const struct entry *e)
{
    if (e->run->capacity == FRAG_UNLIMITED || f->ranking.subject_count == 1)
        return e->run->capacity;
    return (uint64_t)(1000 * share(f, e) + 0.5);
}

static int by_key(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static void find_columns(struct frontier *f)
{
    const struct ranking *r = &f->ranking;

    for (size_t i = 0; i < r->run_count; i++)
        f->keys[i] = key_of(f, &r->entries[i]);
    qsort(f->keys, r->run_count, sizeof(*f->keys), by_key);
    for (size_t i = 0; i < r->run_count; i++)
        if (!i || f->keys[i] != f->keys[f->count - 1])
            f->keys[f->count++] = f->keys[i];
}

static void add(struct frontier *f, const struct entry *e)
{
    const struct frag_summary *m = &e->run->run.summary;
    uint64_t key = key_of(f, e);
    const uint64_t *at = bsearch(&key, f->keys, f->count, sizeof(key), by_key);
    struct tile *t = &f->tiles[e->policy * f->count + (size_t)(at - f->keys)];

    t->runs++;
    t->survived += m->num_ooms == 0;
    t->ooms += m->num_ooms;
    t->done +=
        m->num_ooms == 0 ? 1.0 : (double)m->first_oom_event / (double)m->events;
}

static void frontier_free(struct frontier *f)
{
    ranking_free(&f->ranking);
    free(f->keys);
    free(f->tiles);
}

static enum frag_err frontier_make(const struct selection *s,
                                   struct frontier *out)
{
    struct frontier f = {.keys = calloc(s->count, sizeof(*f.keys))};
    enum frag_err err = f.keys ? ranking_make(s, &f.ranking) : FRAG_NOMEM;

    if (err == FRAG_OK) {
        find_columns(&f);
        f.tiles = calloc(f.ranking.count * f.count, sizeof(*f.tiles));
    }
    if (!f.tiles) {
        frontier_free(&f);
        return FRAG_NOMEM;
    }
    for (size_t i = 0; i < f.ranking.run_count; i++)
        add(&f, &f.ranking.entries[i]);
    *out = f;
    return FRAG_OK;
}

/* -- the file ------------------------------------------------------------ */

/* The rank of a policy: most runs survived first; of equal policies, the one
 * with more events before its first OOM. */
struct place {
    size_t policy, survived;
    double done;
};

static int by_place(const void *left, const void *right)
{
    const struct place *a = left, *b = right;

    if (a->survived != b->survived)
        return a->survived > b->survived ? -1 : 1;
    if (a->done != b->done)
        return a->done > b->done ? -1 : 1;
    return a->policy < b->policy ? -1 : 1;
}

static struct place place(const struct frontier *f, size_t policy)
{
    struct place p = {.policy = policy};

    for (size_t i = 0; i < f->count; i++) {
        p.survived += f->tiles[policy * f->count + i].survived;
        p.done += f->tiles[policy * f->count + i].done;
    }
    return p;
}

/* "8.477 GiB" and "1.05x", or "unlimited" and nothing. */
static void put_column(FILE *out, const struct frontier *f, size_t column)
{
    uint64_t key = f->keys[column];
    frag_size asked = f->ranking.subjects[0].asked;
    char size[FRAG_SIZE_TEXT];

    if (key == FRAG_UNLIMITED)
        fputs("unlimited\t", out);
    else if (f->ranking.subject_count > 1)
        fprintf(out, "%.4gx\t", (double)key / 1000);
    else
        fprintf(out, "%s\t%.4gx", frag_size_format(key, size),
                asked ? (double)key / (double)asked : 0.0);
}

static void put_tiles(FILE *out, const struct frontier *f, size_t row,
                      const struct selection *s, const struct place *p)
{
    for (size_t i = 0; i < f->count; i++) {
        const struct tile *t = &f->tiles[p->policy * f->count + i];

        fprintf(out, "%zu\t%zu\t", row, i);
        put_cell(out, f->ranking.rows[p->policy].first->policy);
        fputc('\t', out);
        put_column(out, f, i);
        fprintf(out, "\t%zu\t%zu\t%" PRIu64 "\t%.6g\t", t->runs, t->survived,
                t->ooms, t->runs ? t->done / (double)t->runs : 0.0);
        put_trace(out, s);
        fputc('\n', out);
    }
}

static enum frag_err rows(FILE *out, const struct selection *s)
{
    struct frontier f;
    struct place *places;

    FRAG_TRY(frontier_make(s, &f));
    places = calloc(f.ranking.count, sizeof(*places));
    for (size_t i = 0; places && i < f.ranking.count; i++)
        places[i] = place(&f, i);
    if (places)
        qsort(places, f.ranking.count, sizeof(*places), by_place);
    fputs("row\tcolumn\tpolicy\tcapacity\tshare\truns\tsurvived\tooms\tdone\t"
          "trace\n",
          out);
    for (size_t i = 0; places && i < f.ranking.count; i++)
        put_tiles(out, &f, i, s, &places[i]);
    frontier_free(&f);
    free(places);
    return places ? FRAG_OK : FRAG_NOMEM;
}

static const char *lacks(const struct selection *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->runs[i]->capacity != FRAG_UNLIMITED)
            return NULL;
    return "it needs runs on a limited device, such as those of fragsim "
           "replay -c 1.05x,1.1x,1.2x";
}

const struct figure figure_frontier = {
    .name = "frontier",
    .files = {{".tsv", rows}},
    .lacks = lacks,
};
