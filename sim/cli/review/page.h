/* page.h - the page of a review in parts. Private to sim/cli/review/. */
#ifndef FRAG_SIM_CLI_REVIEW_PAGE_H
#define FRAG_SIM_CLI_REVIEW_PAGE_H

#include <stdio.h>

#include "sim/cli/review/review.h"

/* A page being written. */
struct page {
    const struct review *review;
    FILE *out;
    unsigned figures; /* drawn so far, and in all */
    unsigned figures_all;
    char *folder; /* where they are drawn */
};

struct figure;

/* A figure of the runs with a caption, inline; nothing where they lack what it
 * needs. */
enum frag_err page_figure(struct page *p, const struct figure *f,
                          const struct selection *s, const char *caption,
                          struct frag_error *e) FRAG_MUST_CHECK;

void page_verdict(struct page *p);
void page_policies(struct page *p);
void page_provenance(struct page *p);
/* The table of traces, and a part for each. */
enum frag_err page_traces(struct page *p, struct frag_error *e) FRAG_MUST_CHECK;

#endif
