/* generator.c - the list of generators, the parsing of their parameters, and
 * the run of a generator. The generators themselves are the other files of this
 * folder. */
#include "traces/gen/generator.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/gen/gen.h"
#include "traces/nearest.h"
#include "traces/text.h"

const struct frag_generator *const frag_generators[] = {
#define GENERATOR(name) &frag_generator_##name,
#include "traces/gen/gen_list.h"
#undef GENERATOR
    NULL,
};

const struct frag_generator *frag_generator_find(const char *name)
{
    for (size_t i = 0; frag_generators[i]; i++)
        if (!strcmp(frag_generators[i]->name, name))
            return frag_generators[i];
    return NULL;
}

/* ---- parameters ---- */

static bool read_real(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && !*end && isfinite(*out);
}

static bool in_range(const struct frag_gen_param *p, double value)
{
    return value >= p->min && value <= p->max;
}

/* Reads a value of a parameter into *at. Returns false if the text is no value
 * of its kind or is out of range. */
static bool read_value(const struct frag_gen_param *p, const char *text,
                       void *at)
{
    double real;

    switch (p->kind) {
    case FRAG_GEN_SIZE:
        return frag_size_parse(text, at) == FRAG_OK &&
               in_range(p, (double)*(frag_size *)at);
    case FRAG_GEN_NUMBER:
        if (!read_real(text, &real) || !in_range(p, real) ||
            fabs(real - floor(real)) > 0)
            return false;
        *(uint64_t *)at = (uint64_t)real;
        return true;
    case FRAG_GEN_REAL:
        return read_real(text, at) && in_range(p, *(double *)at);
    case FRAG_GEN_CHOICE:
        return text_choice(p->choices, text, at);
    }
    return false;
}

/* Fails with INVALID and the values that the parameter accepts. */
static enum frag_err wrong_value(const struct frag_generator *g,
                                 const struct frag_gen_param *p,
                                 const char *text, struct frag_error *e)
{
    if (p->choices)
        return frag_fail(e, FRAG_INVALID, "%s: %s=%s: expected one of %s",
                         g->name, p->name, text, p->choices);
    if (p->kind == FRAG_GEN_SIZE)
        return frag_fail(e, FRAG_INVALID,
                         "%s: %s=%s: expected a size from %s to %s", g->name,
                         p->name, text, FRAG_SHOW_SIZE((frag_size)p->min),
                         FRAG_SHOW_SIZE((frag_size)p->max));
    return frag_fail(e, FRAG_INVALID, "%s: %s=%s: expected %s from %g to %g",
                     g->name, p->name, text,
                     p->kind == FRAG_GEN_REAL ? "a number" : "a whole number",
                     p->min, p->max);
}

/* Sets one value from the text "key=value", which is cut in two. */
static enum frag_err set(const struct frag_generator *g, char *word,
                         char *values, struct frag_error *e)
{
    struct nearest near = nearest_to(word);
    char *value = strchr(word, '='), hint[NEAREST_HINT];

    if (!value)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected key=value, found \"%s\"", g->name, word);
    *value++ = '\0';
    for (const struct frag_gen_param *p = g->params; p->name; p++) {
        nearest_try(&near, p->name);
        if (strcmp(p->name, word) != 0)
            continue;
        return read_value(p, value, values + p->offset)
                   ? FRAG_OK
                   : wrong_value(g, p, value, e);
    }
    nearest_hint(&near, hint);
    return frag_fail(e, FRAG_INVALID, "%s: there is no parameter %s%s", g->name,
                     word,
                     *hint ? hint : "; \"fragsim gen\" lists the parameters");
}

/* Sets all values: first the defaults, then those of the text, which is
 * cut into words. */
static enum frag_err set_all(const struct frag_generator *g, char *text,
                             char *values, struct frag_error *e)
{
    char *save;

    for (const struct frag_gen_param *p = g->params; p->name; p++)
        read_value(p, p->init, values + p->offset);
    for (char *word = strtok_r(text, ",", &save); word;
         word = strtok_r(NULL, ",", &save))
        FRAG_TRY(set(g, word, values, e));
    return FRAG_OK;
}

/* ---- a run ---- */

/* Runs a generator with a new source of random numbers. gsl_rng_alloc is not
 * used, because it aborts if the host has no memory. GSL replaces the seed 0 by
 * another seed, so seeds are counted from 1. */
static enum frag_err run(struct frag_gen *g,
                         const struct frag_generator *generator,
                         const void *values, uint64_t seed)
{
    gsl_rng rng = {.type = gsl_rng_mt19937};
    enum frag_err err;

    rng.state = malloc(rng.type->size);
    if (!rng.state)
        return frag_no_memory(g->e, "random numbers");
    gsl_rng_set(&rng, (unsigned long)seed + 1);
    g->rng = &rng;
    err = generator->run(g, values);
    free(rng.state);
    free(g->deaths);
    return err;
}

/* Runs a generator and finishes its trace. `path` names the trace. */
static enum frag_err build(const struct frag_generator *generator,
                           const void *values, const char *path, uint64_t seed,
                           struct frag_trace **out, struct frag_error *e)
{
    struct frag_gen g = {.e = e, .build = frag_build_open(path, "generator")};
    enum frag_err err = FRAG_NOMEM;

    if (g.build)
        err = run(&g, generator, values, seed);
    if (err == FRAG_OK)
        err = frag_build_finish(g.build, NULL, out, e);
    frag_build_close(g.build);
    if (err == FRAG_NOMEM)
        return frag_no_memory(e, "the trace %s", path);
    return err;
}

enum frag_err frag_generate(const struct frag_generator *generator,
                            const char *params, uint64_t seed,
                            struct frag_trace **out, struct frag_error *e)
{
    char *text = strdup(params ? params : "");
    void *values = calloc(1, generator->size);
    char path[256];
    enum frag_err err = FRAG_NOMEM;

    snprintf(path, sizeof(path), "%s:%s%sseed=%" PRIu64, generator->name,
             params ? params : "", params && *params ? "," : "", seed);
    if (!text || !values)
        frag_no_memory(e, "the parameters of a generator");
    else if (seed > FRAG_SEED_MAX)
        err =
            frag_fail(e, FRAG_INVALID,
                      "expected a seed of at most %" PRIu64 ", found %" PRIu64,
                      FRAG_SEED_MAX, seed);
    else
        err = set_all(generator, text, values, e);
    if (err == FRAG_OK)
        err = build(generator, values, path, seed, out, e);
    free(values);
    free(text);
    return err;
}
