/* page.c - the page from its first line to its last. */
#include "sim/cli/review/page.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/review/html.h"
#include "sim/cli/scratch.h"

/* A figure of all runs under a head and a sentence. */
static const struct part {
    const struct figure *figure;
    const char *head, *text;
    bool needs_traces; /* more than one */
} parts[] = {
    {&figure_frontier, "Who survives which capacity",
     "Blue: every request was met. Orange: the run met an out-of-memory; the "
     "darker, the earlier or the oftener.",
     false},
    {&figure_pareto, "Memory and its price",
     "What a policy holds against what its calls to the driver would take, by "
     "costs measured on the device that the results name. A policy that knows "
     "the future is a bound and no choice.",
     false},
    {&figure_heatmap, "Policy by trace",
     "Each number is peak reserved over the least that any policy needs for "
     "these requests: 1.00 is perfect, 1.50 holds half as much again.",
     true},
};

static enum frag_err put_parts(struct page *p, struct frag_error *e)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const struct part *part = &parts[i];
        const struct selection *s = &p->review->runs;

        if ((part->figure->lacks && part->figure->lacks(s)) ||
            (part->needs_traces && p->review->ranking.subject_count == 1))
            continue;
        fprintf(p->out, "<h2 class=\"page\">%s</h2>\n<p>%s</p>\n", part->head,
                part->text);
        FRAG_TRY(page_figure(p, part->figure, s, part->head, e));
    }
    return FRAG_OK;
}

static enum frag_err put_page(struct page *p, struct frag_error *e)
{
    html_open(p->out, "Policy review");
    page_verdict(p);
    page_policies(p);
    FRAG_TRY(put_parts(p, e));
    FRAG_TRY(page_traces(p, e));
    page_provenance(p);
    html_close(p->out);
    return FRAG_OK;
}

enum frag_err review_write(const struct review *r, FILE *out,
                           struct frag_error *e)
{
    struct page p = {.review = r, .out = out};
    enum frag_err err;

    p.figures_all = 3 + 2 * (unsigned)r->ranking.subject_count;
    FRAG_TRY(scratch_make(&p.folder, e));
    err = put_page(&p, e);
    scratch_remove(p.folder);
    return err;
}
