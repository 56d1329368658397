/* review_page.h - the parts of a review's page. Private to sim/cli/review/. */
#ifndef FRAG_SIM_CLI_REVIEW_REVIEW_PAGE_H
#define FRAG_SIM_CLI_REVIEW_REVIEW_PAGE_H

#include "sim/cli/gnuplot/drawing.h"
#include "sim/cli/page/page.h"
#include "sim/cli/review/review.h"

/* The page while it is written. */
struct review_page {
    const struct review *review;
    struct page *page;
    FILE *out; /* of the page */
};

struct figure;

/* Draws a figure of the runs inline, with `caption` as its title. Does nothing
 * if the figure cannot be drawn from these runs. CANCELLED if the user
 * interrupted; errors of figure_draw. */
enum frag_err review_figure(struct review_page *p, const struct figure *f,
                            const struct selection *s, const char *caption,
                            struct frag_error *e) FRAG_MUST_CHECK;

/* The name of a run's trace, with its device unless that is 0. */
void review_trace_name(FILE *out, const struct frag_loaded_run *r);
/* The same as a link to the subject's part of the page. */
void review_trace_link(FILE *out, const struct review *r, size_t subject);

/* The notes of all traces; those of one trace; the capacities that no policy
 * can survive. Each is a box, or nothing if there are none. */
void review_notes(struct review_page *p);
void review_trace_notes(struct review_page *p, size_t subject);
void review_impossible(struct review_page *p);

/* The recommendation in words and tiles; the ranked table of policies, and that
 * of the bounds; the source of the numbers. */
void review_verdict(struct review_page *p);
void review_policies(struct review_page *p);
void review_provenance(struct review_page *p);
/* The table of traces, then one part for each trace. Errors of review_figure.
 */
enum frag_err review_traces(struct review_page *p,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
