#define _GNU_SOURCE /* tdestroy, twalk_r */
#include "sim/cli/tune_search.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/parallel.h"

enum { CHAINS = 4 }; /* whatever the threads, so that the answer is the same */

/* ---- one run, one trial ---- */

enum frag_err tune_run(const struct cell_settings *settings,
                       const struct tune_case *on, frag_size capacity,
                       const char *text, struct tune_result *out,
                       struct frag_error *e)
{
    struct frag_run_identity id = {.device = on->device,
                                   .trace_name = on->name,
                                   .policy = "torch",
                                   .policy_used = frag_policy_find("torch"),
                                   .capacity = capacity};
    struct frag_run run;

    FRAG_TRY(cell_run(settings, &id, text, parallel_tick, NULL, &run, e));
    *out = (struct tune_result){
        .peak = run.summary.peak_reserved,
        .seconds = run.summary.modelled_device_seconds,
        .first_oom = run.summary.first_oom_event,
    };
    for (size_t k = 0; k < FRAG_CALL_COUNT; k++)
        out->calls += run.summary.calls[k];
    frag_run_free(&run);
    return FRAG_OK;
}

/* How much more than allowed, as a share. */
static double over(double found, double base, double allowed)
{
    double more = found - base - allowed;

    return more > 0 ? more / (base > 0 ? base : 1) : 0;
}

static double excess(const struct tune_search *s, size_t i,
                     const struct tune_result *r)
{
    const struct tune_result *base = &s->base[i];
    double sum = 0;

    if (r->first_oom != FRAG_NEVER)
        sum += 2 - (double)r->first_oom / (double)s->cases[i].device->count;
    if (isfinite(s->goal.max_calls_ratio))
        sum += over((double)r->calls, (double)base->calls,
                    s->goal.max_calls_ratio * (double)base->calls);
    if (isfinite(s->goal.max_seconds))
        sum += over(r->seconds, base->seconds, s->goal.max_seconds);
    return sum;
}

static void judge(const struct tune_search *s, struct tune_trial *t)
{
    for (size_t i = 0; i < s->case_count; i++) {
        const struct tune_result *r = &t->results[i];

        t->excess += excess(s, i, r);
        t->value += log(((double)r->peak + 1) / ((double)s->base[i].peak + 1));
        t->seconds += r->seconds;
        t->calls += r->calls;
    }
    t->value /= (double)s->case_count;
}

static void free_trial(void *trial)
{
    free(trial);
}

/* One block: the trial, its results, its text. */
static struct tune_trial *new_trial(const struct tune_search *s,
                                    const struct tune_point *p,
                                    const char *text)
{
    size_t results = s->case_count * sizeof(struct tune_result);
    struct tune_trial *t = calloc(1, sizeof(*t) + results + strlen(text) + 1);

    if (!t)
        return NULL;
    t->point = *p;
    t->results = (struct tune_result *)(t + 1);
    t->text = strcpy((char *)(t + 1) + results, text);
    return t;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct tune_trial *)a)->text,
                  ((const struct tune_trial *)b)->text);
}

/* Enters the trial, or frees it where another thread was first. */
static const struct tune_trial *enter(struct tune_search *s,
                                      struct tune_trial *t)
{
    struct tune_trial **found;

    pthread_mutex_lock(&s->lock);
    found = tsearch(t, &s->known, by_text);
    pthread_mutex_unlock(&s->lock);
    if (!found || *found != t)
        free_trial(t);
    return found ? *found : NULL;
}

static const struct tune_trial *look_up(struct tune_search *s, const char *text)
{
    const struct tune_trial key = {.text = text};
    struct tune_trial **found;

    pthread_mutex_lock(&s->lock);
    found = tfind(&key, &s->known, by_text);
    pthread_mutex_unlock(&s->lock);
    return found ? *found : NULL;
}

enum frag_err tune_try(struct tune_search *s, const struct tune_point *p,
                       const struct tune_trial **out, struct frag_error *e)
{
    char text[TUNE_TEXT];
    struct tune_trial *t;

    *out = look_up(s, tune_text(&s->space, p, text));
    if (*out)
        return FRAG_OK;
    t = new_trial(s, p, text);
    if (!t)
        return frag_fail(e, FRAG_NOMEM, "no memory for the settings tried");
    for (size_t i = 0; i < s->case_count; i++) {
        enum frag_err err = tune_run(s->settings, &s->cases[i],
                                     s->goal.capacity, text, &t->results[i], e);

        if (err != FRAG_OK) {
            free_trial(t);
            return err;
        }
    }
    judge(s, t);
    *out = enter(s, t);
    return *out ? FRAG_OK
                : frag_fail(e, FRAG_NOMEM, "no memory for the settings tried");
}

