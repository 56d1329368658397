/* names.c - writes the names of traces, and links to their parts of the page.
 */
#include <inttypes.h>

#include "sim/cli/review/html.h"
#include "sim/cli/review/review_page.h"

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
