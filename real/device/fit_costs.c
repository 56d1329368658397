#include "real/device/fit_costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>

enum { FEWEST = 4 };

static double mib(frag_size bytes)
{
    return (double)bytes / (double)FRAG_MIB;
}

/* Every row is divided by what was measured, so that all should come to 1. */
static int robust_line(const struct frag_cost_fit *f,
                       gsl_multifit_robust_workspace *work, double line[2])
{
    double x[2 * FRAG_FIT_SIZES], y[FRAG_FIT_SIZES], covariance[4];
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

/* A cost is never negative: where the line would be, it becomes a constant or a
 * ray, through the median. */
static struct frag_cost bounded(const struct frag_cost_fit *f,
                                const double line[2])
{
    double ratio[FRAG_FIT_SIZES];

    if (line[0] >= 0 && line[1] >= 0)
        return (struct frag_cost){line[0], line[1]};
    for (size_t i = 0; i < f->count; i++)
        ratio[i] = f->at[i].ns / (line[1] < 0 ? 1 : mib(f->at[i].bytes));
    gsl_sort(ratio, 1, f->count);
    ratio[0] = gsl_stats_median_from_sorted_data(ratio, 1, f->count);
    return line[1] < 0 ? (struct frag_cost){ratio[0], 0}
                       : (struct frag_cost){0, ratio[0]};
}

static void judge(struct frag_cost_fit *f)
{
    double off[FRAG_FIT_SIZES];

    for (size_t i = 0; i < f->count; i++)
        off[i] = fabs(
            1 - (f->cost.fixed_ns + f->cost.ns_per_mib * mib(f->at[i].bytes)) /
                    f->at[i].ns);
    gsl_sort(off, 1, f->count);
    f->residual = gsl_stats_median_from_sorted_data(off, 1, f->count);
    f->worst = off[f->count - 1];
}

static enum frag_err fit_call(struct frag_cost_fit *f)
{
    gsl_multifit_robust_workspace *work =
        gsl_multifit_robust_alloc(gsl_multifit_robust_bisquare, f->count, 2);
    double line[2] = {0};
    int code;

    if (!work)
        return FRAG_NOMEM;
    code = robust_line(f, work, line);
    gsl_multifit_robust_free(work);
    /* The best that was reached is good enough: the residuals tell. */
    if ((code && code != GSL_EMAXITER) || !isfinite(line[0] + line[1]))
        return FRAG_CORRUPT;
    f->cost = bounded(f, line);
    judge(f);
    return FRAG_OK;
}

static enum frag_err take_sizes(struct frag_timings *t,
                                enum frag_driver_call call,
                                struct frag_cost_fit *f, struct frag_error *e)
{
    const char *name = frag_driver_call_names[call];
    struct frag_typical *list;
    size_t count;

    if (frag_timings_typical(t, call, &list, &count) != FRAG_OK)
        return frag_no_memory(e, "the sizes of %s", name);
    f->count = count <= FRAG_FIT_SIZES ? count : 0;
    for (size_t i = 0; i < f->count; i++) {
        f->at[i] = list[i];
        if (!(list[i].ns > 0)) /* a clock that stands still */
            f->at[i].ns = 1;
    }
    free(list);
    if (f->count >= FEWEST)
        return FRAG_OK;
    return frag_fail(e, FRAG_CORRUPT,
                     "%s: expected %d to %d sizes, each once after the "
                     "warm-up, found %zu",
                     name, FEWEST, FRAG_FIT_SIZES, count);
}

enum frag_err frag_costs_fit(struct frag_timings *t, struct frag_costs_fit *out,
                             struct frag_error *e)
{
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    enum frag_err err = FRAG_OK;

    *out = (struct frag_costs_fit){0};
    for (int i = 0; err == FRAG_OK && i < FRAG_DRIVER_CALL_COUNT; i++) {
        err = take_sizes(t, (enum frag_driver_call)i, &out->call[i], e);
        if (err != FRAG_OK)
            break;
        err = fit_call(&out->call[i]);
        if (err != FRAG_OK)
            frag_fail(e, err, "%s: no line can be laid through its times",
                      frag_driver_call_names[i]);
    }
    gsl_set_error_handler(before);
    return err;
}

void frag_costs_write(const struct frag_costs_fit *fit, const char *about,
                      FILE *out)
{
    fprintf(out, "# %s\ncall,fixed_ns,ns_per_mib,residual,worst\n", about);
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        const struct frag_cost_fit *f = &fit->call[i];

        fprintf(out, "%s,%.1f,%.3f,%.3f,%.3f\n", frag_driver_call_names[i],
                f->cost.fixed_ns, f->cost.ns_per_mib, f->residual, f->worst);
    }
}
