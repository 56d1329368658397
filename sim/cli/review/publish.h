/* publish.h - writes a page to a file: HTML, or PDF if the name ends in .pdf.
 */
#ifndef FRAG_SIM_CLI_REVIEW_PUBLISH_H
#define FRAG_SIM_CLI_REVIEW_PUBLISH_H

#include <stdio.h>

#include "traces/base.h"

/* Whether the name ends in .html or .pdf. */
bool publish_can(const char *path);

/* Calls `write` with a file for the HTML of the page, and prints the page if
 * the name ends in .pdf. The file at `path` appears complete or not at all.
 * Errors of write and of browser_print; IO. */
enum frag_err publish(const char *path,
                      enum frag_err (*write)(void *user, FILE *out,
                                             struct frag_error *e),
                      void *user, struct frag_error *e) FRAG_MUST_CHECK;

#endif
