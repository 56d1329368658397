/* fit_costs - from measured calls to a cost model.
 *
 * usage: fit_costs CALLS.csv > costs.csv
 *
 * Of each call and size the median of the warm rounds is taken; through these a
 * line, fixed_ns + ns_per_mib * MiB, is laid with Tukey's bisquare (GSL's
 * robust fit) on relative residuals, so that a microsecond matters at 2 MiB as
 * a millisecond does at 8 GiB, and sizes at which the driver first had to clear
 * memory that was just given back do not bend it. `residual` is the median
 * relative residual of the sizes.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_statistics_double.h>

#include "policies/costs.h"

enum { SIZES = 64, ROUNDS = 1024 };

struct size_rows {
    unsigned long long bytes;
    size_t count;
    double ns[ROUNDS];
};

struct call_rows {
    size_t count;
    struct size_rows *size[SIZES];
};

static struct size_rows *find_size(struct call_rows *c,
                                   unsigned long long bytes)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->size[i]->bytes == bytes)
            return c->size[i];
    if (c->count == SIZES)
        return NULL;
    c->size[c->count] = calloc(1, sizeof(struct size_rows));
    if (c->size[c->count])
        c->size[c->count]->bytes = bytes;
    return c->size[c->count++];
}

static int find_call(const char *name)
{
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        if (!strcmp(frag_driver_call_names[i], name))
            return i;
    return -1;
}

static int read_calls(FILE *in, struct call_rows *calls)
{
    char text[256], name[32];

    for (int line = 1; fgets(text, sizeof(text), in); line++) {
        unsigned long long bytes;
        struct size_rows *rows;
        long round;
        double ns;

        if (*text == '#') {
            fputs(text, stdout);
            continue;
        }
        if (!strncmp(text, "call,", 5))
            continue;
        if (sscanf(text, "%31[^,],%llu,%ld,%lf", name, &bytes, &round, &ns) !=
                4 ||
            find_call(name) < 0) {
            fprintf(stderr,
                    "fit_costs: line %d: expected call,bytes,round,ns\n", line);
            return 3;
        }
        if (!round)
            continue;
        rows = find_size(&calls[find_call(name)], bytes);
        if (rows && rows->count < ROUNDS)
            rows->ns[rows->count++] = ns;
    }
    return 0;
}

static double median_of(struct size_rows *rows)
{
    return gsl_stats_median(rows->ns, 1, rows->count);
}

/* Relative residuals: every row is divided by what was measured. */
static void fit(const struct call_rows *c, struct frag_cost *cost,
                double *residual)
{
    gsl_matrix *x = gsl_matrix_alloc(c->count, 2);
    gsl_matrix *covariance = gsl_matrix_alloc(2, 2);
    gsl_vector *y = gsl_vector_alloc(c->count);
    gsl_vector *line = gsl_vector_alloc(2);
    gsl_multifit_robust_workspace *work =
        gsl_multifit_robust_alloc(gsl_multifit_robust_bisquare, c->count, 2);
    double off[SIZES];

    for (size_t i = 0; i < c->count; i++) {
        double ns = median_of(c->size[i]);

        gsl_matrix_set(x, i, 0, 1 / ns);
        gsl_matrix_set(x, i, 1, (double)c->size[i]->bytes / 0x1p20 / ns);
        gsl_vector_set(y, i, 1);
    }
    gsl_multifit_robust(x, y, line, covariance, work);
    cost->fixed_ns = fmax(0, gsl_vector_get(line, 0));
    cost->ns_per_mib = fmax(0, gsl_vector_get(line, 1));
    for (size_t i = 0; i < c->count; i++)
        off[i] = fabs(1 - cost->fixed_ns * gsl_matrix_get(x, i, 0) -
                      cost->ns_per_mib * gsl_matrix_get(x, i, 1));
    *residual = gsl_stats_median(off, 1, c->count);
    gsl_multifit_robust_free(work);
    gsl_vector_free(line);
    gsl_vector_free(y);
    gsl_matrix_free(covariance);
    gsl_matrix_free(x);
}

static int print_fits(const struct call_rows *calls)
{
    printf("call,fixed_ns,ns_per_mib,residual\n");
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        struct frag_cost cost;
        double residual;

        if (calls[i].count < 4) {
            fprintf(stderr, "fit_costs: %s: expected at least 4 sizes\n",
                    frag_driver_call_names[i]);
            return 3;
        }
        fit(&calls[i], &cost, &residual);
        printf("%s,%.1f,%.3f,%.3f\n", frag_driver_call_names[i], cost.fixed_ns,
               cost.ns_per_mib, residual);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct call_rows calls[FRAG_DRIVER_CALL_COUNT] = {0};
    FILE *in = argc == 2 ? fopen(argv[1], "r") : NULL;
    int code;

    if (!in) {
        fprintf(stderr, "usage: fit_costs CALLS.csv > costs.csv%s%s\n",
                argc == 2 ? ": " : "", argc == 2 ? strerror(errno) : "");
        return argc == 2 ? 4 : 2;
    }
    gsl_set_error_handler_off();
    code = read_calls(in, calls);
    if (!code)
        code = print_fits(calls);
    fclose(in);
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        for (size_t k = 0; k < calls[i].count; k++)
            free(calls[i].size[k]);
    return code;
}
