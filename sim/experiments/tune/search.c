/* search.c - searches for the best settings of PyTorch's allocator: first a
 * grid of settings, then simulated annealing, then coordinate descents, without
 * a limit and with a limit on the number of knobs. */
#define _GNU_SOURCE /* tdestroy, twalk_r */
#include "sim/experiments/tune/search.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAINS = 4, /* for any number of threads, so that the result is the same */
    RUNGS = 3,  /* the numbers of knobs for which a descent runs are 1 ... */
};

/* ---- points in parallel ---- */

struct batch {
    struct tune_search *s;
    struct tune_point *points;
    const struct tune_trial **trials;
    size_t count;
};

static enum frag_err try_one(void *user, size_t i, struct frag_error *e)
{
    struct batch *b = user;

    return tune_try(b->s, &b->points[i], &b->trials[i], e);
}

static int best_first(const void *a, const void *b)
{
    return tune_compare(*(struct tune_trial *const *)a,
                        *(struct tune_trial *const *)b);
}

/* Tries all points of the batch, and sorts the trials, the best first. */
static enum frag_err try_all(struct batch *b, struct frag_error *e)
{
    if (b->s->done + b->count > b->s->planned)
        b->s->planned = b->s->done + b->count;
    FRAG_TRY(parallel_run(&b->s->on, b->count, try_one, b, e));
    qsort(b->trials, b->count, sizeof(*b->trials), best_first);
    return FRAG_OK;
}

static enum frag_err open_batch(struct batch *b, struct tune_search *s,
                                size_t room, struct frag_error *e)
{
    *b = (struct batch){.s = s};
    b->points = calloc(room, sizeof(*b->points));
    b->trials = calloc(room, sizeof(*b->trials));
    return b->points && b->trials ? FRAG_OK
                                  : frag_no_memory(e, "%zu settings", room);
}

static void close_batch(struct batch *b)
{
    free(b->points);
    free(b->trials);
}

static bool has_vmm(const struct tune_trial *t)
{
    return tune_changes(&t->point, TUNE_EXPANDABLE);
}

/* Chooses the start of each chain: for each kind of settings, with expandable
 * segments and without, half of the chains start at its best points, as far as
 * there are any. The trials are sorted. */
static void choose_starts(const struct batch *b,
                          const struct tune_trial *starts[CHAINS])
{
    const bool both = b->s->space.allowed[TUNE_EXPANDABLE];
    const size_t each = both ? CHAINS / 2 : CHAINS;
    size_t count[2] = {0};

    for (size_t i = 0; i < CHAINS; i++)
        starts[i] = NULL;
    for (size_t k = 0; k < b->count; k++) {
        const bool vmm = has_vmm(b->trials[k]);

        /* Points of the grid may repeat. */
        if (count[vmm] < each && (k == 0 || b->trials[k] != b->trials[k - 1]))
            starts[vmm * (CHAINS - each) + count[vmm]++] = b->trials[k];
    }
}

/* Tries the grid, and chooses the starts of the chains. */
static enum frag_err try_grid(struct tune_search *s,
                              const struct tune_trial *starts[CHAINS],
                              struct frag_error *e)
{
    struct tune_point p;
    struct batch b;
    size_t room = 0;
    enum frag_err err;

    while (tune_grid(&s->space, room, &p))
        room++;
    s->planned = room + s->evaluations;
    err = open_batch(&b, s, room, e);
    if (err == FRAG_OK) {
        for (; b.count < room; b.count++)
            (void)tune_grid(&s->space, b.count, &b.points[b.count]);
        err = try_all(&b, e);
    }
    if (err == FRAG_OK)
        choose_starts(&b, starts);
    close_batch(&b);
    return err;
}

/* ---- annealing ---- */

struct chain {
    struct tune_search *s;
    const struct tune_trial *at[CHAINS], *best[CHAINS];
};

static double energy(const struct tune_trial *t)
{
    return t->value + t->excess;
}

/* The temperature, in the unit of the energy: it falls from 3 % of the peak to
 * almost nothing. */
static double temperature(uint64_t step, uint64_t steps)
{
    const double hot = 0.03, cold = 0.0003;

    return hot * pow(cold / hot, (double)step / (double)steps);
}

static enum frag_err anneal_with(struct chain *c, size_t i, gsl_rng *rng,
                                 struct frag_error *e)
{
    const uint64_t steps = c->s->evaluations / CHAINS;

