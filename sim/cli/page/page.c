/* page.c - the file of a page, its frame, which lines of a text are folded, and
 * figures with renamed ids. */
#include "sim/cli/page/page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/scratch.h"
#include "sim/cli/texts/cli_texts.h"
#include "traces/bytes/sink.h"
#include "traces/bytes/temporary.h"

bool page_is_named(const char *path)
{
    const char *dot = path ? strrchr(path, '.') : NULL;

    return dot && !strcmp(dot, ".html");
}

static enum frag_err put_frame(struct page *p, page_put *put, void *user,
                               struct frag_error *e)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n<title>",
          p->out);
    html_text(p->out, p->title);
    fprintf(p->out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n",
            text_page_css);
    FRAG_TRY(put(p, user, e));
    fprintf(p->out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n",
            text_page_js);
    return FRAG_OK;
}

static void release(struct page *p)
{
    if (p->text)
        fclose(p->text);
    free(p->collected);
    free(p->picture);
    temporary_remove(p->folder);
}

enum frag_err page_write(const char *path, const char *title, page_put *put,
                         void *user, struct frag_error *e)
{
    struct sink sink;
    struct page p = {.title = title};
    enum frag_err err;

    FRAG_TRY(sink_open(&sink, path, e));
    p.out = sink.out;
    err = put_frame(&p, put, user, e);
    release(&p);
    if (err == FRAG_OK)
        return sink_commit(&sink, e);
    sink_abort(&sink);
    return err;
}

/* ---- text ---- */

FILE *page_text(struct page *p)
{
    p->text = open_memstream(&p->collected, &p->size);
    return p->text;
}

enum { SHORT = 24, FIRST = 12, LAST = 4, NEAR = 3 }; /* lines */

struct line {
    char *text;
    bool is_shown; /* at first */
};

struct lines {
    struct line *items;
    size_t count;
};

static void show(struct lines *l, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < l->count; i++)
        l->items[i].is_shown = true;
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
        const char *line = l->items[i].text;

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
static void put_lines(struct page *p, const struct lines *l, size_t from,
                      size_t to)
{
    fputs("<pre class=\"rows\">", p->out);
    for (size_t i = from; i < to; i++)
        html_between(p->out, "<span>", l->items[i].text, "\n</span>");
    fputs("</pre>\n", p->out);
}

/* Each run of lines that are shown, or are not, is a block. */
static void put_blocks(struct page *p, const struct lines *l)
{
    for (size_t from = 0, to; from < l->count; from = to) {
        const bool is_shown = l->items[from].is_shown;

        for (to = from; to < l->count && l->items[to].is_shown == is_shown;)
            to++;
        if (!is_shown)
            fprintf(p->out, "<details><summary>%zu more rows</summary>\n",
                    to - from);
        put_lines(p, l, from, to);
        if (!is_shown)
            fputs("</details>\n", p->out);
    }
}

static enum frag_err put_collected(struct page *p, const char *failures)
{
    struct lines l = {0};
    char *rest = p->collected;
    size_t length = p->size, most = 1;

    while (length && rest[length - 1] == '\n')
        length--;
    rest[length] = '\0';
    if (!length)
        return FRAG_OK;
    for (const char *at = rest; *at; at++)
        most += *at == '\n';
    l.items = calloc(most, sizeof(*l.items));
    if (!l.items)
        return FRAG_NOMEM;
    while (rest)
        l.items[l.count++].text = strsep(&rest, "\n");
    choose_lines(&l, failures);
    put_blocks(p, &l);
    free(l.items);
    return FRAG_OK;
}

enum frag_err page_text_end(struct page *p, const char *failures,
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

/* The prefixes of ids that gnuplot uses in every figure (points, groups,
 * filters), with the character before them. */
static const char *const marks[] = {"'gp",      "'#gp",     "\"gnuplot_",
                                    "'textbox", "#textbox", "'greybox",
                                    "#greybox"};

/* The mark with which `text` begins; NULL if there is none. */
static const char *mark_at(const char *text)
{
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (!strncmp(text, marks[i], strlen(marks[i])))
            return marks[i];
    return NULL;
}

/* Writes the figure: its number is inserted into each id, and its own title,
 * the first one, is replaced. */
static void put_svg(FILE *out, const char *text, unsigned number,
                    const char *title)
{
    static const char open_tag[] = "<title>", close_tag[] = "</title>";
    const char *own = strstr(text, open_tag), *mark;

    while (*text) {
        if (text == own && strstr(own, close_tag)) {
            fputs(open_tag, out);
            html_text(out, title);
            text = strstr(own, close_tag);
        } else if ((mark = mark_at(text))) {
            size_t open = strspn(mark, "'\"#");

            fprintf(out, "%.*sf%u%s", (int)open, mark, number, mark + open);
            text += strlen(mark);
        } else {
            fputc(*text++, out);
        }
    }
}

enum frag_err page_picture(struct page *p, const char **path,
                           struct frag_error *e)
{
    if (!p->folder)
        FRAG_TRY(scratch_make(&p->folder, e));
    if (!p->picture)
        p->picture = scratch_path(p->folder, "figure", ".svg");
    *path = p->picture;
    return *path ? FRAG_OK : frag_no_memory(e, "a figure");
}

enum frag_err page_figure(struct page *p, const char *title,
                          const char *caption, struct frag_error *e)
{
    FILE *in = fopen(p->picture, "r");
    char *text = NULL;
    size_t room = 0;
    const bool is_read = in && getdelim(&text, &room, '\0', in) > 0;
    const char *svg = is_read ? strstr(text, "<svg") : NULL;

    if (in)
        fclose(in);
    unlink(p->picture);
    fputs("<figure>\n", p->out);
    if (svg)
        put_svg(p->out, svg, ++p->figures, title);
    if (svg && caption)
        html_between(p->out, "<figcaption class=\"soft\">", caption,
                     "</figcaption>\n");
    fputs("</figure>\n", p->out);
    free(text);
    return svg ? FRAG_OK
               : frag_fail(e, FRAG_IO, "%s: the figure cannot be read",
                           p->picture);
}
