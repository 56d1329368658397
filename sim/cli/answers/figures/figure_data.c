/* figure_data.c - the line of a growth. */
#include "sim/cli/answers/figures/figure_data.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

double plot_base(const frag_size *values, uint64_t count, uint64_t first,
                 double slope)
{
    double *rest = malloc((size_t)(count + 1) * sizeof(*rest)), middle = NAN;

    for (uint64_t i = 0; rest && i < count; i++)
        rest[i] = (double)values[i] - slope * (double)(first + i);
    if (rest && count) {
        gsl_sort(rest, 1, count);
        middle = gsl_stats_median_from_sorted_data(rest, 1, count);
    }
    free(rest);
    return middle;
}
