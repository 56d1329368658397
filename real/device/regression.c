/* regression.c - robust linear regression of call times on sizes, through GSL.
 * It turns off GSL's error handler during the computation and restores it. */
#include "real/device/regression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>

enum { FEWEST = 4 }; /* sizes of a call, below which there is no line */

static double mib(frag_size bytes)
{
    return (double)bytes / (double)FRAG_MIB;
}

/* Every row is divided by its measured time, so every value to be predicted is
 * 1 and the residuals are relative. */
static int robust_line(const struct frag_cost_regression *f,
                       gsl_multifit_robust_workspace *work, double line[2])
{
    double x[2 * FRAG_REGRESSION_SIZES], y[FRAG_REGRESSION_SIZES],
        covariance[4];
    gsl_matrix_view xs = gsl_matrix_view_array(x, f->count, 2);
    gsl_vector_view ys = gsl_vector_view_array(y, f->count);
    gsl_vector_view to = gsl_vector_view_array(line, 2);
    gsl_matrix_view spread = gsl_matrix_view_array(covariance, 2, 2);

    for (size_t i = 0; i < f->count; i++) {
        x[2 * i] = 1 / f->at[i].ns;
        x[2 * i + 1] = mib(f->at[i].bytes) / f->at[i].ns;
        y[i] = 1;
    }
    return gsl_multifit_robust(&xs.matrix, &ys.vector, &to.vector,
                               &spread.matrix, work);
}

/* A cost is never negative. If the line has a negative coefficient, the result
 * is a constant, or a line through the origin, by the median. */
static struct frag_cost bounded(const struct frag_cost_regression *f,
                                const double line[2])
{
    double ratio[FRAG_REGRESSION_SIZES];

    if (line[0] >= 0 && line[1] >= 0)
        return (struct frag_cost){line[0], line[1]};
    for (size_t i = 0; i < f->count; i++)
        ratio[i] = f->at[i].ns / (line[1] < 0 ? 1 : mib(f->at[i].bytes));
    gsl_sort(ratio, 1, f->count);
    ratio[0] = gsl_stats_median_from_sorted_data(ratio, 1, f->count);
    return line[1] < 0 ? (struct frag_cost){ratio[0], 0}
                       : (struct frag_cost){0, ratio[0]};
}

static void judge(struct frag_cost_regression *f)
{
    double off[FRAG_REGRESSION_SIZES];

    for (size_t i = 0; i < f->count; i++)
        off[i] = fabs(
            1 - (f->cost.fixed_ns + f->cost.ns_per_mib * mib(f->at[i].bytes)) /
                    f->at[i].ns);
    gsl_sort(off, 1, f->count);
    f->residual = gsl_stats_median_from_sorted_data(off, 1, f->count);
    f->worst = off[f->count - 1];
}

static enum frag_err regress_call(struct frag_cost_regression *f)
{
    gsl_multifit_robust_workspace *work =
        gsl_multifit_robust_alloc(gsl_multifit_robust_bisquare, f->count, 2);
    double line[2] = {0};
    int code;

    if (!work)
        return FRAG_NOMEM;
    code = robust_line(f, work, line);
    gsl_multifit_robust_free(work);
    /* The last iteration is good enough if the limit is reached: the residuals
     * show the quality. */
    if ((code && code != GSL_EMAXITER) || !isfinite(line[0] + line[1]))
        return FRAG_CORRUPT;
    f->cost = bounded(f, line);
    judge(f);
    return FRAG_OK;
}

static enum frag_err take_sizes(struct frag_timings *t,
                                enum frag_driver_call call,
                                struct frag_cost_regression *f,
                                struct frag_error *e)
{
    const char *name = frag_driver_call_names[call];
    struct frag_typical *list;
    size_t count;

    if (frag_timings_typical(t, call, &list, &count) != FRAG_OK)
        return frag_no_memory(e, "the sizes of %s", name);
    f->count = count <= FRAG_REGRESSION_SIZES ? count : 0;
    for (size_t i = 0; i < f->count; i++) {
        f->at[i] = list[i];
        if (!(list[i].ns > 0)) /* the clock did not advance */
            f->at[i].ns = 1;
    }
    free(list);
    if (f->count >= FEWEST)
        return FRAG_OK;
    return frag_fail(e, FRAG_CORRUPT,
                     "%s: expected %d to %d sizes, each once after the "
                     "warm-up, found %zu",
                     name, FEWEST, FRAG_REGRESSION_SIZES, count);
}

enum frag_err frag_costs_regress(struct frag_timings *t,
                                 struct frag_costs_regression *out,
                                 struct frag_error *e)
{
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    enum frag_err err = FRAG_OK;

    *out = (struct frag_costs_regression){0};
    for (int i = 0; err == FRAG_OK && i < FRAG_DRIVER_CALL_COUNT; i++) {
        err = take_sizes(t, (enum frag_driver_call)i, &out->call[i], e);
        if (err != FRAG_OK)
            break;
        err = regress_call(&out->call[i]);
        if (err != FRAG_OK)
            frag_fail(e, err, "%s: no line can be computed from its times",
                      frag_driver_call_names[i]);
    }
    gsl_set_error_handler(before);
    return err;
}

void frag_costs_write(const struct frag_costs_regression *all,
                      const char *about, FILE *out)
{
    fprintf(out, "# %s\ncall,fixed_ns,ns_per_mib,residual,worst\n", about);
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        const struct frag_cost_regression *f = &all->call[i];

        fprintf(out, "%s,%.1f,%.3f,%.3f,%.3f\n", frag_driver_call_names[i],
                f->cost.fixed_ns, f->cost.ns_per_mib, f->residual, f->worst);
    }
}
