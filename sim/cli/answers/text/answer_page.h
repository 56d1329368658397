/* answer_page.h - writes a page of answers: an HTML file with the style sheet
 * of `fragsim report`, part by part, from the texts that the commands print.
 *
 * All texts are written in their printable form and escaped. The caller closes
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
    bool has_verdict; /* its block is open */
};

/* Begins the page: its title, which is also the first heading. `out` is
 * borrowed until answer_page_close. */
void answer_page_open(struct answer_page *p, FILE *out, const char *title);
void answer_page_close(struct answer_page *p);

/* A part of the verdict: a heading, a paragraph, and, if `line` is not "", a
 * line for a shell that can be copied. The parts come below the title, in one
 * block: answer_page_verdict_end ends it. */
void answer_page_verdict(struct answer_page *p, const char *heading,
                         const char *text, const char *line);
void answer_page_verdict_end(struct answer_page *p);

/* Begins and ends a section that is folded. `id` is the target of links, unique
 * in the page: letters, digits and "-" only. */
void answer_page_section(struct answer_page *p, const char *heading,
                         const char *id);
void answer_page_section_end(struct answer_page *p);

void answer_page_paragraph(struct answer_page *p, const char *text);

/* A list of sentences. */
void answer_page_list(struct answer_page *p, const char *const *items,
                      size_t count);

/* A text as a terminal shows it. The caller prints the text to the file that
 * answer_page_text returns, and then calls answer_page_text_end. NULL if the
 * host has no memory. NOMEM of answer_page_text_end: the text is lost.
 * Of a long table, whose failures the column with the heading `failures' counts
 * (NULL: the text is no such table), the first rows, the last ones and those
 * near a failure are shown, and the others are folded. */
FILE *answer_page_text(struct answer_page *p);
enum frag_err answer_page_text_end(struct answer_page *p, const char *failures,
                                   struct frag_error *e) FRAG_MUST_CHECK;

/* The SVG file at `path` as a figure, with its caption. IO if the file cannot
 * be read; the page is then without it. */
enum frag_err answer_page_figure(struct answer_page *p, const char *path,
                                 const char *caption,
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
