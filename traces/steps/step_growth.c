/* step_growth.c - estimates how fast the live bytes grow from step to step. */
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <stdlib.h>

#include "traces/steps/steps.h"

enum { SLOPES = 256 }; /* boundaries that are compared, the last ones */

enum frag_err frag_steps_growth(const struct frag_steps *s, int64_t *growth,
                                struct frag_error *e)
{
    const uint64_t last = s->count, first = last > SLOPES ? last - SLOPES : 0;
    const uint64_t n = last - first;
    double *slopes;
    size_t count = 0;

    *growth = 0;
    if (s->count < 2)
        return FRAG_OK;
    slopes = malloc((size_t)(n * (n + 1) / 2) * sizeof(*slopes));
    if (!slopes)
        return frag_no_memory(e, "the steps");
    for (uint64_t i = first; i < last; i++)
        for (uint64_t k = i + 1; k <= last; k++)
            slopes[count++] = (frag_steps_live(s, k) - frag_steps_live(s, i)) /
                              (double)(k - i);
    gsl_sort(slopes, 1, count);
    *growth = (int64_t)gsl_stats_median_from_sorted_data(slopes, 1, count);
    free(slopes);
    return FRAG_OK;
}
