/* figure_timeline.c - memory over the events of each run. */
#include <inttypes.h>

#include "sim/cli/figure.h"

/* A step as its corners, which gnuplot fills as one shape. */
static void put_step(FILE *out, uint64_t event, const struct frag_point *from,
                     const struct frag_point *to)
{
    if (from->allocated_max == to->allocated_max &&
        from->reserved_max == to->reserved_max)
        return;
    fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", event,
            from->allocated_max, from->reserved_max);
    fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", event,
            to->allocated_max, to->reserved_max);
}

static enum frag_err points(FILE *out, const struct selection *s)
{
    const struct frag_point nothing = {0};

    fputs("# event\tallocated\treserved\n", out);
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_run *m = &s->runs[i]->run;
        const struct frag_point *last = &nothing;

        fprintf(out, "%s0\t0\t0\n", i ? "\n\n" : "");
        for (uint64_t k = 0; k < m->point_count; last = &m->points[k++])
            put_step(out, m->points[k].event, last, &m->points[k]);
        fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                m->summary.events, last->allocated_max, last->reserved_max);
    }
    return FRAG_OK;
}

static enum frag_err ooms(FILE *out, const struct selection *s)
{
    /* A row that is drawn nowhere: gnuplot has no empty files. */
    fputs("run\tevent\treserved\n-1\t0\t0\n", out);
    for (size_t i = 0; i < s->count; i++)
        for (uint64_t k = 0; k < s->runs[i]->run.oom_count; k++)
            fprintf(out, "%zu\t%" PRIu64 "\t%" PRIu64 "\n", i,
                    s->runs[i]->run.ooms[k].event,
                    s->runs[i]->run.ooms[k].reserved);
    return FRAG_OK;
}

static enum frag_err runs(FILE *out, const struct selection *s)
{
    fputs("label\ttrace\tcapacity\tevents\n", out);
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_loaded_run *r = s->runs[i];

        put_label(out, s, r);
        fputs(" \u2014 peak ", out);
        put_size(out, r->run.summary.peak_reserved);
        put_ooms(out, r->run.summary.num_ooms);
        fputc('\t', out);
        put_trace(out, s);
        fprintf(out, "\t%" PRId64 "\t%" PRIu64 "\n", (int64_t)r->capacity,
                r->run.summary.events);
    }
    return FRAG_OK;
}

const struct figure figure_timeline = {
    .name = "timeline",
    .files = {{".tsv", points}, {".ooms.tsv", ooms}, {".runs.tsv", runs}},
};
