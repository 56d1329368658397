/* curve.h - the size of one request as a function of the batch, from its sizes
 * in the recordings. Private to traces/scale. */
#ifndef FRAG_TRACES_SCALE_CURVE_H
#define FRAG_TRACES_SCALE_CURVE_H

#include "traces/scale/scale.h"

/* A size at a batch size. */
struct point {
    double batch, bytes;
};

enum { MOST_POINTS = 64 };

struct curve {
    enum scale_kind kind;
    double bytes, per_sample; /* at a batch size; per_sample: the slope there */
};

/* Of requests that follow no curve, smaller ones keep their size: a scalar, or
 * a workspace that the library does not use. */
static const double least_guess = 512;

/* The size at a batch size, according to the points. There is at least one,
 * and they are ascending by batch; the last is that of the template. */
struct curve curve_at(const struct point *p, size_t n, double batch,
                      bool is_workspace);

/* The size under a guess. */
struct curve curve_guess(const struct scale_guess *guess, const struct point *p,
                         size_t n, double batch);

#endif
