/* timings.h - how long calls of a driver took: what a calibration measures and
 * a cost model is fitted to.
 */
#ifndef FRAG_REAL_DEVICE_TIMINGS_H
#define FRAG_REAL_DEVICE_TIMINGS_H

#include <stdio.h>

#include "policies/device/costs.h"

/* The calls of one kind and size in one round. */
struct frag_timing {
    enum frag_driver_call call;
    uint32_t round; /* 0 is the warm-up, which no number is taken from */
    frag_size bytes;
    frag_time ns; /* their mean, without the slowest sixteenth */
};

struct frag_timings {
    char about[256]; /* device, driver, date; one line */
    struct frag_timing *rows;
    size_t count, room;
};

/* NOMEM; then *t is as it was. */
enum frag_err frag_timings_add(struct frag_timings *t,
                               struct frag_timing row) FRAG_MUST_CHECK;
void frag_timings_free(struct frag_timings *t); /* zeroed is fine */

/* As CSV: `about` as a comment, call,bytes,round,ns, a row a timing. */
void frag_timings_write(const struct frag_timings *t, FILE *out);

/* Reads what was written so. IO; CORRUPT with the line; NOMEM. On error *out
 * needs no free. */
enum frag_err frag_timings_read(const char *path, struct frag_timings *out,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* What a call of one size takes: the least of all rounds but the warm-up, since
 * what disturbs a call only ever adds. */
struct frag_typical {
    frag_size bytes;
    double ns;
};

/* Of one call, by size; *out is to be freed. Orders the rows. NOMEM. */
enum frag_err frag_timings_typical(struct frag_timings *t,
                                   enum frag_driver_call call,
                                   struct frag_typical **out,
                                   size_t *count) FRAG_MUST_CHECK;

#endif
