/* trial.c - runs a point of the space on every case, each point once, and
 * judges the result. */
#include "sim/experiments/tune/search.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- one trial ---- */

/* How much `found` exceeds base + allowed, as a share of base; 0 if it does
 * not. */
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
    t->survives = true;
    for (size_t i = 0; i < s->case_count; i++) {
        const struct tune_result *r = &t->results[i];

        t->survives = t->survives && r->first_oom == FRAG_NEVER;
        t->excess += excess(s, i, r);
        t->value += log(((double)r->peak + 1) / ((double)s->base[i].peak + 1));
        t->seconds += r->seconds;
        t->calls += r->calls;
    }
    t->value /= (double)s->case_count;
}

/* Allocates one block of host memory for the trial, its results and its text.
 */
static struct tune_trial *new_trial(const struct tune_search *s,
                                    const struct tune_point *p,
                                    const char *text)
{
    size_t results = s->case_count * sizeof(struct tune_result);
    struct tune_trial *t = calloc(1, sizeof(*t) + results + strlen(text) + 1);

    if (!t)
        return NULL;
    t->point = *p;
    t->size = tune_size(p);
    t->results = (struct tune_result *)(t + 1);
    t->text = strcpy((char *)(t + 1) + results, text);
    return t;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct tune_trial *)a)->text,
                  ((const struct tune_trial *)b)->text);
}

static void tell(struct tune_search *s, const struct tune_trial *t)
{
    const bool better = t && (!s->best || tune_compare(t, s->best) < 0);

    s->done++;
    s->best = better ? t : s->best;
    if (s->progress.told)
        s->progress.told(s->progress.user, s->done,
                         s->planned > s->done ? s->planned : s->done,
                         s->best && s->best->excess <= 0 ? tune_saving(s->best)
                                                         : 0);
}

/* Adds the trial to the tree. If another thread added the same settings first,
 * frees the trial and returns that thread's. NULL if the host has no memory. */
static const struct tune_trial *enter(struct tune_search *s,
                                      struct tune_trial *t)
{
    struct tune_trial **found;

    pthread_mutex_lock(&s->lock);
    found = tsearch(t, &s->known, by_text);
    tell(s, found ? *found : NULL);
    pthread_mutex_unlock(&s->lock);
    if (!found || *found != t)
        free(t);
    return found ? *found : NULL;
}

static const struct tune_trial *look_up(struct tune_search *s, const char *text)
{
    const struct tune_trial key = {.text = text};
    struct tune_trial **found;

    pthread_mutex_lock(&s->lock);
    found = tfind(&key, &s->known, by_text);
    s->done += found != NULL;
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
        return frag_no_memory(e, "the settings tried");
    for (size_t i = 0; i < s->case_count; i++) {
        enum frag_err err =
            tune_run(s->space.version, s->settings, &s->on.stop, &s->cases[i],
                     s->goal.capacity, text, &t->results[i], e);

        if (err != FRAG_OK) {
            free(t);
            return err;
        }
    }
    judge(s, t);
    *out = enter(s, t);
    return *out ? FRAG_OK : frag_no_memory(e, "the settings tried");
}

double tune_saving(const struct tune_trial *t)
{
    return t->survives ? 1 - exp(t->value) : NAN;
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
