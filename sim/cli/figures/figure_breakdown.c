/* figure_breakdown.c - figure: the parts of the reserved bytes of each run at
 * its peak.
 */
#include <inttypes.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"

static void put_part(FILE *out, frag_size size)
{
    fprintf(out, "\t%" PRIu64, size);
}

static void rows(FILE *out, const void *user)
{
    const struct figure_source *source = user;
    const struct selection *s = source->runs;

    fputs("label\tnote\trequested\trounding\tpending\tfree_here\tfree_stream\t"
          "free_pool\tunusable\ttrace\n",
          out);
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_summary *m = &s->runs[i]->run.summary;

        put_label(out, s, s->runs[i]);
        fputc('\t', out);
        put_size(out, m->peak_reserved);
        put_ooms(out, m->num_ooms);
        put_part(out, m->at_peak.requested);
        put_part(out, m->at_peak.rounding);
        put_part(out, m->at_peak.pending);
        put_part(out, m->at_peak.free_here);
        put_part(out, m->at_peak.free_stream);
        put_part(out, m->at_peak.free_pool);
        put_part(out, m->at_peak.unusable);
        fputc('\t', out);
        put_trace(out, s);
        fputc('\n', out);
    }
}

const struct figure figure_breakdown = {
    .name = "breakdown",
    .files = {{".tsv", rows}},
    .limits = LIMIT_OF_RUNS(24, 48),
};
