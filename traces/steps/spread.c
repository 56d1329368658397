/* spread.c - predicts the need of a job's further steps from the peaks of its
 * recorded ones.
 *
 * The peaks are taken as if they were drawn from an interval whose lower end is
 * the least one and whose upper end is not known. Of n draws the largest lies a
 * above the lower end; then the upper end lies more than x times a above it
 * with a probability of x^-n. How many steps follow is not known: as many as
 * before with a probability of 1/2, so a further step exceeds x times a with
 * half of that. Steps are not independent, and an interval has no tail: half of
 * them count, and none that repeats the one before. The level and the rules
 * below are judged on complete runs in paper/pages/dead.md.
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
