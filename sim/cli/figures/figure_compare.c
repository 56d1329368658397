/* figure_compare.c - figure: peak reserved of each run beside peak requested.
 */
#include <inttypes.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"

static void rows(FILE *out, const void *user)
{
    const struct figure_source *source = user;
    const struct selection *s = source->runs;

    fputs("label\tnote\trequested\treserved\tooms\ttrace\n", out);
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_loaded_run *r = s->runs[i];
        const struct frag_summary *m = &r->run.summary;

        put_label(out, s, r);
        fputc('\t', out);
        put_size(out, m->peak_reserved);
        fprintf(out, ", %.2fx", m->overhead);
        put_ooms(out, m->num_ooms);
        fprintf(out, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t",
                m->peak_requested, m->peak_reserved, m->num_ooms);
        put_trace(out, s);
        fputc('\n', out);
    }
}

const struct figure figure_compare = {
    .name = "compare",
    .files = {{".tsv", rows}},
    .limits = LIMIT_OF_RUNS(24, 48),
};
