/* figure_timeline.c - figure: reserved and allocated memory over the events of
 * each run.
 */
#include <inttypes.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"

/* More steps than a panel has pixels would not be visible. */
enum { STEPS = 800 };

/* Merges points [from, to) into one step: their maxima. */
static struct frag_point highest(const struct frag_point *from,
                                 const struct frag_point *to)
{
    struct frag_point top = *from;

    for (const struct frag_point *p = from; p < to; p++) {
        if (p->allocated_max > top.allocated_max)
            top.allocated_max = p->allocated_max;
        if (p->reserved_max > top.reserved_max)
            top.reserved_max = p->reserved_max;
    }
    return top;
}

static void put_corner(FILE *out, uint64_t event, const struct frag_point *p)
{
    fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", event,
            p->allocated_max, p->reserved_max);
}

/* Writes a run as the corners of its steps; gnuplot fills them as one shape. */
static void put_steps(FILE *out, const struct frag_run *m)
{
    uint64_t stride = (m->point_count + STEPS - 1) / STEPS;
    struct frag_point last = {0}, p;

    fputs("0\t0\t0\n", out);
    for (uint64_t k = 0; k < m->point_count; k += stride) {
        uint64_t end =
            k + stride < m->point_count ? k + stride : m->point_count;

        p = highest(&m->points[k], &m->points[end]);
        if (p.allocated_max == last.allocated_max &&
            p.reserved_max == last.reserved_max)
            continue;
        put_corner(out, p.event, &last);
        put_corner(out, p.event, &p);
        last = p;
    }
    put_corner(out, m->summary.events, &last);
}

static void points(FILE *out, const void *user)
{
    const struct figure_source *source = user;
    const struct selection *s = source->runs;

    fputs("# event\tallocated\treserved\n", out);
    for (size_t i = 0; i < s->count; i++) {
        fputs(i ? "\n\n" : "", out);
        put_steps(out, &s->runs[i]->run);
    }
}

static void ooms(FILE *out, const void *user)
{
    const struct figure_source *source = user;
    const struct selection *s = source->runs;

    /* A row that is not drawn, because gnuplot rejects a file without rows. */
    fputs("run\tevent\treserved\n-1\t0\t0\n", out);
    for (size_t i = 0; i < s->count; i++)
        for (uint64_t k = 0; k < s->runs[i]->run.oom_count; k++)
            fprintf(out, "%zu\t%" PRIu64 "\t%" PRIu64 "\n", i,
                    s->runs[i]->run.ooms[k].event,
                    s->runs[i]->run.ooms[k].reserved);
}

/* The name column is empty if all runs are of one trace. */
static void runs(FILE *out, const void *user)
{
    const struct figure_source *source = user;
    const struct selection *s = source->runs;

    fputs("label\ttrace\tcapacity\tevents\tname\tnote\tpeak\tfirst_oom\n", out);
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_loaded_run *r = s->runs[i];
        const struct frag_summary *m = &r->run.summary;

        put_setting(out, s, r);
        fputc('\t', out);
        put_trace(out, s);
        fprintf(out, "\t%" PRId64 "\t%" PRIu64 "\t", (int64_t)r->id.bound.bytes,
                m->events);
        put_cell(out, s->one_trace ? "" : selection_trace(s, r));
        fputs("\tpeak ", out);
        put_size(out, m->peak_reserved);
        put_ooms(out, m->num_ooms);
        fprintf(out, "\t%" PRIu64 "\t%" PRId64 "\n", m->peak_reserved,
                (int64_t)m->first_oom_event);
    }
}

static const char *lacks(const struct selection *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (!s->runs[i]->run.point_count)
            return "a run has no series; fragsim replay stores them, and "
                   "fragsim sweep with --points";
    return NULL;
}

const struct figure figure_timeline = {
    .name = "timeline",
    .files = {{".tsv", points}, {".ooms.tsv", ooms}, {".runs.tsv", runs}},
    .limits = LIMIT_OF_RUNS(12, 48),
    .lacks = lacks,
};
