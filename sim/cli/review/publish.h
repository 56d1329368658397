/* publish.h - writes a page of HTML to a file. */
#ifndef FRAG_SIM_CLI_REVIEW_PUBLISH_H
#define FRAG_SIM_CLI_REVIEW_PUBLISH_H

#include <stdio.h>

#include "traces/base.h"

/* What a command says of a name for which publish_can is false. */
#define PUBLISH_EXPECTED "expected -o FILE.html; a browser prints it as PDF"

/* Whether the name ends in .html. */
bool publish_can(const char *path);

/* Calls `write` with a file for the HTML of the page. The file at `path`
 * appears complete or not at all. Errors of write; IO. */
enum frag_err publish(const char *path,
                      enum frag_err (*write)(void *user, FILE *out,
                                             struct frag_error *e),
                      void *user, struct frag_error *e) FRAG_MUST_CHECK;

#endif
