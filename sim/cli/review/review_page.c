/* review_page.c - writes the HTML page of `fragsim report`, part by part: the
 * verdict, the figures and the commands. */
#include "sim/cli/review/review_page.h"

#include <inttypes.h>

#include "sim/cli/figures/figure.h"

/* A figure of all runs with its heading and explanation. */
static const struct part {
    const struct figure *figure;
    const char *head, *text;
    bool needs_traces; /* shown only if there are several subjects */
} parts[] = {
    {&figure_frontier, "Which policy survives which capacity",
     "Blue: every request was met. Orange: the run has an out-of-memory (OOM). "
     "With one trace, a darker colour means an earlier first OOM; with "
     "several, fewer traces that survive.",
     false},
    {&figure_pareto, "Memory and its price",
     "Memory that a policy reserves against the modelled time of its driver "
     "calls. A policy that knows the future is a bound; it cannot be chosen.",
     false},
    {&figure_heatmap, "Policy by trace",
     "Each number is peak reserved divided by the lower bound, the least "
     "memory that any of these policies needs for these requests: 1.00 is "
     "optimal, 1.50 is 50 % more.",
     true},
};

static enum frag_err put_parts(struct review_page *p, struct frag_error *e)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const struct part *part = &parts[i];
        const struct selection *s = &p->review->runs;

        if ((part->figure->lacks && part->figure->lacks(s)) ||
            (part->needs_traces && p->review->ranking.subject_count == 1))
            continue;
        fprintf(p->out, "<h2 class=\"page\">%s</h2>\n<p>%s</p>\n", part->head,
                part->text);
        FRAG_TRY(review_figure(p, part->figure, s, part->head, e));
    }
    return FRAG_OK;
}

static enum frag_err put_page(struct page *page, void *user,
                              struct frag_error *e)
{
    struct review_page p = {.review = user, .page = page, .out = page->out};

    review_verdict(&p);
    review_notes(&p);
    review_impossible(&p);
    review_policies(&p);
    FRAG_TRY(put_parts(&p, e));
    FRAG_TRY(review_traces(&p, e));
    review_provenance(&p);
    return FRAG_OK;
}

enum frag_err review_write(struct review *r, const char *path,
                           struct frag_error *e)
{
    const char *title = r->look->title;

    return page_write(path, title ? title : "Policy review", put_page, r, e);
}
