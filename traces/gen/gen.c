/* gen.c - the calls that all generators share: emitting events, freeing blocks
 * at a given time, and the distributions. */
#include "traces/gen/gen.h"

#include <gsl/gsl_randist.h>
#include <math.h>

#include "traces/grow.h"

enum { DEVICE = 0 };

frag_size gen_bytes(double bytes)
{
    if (!(bytes > 1))
        return 1;
    return bytes < 0x1p40 ? (frag_size)bytes : (frag_size)1 << 40;
}

enum frag_err gen_alloc(struct frag_gen *g, frag_size bytes, uint64_t stream,
                        uint64_t *id)
{
    FRAG_TRY(frag_build_event(g->build, DEVICE, FRAG_ALLOC, g->ids, bytes,
                              stream, g->events, g->e));
    g->events++;
    *id = g->ids++;
    return FRAG_OK;
}

enum frag_err gen_free(struct frag_gen *g, uint64_t id)
{
    return frag_build_event(g->build, DEVICE, FRAG_FREE, id, 0, 0, g->events++,
                            g->e);
}

/* ---- deaths ---- */

static bool dies_first(const struct gen_death *a, const struct gen_death *b)
{
    return a->time < b->time || (!(a->time > b->time) && a->id < b->id);
}

static void swap(struct gen_death *a, struct gen_death *b)
{
    const struct gen_death old = *a;

    *a = *b;
    *b = old;
}

static enum frag_err push(struct frag_gen *g, struct gen_death death)
{
    uint64_t i = g->death_count;

    if (!GROW(g->deaths, g->death_room, i + 1))
        return FRAG_NOMEM;
    g->deaths[g->death_count++] = death;
    for (; i && dies_first(&g->deaths[i], &g->deaths[(i - 1) / 2]);
         i = (i - 1) / 2)
        swap(&g->deaths[i], &g->deaths[(i - 1) / 2]);
    return FRAG_OK;
}

static struct gen_death pop(struct frag_gen *g)
{
    const struct gen_death top = g->deaths[0];
    struct gen_death *d = g->deaths;
    uint64_t i = 0, first;

    d[0] = d[--g->death_count];
    for (;; i = first) {
        first = i;
        for (uint64_t child = 2 * i + 1; child <= 2 * i + 2; child++)
            if (child < g->death_count && dies_first(&d[child], &d[first]))
                first = child;
        if (first == i)
            return top;
        swap(&d[i], &d[first]);
    }
}

enum frag_err gen_alloc_until(struct frag_gen *g, frag_size bytes,
                              uint64_t stream, double death)
{
    struct gen_death row = {.time = death};

    FRAG_TRY(gen_alloc(g, bytes, stream, &row.id));
    return push(g, row);
}

enum frag_err gen_advance(struct frag_gen *g, double now)
{
    while (g->death_count && g->deaths[0].time <= now)
        FRAG_TRY(gen_free(g, pop(g).id));
    return FRAG_OK;
}

enum frag_err gen_drain(struct frag_gen *g)
{
    return gen_advance(g, INFINITY);
}

/* ---- distributions ---- */

static double constant(const gsl_rng *rng, double mean, double spread)
{
    (void)rng, (void)spread;
    return mean;
}

static double uniform(const gsl_rng *rng, double mean, double spread)
{
    (void)spread;
    return gsl_rng_uniform_pos(rng) * 2 * mean;
}

static double exponential(const gsl_rng *rng, double mean, double spread)
{
    (void)spread;
    return gsl_ran_exponential(rng, mean);
}

static double lognormal(const gsl_rng *rng, double mean, double spread)
{
    return gsl_ran_lognormal(rng, log(mean) - spread * spread / 2, spread);
}

static double pareto(const gsl_rng *rng, double mean, double spread)
{
    const double exponent = 1 + 1 / spread;

    return gsl_ran_pareto(rng, exponent, mean * (exponent - 1) / exponent);
}

double gen_draw(const gsl_rng *rng, uint64_t shape, double mean, double spread)
{
    /* This order is that of GEN_SHAPES. */
    static double (*const shapes[])(const gsl_rng *, double, double) = {
        constant, uniform, exponential, lognormal, pareto};

    return shapes[shape](rng, mean, spread);
}
