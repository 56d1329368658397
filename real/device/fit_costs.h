/* fit_costs.h - from measured calls to a cost model.
 *
 * Through what is typical of each size of a call (real/device/timings.h) a
 * line, fixed_ns + ns_per_mib * MiB, is laid with Tukey's bisquare (GSL's
 * robust fit) on relative residuals, so that a microsecond matters at 2 MiB as
 * a millisecond does at 8 GiB, and sizes at which the driver first had to clear
 * memory that was just given back do not bend it.
 */
#ifndef FRAG_REAL_DEVICE_FIT_COSTS_H
#define FRAG_REAL_DEVICE_FIT_COSTS_H

#include "real/device/timings.h"

enum { FRAG_FIT_SIZES = 64 }; /* most of one call */

struct frag_cost_fit {
    struct frag_cost cost;
    double residual; /* median over the sizes of |1 - model / typical| */
    double worst;    /* the largest */
    size_t count;    /* of sizes */
    struct frag_typical at[FRAG_FIT_SIZES];
};

struct frag_costs_fit {
    struct frag_cost_fit call[FRAG_DRIVER_CALL_COUNT];
};

/* Orders the rows. CORRUPT, with the call's name, where there are fewer than 4
 * sizes or more than FRAG_FIT_SIZES, or no line can be laid; NOMEM. */
enum frag_err frag_costs_fit(struct frag_timings *t, struct frag_costs_fit *out,
                             struct frag_error *e) FRAG_MUST_CHECK;

/* The file that frag_costs_read reads, with the residuals. */
void frag_costs_write(const struct frag_costs_fit *fit, const char *about,
                      FILE *out);

#endif