    for (uint64_t k = 0; k < steps; k++) {
        struct tune_point p = tune_step(&c->s->space, &c->at[i]->point, rng);
        const struct tune_trial *next;
        double rise;

        p.at[TUNE_EXPANDABLE] = c->at[i]->point.at[TUNE_EXPANDABLE];
        tune_settle(&c->s->space, &p);
        FRAG_TRY(tune_try(c->s, &p, &next, e));
        if (tune_compare(next, c->best[i]) < 0)
            c->best[i] = next;
        rise = energy(next) - energy(c->at[i]);
        if (rise <= 0 ||
            gsl_rng_uniform(rng) < exp(-rise / temperature(k, steps)))
            c->at[i] = next;
    }
    return FRAG_OK;
}

static enum frag_err anneal(void *user, size_t i, struct frag_error *e)
{
    struct chain *c = user;
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    enum frag_err err = FRAG_OK;

    if (!rng)
        return frag_no_memory(e, "random numbers");
    c->best[i] = c->at[i];
    gsl_rng_set(rng, (unsigned long)(c->s->seed * CHAINS + i));
    if (c->at[i])
        err = anneal_with(c, i, rng, e);
    gsl_rng_free(rng);
    return err;
}

/* The best trial of the chains with (or without) expandable segments; NULL if
 * there is none. */
static const struct tune_trial *best_of(const struct chain *c, bool vmm)
{
    const struct tune_trial *best = NULL;

    for (size_t i = 0; i < CHAINS; i++)
        if (c->best[i] && has_vmm(c->best[i]) == vmm &&
            (!best || tune_compare(c->best[i], best) < 0))
            best = c->best[i];
    return best;
}

/* ---- coordinate descent ---- */

/* Adds the point, settled, if it has at most so many knobs. */
static void add_point(struct batch *b, struct tune_point p, unsigned knobs)
{
    tune_settle(&b->s->space, &p);
    if (tune_size(&p).knobs <= knobs)
        b->points[b->count++] = p;
}

/* Adds all points of at most so many knobs that differ from p in one axis, and
 * those in which all axes of the divisions move together. */
static void add_neighbours(struct batch *b, const struct tune_point *p,
                           unsigned knobs)
{
    struct tune_point next;

    for (size_t axis = 0; axis < TUNE_AXES; axis++)
        for (size_t k = 0; k < tune_axis_places(axis); k++) {
            next = *p;
            next.at[axis] = (uint8_t)k;
            add_point(b, next, knobs);
        }
    for (size_t k = 0; k < tune_axis_places(TUNE_DIVISIONS); k++) {
        next = *p;
        tune_set_divisions(&next, (uint8_t)k);
        add_point(b, next, knobs);
    }
}

static enum frag_err descend(struct tune_search *s, const struct tune_trial *at,
                             unsigned knobs, struct frag_error *e)
{
    size_t room = tune_axis_places(TUNE_DIVISIONS);
    bool better = true;
    struct batch b;
    enum frag_err err;

    for (size_t axis = 0; axis < TUNE_AXES; axis++)
        room += tune_axis_places(axis);
    if (!at)
        return FRAG_OK;
    err = open_batch(&b, s, room, e);
    while (err == FRAG_OK && better) {
        b.count = 0;
        add_neighbours(&b, &at->point, knobs);
        err = try_all(&b, e);
        better = err == FRAG_OK && b.count && tune_compare(b.trials[0], at) < 0;
        at = better ? b.trials[0] : at;
    }
    close_batch(&b);
    return err;
}

/* ---- fewer knobs ---- */

struct best_within {
    unsigned knobs;
    const struct tune_trial *best;
};

static void see_within(const void *node, VISIT visit, void *user)
{
    const struct tune_trial *t = *(struct tune_trial *const *)node;
    struct best_within *w = user;

    if ((visit == preorder || visit == leaf) && t->size.knobs <= w->knobs &&
        (!w->best || tune_compare(t, w->best) < 0))
        w->best = t;
}

/* The best trial with at most so many knobs. */
static const struct tune_trial *best_within(const struct tune_search *s,
                                            unsigned knobs)
{
    struct best_within w = {.knobs = knobs};

    twalk_r(s->known, see_within, &w);
    return w.best;
}

