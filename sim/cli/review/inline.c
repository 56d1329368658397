/* inline.c - draws a figure into the page's temporary folder and writes it
 * inline into the page. */
#include <stdlib.h>
#include <unistd.h>

#include "sim/cli/figures/figure.h"
#include "sim/cli/review/html.h"
#include "sim/cli/review/review_page.h"
#include "sim/cli/scratch.h"

enum frag_err page_figure(struct page *p, const struct figure *f,
                          const struct selection *s, const char *caption,
                          struct frag_error *e)
{
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
    err = figure_draw(f, s, path, NULL, 0, &note, e);
    if (err == FRAG_OK) {
        fputs("<figure>\n", p->out);
        err = html_svg(p->out, path, p->figures, caption, e);
        fputs("</figure>\n", p->out);
    }
    unlink(path);
    free(path);
    return err;
}
