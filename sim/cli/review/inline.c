/* inline.c - writes the pieces that several parts of the page have: the name of
 * a trace, a link to its part, and a figure, drawn in a temporary folder. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/cli/figures/figure.h"
#include "sim/cli/review/html.h"
#include "sim/cli/review/review_page.h"
#include "sim/cli/scratch.h"

void page_trace_name(FILE *out, const struct frag_loaded_run *r)
{
    html_text(out, r->trace);
    if (r->device)
        fprintf(out, ", device %" PRIu64, r->device);
}

void page_trace_link(FILE *out, const struct review *r, size_t subject)
{
    fprintf(out, "<a href=\"#trace-%zu\">", subject);
    page_trace_name(out, r->ranking.subjects[subject].first);
    fputs("</a>", out);
}

enum frag_err page_figure(struct page *p, const struct figure *f,
                          const struct selection *s, const char *caption,
                          struct frag_error *e)
{
    struct drawing d = *p->review->look;
    struct figure_note note;
    enum frag_err err;
    char *path;

    p->figures++;
    if (f->lacks && f->lacks(s))
        return FRAG_OK;
    if (progress_tick(p->review->progress, p->figures, p->figures_all))
        return FRAG_CANCELLED;
    path = scratch_path(p->folder, "figure", ".svg");
    if (!path)
        return FRAG_NOMEM;
    d.title = NULL;
    d.out = path;
    err = figure_draw(f, s, &(const struct figure_wish){0}, &d, &note, e);
    if (err == FRAG_OK) {
        fputs("<figure>\n", p->out);
        err = html_svg(p->out, path, p->figures, caption, e);
        fputs("</figure>\n", p->out);
    }
    unlink(path);
    free(path);
    return err;
}
