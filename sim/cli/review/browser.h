/* browser.h - prints an HTML page to PDF with a headless Chromium. Chromium is
 * needed at run time only, as gnuplot is. */
#ifndef FRAG_SIM_CLI_REVIEW_BROWSER_H
#define FRAG_SIM_CLI_REVIEW_BROWSER_H

#include "traces/base.h"

/* Prints the page at the path `html` to the file `pdf`. Equal pages make equal
 * bytes. IO if no browser is installed or the browser fails. */
enum frag_err browser_print(const char *html, const char *pdf,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
