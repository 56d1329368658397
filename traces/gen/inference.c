/* inference.c - requests to a language model whose caches grow by copying.
 *
 * A fixed number of requests run at the same time. When a request ends, the
 * next one replaces it in the same step. A request starts with a cache for its
 * prompt. Each step adds one token to every request. A full cache is replaced
 * by one with room for `chunk` more tokens, and both caches are live for a
 * moment. Each step allocates one block for the scores of all requests and
 * frees it when the step ends.
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
    uint64_t tokens, room; /* tokens in the cache, and its capacity in tokens */
    uint64_t left;         /* tokens still to generate */
};

struct server {
    struct frag_gen *g;
    const struct inference *v;
    struct request *running;
    uint64_t count, started; /* requests running, and started so far */
};

static uint64_t draw_tokens(struct server *s, double mean)
{
    enum { LOGNORMAL = 3 }; /* index in GEN_SHAPES */
    const double n = gen_draw(s->g->rng, LOGNORMAL, mean, s->v->spread);

    return (uint64_t)(n < 1 ? 1 : n < 0x1p20 ? n : 0x1p20);
}

/* Allocates a cache for the tokens so far, rounded up to whole chunks. */
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

/* Ends a request. The next request replaces it; if none is left, the last
 * running one moves to its place. */
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
        return frag_no_memory(g->e, "running requests");
    err = serve(&s);
    free(s.running);
    return err;
}

/* clang-format off */
#define AT(field) offsetof(struct inference, field)
static const struct frag_gen_param params[] = {
    {"requests", FRAG_GEN_NUMBER, AT(requests), "500", NULL, 1, 1e8,
     "number of requests in total"},
    {"running", FRAG_GEN_NUMBER, AT(running), "32", NULL, 1, 1e6,
     "number of requests that run at the same time"},
    {"prompt", FRAG_GEN_REAL, AT(prompt), "512", NULL, 1, 1e6,
     "mean tokens of a prompt"},
    {"output", FRAG_GEN_REAL, AT(output), "256", NULL, 1, 1e6,
     "mean tokens of an answer"},
    {"spread", FRAG_GEN_REAL, AT(spread), "1", NULL, 0.01, 5,
     "sigma of the lognormal lengths of prompts and answers"},
    {"chunk", FRAG_GEN_NUMBER, AT(chunk), "64", NULL, 1, 1e6,
     "tokens by which a full cache grows"},
    {"token", FRAG_GEN_SIZE, AT(token), "128KiB", NULL, 1, 0x1p30,
     "bytes of one token in a cache"},
    {"scores", FRAG_GEN_SIZE, AT(scores), "256KiB", NULL, 1, 0x1p30,
     "bytes of the scores of one request"},
    {0},
};
/* clang-format on */

const struct frag_generator frag_generator_inference = {
    .name = "inference",
    .summary = "requests to a language model whose caches grow by copying",
    .size = sizeof(struct inference),
    .params = params,
    .run = run,
};
