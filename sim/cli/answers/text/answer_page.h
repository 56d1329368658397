/* answer_page.h - writes a page of answers: an HTML file with the style sheet
 * of `fragsim report`, part by part, from the texts that the commands print.
 *
 * All texts are written in their printable form and escaped. A part is a
 * section, a paragraph, a note, a text or a figure. The caller closes
 * one part before it begins the next, and checks ferror(out) at the end.
 */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_ANSWER_PAGE_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_ANSWER_PAGE_H

#include <stdio.h>

#include "traces/base.h"

/* A page while it is written. The members are private. */
struct answer_page {
    FILE *out;
    FILE *text; /* collects a preformatted text; NULL: none is begun */
    char *collected;
    size_t size;
    unsigned figures; /* so far */
};

/* Begins the page: its title, which is also the first heading. `out` is
 * borrowed until answer_page_close. */
void answer_page_open(struct answer_page *p, FILE *out, const char *title);
void answer_page_close(struct answer_page *p);

/* The verdict in large letters; below the title. */
void answer_page_verdict(struct answer_page *p, const char *text);

/* Begins a section. `id` is the target of links, unique in the page: letters,
 * digits and "-" only. */
void answer_page_section(struct answer_page *p, const char *heading,
                         const char *id);

/* A line of links to sections, for the top of the page: `count` pairs of an id
 * and a text. */
void answer_page_links(struct answer_page *p, const char *const links[][2],
                       size_t count);

void answer_page_paragraph(struct answer_page *p, const char *text);

/* A box that warns; nothing if count is 0. */
void answer_page_notes(struct answer_page *p, const char *title,
                       const char *const *notes, size_t count);

/* A text as a terminal shows it. The caller prints the text to the file that
 * answer_page_text returns, and then calls answer_page_text_end. NULL if the
 * host has no memory. NOMEM of answer_page_text_end: the text is lost. */
FILE *answer_page_text(struct answer_page *p);
enum frag_err answer_page_text_end(struct answer_page *p,
                                   struct frag_error *e) FRAG_MUST_CHECK;

/* The SVG file at `path` as a figure, with its caption. IO if the file cannot
 * be read; the page is then without it. */
enum frag_err answer_page_figure(struct answer_page *p, const char *path,
                                 const char *caption,
                                 struct frag_error *e) FRAG_MUST_CHECK;

/* The view of memory in the page at `path` (sim/cli/review/view.h). IO,
 * CORRUPT. */
enum frag_err answer_page_view(struct answer_page *p, const char *path,
                               struct frag_error *e) FRAG_MUST_CHECK;

#endif
