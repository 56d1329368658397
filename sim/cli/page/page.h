/* page.h - writes an HTML page: its file and frame, escaped text, tables,
 * preformatted text and figures. `fragsim report`, `fragsim triage` and
 * `fragsim plot map` make their pages with it.
 *
 * A page is self-contained: it refers to nothing outside of itself. All texts
 * are written in their printable form, with & < > " ' escaped.
 */
#ifndef FRAG_SIM_CLI_PAGE_PAGE_H
#define FRAG_SIM_CLI_PAGE_PAGE_H

#include <stdio.h>

#include "traces/base.h"

/* ---- the page ---- */

/* A page while it is written: its parts write to `out`. The members from `text'
 * on are private. */
struct page {
    FILE *out;
    const char *title;
    unsigned figures; /* so far; a caller that leaves one out adds 1 */
    FILE *text;       /* collects a preformatted text; NULL: none is begun */
    char *collected;
    size_t size;
    char *folder, *picture; /* temporary; NULL: none was drawn yet */
};

typedef enum frag_err page_put(struct page *p, void *user,
                               struct frag_error *e);

/* Whether the name ends in .html, and what a command says if it does not. */
bool page_is_named(const char *path);
#define PAGE_EXPECTED "expected -o FILE.html; a browser prints it as PDF"

/* Writes the file: the frame with the title of the window, and in it what `put`
 * writes. The file appears complete or not at all. Errors of put; IO. */
enum frag_err page_write(const char *path, const char *title, page_put *put,
                         void *user, struct frag_error *e) FRAG_MUST_CHECK;

/* A text as a terminal shows it. The caller prints the text to the file that
 * page_text returns, and then calls page_text_end. NULL if the host has no
 * memory. NOMEM of page_text_end: the text is lost.
 * Of a long table, whose failures the column with the heading `failures' counts
 * (NULL: the text is no such table), the first rows, the last ones and those
 * near a failure are shown, and the others are folded. */
FILE *page_text(struct page *p);
enum frag_err page_text_end(struct page *p, const char *failures,
                            struct frag_error *e) FRAG_MUST_CHECK;

/* The name of an SVG file, for the caller to draw the next figure; it lives as
 * long as the page. Errors of scratch_make, NOMEM. */
enum frag_err page_picture(struct page *p, const char **path,
                           struct frag_error *e) FRAG_MUST_CHECK;
/* Moves that file into the page: `title` is the tooltip; below it stands the
 * caption, unless that is NULL. IO if nothing was drawn; the page is then
 * without it. */
enum frag_err page_figure(struct page *p, const char *title,
                          const char *caption,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* ---- pieces of HTML ---- */

void html_text(FILE *out, const char *text);
/* The same between two pieces of HTML. */
void html_between(FILE *out, const char *before, const char *text,
                  const char *after);
/* The same for a text of several lines, each of which ends with a line break in
 * the output. */
void html_lines(FILE *out, const char *text);
/* A list of sentences; the last line has no line break. */
void html_list(FILE *out, const char *const *items, size_t count);

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

#endif
