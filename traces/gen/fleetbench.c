/* fleetbench.c - the heap profiles of Google's fleetbench.
 *
 * A profile is a CSV without a header: size in bytes, allocations of that size
 * a unit of time, and how many of it are live on average. It is run as the
 * birth-death process it describes: requests come at the total rate, a size
 * with its share of it, and live for an exponential time whose mean is live /
 * rate (Little's law), all lifetimes shortened so that `live` blocks are live
 * on average. It starts with that many, drawn by their share of the live ones:
 * exponential lifetimes have no memory.
 *
 * Source: google/fleetbench at 703e5e5, fleetbench/tcmalloc/distributions.
 */
#include <gsl/gsl_randist.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "traces/gen/gen.h"
#include "traces/grow.h"

struct fleetbench {
    const char *profile;
    uint64_t allocs;
    uint64_t live;
};

struct row {
    frag_size bytes;
    double rate, live;         /* as in the file */
    double rate_sum, live_sum; /* up to and with this row */
};

struct profile {
    uint64_t count, room;
    struct row *rows;
};

static enum frag_err add_row(struct profile *p, const char *line,
                             const char *path, struct frag_error *e)
{
    const struct row zero = {0},
                     *last = p->count ? &p->rows[p->count - 1] : &zero;
    struct row row = {0};

    if (sscanf(line, "%" SCNu64 ", %lf, %lf", &row.bytes, &row.rate,
               &row.live) != 3 ||
        !row.bytes || row.bytes > (frag_size)1 << 40 ||
        !(row.rate > 0 && row.rate < 1e15) ||
        !(row.live > 0 && row.live < 1e15))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s:%" PRIu64 ": expected size, rate, live", path,
                         p->count + 1);
    row.rate_sum = last->rate_sum + row.rate;
    row.live_sum = last->live_sum + row.live;
    if (!GROW(p->rows, p->room, p->count + 1))
        return frag_no_memory(e, "a profile");
    p->rows[p->count++] = row;
    return FRAG_OK;
}

static enum frag_err read_profile(const char *path, struct profile *p,
                                  struct frag_error *e)
{
    FILE *in = fopen(path, "r");
    enum frag_err err = FRAG_OK;
    char line[256];

    if (!in)
        return frag_fail(e, FRAG_IO, "%s: cannot be opened", path);
    while (err == FRAG_OK && fgets(line, sizeof(line), in))
        err = add_row(p, line, path, e);
    if (err == FRAG_OK && ferror(in))
        err = frag_fail(e, FRAG_IO, "%s: cannot be read", path);
    fclose(in);
    if (err == FRAG_OK && !p->count)
        err = frag_fail(e, FRAG_CORRUPT, "%s: expected rows, found none", path);
    return err;
}

/* The first row whose sum is above a uniform part of the last one's. */
static const struct row *draw_row(struct frag_gen *g, const struct profile *p,
                                  bool by_rate)
{
    const struct row *last = &p->rows[p->count - 1];
    const double all = by_rate ? last->rate_sum : last->live_sum;
    const double at = gsl_rng_uniform(g->rng) * all;
    uint64_t low = 0, high = p->count - 1;

    while (low < high) {
        const uint64_t mid = (low + high) / 2;
        const struct row *row = &p->rows[mid];

        if ((by_rate ? row->rate_sum : row->live_sum) > at)
            high = mid;
        else
            low = mid + 1;
    }
    return &p->rows[low];
}

static enum frag_err live_on(struct frag_gen *g, const struct fleetbench *v,
                             const struct profile *p)
{
    const struct row *last = &p->rows[p->count - 1];
    const double shorter = (double)v->live / last->live_sum;
    double now = 0;

    for (uint64_t i = 0; i < v->live + v->allocs; i++) {
        const bool start = i < v->live;
        const struct row *row = draw_row(g, p, !start);
        const double life =
            gsl_ran_exponential(g->rng, row->live / row->rate * shorter);

        if (!start)
            now += gsl_ran_exponential(g->rng, 1 / last->rate_sum);
        FRAG_TRY(gen_advance(g, start ? -1 : now));
        FRAG_TRY(gen_alloc_until(g, row->bytes, 0, now + life));
    }
    return gen_drain(g);
}

static enum frag_err run(struct frag_gen *g, const void *values)
{
    const struct fleetbench *v = values;
    struct profile p = {0};
    enum frag_err err = read_profile(v->profile, &p, g->e);

    if (err == FRAG_OK)
        err = live_on(g, v, &p);
    free(p.rows);
    return err;
}

/* clang-format off */
#define AT(field) offsetof(struct fleetbench, field)
static const struct frag_gen_param params[] = {
    {"profile", FRAG_GEN_FILE, AT(profile), NULL, NULL, 0, 0,
     "CSV of size, rate, live"},
    {"allocs", FRAG_GEN_NUMBER, AT(allocs), "100000", NULL, 1, 1e9,
     "requests after the start"},
    {"live", FRAG_GEN_NUMBER, AT(live), "10000", NULL, 1, 1e8,
     "blocks that are live on average, and at the start"},
    {0},
};
/* clang-format on */

const struct frag_generator frag_generator_fleetbench = {
    .name = "fleetbench",
    .summary = "a heap profile of fleetbench as a birth-death process",
    .size = sizeof(struct fleetbench),
    .params = params,
    .run = run,
};
