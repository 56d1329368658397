/* predict.c - the four rules. */
#include "traces/steps/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A function is linear if its relative error is less: sizes are rounded to
 * whole elements and to 512 bytes. */
static const double linear = 1e-3;

static int by_steps(const void *a, const void *b)
{
    const struct sizes *x = a, *y = b;

    for (int k = 0; k < PREDICT_STEPS; k++)
        if (x->steps[k] != y->steps[k])
            return x->steps[k] < y->steps[k] ? -1 : 1;
    return 0;
}

static int by_steps_and_now(const void *a, const void *b)
{
    const struct sizes *x = a, *y = b;
    const int order = by_steps(a, b);

    return order ? order : x->now < y->now ? -1 : x->now > y->now;
}

static int by_size(const void *a, const void *b)
{
    const frag_size *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static bool is_constant(const struct prediction *p,
                        const frag_size steps[PREDICT_STEPS])
{
    bool compared = false;

    for (unsigned k = 1; k < p->step_count; k++) {
        if (!steps[k])
            continue;
        if (steps[k] != steps[0])
            return false;
        compared = true;
    }
    return compared || bsearch(steps, p->constant, p->constant_count,
                               sizeof(*p->constant), by_size);
}

/* The number of sorted pairs from pairs[0] on that are equal by `compare`. */
static uint64_t run_of(const struct sizes *pairs, uint64_t count,
                       int (*compare)(const void *, const void *))
{
    uint64_t n = 1;

    while (n < count && compare(&pairs[0], &pairs[n]) == 0)
        n++;
    return n;
}

/* Of pairs with equal `steps`, the one whose `now` is the most frequent. */
static struct sizes most_frequent(const struct sizes *pairs, uint64_t count)
{
    uint64_t best = 0, longest = 0;

    for (uint64_t i = 0, n; i < count; i += n) {
        n = run_of(pairs + i, count - i, by_steps_and_now);
        if (n > longest) {
            longest = n;
            best = i;
        }
    }
    return pairs[best];
}

static double ratio_of(const struct sizes *pairs, uint64_t count)
{
    double was = 0, is = 0;

    for (uint64_t i = 0; i < count; i++)
        if (pairs[i].now != pairs[i].steps[0]) {
            was += (double)pairs[i].steps[0];
            is += (double)pairs[i].now;
        }
    return was > 0 ? is / was : 1;
}

void predict_learn(struct prediction *p, struct sizes *pairs, uint64_t count)
{
    qsort(pairs, count, sizeof(*pairs), by_steps_and_now);
    if (p->constant_count)
        qsort(p->constant, p->constant_count, sizeof(*p->constant), by_size);
    p->ratio = ratio_of(pairs, count);
    p->known = pairs;
    p->known_count = 0;
    for (uint64_t i = 0, n; i < count; i += n) {
        n = run_of(pairs + i, count - i, by_steps);
        pairs[p->known_count++] = most_frequent(pairs + i, n);
    }
}

/* A linear function of a known request, and how well it fits. */
struct line {
    double base, slope;
    double error; /* largest relative error in the complete steps */
};

/* The line through the two steps that differ most, or through 0 if only two
 * steps have both requests. The error is infinite if there is no line. */
static struct line fit(const struct prediction *p, const struct sizes *of,
                       const frag_size steps[PREDICT_STEPS])
{
    struct line l = {0, (double)steps[0] / (double)of->steps[0], INFINITY};
    unsigned common = 0, far = 0;

    for (unsigned k = 0; k < p->step_count; k++) {
        if (!steps[k] || !of->steps[k])
            continue;
        common++;
        if (fabs((double)of->steps[k] - (double)of->steps[0]) >
            fabs((double)of->steps[far] - (double)of->steps[0]))
            far = k;
    }
    if (far == 0)
        return l;
    if (common > 2) {
        l.slope = ((double)steps[far] - (double)steps[0]) /
                  ((double)of->steps[far] - (double)of->steps[0]);
        l.base = (double)steps[0] - l.slope * (double)of->steps[0];
    }
    l.error = 0;
    for (unsigned k = 0; k < p->step_count; k++) {
        const double size = (double)steps[k];

        if (steps[k] && of->steps[k])
            l.error = fmax(
                l.error,
                fabs(l.base + l.slope * (double)of->steps[k] - size) / size);
    }
    return l;
}

static frag_size whole(double size)
{
    return size < 1 ? 1 : (frag_size)round(size);
}

/* The known request that fits best; of equal ones the largest, which tells the
 * shape of the input most exactly. */
static const struct sizes *best_line(const struct prediction *p,
                                     const frag_size steps[PREDICT_STEPS],
                                     struct line *line)
{
    const struct sizes *best = NULL;

    for (uint64_t i = 0; i < p->known_count; i++) {
        const struct sizes *of = &p->known[i];
        const struct line l = fit(p, of, steps);

        if (l.error > linear || (best && (l.error > line->error ||
                                          (l.error >= line->error &&
                                           of->steps[0] <= best->steps[0]))))
            continue;
        best = of;
        *line = l;
    }
    return best;
}

frag_size predict_size(const struct prediction *p,
                       const frag_size steps[PREDICT_STEPS])
{
    const struct sizes *best;
    struct sizes key;
    struct line line;

    memcpy(key.steps, steps, sizeof(key.steps));
    best = p->known_count ? bsearch(&key, p->known, p->known_count,
                                    sizeof(*p->known), by_steps)
                          : NULL;
    if (best)
        return best->now;
    if (is_constant(p, steps))
        return steps[0];
    best = best_line(p, steps, &line);
    if (best)
        return whole(line.base + line.slope * (double)best->now);
    return whole((double)steps[0] * p->ratio);
}
