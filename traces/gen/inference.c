/* inference.c - serving a language model whose caches grow by copying.
 *
 * A fixed number of requests run at once; one that ends is replaced by the next
 * in the same step. A request starts with a cache for its prompt. Each step
 * adds a token to every request; a cache that is full is replaced by one that
 * has room for `chunk` more, so that both are live for a moment. A step has one
 * block for the scores of all requests, freed at its end.
 */
#include <math.h>
#include <stdlib.h>

#include "traces/gen/gen.h"

struct inference {
    uint64_t requests, running, chunk;
    double prompt, output, spread;
    frag_size token, scores;
};

struct request {
    uint64_t cache;
    uint64_t tokens, room; /* in the cache, and what it can hold */
    uint64_t left;         /* tokens to come */
};

struct server {
    struct frag_gen *g;
    const struct inference *v;
    struct request *running;
    uint64_t count, started;
};

static uint64_t draw_tokens(struct server *s, double mean)
{
    enum { LOGNORMAL = 3 }; /* of GEN_SHAPES */
    const double n = gen_draw(s->g->rng, LOGNORMAL, mean, s->v->spread);

    return (uint64_t)(n < 1 ? 1 : n < 0x1p20 ? n : 0x1p20);
}

/* A cache with room for the tokens so far, in whole chunks. */
static enum frag_err new_cache(struct server *s, struct request *r)
{
    r->room = frag_round_up(r->tokens, s->v->chunk);
    return gen_alloc(s->g, gen_bytes((double)r->room * (double)s->v->token), 0,
                     &r->cache);
}

static enum frag_err start(struct server *s, struct request *r)
{
    s->started++;
    r->tokens = draw_tokens(s, s->v->prompt);
    r->left = draw_tokens(s, s->v->output);
    return new_cache(s, r);
}

static enum frag_err add_token(struct server *s, struct request *r)
{
    const uint64_t old = r->cache;

    r->left--;
    if (++r->tokens <= r->room)
        return FRAG_OK;
    FRAG_TRY(new_cache(s, r));
    return gen_free(s->g, old);
}

/* Ends the request; the next takes its place, or the last one does. */
static enum frag_err end(struct server *s, struct request *r)
{
    FRAG_TRY(gen_free(s->g, r->cache));
    if (s->started < s->v->requests)
        return start(s, r);
    *r = s->running[--s->count];
    return FRAG_OK;
}

static enum frag_err take_step(struct server *s)
{
    uint64_t scores;

    FRAG_TRY(gen_alloc(s->g, gen_bytes((double)s->v->scores * (double)s->count),
                       0, &scores));
    for (uint64_t i = s->count; i-- > 0;) {
        FRAG_TRY(add_token(s, &s->running[i]));
        if (!s->running[i].left)
            FRAG_TRY(end(s, &s->running[i]));
    }
    return gen_free(s->g, scores);
}

static enum frag_err serve(struct server *s)
{
    const struct inference *v = s->v;

    while (s->count < v->running && s->started < v->requests)
        FRAG_TRY(start(s, &s->running[s->count++]));
    while (s->count)
        FRAG_TRY(take_step(s));
    return FRAG_OK;
}

static enum frag_err run(struct frag_gen *g, const void *values)
{
    struct server s = {.g = g, .v = values};
    enum frag_err err;

    s.running = calloc((size_t)s.v->running, sizeof(*s.running));
    if (!s.running)
        return frag_no_memory(g->e, "requests");
    err = serve(&s);
    free(s.running);
    return err;
}

/* clang-format off */
#define AT(field) offsetof(struct inference, field)
static const struct frag_gen_param params[] = {
    {"requests", FRAG_GEN_NUMBER, AT(requests), "500", NULL, 1, 1e8,
     "requests in all"},
    {"running", FRAG_GEN_NUMBER, AT(running), "32", NULL, 1, 1e6,
     "requests at once"},
    {"prompt", FRAG_GEN_REAL, AT(prompt), "512", NULL, 1, 1e6,
     "tokens of a prompt on average"},
    {"output", FRAG_GEN_REAL, AT(output), "256", NULL, 1, 1e6,
     "tokens of an answer on average"},
    {"spread", FRAG_GEN_REAL, AT(spread), "1", NULL, 0.01, 5,
     "sigma of both, which are lognormal"},
    {"chunk", FRAG_GEN_NUMBER, AT(chunk), "64", NULL, 1, 1e6,
     "tokens that a cache grows by"},
    {"token", FRAG_GEN_SIZE, AT(token), "128KiB", NULL, 1, 0x1p30,
     "bytes of a token in a cache"},
    {"scores", FRAG_GEN_SIZE, AT(scores), "256KiB", NULL, 1, 0x1p30,
     "bytes of a request's scores"},
    {0},
};
/* clang-format on */

const struct frag_generator frag_generator_inference = {
    .name = "inference",
    .summary = "requests to a language model, whose caches grow by copying",
    .size = sizeof(struct inference),
    .params = params,
    .run = run,
};
