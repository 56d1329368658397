/* html.h - text as HTML, and figures inside of it.
 *
 * A page stands alone: it names nothing on the network.
 */
#ifndef FRAG_SIM_CLI_REVIEW_HTML_H
#define FRAG_SIM_CLI_REVIEW_HTML_H

#include <stdio.h>

#include "traces/base.h"

/* From the doctype to the open <main>, and from its end to the last tag. */
void html_open(FILE *out, const char *title);
void html_close(FILE *out);

/* Text with & < > " ' escaped. */
void html_text(FILE *out, const char *text);

/* A cell that is shown as words and sorted by `value`. */
void html_size(FILE *out, frag_size size);    /* "8.73 GiB" */
void html_seconds(FILE *out, double seconds); /* "5.74 ms" */
void html_count(FILE *out, uint64_t n);       /* "15591" */
void html_ratio(FILE *out, double x);         /* "1.08" */
void html_none(FILE *out);                    /* a dash; sorted last */

/* A cell of code that may wrap. */
void html_code(FILE *out, const char *text);

/* "5.74 ms", "0.341 s": three digits. Returns text. */
const char *html_duration(double seconds, char text[32]);

/* The SVG file at path, inline; number makes its names differ from those of
 * other figures. IO. */
enum frag_err html_svg(FILE *out, const char *path, unsigned number,
                       const char *title, struct frag_error *e) FRAG_MUST_CHECK;

#endif
