/* gen.h - what generators share: emitting events, blocks that die at a time,
 * drawing from GSL's distributions.
 */
#ifndef FRAG_TRACES_GEN_GEN_H
#define FRAG_TRACES_GEN_GEN_H

#include <gsl/gsl_rng.h>

#include "traces/build/build.h"
#include "traces/gen/generator.h"

/* A block that is to be freed at a time. */
struct gen_death {
    double time;
    uint64_t id;
};

struct frag_gen {
    const gsl_rng *rng;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t events; /* so far */
    uint64_t ids;    /* given out so far */

    /* A heap, the first to die on top; of equals the older block. */
    struct gen_death *deaths;
    uint64_t death_count, death_room;
};

/* Bytes as drawn, in whole bytes from 1 to 2^40. */
frag_size gen_bytes(double bytes);

enum frag_err gen_alloc(struct frag_gen *g, frag_size bytes, uint64_t stream,
                        uint64_t *id) FRAG_MUST_CHECK;
enum frag_err gen_free(struct frag_gen *g, uint64_t id) FRAG_MUST_CHECK;

/* Allocates a block that gen_advance frees. */
enum frag_err gen_alloc_until(struct frag_gen *g, frag_size bytes,
                              uint64_t stream, double death) FRAG_MUST_CHECK;
/* Frees what dies at `now` or earlier, in the order of deaths. */
enum frag_err gen_advance(struct frag_gen *g, double now) FRAG_MUST_CHECK;
/* Frees all the rest, likewise. */
enum frag_err gen_drain(struct frag_gen *g) FRAG_MUST_CHECK;

/* Distributions by name, for a parameter of kind CHOICE. */
#define GEN_SHAPES "constant|uniform|exponential|lognormal|pareto"

/* A value above 0 with that mean; spread is the sigma of a lognormal, and of a
 * pareto 1 / (its exponent - 1); it must be above 0. */
double gen_draw(const gsl_rng *rng, uint64_t shape, double mean, double spread);

#endif
