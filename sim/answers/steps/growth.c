/* growth.c - the three conditions, and the median of slopes. */
#include "sim/answers/steps/growth.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

static const double normal_95 = 1.959963984540054; /* two-sided quantile */
static const double least_share = 0.5;             /* of the steps rise */
static const double most_fallen = 0.5;             /* of what the rises add */
static const double stopped_level = 0.01;

/* The lower bound of Wilson's interval for `hits` of `n`. */
static double wilson(uint64_t hits, uint64_t n)
{
    const double z2 = normal_95 * normal_95, size = (double)n;
    const double share = n ? (double)hits / size : 0;

    if (!n)
        return 0;
    return (share + z2 / (2 * size) -
            normal_95 *
                sqrt(share * (1 - share) / size + z2 / (4 * size * size))) /
           (1 + z2 / size);
}

/* Whether so many steps at the end without a rise are too many for a quantity
 * that rises in this share of the steps. The share is estimated by Laplace's
 * rule, since it is never quite 1. */
static bool has_stopped(const struct growth *g, uint64_t at_rest)
{
    const double share = ((double)g->rises + 1) / ((double)g->steps + 2);

    return pow(1 - share, (double)at_rest) < stopped_level;
}

static void count_steps(const frag_size *values, uint64_t count,
                        struct growth *g)
{
    double risen = 0, fallen = 0;
    uint64_t at_rest = 0;

    for (uint64_t i = 1; i < count; i++) {
        const double change = (double)values[i] - (double)values[i - 1];

        *(change > 0 ? &risen : &fallen) += fabs(change);
        g->rises += change > 0;
        at_rest = change > 0 ? 0 : at_rest + 1;
    }
    g->steps = count ? count - 1 : 0;
    g->confidence = wilson(g->rises, g->steps);
    g->grows = g->confidence > least_share && fallen < most_fallen * risen &&
               !has_stopped(g, at_rest);
}

static enum frag_err find_slope(const frag_size *values, uint64_t count,
                                double *slope, struct frag_error *e)
{
    const uint64_t apart = count / 2, n = count - apart;
    double *slopes = malloc((size_t)(n + 1) * sizeof(*slopes));

    if (!slopes)
        return frag_no_memory(e, "the slopes");
    for (uint64_t i = 0; i < n; i++)
        slopes[i] = ((double)values[i + apart] - (double)values[i]) /
                    (double)(apart ? apart : 1);
    gsl_sort(slopes, 1, n);
    *slope = gsl_stats_median_from_sorted_data(slopes, 1, n);
    free(slopes);
    return FRAG_OK;
}

enum frag_err growth_judge(const frag_size *values, uint64_t count,
                           struct growth *out, struct frag_error *e)
{
    struct growth g = {0};

    FRAG_TRY(find_slope(values, count, &g.slope, e));
    count_steps(values, count, &g);
    g.grows = g.grows && g.slope > 0;
    *out = g;
    return FRAG_OK;
}
