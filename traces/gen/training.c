/* training.c - the steps of training a transformer.
 *
 * Weights stay live in all steps. Each step draws the length of its batch,
 * which scales all activations. The forward pass allocates the tensors of each
 * layer; it keeps those that the backward pass needs and frees the others at
 * once. The backward pass frees a kept tensor as soon as its gradient exists,
 * and allocates a gradient for the weights of each layer. The optimizer ends
 * the step: in the first step it allocates its two states for each layer, and
 * in every step it frees the gradients of the weights.
 */
#include <stdlib.h>

#include "traces/gen/gen.h"

struct training {
    uint64_t steps, layers;
    frag_size activation, weights;
    double jitter;
};

/* The tensors of a layer in the forward pass, in units of one activation: norm;
 * query, key and value; attention; its output; norm; the wide layer; the
 * function after the wide layer; the sum. */
static const struct tensor {
    unsigned units;
    bool kept; /* until the backward pass */
} tensors[] = {{1, true}, {3, true}, {1, true}, {1, false},
               {1, true}, {4, true}, {4, true}, {1, false}};

enum { TENSORS = sizeof(tensors) / sizeof(*tensors), STATES = 2 };

struct layer {
    uint64_t weights, gradient, states[STATES], kept[TENSORS]; /* ids */
};

struct step {
    struct frag_gen *g;
    const struct training *v;
    struct layer *layers;
    double unit; /* bytes of one activation in this step */
};

static frag_size bytes_of(const struct step *s, size_t tensor)
{
    return gen_bytes(s->unit * tensors[tensor].units);
}

static enum frag_err forward(struct step *s, struct layer *l)
{
    for (size_t i = 0; i < TENSORS; i++) {
        FRAG_TRY(gen_alloc(s->g, bytes_of(s, i), 0, &l->kept[i]));
        if (!tensors[i].kept)
            FRAG_TRY(gen_free(s->g, l->kept[i]));
    }
    return FRAG_OK;
}

/* *above is the gradient that the layer above passes down. On return it is the
 * gradient that this layer passes down. */
static enum frag_err backward(struct step *s, struct layer *l, uint64_t *above)
{
    for (size_t i = TENSORS; i-- > 0;) {
        uint64_t gradient;

        FRAG_TRY(gen_alloc(s->g, bytes_of(s, i), 0, &gradient));
        if (tensors[i].kept)
            FRAG_TRY(gen_free(s->g, l->kept[i]));
        FRAG_TRY(gen_free(s->g, *above));
        *above = gradient;
    }
    return gen_alloc(s->g, s->v->weights, 0, &l->gradient);
}

static enum frag_err optimize(struct step *s, struct layer *l, bool first)
{
    uint64_t update;

    for (size_t i = 0; first && i < STATES; i++)
        FRAG_TRY(gen_alloc(s->g, s->v->weights, 0, &l->states[i]));
    FRAG_TRY(gen_alloc(s->g, s->v->weights, 0, &update));
    return gen_free(s->g, update);
}

static enum frag_err take_step(struct step *s, bool first)
{
    const uint64_t n = s->v->layers;
    uint64_t above;

    s->unit = (double)s->v->activation *
              (1 - s->v->jitter * gsl_rng_uniform(s->g->rng));
    for (uint64_t i = 0; i < n; i++)
        FRAG_TRY(forward(s, &s->layers[i]));
    FRAG_TRY(gen_alloc(s->g, gen_bytes(s->unit), 0, &above));
    for (uint64_t i = n; i-- > 0;)
        FRAG_TRY(backward(s, &s->layers[i], &above));
    FRAG_TRY(gen_free(s->g, above));
    for (uint64_t i = 0; i < n; i++)
        FRAG_TRY(optimize(s, &s->layers[i], first));
    for (uint64_t i = 0; i < n; i++)
        FRAG_TRY(gen_free(s->g, s->layers[i].gradient));
    return FRAG_OK;
}

static enum frag_err train(struct step *s)
{
    const uint64_t n = s->v->layers;

    for (uint64_t i = 0; i < n; i++)
        FRAG_TRY(gen_alloc(s->g, s->v->weights, 0, &s->layers[i].weights));
    for (uint64_t i = 0; i < s->v->steps; i++)
        FRAG_TRY(take_step(s, i == 0));
    for (uint64_t i = 0; i < n; i++) {
        FRAG_TRY(gen_free(s->g, s->layers[i].weights));
        for (size_t k = 0; k < STATES; k++)
            FRAG_TRY(gen_free(s->g, s->layers[i].states[k]));
    }
    return FRAG_OK;
}

static enum frag_err run(struct frag_gen *g, const void *values)
{
    struct step s = {.g = g, .v = values};
    enum frag_err err;

    s.layers = calloc((size_t)s.v->layers, sizeof(*s.layers));
    if (!s.layers)
        return frag_no_memory(g->e, "the layers of a model");
    err = train(&s);
    free(s.layers);
    return err;
}

/* clang-format off */
#define AT(field) offsetof(struct training, field)
static const struct frag_gen_param params[] = {
    {"steps", FRAG_GEN_NUMBER, AT(steps), "20", NULL, 1, 1e7,
     "number of steps"},
    {"layers", FRAG_GEN_NUMBER, AT(layers), "24", NULL, 1, 4096,
     "number of layers"},
    {"activation", FRAG_GEN_SIZE, AT(activation), "8MiB", NULL, 1, 0x1p36,
     "bytes of one activation in the longest batch"},
    {"weights", FRAG_GEN_SIZE, AT(weights), "24MiB", NULL, 1, 0x1p36,
     "bytes of the weights of one layer"},
    {"jitter", FRAG_GEN_REAL, AT(jitter), "0.3", NULL, 0, 1,
     "how much shorter a batch may be: 0.3 is 30 % of the longest"},
    {0},
};
/* clang-format on */

const struct frag_generator frag_generator_training = {
    .name = "training",
    .summary =
        "steps of training a transformer, with batches of varying length",
    .size = sizeof(struct training),
    .params = params,
    .run = run,
};
