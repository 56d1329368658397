/* review_page.h - the parts of a review's page. Private to sim/cli/review/. */
#ifndef FRAG_SIM_CLI_REVIEW_REVIEW_PAGE_H
#define FRAG_SIM_CLI_REVIEW_REVIEW_PAGE_H

#include <stdio.h>

#include "sim/cli/gnuplot/drawing.h"
#include "sim/cli/review/review.h"

/* A page while it is written. */
struct page {
    const struct review *review;
    FILE *out;
    unsigned figures;     /* drawn or left out so far */
    unsigned figures_all; /* upper bound, for the progress bar */
    char *folder;         /* temporary, for the figures' files */
};

struct figure;

/* Draws a figure of the runs inline, with `caption` as its title. Does nothing
 * if the figure cannot be drawn from these runs. CANCELLED if the user
 * interrupted; errors of figure_draw. */
enum frag_err page_figure(struct page *p, const struct figure *f,
                          const struct selection *s, const char *caption,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* The name of a run's trace, with its device unless that is 0. */
void page_trace_name(FILE *out, const struct frag_loaded_run *r);
/* The same as a link to the subject's part of the page. */
void page_trace_link(FILE *out, const struct review *r, size_t subject);

/* The notes of all traces; those of one trace; the capacities that no policy
 * can survive. Each is a box, or nothing if there are none. */
void page_notes(struct page *p);
void page_trace_notes(struct page *p, size_t subject);
void page_impossible(struct page *p);

/* The recommendation in words and tiles; the ranked table of policies, and that
 * of the bounds; the source of the numbers. */
void page_verdict(struct page *p);
void page_policies(struct page *p);
void page_provenance(struct page *p);
/* The table of traces, then one part for each trace. Errors of page_figure. */
enum frag_err page_traces(struct page *p, struct frag_error *e) FRAG_MUST_CHECK;

#endif
