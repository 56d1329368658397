/* test_page.c - pages: what is escaped, the frame, which rows of a table are
 * folded, several figures on one page, and that a page is written whole or not
 * at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/cli/page/page.h"
#include "sim/cli/scratch.h"
#include "traces/bytes/temporary.h"

/* A page that a test writes, and reads again. */
struct desk {
    enum frag_err err;
    char *text; /* NULL: there is no file */
};

static struct desk write_page(const char *title, page_put *put)
{
    struct desk d = {.err = FRAG_OK};
    struct frag_error e;
    char *folder, *path;
    size_t size = 0;
    FILE *in;

    assert_int_equal(scratch_make(&folder, &e), FRAG_OK);
    path = scratch_path(folder, "page", ".html");
    d.err = page_write(path, title, put, NULL, &e);
    in = fopen(path, "r");
    if (in) {
        assert_true(getdelim(&d.text, &size, '\0', in) > 0);
        fclose(in);
    }
    temporary_remove(folder);
    free(path);
    return d;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void assert_has(const struct desk *d, const char *part)
{
    if (!strstr(d->text, part))
        fail_msg("the page has no \"%s\"", part);
}

/* A table of which the rows 48 to 51 count a failure. */
static enum frag_err put_table(struct page *p, int rows, struct frag_error *e)
{
    FILE *out = page_text(p);

    assert_non_null(out);
    fputs("   row    OOMs  more\n", out);
    for (int i = 0; i < rows; i++)
        fprintf(out, "row %2d  %6d     1\n", i, i > 47 && i < 52 ? 10 : 0);
    return page_text_end(p, "OOMs", e);
}

static enum frag_err put_texts(struct page *p, void *user, struct frag_error *e)
{
    static const char *const notes[] = {"<b>note\033[1m</b>"};

    (void)user;
    html_between(p->out, "<p>", "a < b & \"c\"", "</p>\n");
    html_list(p->out, notes, 1);
    html_code(p->out, "A='<b>'");
    fputs("<pre>\nline  two\n\n", page_text(p));
    return page_text_end(p, NULL, e);
}

static void texts_are_escaped(void **state)
{
    struct desk d = write_page("<title>", put_texts);

    (void)state;
    assert_int_equal(d.err, FRAG_OK);
    assert_has(&d, "<title>&lt;title&gt;</title>");
    assert_has(&d, "<p>a &lt; b &amp; &quot;c&quot;</p>");
    assert_has(&d, "<li>&lt;b&gt;note\\x1b[1m&lt;/b&gt;</li>\n</ul>");
    assert_has(&d, "<code>A=&#39;&lt;b&gt;&#39;</code>");
    assert_has(&d, "<pre class=\"rows\"><span>&lt;pre&gt;\n</span>"
                   "<span>line  two\n</span></pre>");
    assert_has(&d, "<!DOCTYPE html>");
    assert_has(&d, "</main>");
    free(d.text);
}

static enum frag_err put_long(struct page *p, void *user, struct frag_error *e)
{
    (void)user;
    return put_table(p, 100, e);
}

static enum frag_err put_short(struct page *p, void *user, struct frag_error *e)
{
    (void)user;
    assert_non_null(page_text(p));
    FRAG_TRY(page_text_end(p, NULL, e));
    return put_table(p, 20, e);
}

/* Of a long table the first and the last rows are shown, and those near the
 * failures; nothing is lost. */
static void long_tables_are_folded(void **state)
{
    struct desk d = write_page("page", put_long);
    const char *at;
    bool folded = false;

    (void)state;
    assert_int_equal(count(d.text, "more rows</summary>"), 2);
    assert_has(&d, "<summary>34 more rows</summary>");
    for (int i = 0; i < 100; i++) {
        char row[32];

        snprintf(row, sizeof(row), "<span>row %2d  ", i);
        assert_int_equal(count(d.text, row), 1);
        at = strstr(d.text, row);
        folded = count(d.text, "<details>") - count(at, "<details>") >
                 count(d.text, "</details>") - count(at, "</details>");
        assert_int_equal(folded, !(i < 11 || i >= 96 || (i > 44 && i < 55)));
    }
    free(d.text);

    d = write_page("page", put_short);
    assert_int_equal(count(d.text, "more rows"), 0);
    assert_int_equal(count(d.text, "<pre"), 1);
    free(d.text);
}

/* As gnuplot draws it. */
static enum frag_err draw(struct page *p, struct frag_error *e)
{
    const char *path;
    FILE *out;

    FRAG_TRY(page_picture(p, &path, e));
    out = fopen(path, "w");
    assert_non_null(out);
    fputs("<?xml?><svg><title>Gnuplot</title><g id=\"gnuplot_1\"/></svg>", out);
    fclose(out);
    return FRAG_OK;
}

static enum frag_err put_figures(struct page *p, void *user,
                                 struct frag_error *e)
{
    const char *path;

    (void)user;
    FRAG_TRY(draw(p, e));
    FRAG_TRY(page_figure(p, "one", NULL, e));
    FRAG_TRY(draw(p, e));
    FRAG_TRY(page_figure(p, "two", "a caption", e));
    FRAG_TRY(page_picture(p, &path, e));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(page_figure(p, "three", NULL, e), FRAG_IO);
    return FRAG_OK;
}

static void figures_have_ids_of_their_own(void **state)
{
    struct desk d = write_page("figures", put_figures);

    (void)state;
    assert_int_equal(d.err, FRAG_OK);
    assert_has(&d, "id=\"f1gnuplot_1\"");
    assert_has(&d, "id=\"f2gnuplot_1\"");
    assert_has(&d, "<title>two</title>");
    assert_has(&d, "<figcaption class=\"soft\">a caption</figcaption>");
    assert_int_equal(count(d.text, "<figcaption"), 1);
    assert_int_equal(count(d.text, "<figure>"), 3);
    assert_int_equal(count(d.text, "</figure>"), 3);
    free(d.text);
}

static enum frag_err put_half(struct page *p, void *user, struct frag_error *e)
{
    (void)user;
    fputs("half", page_text(p));
    return frag_fail(e, FRAG_CANCELLED, "interrupted");
}

static void a_page_that_fails_is_not_there(void **state)
{
    struct desk d = write_page("half", put_half);

    (void)state;
    assert_int_equal(d.err, FRAG_CANCELLED);
    assert_null(d.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(long_tables_are_folded),
        cmocka_unit_test(figures_have_ids_of_their_own),
        cmocka_unit_test(a_page_that_fails_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
