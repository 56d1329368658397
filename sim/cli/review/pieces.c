/* pieces.c - what several parts of the page of `fragsim report` have: the name
 * of a trace, a link to its chapter, and a figure. */
#include <inttypes.h>

#include "sim/cli/figures/figure.h"
#include "sim/cli/review/review_page.h"

void review_trace_name(FILE *out, const struct frag_loaded_run *r)
{
    html_text(out, r->id.trace.name);
    if (r->id.trace.device)
        fprintf(out, ", device %" PRIu32, r->id.trace.device);
}

void review_trace_link(FILE *out, const struct review *r, size_t subject)
{
    fprintf(out, "<a href=\"#trace-%zu\">", subject);
    review_trace_name(out, r->ranking.subjects[subject].first);
    fputs("</a>", out);
}

enum frag_err review_figure(struct review_page *p, const struct figure *f,
                            const struct selection *s, const char *caption,
                            struct frag_error *e)
{
    const struct review *r = p->review;
    const size_t most = 3 + 2 * r->ranking.subject_count;
    struct drawing d = *r->look;
    struct figure_note note;

    if (f->lacks && f->lacks(s)) {
        p->page->figures++;
        return FRAG_OK;
    }
    if (progress_tick(r->progress, p->page->figures + 1, most))
        return FRAG_CANCELLED;
    d.title = NULL;
    FRAG_TRY(page_picture(p->page, &d.out, e));
    FRAG_TRY(figure_draw(f, s, &(const struct figure_wish){0}, &d, &note, e));
    return page_figure(p->page, caption, NULL, e);
}