int tune_compare(const struct tune_trial *a, const struct tune_trial *b)
{
    const double keys[][2] = {
        {a->excess, b->excess},
        {a->value, b->value},
        {a->seconds, b->seconds},
        {(double)strlen(a->text), (double)strlen(b->text)},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (keys[i][0] < keys[i][1] || keys[i][0] > keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return strcmp(a->text, b->text);
}

/* ---- points side by side ---- */

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

/* Tries them; the trials are sorted then, the best first. */
static enum frag_err try_all(struct batch *b, struct frag_error *e)
{
    FRAG_TRY(parallel_run(b->count, b->s->threads, try_one, b, e));
    qsort(b->trials, b->count, sizeof(*b->trials), best_first);
    return FRAG_OK;
}

static enum frag_err open_batch(struct batch *b, struct tune_search *s,
                                size_t room, struct frag_error *e)
{
    *b = (struct batch){.s = s};
    b->points = calloc(room, sizeof(*b->points));
    b->trials = calloc(room, sizeof(*b->trials));
    return b->points && b->trials
               ? FRAG_OK
               : frag_fail(e, FRAG_NOMEM, "no memory for %zu settings", room);
}

static void close_batch(struct batch *b)
{
    free(b->points);
    free(b->trials);
}

/* The best CHAINS points of the grid. */
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
    err = open_batch(&b, s, room, e);
    if (err == FRAG_OK) {
        for (; b.count < room; b.count++)
            (void)tune_grid(&s->space, b.count, &b.points[b.count]);
        err = try_all(&b, e);
    }
    for (size_t i = 0, k = 0; err == FRAG_OK && i < CHAINS; i++) {
        starts[i] = b.trials[k];
        while (k + 1 < b.count && b.trials[k] == starts[i])
            k++; /* points of the grid repeat */
    }
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

/* From a few per cent of the peak down to what is next to nothing. */
static double temperature(uint64_t step, uint64_t steps)
{
    const double hot = 0.03, cold = 0.0003;

    return hot * pow(cold / hot, (double)step / (double)steps);
}

static enum frag_err anneal_with(struct chain *c, size_t i, gsl_rng *rng,
                                 struct frag_error *e)
{
    const uint64_t steps = c->s->evaluations / CHAINS;

    c->best[i] = c->at[i];
    for (uint64_t k = 0; k < steps; k++) {
        const struct tune_point p =
            tune_step(&c->s->space, &c->at[i]->point, rng);
        const struct tune_trial *next;
        double rise;

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
    enum frag_err err;

    if (!rng)
        return frag_fail(e, FRAG_NOMEM, "no memory for random numbers");
    gsl_rng_set(rng, (unsigned long)(c->s->seed * CHAINS + i));
    err = anneal_with(c, i, rng, e);
    gsl_rng_free(rng);
    return err;
}

/* ---- coordinate descent ---- */

/* All neighbours in one coordinate, and the divisions as one. */
static void add_neighbours(struct batch *b, const struct tune_point *p)
{
    for (size_t axis = 0; axis < TUNE_AXES; axis++)
        for (size_t k = 0; k < tune_axis_places(axis); k++) {
            struct tune_point *next = &b->points[b->count++];

            *next = *p;
            next->at[axis] = (uint8_t)k;
            tune_settle(&b->s->space, next);
        }
    for (size_t k = 0; k < tune_axis_places(TUNE_DIVISIONS); k++) {
        struct tune_point *next = &b->points[b->count++];

        *next = *p;
        tune_set_divisions(next, (uint8_t)k);
        tune_settle(&b->s->space, next);
    }
}

static enum frag_err descend(struct tune_search *s,
                             const struct tune_trial **at, struct frag_error *e)
{
    size_t room = tune_axis_places(TUNE_DIVISIONS);
    bool better = true;
    struct batch b;
    enum frag_err err;

    for (size_t axis = 0; axis < TUNE_AXES; axis++)
        room += tune_axis_places(axis);
    err = open_batch(&b, s, room, e);
    while (err == FRAG_OK && better) {
        b.count = 0;
        add_neighbours(&b, &(*at)->point);
        err = try_all(&b, e);
        better = err == FRAG_OK && tune_compare(b.trials[0], *at) < 0;
        if (better)
            *at = b.trials[0];
    }
    close_batch(&b);
    return err;
}

/* ---- all of it ---- */

static enum frag_err run_base(void *user, size_t i, struct frag_error *e)
{
    struct tune_search *s = user;

    return tune_run(s->settings, &s->cases[i], FRAG_UNLIMITED, "", &s->base[i],
                    e);
}

/* The classes that are asked for, and what 100 % of a limit is. */
static void fit_space(struct tune_search *s)
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
        return frag_fail(e, FRAG_NOMEM, "no memory for the settings tried");
    twalk_r(s->known, list_trial, s);
    qsort(s->trials, s->trial_count, sizeof(*s->trials), best_first);
    return FRAG_OK;
}

enum frag_err tune_search_run(struct tune_search *s, struct frag_error *e)
{
    struct chain chain = {.s = s};
    const struct tune_trial *best;

    pthread_mutex_init(&s->lock, NULL);
    s->base = calloc(s->case_count, sizeof(*s->base));
    if (!s->base)
        return frag_fail(e, FRAG_NOMEM, "no memory for the default's runs");
    FRAG_TRY(parallel_run(s->case_count, s->threads, run_base, s, e));
    fit_space(s);
    FRAG_TRY(try_grid(s, chain.at, e));
    best = chain.at[0];
    FRAG_TRY(parallel_run(CHAINS, s->threads, anneal, &chain, e));
    for (size_t i = 0; i < CHAINS; i++)
        if (tune_compare(chain.best[i], best) < 0)
            best = chain.best[i];
    FRAG_TRY(descend(s, &best, e));
    return list_trials(s, e);
}

void tune_search_close(struct tune_search *s)
{
    tdestroy(s->known, free_trial);
    free(s->base);
    free(s->trials);
    pthread_mutex_destroy(&s->lock);
    s->known = NULL;
    s->base = NULL;
    s->trials = NULL;
    s->trial_count = 0;
}
