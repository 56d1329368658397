/* generator.h - what a generator of traces is, and the list of all generators.
 *
 * A generator makes a synthetic trace from parameters and a seed. The same
 * parameters and the same seed produce the same events. Every block is freed
 * before the trace ends.
 *
 * To add one: write traces/gen/NAME.c with `const struct frag_generator
 * frag_generator_NAME`, and add GENERATOR(NAME) to traces/gen/gen_list.h.
 */
#ifndef FRAG_TRACES_GEN_GENERATOR_H
#define FRAG_TRACES_GEN_GENERATOR_H

#include "traces/trace.h"

FRAG_BEGIN_DECLS

struct frag_gen; /* see traces/gen/gen.h */

enum frag_gen_param_kind {
    FRAG_GEN_SIZE,   /* frag_size, in the syntax of frag_size_parse */
    FRAG_GEN_NUMBER, /* uint64_t */
    FRAG_GEN_REAL,   /* double */
    FRAG_GEN_CHOICE, /* uint64_t: index of the word in `choices` */
};

/* One parameter: allocs is one in `fragsim gen stationary:allocs=1000`. */
struct frag_gen_param {
    const char *name;
    enum frag_gen_param_kind kind;
    size_t offset;       /* of the value in the generator's values */
    const char *init;    /* default, as a user would write it */
    const char *choices; /* "a|b|c" for CHOICE, else NULL */
    double min, max;     /* inclusive range of SIZE, NUMBER and REAL values */
    const char *help;    /* one line, with the unit */
};

struct frag_generator {
    const char *name;                    /* that of its file in traces/gen/ */
    const char *summary;                 /* one line */
    size_t size;                         /* of the values */
    const struct frag_gen_param *params; /* ended by a NULL name */
    /* Emits all events. NOMEM. */
    enum frag_err (*run)(struct frag_gen *g, const void *values);
};

#define GENERATOR(name) \
    extern const struct frag_generator frag_generator_##name;
#include "traces/gen/gen_list.h"
#undef GENERATOR

/* All generators in the order of gen_list.h. NULL ends the array. */
extern const struct frag_generator *const frag_generators[];

/* The generator with that name, or NULL. */
const struct frag_generator *frag_generator_find(const char *name);

/* The largest seed: seed + 1 must fit 32 bits. */
#define FRAG_SEED_MAX ((uint64_t)0xfffffffe)

/* Generates a trace. `params` is a text such as "allocs=1000,mean=1MiB"; with
 * NULL or "", all parameters have their defaults. `seed` is at most
 * FRAG_SEED_MAX. INVALID for a wrong parameter, NOMEM. On error *out is
 * untouched. */
enum frag_err frag_generate(const struct frag_generator *generator,
                            const char *params, uint64_t seed,
                            struct frag_trace **out,
                            struct frag_error *e) FRAG_MUST_CHECK;

FRAG_END_DECLS

#endif
