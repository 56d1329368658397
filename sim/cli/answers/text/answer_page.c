/* answer_page.c - writes the parts of a page of answers. */
#include "sim/cli/answers/text/answer_page.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cli/review/html.h"
#include "sim/cli/review/view.h"

/* Writes a text between two pieces of HTML. */
static void put_between(struct answer_page *p, const char *before,
                        const char *text, const char *after)
{
    fputs(before, p->out);
    html_text(p->out, text);
    fputs(after, p->out);
}

void answer_page_open(struct answer_page *p, FILE *out, const char *title)
{
    *p = (struct answer_page){.out = out};
    html_open(out, title);
    put_between(p, "<h1>", title, "</h1>\n");
}

void answer_page_close(struct answer_page *p)
{
    html_close(p->out);
}

void answer_page_verdict(struct answer_page *p, const char *text)
{
    put_between(p, "<p class=\"verdict\">", text, "</p>\n");
}

void answer_page_section(struct answer_page *p, const char *heading,
                         const char *id)
{
    put_between(p, "<h2 id=\"", id, "\">");
    put_between(p, "", heading, "</h2>\n");
}

void answer_page_links(struct answer_page *p, const char *const links[][2],
                       size_t count)
{
    fputs("<p class=\"screen\">", p->out);
    for (size_t i = 0; i < count; i++) {
        put_between(p, i ? " &middot; <a href=\"#" : "<a href=\"#", links[i][0],
                    "\">");
        put_between(p, "", links[i][1], "</a>");
    }
    fputs("</p>\n", p->out);
}

void answer_page_paragraph(struct answer_page *p, const char *text)
{
    put_between(p, "<p>", text, "</p>\n");
}

void answer_page_notes(struct answer_page *p, const char *title,
                       const char *const *notes, size_t count)
{
    if (!count)
        return;
    put_between(p, "<div class=\"note\"><b>", title, "</b><ul>\n");
    for (size_t i = 0; i < count; i++)
        put_between(p, "<li>", notes[i], "</li>\n");
    fputs("</ul></div>\n", p->out);
}

/* ---- text ---- */

FILE *answer_page_text(struct answer_page *p)
{
    p->text = open_memstream(&p->collected, &p->size);
    return p->text;
}

/* Columns stay aligned in lines that fit the page; a longer line goes on in an
 * indented one, on the screen as on paper. */
static void put_lines(struct answer_page *p)
{
    size_t length = p->size;
    char *line = p->collected;

    while (length && line[length - 1] == '\n')
        length--;
    line[length] = '\0';
    fputs("<pre class=\"rows\">", p->out);
    for (char *rest = line; rest; line = rest) {
        strsep(&rest, "\n");
        put_between(p, "<span>", line, "\n</span>");
    }
    fputs("</pre>\n", p->out);
}

enum frag_err answer_page_text_end(struct answer_page *p, struct frag_error *e)
{
    const bool lost = ferror(p->text), closed = !fclose(p->text);

    p->text = NULL;
    if (closed && !lost)
        put_lines(p);
    free(p->collected);
    p->collected = NULL;
    return closed && !lost ? FRAG_OK : frag_no_memory(e, "the text of a page");
}

/* ---- figures ---- */

enum frag_err answer_page_figure(struct answer_page *p, const char *path,
                                 const char *caption, struct frag_error *e)
{
    enum frag_err err;

    fputs("<figure>\n", p->out);
    err = html_svg(p->out, path, ++p->figures, caption, e);
    if (err == FRAG_OK)
        put_between(p, "<figcaption class=\"soft\">", caption,
                    "</figcaption>\n");
    fputs("</figure>\n", p->out);
    return err;
}

enum frag_err answer_page_view(struct answer_page *p, const char *path,
                               struct frag_error *e)
{
    return view_copy(p->out, path, e);
}
