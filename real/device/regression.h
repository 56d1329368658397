/* regression.h - computes a cost model from measured calls, by regression.
 *
 * For each call, a line fixed_ns + ns_per_mib * MiB is computed through the
 * typical times of its sizes (real/device/timings.h), with Tukey's bisquare
 * (GSL's robust regression) on relative residuals. So a microsecond at 2 MiB
 * has the same weight as a millisecond at 8 GiB, and the line ignores sizes at
 * which the driver first had to clear memory that was just released.
 */
#ifndef FRAG_REAL_DEVICE_REGRESSION_H
#define FRAG_REAL_DEVICE_REGRESSION_H

#include "real/device/timings.h"

enum { FRAG_REGRESSION_SIZES = 64 }; /* most sizes of one call */

struct frag_cost_regression {
    struct frag_cost cost;
    double residual; /* median over the sizes of |1 - model / typical| */
    double worst;    /* the largest of these */
    size_t count;    /* number of sizes */
    struct frag_typical at[FRAG_REGRESSION_SIZES];
};

struct frag_costs_regression {
    struct frag_cost_regression call[FRAG_DRIVER_CALL_COUNT];
};

/* Computes the costs of all calls. Sorts the rows of *t. Returns FRAG_CORRUPT,
 * with the name of the call, if a call has fewer than 4 sizes or more than
 * FRAG_REGRESSION_SIZES, or if no line can be computed; FRAG_NOMEM. */
enum frag_err frag_costs_regress(struct frag_timings *t,
                                 struct frag_costs_regression *out,
                                 struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the costs in the format of frag_costs_read, with the residuals. */
void frag_costs_write(const struct frag_costs_regression *all,
                      const char *about, FILE *out);

#endif
