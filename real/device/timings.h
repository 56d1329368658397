/* timings.h - the measured times of driver calls: the result of a calibration
 * and the input of the regression that computes a cost model.
 */
#ifndef FRAG_REAL_DEVICE_TIMINGS_H
#define FRAG_REAL_DEVICE_TIMINGS_H

#include <stdio.h>

#include "policies/device/costs.h"

/* All calls of one kind and size in one round. */
struct frag_timing {
    enum frag_driver_call call;
    uint32_t round; /* 0 is the warm-up, which no result uses */
    frag_size bytes;
    frag_time ns; /* mean of the calls, without the slowest sixteenth */
};

struct frag_timings {
    char about[240]; /* device, driver and date: printable, and short enough for
                        a comment of a file of costs */
    struct frag_timing *rows;
    size_t count, room;
};

/* Appends a row. Returns FRAG_NOMEM; then *t is unchanged. */
enum frag_err frag_timings_add(struct frag_timings *t,
                               struct frag_timing row) FRAG_MUST_CHECK;
void frag_timings_free(struct frag_timings *t); /* a zeroed struct is allowed */

/* Writes CSV: `about` as a comment, the header call,bytes,round,ns, and one row
 * for each timing. */
void frag_timings_write(const struct frag_timings *t, FILE *out);

/* Reads a file of that format. Returns FRAG_IO, FRAG_CORRUPT with the number of
 * the line, or FRAG_NOMEM. On error, *out needs no free. */
enum frag_err frag_timings_read(const char *path, struct frag_timings *out,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* The typical time of a call of one size: the least of all rounds except the
 * warm-up, since a disturbance can only make a call slower. */
struct frag_typical {
    frag_size bytes;
    double ns;
};

/* Stores the typical times of one call, sorted by size. The caller frees *out.
 * Sorts the rows of *t. Returns FRAG_NOMEM. */
enum frag_err frag_timings_typical(struct frag_timings *t,
                                   enum frag_driver_call call,
                                   struct frag_typical **out,
                                   size_t *count) FRAG_MUST_CHECK;

#endif
