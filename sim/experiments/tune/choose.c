/* choose.c - the simplest setting that is almost as good as the best, and the
 * ladder of settings from the default to the best. */
#include "sim/experiments/tune/choose.h"

#include <math.h>

static bool is_within(const struct tune_trial *t)
{
    return !(t->excess > 0);
}

/* ---- the choice ---- */

/* The best saving of the settings within the bounds that have at most 0, 1, ...
 * knobs; -INFINITY where there is none. */
struct savings {
    double most[TUNE_MOST_KNOBS + 1];
};

static struct savings savings_of(const struct tune_search *s)
{
    struct savings best;

    for (size_t k = 0; k <= TUNE_MOST_KNOBS; k++)
        best.most[k] = -INFINITY;
    for (size_t i = 0; i < s->trial_count; i++) {
        const struct tune_trial *t = s->trials[i];

        if (is_within(t))
            best.most[t->size.knobs] =
                fmax(best.most[t->size.knobs], tune_saving(t));
    }
    for (size_t k = 1; k <= TUNE_MOST_KNOBS; k++)
        best.most[k] = fmax(best.most[k], best.most[k - 1]);
    return best;
}

static bool is_allowed(const struct tune_trial *t, const struct savings *best,
                       const struct tune_rule *rule)
{
    const double share = rule->tolerance * fabs(best->most[TUNE_MOST_KNOBS]);

    if (!is_within(t) || isinf(rule->tolerance))
        return is_within(t);
    for (unsigned k = 0; k <= TUNE_MOST_KNOBS; k++) {
        const double knobs =
            k > t->size.knobs ? rule->tolerance / 10 * (k - t->size.knobs) : 0;

        if (best->most[k] - tune_saving(t) > fmax(share, knobs))
            return false;
    }
    return true;
}

static bool is_simpler(const struct tune_trial *a, const struct tune_trial *b)
{
    if (a->size.knobs != b->size.knobs)
        return a->size.knobs < b->size.knobs;
    if (a->size.weight != b->size.weight)
        return a->size.weight < b->size.weight;
    return tune_compare(a, b) < 0;
}

const struct tune_trial *tune_choose(const struct tune_search *s,
                                     const struct tune_rule *rule)
{
    const struct savings best = savings_of(s);
    const struct tune_trial *chosen = NULL;

    for (size_t i = 0; i < s->trial_count; i++)
        if (is_allowed(s->trials[i], &best, rule) &&
            (!chosen || is_simpler(s->trials[i], chosen)))
            chosen = s->trials[i];
    return chosen;
}

/* ---- the ladder ---- */

static const double step = 0.001; /* of the default's peak */

/* The best trial with so many knobs; NULL if there is none. The trials are
 * sorted. */
static const struct tune_trial *best_with(const struct tune_search *s,
                                          unsigned knobs)
{
    for (size_t i = 0; i < s->trial_count; i++)
        if (s->trials[i]->size.knobs == knobs)
            return s->trials[i];
    return NULL;
}

static bool is_a_step(const struct tune_trial *from,
                      const struct tune_trial *to)
{
    if (!is_within(from) || !is_within(to))
        return is_within(to) && !is_within(from);
    return tune_saving(to) - tune_saving(from) >= step;
}

struct tune_ladder tune_ladder(const struct tune_search *s,
                               const struct tune_trial *chosen)
{
    const struct tune_trial *best = s->trials[0];
    struct tune_ladder l = {.rungs = {best_with(s, 0)}, .count = 1};

    for (unsigned knobs = 1; knobs <= TUNE_MOST_KNOBS; knobs++) {
        const struct tune_trial *t = best_with(s, knobs);

        if (chosen && chosen->size.knobs == knobs)
            t = chosen;
        if (t && t != best &&
            (t == chosen || is_a_step(l.rungs[l.count - 1], t)))
            l.rungs[l.count++] = t;
        if (best->size.knobs == knobs)
            l.rungs[l.count++] = best;
    }
    return l;
}