/* Tries the best point without each subset of its settings. */
static enum frag_err try_subsets(struct tune_search *s, struct frag_error *e)
{
    const struct tune_point *best = &best_within(s, TUNE_MOST_KNOBS)->point;
    struct batch b;
    enum frag_err err = open_batch(&b, s, 1 << TUNE_KNOB_COUNT, e);

    for (unsigned out = 0; err == FRAG_OK && out < 1 << TUNE_KNOB_COUNT;
         out++) {
        struct tune_point p = *best;
        unsigned changed = 0;

        for (int k = 0; k < TUNE_KNOB_COUNT; k++) {
            changed |= (unsigned)tune_changes(best, (enum tune_knob)k) << k;
            if (out >> k & 1)
                tune_reset(&p, (enum tune_knob)k);
        }
        if (!(out & ~changed))
            add_point(&b, p, TUNE_MOST_KNOBS);
    }
    if (err == FRAG_OK)
        err = try_all(&b, e);
    close_batch(&b);
    return err;
}

static enum frag_err try_fewer_knobs(struct tune_search *s,
                                     struct frag_error *e)
{
    FRAG_TRY(try_subsets(s, e));
    for (unsigned knobs = 1; knobs <= RUNGS; knobs++)
        FRAG_TRY(descend(s, best_within(s, knobs), knobs, e));
    return FRAG_OK;
}

/* ---- all of it ---- */

static enum frag_err run_base(void *user, size_t i, struct frag_error *e)
{
    struct tune_search *s = user;

    return tune_run(s->space.version, s->settings, &s->on.stop, &s->cases[i],
                    FRAG_UNLIMITED, "", &s->base[i], e);
}

/* Sets the classes that the traces request, and the bytes of a 100 % limit. */
static void set_space(struct tune_search *s)
{
    frag_size largest = 1;

    for (size_t i = 0; i < s->case_count; i++) {
        const struct frag_device_trace *d = s->cases[i].device;

        for (uint64_t k = 0; k < d->count; k++)
            largest = d->bytes[k] > largest ? d->bytes[k] : largest;
        if (s->base[i].peak > s->space.reference)
            s->space.reference = s->base[i].peak;
    }
    s->space.classes = tune_classes(largest);
}

static void count_trial(const void *node, VISIT visit, void *count)
{
    (void)node;
    *(size_t *)count += visit == preorder || visit == leaf;
}

static void list_trial(const void *node, VISIT visit, void *search)
{
    struct tune_search *s = search;

    if (visit == preorder || visit == leaf)
        s->trials[s->trial_count++] = *(struct tune_trial *const *)node;
}

static enum frag_err list_trials(struct tune_search *s, struct frag_error *e)
{
    size_t count = 0;

    twalk_r(s->known, count_trial, &count);
    s->trials = calloc(count, sizeof(*s->trials));
    if (!s->trials)
        return frag_no_memory(e, "the settings tried");
    twalk_r(s->known, list_trial, s);
    qsort(s->trials, s->trial_count, sizeof(*s->trials), best_first);
    return FRAG_OK;
}

enum frag_err tune_search_run(struct tune_search *s, struct frag_error *e)
{
    struct chain chain = {.s = s};

    pthread_mutex_init(&s->lock, NULL);
    if (s->progress.began)
        s->progress.began(s->progress.user, s);
    s->base = calloc(s->case_count, sizeof(*s->base));
    if (!s->base)
        return frag_no_memory(e, "the default's runs");
    FRAG_TRY(parallel_run(&s->on, s->case_count, run_base, s, e));
    set_space(s);
    FRAG_TRY(try_grid(s, chain.at, e));
    FRAG_TRY(parallel_run(&s->on, CHAINS, anneal, &chain, e));
    for (int vmm = 0; vmm < 2; vmm++)
        FRAG_TRY(descend(s, best_of(&chain, vmm), TUNE_MOST_KNOBS, e));
    FRAG_TRY(try_fewer_knobs(s, e));
    return list_trials(s, e);
}

void tune_search_close(struct tune_search *s)
{
    tdestroy(s->known, free);
    free(s->base);
    free(s->trials);
    pthread_mutex_destroy(&s->lock);
    s->known = NULL;
    s->base = NULL;
    s->trials = NULL;
    s->trial_count = 0;
    s->best = NULL;
}
