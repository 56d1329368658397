/* tiling.c - a full memory that is cut into blocks, so that the optimal peak is
 * known.
 *
 * A rectangle of time x bytes is cut in two, then one of its parts is cut in
 * two, and so on. Each cut goes through the whole part (guillotine cuts), at a
 * uniformly drawn place, and its direction (time or bytes) is drawn too. The
 * parts are the blocks. The blocks fill the rectangle at all times, so `bytes`
 * is live from begin to end, and is the optimal peak: the tiling itself is a
 * placement with that peak. At equal times, frees come before allocs, both in a
 * drawn order.
 *
 * Idea: the generators of static-allocation benchmarks (omnimalloc's tiling).
 */
#include <gsl/gsl_randist.h>
#include <inttypes.h>
#include <stdlib.h>

#include "traces/gen/gen.h"

struct tiling {
    uint64_t blocks, ticks;
    frag_size bytes, unit;
};

struct part {
    uint64_t begin, end; /* ticks */
    uint64_t units;      /* size in units */
    uint64_t shuffle;    /* drawn; the order at equal times */
    uint64_t id;
};

/* Cuts a part in two; the later part is *rest. False if the part is one tick
 * long. */
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

/* Cuts a part in two, both with the times of the part. False if the part has
 * one unit. */
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

/* Cuts the rectangle into v->blocks parts. A part that is too small to be cut
 * is skipped. Because ticks x units >= blocks, there is always a part to cut.
 */
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

/* Compares a and b, then then_a and then_b, as qsort expects. */
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

/* Emits the events of the parts. `ends` is room for as many pointers. */
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
                         "tiling: expected bytes / unit of at most 2^32 - 1, "
                         "found %" PRIu64 "; raise unit or lower bytes",
                         v->bytes / v->unit);
    if (v->bytes / v->unit * v->ticks < v->blocks)
        return frag_fail(g->e, FRAG_INVALID,
                         "tiling: expected blocks of at most bytes / unit x "
                         "ticks = %" PRIu64 ", found %" PRIu64,
                         v->bytes / v->unit * v->ticks, v->blocks);
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
    {"blocks", FRAG_GEN_NUMBER, AT(blocks), "1000", NULL, 1, 1e8,
     "number of blocks"},
    {"bytes", FRAG_GEN_SIZE, AT(bytes), "1GiB", NULL, 1, 0x1p40,
     "optimal peak, rounded down to whole units"},
    {"unit", FRAG_GEN_SIZE, AT(unit), "512", NULL, 1, 0x1p30,
     "granularity: every size is a multiple of it"},
    {"ticks", FRAG_GEN_NUMBER, AT(ticks), "100000", NULL, 1, 1e9,
     "number of times at which blocks begin and end"},
    {0},
};
/* clang-format on */

const struct frag_generator frag_generator_tiling = {
    .name = "tiling",
    .summary = "full memory cut into blocks, so that the optimal peak is known",
    .size = sizeof(struct tiling),
    .params = params,
    .run = run,
};
