/* test_answer_page.c - the pages of answers: what is escaped, the parts,
 * which rows of a table are folded, and several figures on one page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/cli/answers/text/answer_page.h"

/* A page in memory. */
struct desk {
    struct answer_page page;
    FILE *out;
    char *text;
    size_t size;
};

static void open_desk(struct desk *d, const char *title)
{
    d->out = open_memstream(&d->text, &d->size);
    assert_non_null(d->out);
    answer_page_open(&d->page, d->out, title);
}

static void close_desk(struct desk *d)
{
    answer_page_close(&d->page);
    assert_int_equal(fclose(d->out), 0);
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
static void put_table(struct desk *d, int rows)
{
    FILE *out = answer_page_text(&d->page);
    struct frag_error e;

    assert_non_null(out);
    fputs("   row    OOMs  more\n", out);
    for (int i = 0; i < rows; i++)
        fprintf(out, "row %2d  %6d     1\n", i, i > 47 && i < 52 ? 10 : 0);
    assert_int_equal(answer_page_text_end(&d->page, "OOMs", &e), FRAG_OK);
}

static void texts_are_escaped(void **state)
{
    static const char *const notes[] = {"<b>note\033[1m</b>"};
    struct frag_error e;
    struct desk d;

    (void)state;
    open_desk(&d, "<title>");
    answer_page_verdict(&d.page, "<what>", "a < b & \"c\"", "");
    answer_page_verdict(&d.page, "do", "this", "export A='<b>'");
    answer_page_verdict_end(&d.page);
    answer_page_section(&d.page, "<section>", "why");
    answer_page_paragraph(&d.page, "<paragraph>");
    answer_page_list(&d.page, notes, 1);
    fputs("<pre>\nline  two\n\n", answer_page_text(&d.page));
    assert_int_equal(answer_page_text_end(&d.page, NULL, &e), FRAG_OK);
    answer_page_section_end(&d.page);
    close_desk(&d);

    assert_int_equal(count(d.text, "&lt;title&gt;"), 2);
    assert_has(&d, "<section class=\"verdict\">\n<h2>&lt;what&gt;</h2>\n"
                   "<p>a &lt; b &amp; &quot;c&quot;</p>\n<h2>do</h2>\n"
                   "<p>this</p>\n<pre class=\"copy\">export A=&#39;&lt;b&gt;"
                   "&#39;</pre>\n</section>");
    assert_has(&d, "id=\"why\"><summary>&lt;section&gt;</summary>");
    assert_has(&d, "<p>&lt;paragraph&gt;</p>");
    assert_has(&d, "<li>&lt;b&gt;note\\x1b[1m&lt;/b&gt;</li>");
    assert_has(&d, "<pre class=\"rows\"><span>&lt;pre&gt;\n</span>"
                   "<span>line  two\n</span></pre>");
    free(d.text);
}

/* Every element that is opened is closed. */
static void elements_are_closed(void **state)
{
    static const char *const names[] = {"main",    "h1",      "h2",      "p",
                                        "section", "details", "summary", "ul",
                                        "pre",     "span"};
    struct frag_error e;
    struct desk d;

    (void)state;
    open_desk(&d, "page");
    answer_page_verdict(&d.page, "what", "this", "");
    answer_page_verdict_end(&d.page);
    answer_page_section(&d.page, "A", "a");
    assert_non_null(answer_page_text(&d.page));
    assert_int_equal(answer_page_text_end(&d.page, NULL, &e), FRAG_OK);
    put_table(&d, 100);
    answer_page_section_end(&d.page);
    close_desk(&d);

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char open[16], with[16], close[16];

        snprintf(open, sizeof(open), "<%s>", names[i]);
        snprintf(with, sizeof(with), "<%s ", names[i]);
        snprintf(close, sizeof(close), "</%s>", names[i]);
        assert_int_equal(count(d.text, open) + count(d.text, with),
                         count(d.text, close));
    }
    free(d.text);
}

/* Of a long table the first and the last rows are shown, and those near the
 * failures; nothing is lost. */
static void long_tables_are_folded(void **state)
{
    struct desk d;
    const char *at;
    bool folded = false;

    (void)state;
    open_desk(&d, "page");
    put_table(&d, 100);
    close_desk(&d);
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

    open_desk(&d, "page");
    put_table(&d, 20);
    close_desk(&d);
    assert_int_equal(count(d.text, "more rows"), 0);
    free(d.text);
}

static void figures_have_ids_of_their_own(void **state)
{
    char path[] = "/tmp/page-XXXXXX";
    const int file = mkstemp(path);
    static const char svg[] =
        "<?xml?><svg><title>Gnuplot</title><g id=\"gnuplot_1\"/></svg>";
    struct frag_error e;
    struct desk d;

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, svg, sizeof(svg) - 1), sizeof(svg) - 1);
    close(file);
    open_desk(&d, "figures");
    assert_int_equal(answer_page_figure(&d.page, path, "one", &e), FRAG_OK);
    assert_int_equal(answer_page_figure(&d.page, path, "two", &e), FRAG_OK);
    unlink(path);
    assert_int_equal(answer_page_figure(&d.page, path, "three", &e), FRAG_IO);
    close_desk(&d);
    assert_has(&d, "id=\"f1gnuplot_1\"");
    assert_has(&d, "id=\"f2gnuplot_1\"");
    assert_has(&d, "<title>two</title>");
    assert_has(&d, "<figcaption class=\"soft\">two</figcaption>");
    assert_int_equal(count(d.text, "<figure>"), count(d.text, "</figure>"));
    free(d.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(elements_are_closed),
        cmocka_unit_test(long_tables_are_folded),
        cmocka_unit_test(figures_have_ids_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
