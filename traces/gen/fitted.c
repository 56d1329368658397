/* fitted.c - requests with the statistics of a recorded trace, in a new order.
 *
 * Each request is drawn with replacement from the requests of the trace. Size,
 * stream and lifetime are drawn together, so that their correlation is kept.
 * Only the order of the requests is lost. Lifetimes are counted in requests. A
 * block that the trace never frees is live until the trace ends.
 */
#include <stdlib.h>

#include "traces/gen/gen.h"

struct fitted {
    const char *trace;
    uint64_t device, allocs;
};

struct sample {
    frag_size bytes;
    uint64_t stream;
    uint64_t birth, death; /* in requests since the trace began */
};

struct samples {
    uint64_t count;
    struct sample *rows;
    uint64_t *of_slot; /* by slot: index of the sample of its live block */
};

/* Collects the samples of a device's trace. */
static void follow(struct samples *s, const struct frag_device_trace *d)
{
    for (uint64_t i = 0; i < d->count; i++) {
        if (d->op[i] == FRAG_ALLOC) {
            s->of_slot[d->id[i]] = s->count;
            s->rows[s->count] = (struct sample){.bytes = d->bytes[i],
                                                .stream = d->stream[i],
                                                .birth = s->count,
                                                .death = UINT64_MAX};
            s->count++;
        } else if (d->op[i] == FRAG_FREE) {
            s->rows[s->of_slot[d->id[i]]].death = s->count;
        }
    }
    for (uint64_t i = 0; i < s->count; i++)
        if (s->rows[i].death == UINT64_MAX)
            s->rows[i].death = s->count;
}

static enum frag_err draw(struct frag_gen *g, const struct samples *s,
                          uint64_t allocs)
{
    for (uint64_t i = 0; i < allocs; i++) {
        const struct sample *row =
            &s->rows[gsl_rng_uniform_int(g->rng, (unsigned long)s->count)];
        const double life = (double)(row->death - row->birth);

        FRAG_TRY(gen_advance(g, (double)i));
        FRAG_TRY(gen_alloc_until(g, row->bytes, row->stream, (double)i + life));
    }
    return gen_drain(g);
}

static enum frag_err resample(struct frag_gen *g, const struct fitted *v,
                              const struct frag_device_trace *d)
{
    struct samples s = {0};
    enum frag_err err = FRAG_NOMEM;

    s.rows = malloc((size_t)(d->count + 1) * sizeof(*s.rows));
    s.of_slot = calloc((size_t)d->slots + 1, sizeof(*s.of_slot));
    if (s.rows && s.of_slot) {
        follow(&s, d);
        err = s.count
                  ? draw(g, &s, v->allocs ? v->allocs : s.count)
                  : frag_fail(g->e, FRAG_INVALID,
                              "%s: expected a trace with requests, found none",
                              v->trace);
    }
    free(s.rows);
    free(s.of_slot);
    return err;
}

static enum frag_err run(struct frag_gen *g, const void *values)
{
    const struct fitted *v = values;
    const struct frag_device_trace *d;
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(frag_trace_open(v->trace, NULL, &t, g->e));
    d = frag_trace_device(t, (uint32_t)v->device);
    err = d ? resample(g, v, d)
            : frag_fail(g->e, FRAG_INVALID,
                        "%s: it has no device %u; \"fragsim info\" lists the "
                        "devices",
                        v->trace, (unsigned)v->device);
    frag_trace_close(t);
    return err;
}

/* clang-format off */
#define AT(field) offsetof(struct fitted, field)
static const struct frag_gen_param params[] = {
    {"trace", FRAG_GEN_FILE, AT(trace), NULL, NULL, 0, 0,
     "the trace whose requests are drawn"},
    {"device", FRAG_GEN_NUMBER, AT(device), "0", NULL, 0, 1e6,
     "number of the device in that trace"},
    {"allocs", FRAG_GEN_NUMBER, AT(allocs), "0", NULL, 0, 1e9,
     "number of requests; 0: as many as the trace has"},
    {0},
};
/* clang-format on */

const struct frag_generator frag_generator_fitted = {
    .name = "fitted",
    .summary = "requests of a trace, drawn with their lifetimes in a new order",
    .size = sizeof(struct fitted),
    .params = params,
    .run = run,
};
