/* generator.h - what a generator of traces is.
 *
 * The same parameters and the same seed give the same events. Every block is
 * freed in the end.
 *
 * To add one: write traces/gen_<name>.c, add GENERATOR(<name>) to
 * traces/gen/list.h.
 */
#ifndef FRAG_TRACES_GEN_GENERATOR_H
#define FRAG_TRACES_GEN_GENERATOR_H

#include "traces/trace.h"

FRAG_BEGIN_DECLS

struct frag_gen; /* see traces/gen/gen.h */

enum frag_gen_param_kind {
    FRAG_GEN_SIZE,   /* frag_size, as frag_size_parse */
    FRAG_GEN_NUMBER, /* uint64_t */
    FRAG_GEN_REAL,   /* double */
    FRAG_GEN_CHOICE, /* uint64_t: index of the word in `choices` */
    FRAG_GEN_FILE,   /* const char *: a path, without commas */
};

/* One tunable: "allocs=1000" in `fragsim gen stationary:allocs=1000`. */
struct frag_gen_param {
    const char *name;
    enum frag_gen_param_kind kind;
    size_t offset;       /* of the value in the generator's values */
    const char *init;    /* default, as a user would write it; NULL for a file,
                            which must be given */
    const char *choices; /* "a|b|c" for CHOICE, else NULL */
    double min, max;     /* inclusive range of SIZE, NUMBER and REAL values */
    const char *help;    /* one line, with the unit */
};

struct frag_generator {
    const char *name;                    /* the file's name without gen_ */
    const char *summary;                 /* one line */
    size_t size;                         /* of the values */
    const struct frag_gen_param *params; /* ended by a NULL name */
    enum frag_err (*run)(struct frag_gen *g, const void *values);
};

#define GENERATOR(name) \
    extern const struct frag_generator frag_generator_##name;
#include "traces/gen/list.h"
#undef GENERATOR

/* In the order of generators.h; NULL ends the array. */
extern const struct frag_generator *const frag_generators[];

/* NULL if there is none of that name. */
const struct frag_generator *frag_generator_find(const char *name);

#define FRAG_SEED_MAX ((uint64_t)0xfffffffe)

/* Generates a trace, with params as "allocs=1000,mean=1MiB" (NULL or "": all
 * defaults) and a seed of at most FRAG_SEED_MAX. INVALID for a wrong parameter,
 * IO or CORRUPT for an input that cannot be read, NOMEM; on error *out is
 * untouched. */
enum frag_err frag_generate(const struct frag_generator *generator,
                            const char *params, uint64_t seed,
                            struct frag_trace **out,
                            struct frag_error *e) FRAG_MUST_CHECK;

FRAG_END_DECLS

#endif
