/* figure_distributions.c - figure: sizes and lifetimes of a trace's requests.
 *
 * Both cover many powers of two, so each bin is one power of two. A lifetime is
 * counted in events; a block that is never freed lives to the end of the
 * trace. */
#include <gsl/gsl_histogram.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"

enum { BINS = 64 };

/* Number of requests, and number of their bytes, in the same bins. */
struct spread {
    gsl_histogram *requests, *bytes;
};

struct spreads {
    struct spread size, lifetime;
};

static gsl_histogram *powers_of_two(void)
{
    gsl_histogram *h = gsl_histogram_alloc(BINS);
    double edges[BINS + 1];

    for (int i = 0; i <= BINS; i++)
        edges[i] = ldexp(1.0, i);
    if (h)
        gsl_histogram_set_ranges(h, edges, BINS + 1);
    return h;
}

static void spread_free(struct spread *s)
{
    gsl_histogram_free(s->requests);
    gsl_histogram_free(s->bytes);
}

static bool spread_make(struct spread *s)
{
    s->requests = powers_of_two();
    s->bytes = powers_of_two();
    return s->requests && s->bytes;
}

static void add(struct spread *s, uint64_t x, uint64_t bytes)
{
    gsl_histogram_increment(s->requests, (double)(x ? x : 1));
    gsl_histogram_accumulate(s->bytes, (double)(x ? x : 1), (double)bytes);
}

/* Counts the size of each request, and its lifetime when the block is freed.
 * born[slot] is the event of the request; FRAG_NEVER: the slot is free. */
static void count(const struct frag_device_trace *d, uint64_t *born,
                  struct spreads *out)
{
    for (uint32_t slot = 0; slot < d->slots; slot++)
        born[slot] = FRAG_NEVER;
    for (uint64_t i = 0; i < d->count; i++) {
        uint64_t *at = &born[d->id[i]];

        if (d->op[i] == FRAG_ALLOC) {
            add(&out->size, d->bytes[i], d->bytes[i]);
            *at = i;
        } else if (d->op[i] == FRAG_FREE) {
            add(&out->lifetime, i - *at, d->bytes[*at]);
            *at = FRAG_NEVER;
        }
    }
    for (uint32_t slot = 0; slot < d->slots; slot++)
        if (born[slot] != FRAG_NEVER)
            add(&out->lifetime, d->count - born[slot], d->bytes[born[slot]]);
}

static void put_spread(FILE *out, const char *kind, const struct spread *s,
                       const struct trace_view *v)
{
    double requests = gsl_histogram_sum(s->requests);
    double bytes = gsl_histogram_sum(s->bytes);

    for (size_t i = 0; i < BINS; i++) {
        double n = gsl_histogram_get(s->requests, i);

        if (n <= 0)
            continue;
        fprintf(out, "%s\t%zu\t%.0f\t%.0f\t%.6g\t%.6g\t", kind, i, n,
                gsl_histogram_get(s->bytes, i), n / requests,
                gsl_histogram_get(s->bytes, i) / bytes);
        put_short(out, v->name, 40);
        fputc('\n', out);
    }
}

static bool is_empty(const struct frag_device_trace *d)
{
    for (uint64_t i = 0; i < d->count; i++)
        if (d->op[i] == FRAG_ALLOC)
            return false;
    return true;
}

static enum frag_err find(const struct figure_source *s, struct frag_error *e)
{
    const struct frag_device_trace *d = s->trace->device;
    struct spreads *spreads = s->found;
    uint64_t *born;

    if (is_empty(d))
        return frag_fail(e, FRAG_INVALID, "%s: the trace has no allocation",
                         s->trace->name);
    if (!spread_make(&spreads->size) || !spread_make(&spreads->lifetime))
        return FRAG_NOMEM;
    born = calloc((size_t)d->slots + 1, sizeof(*born));
    if (!born)
        return FRAG_NOMEM;
    count(d, born, spreads);
    free(born);
    return FRAG_OK;
}

static void release(void *found)
{
    struct spreads *s = found;

    spread_free(&s->size);
    spread_free(&s->lifetime);
}

static void rows(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct spreads *found = s->found;

    fputs("kind\tpower\trequests\tbytes\trequest_share\tbyte_share\ttrace\n",
          out);
    put_spread(out, "size", &found->size, s->trace);
    put_spread(out, "lifetime", &found->lifetime, s->trace);
}

const struct figure figure_distributions = {
    .name = "distributions",
    .is_of_trace = true,
    .files = {{".tsv", rows}},
    .size = sizeof(struct spreads),
    .find = find,
    .release = release,
};
