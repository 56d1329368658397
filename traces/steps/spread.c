/* spread.c - predicts the need of a job's further steps from the peaks of its
 * recorded ones.
 *
 * The rule is the Pareto bound of a uniform distribution. Of a job with the
 * least peak L, the largest peak P and n draws, no further step needs more than
 *
 *     spread * P = L + (P - L) * (2 * (1 - FRAG_SPREAD_LEVEL)) ^ (-2 / n)
 *
 * with a probability of FRAG_SPREAD_LEVEL. The peaks are taken as n draws from
 * a uniform distribution between L and an unknown U. With a prior of
 * 1 / (U - L), U - L is larger than x * (P - L) with a probability of x ^ -n.
 * In half of these cases a further step comes up that high, since nobody knows
 * how many follow: hence the first 2. The second 2 is a choice:
 * steps are not independent, so half of the draws count, and a step that
 * repeats the peak of the one before is no draw. The level and the choice were
 * judged on the complete runs of paper/pages/dead.md.
 */
#include <math.h>

#include "traces/steps/step_notes.h"

const char *const frag_untold_words[FRAG_UNTOLD_COUNT] = {
#define X(name, text) text,
    FRAG_UNTOLDS(X)
#undef X
};

/* Growth below this share of the peak, a step, is none. */
static const double no_growth = 1e-3;

/* Peaks that differ by less are equal: relative. */
static const double same_peak = 1e-3;

/* The peaks rise if Kendall's test rejects that they do not, at 5 %. */
static const double rising = 1.645;

enum { LEAST_DRAWS = 3 };

bool spread_grows(const struct frag_completion *c)
{
    return (double)c->growth >= no_growth * (double)c->most_peak;
}

static double peak_of(const struct frag_steps *s, uint64_t i)
{
    return (double)s->items[i].peak;
}

/* The draws: steps that repeat the peak of the one before them are one. */
static uint64_t draws(const struct frag_steps *s)
{
    uint64_t n = s->count > 0;

    for (uint64_t i = 1; i < s->count; i++)
        n +=
            fabs(peak_of(s, i) - peak_of(s, i - 1)) > same_peak * peak_of(s, i);
    return n;
}

/* Kendall's S: the pairs of steps of which the later has the larger peak, minus
 * the others. */
static double kendall(const struct frag_steps *s)
{
    double sum = 0;

    for (uint64_t i = 0; i < s->count; i++)
        for (uint64_t k = i + 1; k < s->count; k++)
            sum += (peak_of(s, k) > (1 + same_peak) * peak_of(s, i)) -
                   (peak_of(s, i) > (1 + same_peak) * peak_of(s, k));
    return sum;
}

static bool rises(const struct frag_steps *s)
{
    const double n = (double)s->count;
    const double variance = n * (n - 1) * (2 * n + 5) / 18;

    return kendall(s) - 1 > rising * sqrt(variance);
}

static enum frag_untold untold(const struct frag_steps *s,
                               const struct frag_completion *c)
{
    if (!c->finished)
        return FRAG_UNTOLD_UNFINISHED;
    if (draws(s) < LEAST_DRAWS)
        return FRAG_UNTOLD_FEW;
    if (!c->mark)
        return FRAG_UNTOLD_UNMARKED; /* a period may be that of a layer */
    if (spread_grows(c))
        return FRAG_UNTOLD_GROWS;
    return rises(s) ? FRAG_UNTOLD_RISES : FRAG_UNTOLD_NOTHING;
}

void spread_find(const struct frag_steps *s, struct frag_completion *c)
{
    const double least = (double)c->least_peak / (double)c->peak;
    const double missed = 2 * (1 - FRAG_SPREAD_LEVEL);

    c->untold = untold(s, c);
    if (c->untold == FRAG_UNTOLD_NOTHING)
        c->spread = least + (1 - least) * pow(missed, -2 / (double)draws(s));
}
