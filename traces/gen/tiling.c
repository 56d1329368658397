/* tiling.c - a full memory, cut into blocks: the optimal peak is known.
 *
 * A rectangle of time x bytes is cut in two, one of the parts again, and so on,
 * each cut going right through the part (guillotine cuts) at a place drawn
 * uniformly, across time or across bytes as drawn. The parts are the blocks.
 * At each time they fill the rectangle, so `bytes` is what is live throughout
 * and the optimum: the tiling places them in it. What ends at a time is freed
 * before what begins, either in an order drawn anew.
 *
 * Idea: the generators of static-allocation benchmarks (omnimalloc's tiling).
 */
#include <gsl/gsl_randist.h>
#include <stdlib.h>

#include "traces/gen/gen.h"

struct tiling {
    uint64_t blocks, ticks;
    frag_size bytes, unit;
};

struct part {
    uint64_t begin, end; /* ticks */
    uint64_t units;      /* of bytes */
    uint64_t shuffle;    /* the order among equals */
    uint64_t id;
};

static bool cut_time(struct frag_gen *g, struct part *p, struct part *rest)
{
    const uint64_t length = p->end - p->begin;

    if (length < 2)
        return false;
    *rest = *p;
    rest->begin = p->end =
        p->begin + 1 + gsl_rng_uniform_int(g->rng, (unsigned long)length - 1);
    return true;
}

static bool cut_bytes(struct frag_gen *g, struct part *p, struct part *rest)
{
    if (p->units < 2)
        return false;
    *rest = *p;
    rest->units = 1 + gsl_rng_uniform_int(g->rng, (unsigned long)p->units - 1);
    p->units -= rest->units;
    return true;
}

static bool cut(struct frag_gen *g, struct part *p, struct part *rest)
{
    if (gsl_rng_uniform_int(g->rng, 2))
        return cut_time(g, p, rest) || cut_bytes(g, p, rest);
    return cut_bytes(g, p, rest) || cut_time(g, p, rest);
}

/* A part too small to be cut is passed over; ticks x units >= blocks, so there
 * is always one that is not. */
static void cut_all(struct frag_gen *g, const struct tiling *v,
                    struct part *parts)
{
    uint64_t count = 1;

    parts[0] = (struct part){.end = v->ticks, .units = v->bytes / v->unit};
    while (count < v->blocks) {
        const uint64_t i = gsl_rng_uniform_int(g->rng, (unsigned long)count);

        count += cut(g, &parts[i], &parts[count]);
    }
    for (uint64_t i = 0; i < count; i++)
        parts[i].shuffle = gsl_rng_get(g->rng);
}

static int by(uint64_t a, uint64_t b, uint64_t then_a, uint64_t then_b)
{
    if (a != b)
        return a < b ? -1 : 1;
    return then_a < then_b ? -1 : then_a > then_b;
}

static int by_begin(const void *a, const void *b)
{
    const struct part *p = a, *q = b;

    return by(p->begin, q->begin, p->shuffle, q->shuffle);
}

static int by_end(const void *a, const void *b)
{
    const struct part *p = *(struct part *const *)a;
    const struct part *q = *(struct part *const *)b;

    return by(p->end, q->end, p->shuffle, q->shuffle);
}

static enum frag_err emit(struct frag_gen *g, const struct tiling *v,
                          struct part *parts, struct part **ends)
{
    uint64_t freed = 0;

    qsort(parts, (size_t)v->blocks, sizeof(*parts), by_begin);
    for (uint64_t i = 0; i < v->blocks; i++)
        ends[i] = &parts[i];
    qsort(ends, (size_t)v->blocks, sizeof(struct part *), by_end);
    for (uint64_t i = 0; i < v->blocks; i++) {
        while (ends[freed]->end <= parts[i].begin)
            FRAG_TRY(gen_free(g, ends[freed++]->id));
        FRAG_TRY(gen_alloc(g, parts[i].units * v->unit, 0, &parts[i].id));
    }
    while (freed < v->blocks)
        FRAG_TRY(gen_free(g, ends[freed++]->id));
    return FRAG_OK;
}

static enum frag_err run(struct frag_gen *g, const void *values)
{
    const struct tiling *v = values;
    struct part *parts, **ends;
    enum frag_err err = FRAG_NOMEM;

    if (v->bytes / v->unit > UINT32_MAX)
        return frag_fail(g->e, FRAG_INVALID,
                         "tiling: expected at most 2^32 - 1 units in bytes");
    if (v->bytes / v->unit * v->ticks < v->blocks)
        return frag_fail(g->e, FRAG_INVALID,
                         "tiling: expected at most as many blocks as there are "
                         "units in bytes times ticks");
    parts = malloc((size_t)v->blocks * sizeof(*parts));
    ends = malloc((size_t)v->blocks * sizeof(*ends));
    if (parts && ends) {
        cut_all(g, v, parts);
        err = emit(g, v, parts, ends);
    }
    free(parts);
    free(ends);
    return err;
}

/* clang-format off */
#define AT(field) offsetof(struct tiling, field)
static const struct frag_gen_param params[] = {
    {"blocks", FRAG_GEN_NUMBER, AT(blocks), "1000", NULL, 1, 1e8, "blocks"},
    {"bytes", FRAG_GEN_SIZE, AT(bytes), "1GiB", NULL, 1, 0x1p40,
     "the optimal peak, in whole units"},
    {"unit", FRAG_GEN_SIZE, AT(unit), "512", NULL, 1, 0x1p30,
     "bytes that all sizes are multiples of"},
    {"ticks", FRAG_GEN_NUMBER, AT(ticks), "100000", NULL, 1, 1e9,
     "times at which blocks may begin and end"},
    {0},
};
/* clang-format on */

const struct frag_generator frag_generator_tiling = {
    .name = "tiling",
    .summary = "a full memory cut into blocks, so that the optimum is known",
    .size = sizeof(struct tiling),
    .params = params,
    .run = run,
};
