/* fleetbench.c - requests that follow a heap profile of Google's fleetbench.
 *
 * A profile is a CSV without a header. A row is a size in bytes, the
 * allocations of that size per unit of time (rate), and the average number of
 * live blocks of that size (live). The generator runs the birth-death process
 * that the profile describes. Requests come at the total rate, and each size
 * has its share of the rate. The lifetime is exponential with the mean live /
 * rate (Little's law). One factor shortens all lifetimes, so that the number of
 * live blocks is the parameter `live` on average. The trace starts with that
 * many blocks, drawn by their share of the live blocks. No history before the
 * start is needed, because exponential lifetimes are memoryless.
 *
 * Source: google/fleetbench at 703e5e5, fleetbench/tcmalloc/distributions.
 */
#include <errno.h>
#include <gsl/gsl_randist.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/bytes/input.h"
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
    double rate_sum, live_sum; /* sums up to and including this row */
};

struct profile {
    uint64_t count, room;
    struct row *rows;
};

/* Reads a line into a new row. CORRUPT, NOMEM. */
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
                         "%s:%" PRIu64
                         ": expected size, rate, live, all above 0 "
                         "(size at most 2^40, others below 1e15), found "
                         "\"%.*s\"",
                         path, p->count + 1, (int)strcspn(line, "\r\n"), line);
    row.rate_sum = last->rate_sum + row.rate;
    row.live_sum = last->live_sum + row.live;
    if (!GROW(p->rows, p->room, p->count + 1))
        return frag_no_memory(e, "%s", path);
    p->rows[p->count++] = row;
    return FRAG_OK;
}

static enum frag_err read_profile(const char *path, struct profile *p,
                                  struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    char line[256];
    FILE *in;

    FRAG_TRY(input_file(path, &in, e));
    while (err == FRAG_OK && fgets(line, sizeof(line), in))
        err = add_row(p, line, path, e);
    if (err == FRAG_OK && ferror(in))
        err =
            frag_fail(e, FRAG_IO, "%s: cannot read: %s", path, strerror(errno));
    fclose(in);
    if (err == FRAG_OK && !p->count)
        err = frag_fail(e, FRAG_CORRUPT, "%s: expected rows, found none", path);
    return err;
}

/* Draws a row with a probability in proportion to its rate or its live blocks.
 */
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

/* Runs the process: first the live blocks of the start, then the requests. */
static enum frag_err simulate(struct frag_gen *g, const struct fleetbench *v,
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
        err = simulate(g, v, &p);
    free(p.rows);
    return err;
}

/* clang-format off */
#define AT(field) offsetof(struct fleetbench, field)
static const struct frag_gen_param params[] = {
    {"profile", FRAG_GEN_FILE, AT(profile), NULL, NULL, 0, 0,
     "CSV file; each row is size, rate, live"},
    {"allocs", FRAG_GEN_NUMBER, AT(allocs), "100000", NULL, 1, 1e9,
     "number of requests after the start"},
    {"live", FRAG_GEN_NUMBER, AT(live), "10000", NULL, 1, 1e8,
     "number of live blocks at the start, and on average"},
    {0},
};
/* clang-format on */

const struct frag_generator frag_generator_fleetbench = {
    .name = "fleetbench",
    .summary = "birth-death process from a heap profile of fleetbench",
    .size = sizeof(struct fleetbench),
    .params = params,
    .run = run,
};
