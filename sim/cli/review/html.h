/* html.h - writes an HTML page: its frame, escaped text, table cells and inline
 * figures.
 *
 * A page is self-contained: it refers to nothing outside of itself.
 */
#ifndef FRAG_SIM_CLI_REVIEW_HTML_H
#define FRAG_SIM_CLI_REVIEW_HTML_H

#include <stdio.h>

#include "traces/base.h"

/* html_open writes from the doctype to <main>, html_close from </main> to the
 * end. */
void html_open(FILE *out, const char *title);
void html_close(FILE *out);

/* Writes the printable form of text with & < > " ' escaped. */
void html_text(FILE *out, const char *text);
/* The same between two pieces of HTML. */
void html_between(FILE *out, const char *before, const char *text,
                  const char *after);
/* The same for a text of several lines, each of which ends with a line break in
 * the output. */
void html_lines(FILE *out, const char *text);

/* A table cell that shows a text and is sorted by its number. */
void html_size(FILE *out, frag_size size);    /* "8.73 GiB" */
void html_seconds(FILE *out, double seconds); /* "5.74 ms" */
void html_count(FILE *out, uint64_t n);       /* "15591" */
void html_ratio(FILE *out, double x);         /* "1.08" */
void html_none(FILE *out);                    /* a dash, sorted last */

/* A table cell with code that may wrap. */
void html_code(FILE *out, const char *text);

/* "5.74 ms", "341 ms": three digits. Returns text. */
const char *html_duration(double seconds, char text[32]);

/* Writes the SVG file at `path` inline. `number` makes the ids of the figure
 * differ from those of other figures on the page; `title` is the tooltip. IO if
 * the file cannot be read. */
enum frag_err html_svg(FILE *out, const char *path, unsigned number,
                       const char *title, struct frag_error *e) FRAG_MUST_CHECK;

#endif
