/* browser.h - HTML on paper: a page printed to PDF by a headless Chromium, a
 * program of run time as gnuplot is. */
#ifndef FRAG_SIM_CLI_REVIEW_BROWSER_H
#define FRAG_SIM_CLI_REVIEW_BROWSER_H

#include "traces/base.h"

/* Prints the page at `html` to the file `pdf`. The same page is the same bytes.
 * IO with words where no browser is installed or it fails. */
enum frag_err browser_print(const char *html, const char *pdf,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
