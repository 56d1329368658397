/* stationary.c - one request per tick, with size and lifetime drawn
 * independently.
 *
 * A lifetime is a drawn number of requests with the mean `live`. After the
 * start of the trace, about that many blocks are live (Little's law).
 */
#include "traces/gen/gen.h"

struct stationary {
    uint64_t allocs, streams, size_shape, life_shape;
    double live, size_spread, life_spread;
    frag_size mean;
};

static enum frag_err run(struct frag_gen *g, const void *values)
{
    const struct stationary *v = values;

    for (uint64_t i = 0; i < v->allocs; i++) {
        const double now = (double)i;
        const double size =
            gen_draw(g->rng, v->size_shape, (double)v->mean, v->size_spread);
        const double life =
            gen_draw(g->rng, v->life_shape, v->live, v->life_spread);
        const uint64_t stream =
            gsl_rng_uniform_int(g->rng, (unsigned long)v->streams);

        FRAG_TRY(gen_advance(g, now));
        FRAG_TRY(gen_alloc_until(g, gen_bytes(size), stream, now + life));
    }
    return gen_drain(g);
}

/* clang-format off */
#define AT(field) offsetof(struct stationary, field)
static const struct frag_gen_param params[] = {
    {"allocs", FRAG_GEN_NUMBER, AT(allocs), "100000", NULL, 1, 1e9,
     "number of requests"},
    {"live", FRAG_GEN_REAL, AT(live), "1000", NULL, 0.01, 1e8,
     "mean number of live blocks"},
    {"mean", FRAG_GEN_SIZE, AT(mean), "1MiB", NULL, 1, 0x1p36,
     "mean bytes of a request"},
    {"sizes", FRAG_GEN_CHOICE, AT(size_shape), "lognormal", GEN_SHAPES, 0, 0,
     "distribution of sizes"},
    {"spread", FRAG_GEN_REAL, AT(size_spread), "2", NULL, 0.01, 10,
     "spread of sizes: sigma if lognormal, 1 / (exponent - 1) if pareto"},
    {"lifetimes", FRAG_GEN_CHOICE, AT(life_shape), "exponential", GEN_SHAPES,
     0, 0, "distribution of lifetimes"},
    {"life_spread", FRAG_GEN_REAL, AT(life_spread), "2", NULL, 0.01, 10,
     "spread of lifetimes, as for sizes"},
    {"streams", FRAG_GEN_NUMBER, AT(streams), "1", NULL, 1, 1024,
     "number of streams; each request draws one"},
    {0},
};
/* clang-format on */

const struct frag_generator frag_generator_stationary = {
    .name = "stationary",
    .summary = "one request per tick; size and lifetime drawn independently",
    .size = sizeof(struct stationary),
    .params = params,
    .run = run,
};
