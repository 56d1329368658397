/* figure_data.c - the run of gnuplot that all pictures of answers share, and
 * the line of a growth. */
#include "sim/cli/answers/figures/figure_data.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#include "sim/cli/gnuplot/gnuplot.h"

static enum frag_err write_file(const struct gnuplot *g,
                                const struct plot_file *file, const void *user,
                                struct frag_error *e)
{
    FILE *data = gnuplot_data(g, file->suffix, e);

    if (!data)
        return FRAG_IO;
    file->write(data, user);
    return gnuplot_written(data, e);
}

enum frag_err plot_draw(const char *name, const struct plot_file *files,
                        const void *user, const char *out, const char *keep,
                        struct frag_error *e)
{
    struct gnuplot g;
    enum frag_err err;

    FRAG_TRY(gnuplot_open(&g, name, keep, e));
    err = FRAG_OK;
    for (size_t i = 0; err == FRAG_OK && files[i].suffix; i++)
        err = write_file(&g, &files[i], user, e);
    if (err == FRAG_OK)
        err = gnuplot_draw(&g, out, e);
    gnuplot_close(&g);
    return err;
}

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
