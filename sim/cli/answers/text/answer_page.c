/* answer_page.c - writes the parts of a page of answers. */
#include "sim/cli/answers/text/answer_page.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cli/review/html.h"

void answer_page_open(struct answer_page *p, FILE *out, const char *title)
{
    *p = (struct answer_page){.out = out};
    html_open(out, title);
    html_between(p->out, "<h1>", title, "</h1>\n");
}

void answer_page_close(struct answer_page *p)
{
    html_close(p->out);
}

void answer_page_verdict(struct answer_page *p, const char *heading,
                         const char *text, const char *line)
{
    if (!p->has_verdict)
        fputs("<section class=\"verdict\">\n", p->out);
    p->has_verdict = true;
    html_between(p->out, "<h2>", heading, "</h2>\n");
    html_between(p->out, "<p>", text, "</p>\n");
    if (*line)
        html_between(p->out, "<pre class=\"copy\">", line, "</pre>\n");
}

void answer_page_verdict_end(struct answer_page *p)
{
    fputs("</section>\n", p->out);
    p->has_verdict = false;
}

void answer_page_section(struct answer_page *p, const char *heading,
                         const char *id)
{
    html_between(p->out, "<details class=\"part\" id=\"", id, "\">");
    html_between(p->out, "<summary>", heading, "</summary>\n");
}

void answer_page_section_end(struct answer_page *p)
{
    fputs("</details>\n", p->out);
}

void answer_page_paragraph(struct answer_page *p, const char *text)
{
    html_between(p->out, "<p>", text, "</p>\n");
}

void answer_page_list(struct answer_page *p, const char *const *items,
                      size_t count)
{
    fputs("<ul>\n", p->out);
    for (size_t i = 0; i < count; i++)
        html_between(p->out, "<li>", items[i], "</li>\n");
    fputs("</ul>\n", p->out);
}

/* ---- text ---- */

FILE *answer_page_text(struct answer_page *p)
{
    p->text = open_memstream(&p->collected, &p->size);
    return p->text;
}

enum { SHORT = 24, FIRST = 12, LAST = 4, NEAR = 3 }; /* lines */

/* The lines of a text, and which of them are shown at first. */
struct lines {
    char **items;
    bool *shown;
    size_t count;
};

static void show(struct lines *l, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < l->count; i++)
        l->shown[i] = true;
}

/* Where the column with the heading ends, in the line of the headings; 0: that
 * is another line. */
static size_t column_end(const char *line, const char *heading)
{
    const char *at = strstr(line, heading);

    return at ? (size_t)(at - line) + strlen(heading) : 0;
}

/* Shows the lines near one that counts failures in the column. */
static void show_failures(struct lines *l, const char *heading)
{
    size_t end = 0;

    for (size_t i = 0; i < l->count; i++) {
        const char *line = l->items[i];

        if (end && strlen(line) >= end && line[end - 1] >= '0' &&
            line[end - 1] <= '9' &&
            (line[end - 1] != '0' || line[end - 2] != ' '))
            show(l, i > NEAR ? i - NEAR : 0, i + NEAR + 1);
        if (!end)
            end = column_end(line, heading);
    }
}

static void choose_lines(struct lines *l, const char *failures)
{
    if (!failures || l->count <= SHORT) {
        show(l, 0, l->count);
        return;
    }
    show(l, 0, FIRST);
    show(l, l->count - LAST, l->count);
    show_failures(l, failures);
}

/* Columns stay aligned in lines that fit the page; a longer line goes on in an
 * indented one, on the screen as on paper. */
static void put_lines(struct answer_page *p, const struct lines *l, size_t from,
                      size_t to)
{
    fputs("<pre class=\"rows\">", p->out);
    for (size_t i = from; i < to; i++)
        html_between(p->out, "<span>", l->items[i], "\n</span>");
    fputs("</pre>\n", p->out);
}

/* Each run of lines that are shown, or are not, is a block. */
static void put_blocks(struct answer_page *p, const struct lines *l)
{
    for (size_t from = 0, to; from < l->count; from = to) {
        for (to = from; to < l->count && l->shown[to] == l->shown[from];)
            to++;
        if (!l->shown[from])
            fprintf(p->out, "<details><summary>%zu more rows</summary>\n",
                    to - from);
        put_lines(p, l, from, to);
        if (!l->shown[from])
            fputs("</details>\n", p->out);
    }
}

static enum frag_err put_collected(struct answer_page *p, const char *failures)
{
    struct lines l = {0};
    char *line = p->collected;
    size_t length = p->size, most = 1;

    while (length && line[length - 1] == '\n')
        length--;
    line[length] = '\0';
    if (!length)
        return FRAG_OK;
    for (const char *at = line; *at; at++)
        most += *at == '\n';
    l.items = calloc(most, sizeof(*l.items));
    l.shown = calloc(most, sizeof(*l.shown));
    if (l.items && l.shown) {
        for (char *rest = line; rest;)
            l.items[l.count++] = strsep(&rest, "\n");
        choose_lines(&l, failures);
        put_blocks(p, &l);
    }
    free(l.items);
    free(l.shown);
    return l.count ? FRAG_OK : FRAG_NOMEM;
}

enum frag_err answer_page_text_end(struct answer_page *p, const char *failures,
                                   struct frag_error *e)
{
    const bool lost = ferror(p->text), closed = !fclose(p->text);
    enum frag_err err = FRAG_NOMEM;

    p->text = NULL;
    if (closed && !lost)
        err = put_collected(p, failures);
    free(p->collected);
    p->collected = NULL;
    return err == FRAG_OK ? FRAG_OK : frag_no_memory(e, "the text of a page");
}

/* ---- figures ---- */

enum frag_err answer_page_figure(struct answer_page *p, const char *path,
                                 const char *caption, struct frag_error *e)
{
    enum frag_err err;

    fputs("<figure>\n", p->out);
    err = html_svg(p->out, path, ++p->figures, caption, e);
    if (err == FRAG_OK)
        html_between(p->out, "<figcaption class=\"soft\">", caption,
                     "</figcaption>\n");
    fputs("</figure>\n", p->out);
    return err;
}
