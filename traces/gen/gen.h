/* gen.h - what all generators share: emitting events, freeing blocks at a given
 * time, and drawing from the distributions of GSL. Private to traces/gen/.
 * generator.h is the public interface. */
#ifndef FRAG_TRACES_GEN_GEN_H
#define FRAG_TRACES_GEN_GEN_H

#include <gsl/gsl_rng.h>

#include "traces/build/build.h"
#include "traces/gen/generator.h"

/* A block and the time at which it will be freed. */
struct gen_death {
    double time;
    uint64_t id;
};

struct frag_gen {
    const gsl_rng *rng;
    struct frag_build *build;
    struct frag_error *e;
    uint64_t events; /* number of events so far */
    uint64_t ids;    /* number of blocks so far; the next block's id */

    /* A binary heap with the earliest death on top. Of equal times, the older
     * block is on top. */
    struct gen_death *deaths;
    uint64_t death_count, death_room;
};

/* Converts a drawn size to whole bytes: rounded down, from 1 to 2^40. */
frag_size gen_bytes(double bytes);

/* Emits an alloc and returns its id in *id. CORRUPT, NOMEM. */
enum frag_err gen_alloc(struct frag_gen *g, frag_size bytes, uint64_t stream,
                        uint64_t *id) FRAG_MUST_CHECK;

/* Emits the free of a live block. NOMEM. */
enum frag_err gen_free(struct frag_gen *g, uint64_t id) FRAG_MUST_CHECK;

/* Emits an alloc. gen_advance frees the block at the time `death`. */
enum frag_err gen_alloc_until(struct frag_gen *g, frag_size bytes,
                              uint64_t stream, double death) FRAG_MUST_CHECK;

/* Frees all blocks whose time of death is `now` or earlier, in the order of
 * deaths. */
enum frag_err gen_advance(struct frag_gen *g, double now) FRAG_MUST_CHECK;

/* Frees all other blocks of gen_alloc_until, in the order of deaths. */
enum frag_err gen_drain(struct frag_gen *g) FRAG_MUST_CHECK;

/* The distributions by name, for a parameter of kind CHOICE. */
#define GEN_SHAPES "constant|uniform|exponential|lognormal|pareto"

/* Draws a value above 0 from the distribution with index `shape` in GEN_SHAPES
 * and with that mean. `spread`, above 0, is the sigma of a lognormal, or 1 /
 * (exponent - 1) of a pareto; other distributions ignore it. */
double gen_draw(const gsl_rng *rng, uint64_t shape, double mean, double spread);

#endif
