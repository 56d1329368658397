/* test_printable.c - tests traces/printable.h: which characters are escaped,
 * and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "traces/printable.h"

/* Texts and their printable forms. */
static const struct {
    const char *text, *form;
} rows[] = {
    {"", ""},
    {"run.pickle.xz", "run.pickle.xz"},
    {"a b\\n'\"`$<>&", "a b\\n'\"`$<>&"},
    {"caf\u00e9 \u65e5\u672c \U0001f600", "caf\u00e9 \u65e5\u672c \U0001f600"},
    {"a\tb\nc\rd", "a\\tb\\nc\\rd"},
    {"\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m"},
    {"\x01\x1f\x7f", "\\x01\\x1f\\x7f"},
    {"\xc2\x80\xc2\x9b"
     "31m\xc2\x9f\xc2\xa0",
     "\\u0080\\u009b31m\\u009f\xc2\xa0"},
    {"\u200e\u200f\u061c", "\\u200e\\u200f\\u061c"},
    {"\u2027\u2028\u2029\u202a\u202e\u202f",
     "\u2027\\u2028\\u2029\\u202a\\u202e\u202f"},
    {"\u2065\u2066\u2069\u206a", "\u2065\\u2066\\u2069\u206a"},
    {"\x80\x9b\xff\xfe", "\\x80\\x9b\\xff\\xfe"},
    /* a character that is cut short, then one byte of ASCII */
    {"\xe6\x97n", "\\xe6\\x97n"},
    {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},
    /* a code in more bytes than it needs: a line feed, an escape */
    {"\xc0\x8a\xe0\x80\x9b", "\\xc0\\x8a\\xe0\\x80\\x9b"},
    /* a surrogate, and a code above the last one */
    {"\xed\xa0\x80\xf4\x90\x80\x80", "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80"},
};

enum { ROWS = sizeof(rows) / sizeof(*rows) };

static void each_character_has_its_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        char *form = printable_copy(rows[i].text);

        assert_non_null(form);
        assert_string_equal(form, rows[i].form);
        free(form);
    }
}

static void a_form_is_its_own_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        char *again = printable_copy(rows[i].form);

        assert_non_null(again);
        assert_string_equal(again, rows[i].form);
        assert_true(printable_is(rows[i].form));
        assert_int_equal(printable_is(rows[i].text),
                         !strcmp(rows[i].text, rows[i].form));
        free(again);
    }
}

static void a_form_is_cut_between_characters(void **state)
{
    char form[8];

    (void)state;
    memset(form, 'z', sizeof(form));
    assert_int_equal(printable_text(form, sizeof(form), "abcde\033f"), 10);
    assert_string_equal(form, "abcde");
    assert_int_equal(printable_text(form, sizeof(form), "abc\033"), 7);
    assert_string_equal(form, "abc\\x1b");
    assert_int_equal(printable_text(form, sizeof(form), "abcdef\u65e5g"), 10);
    assert_string_equal(form, "abcdef");
}

/* Compares what the functions write to a stream: printable_put of the text, or
 * printable_line of the text and a number. */
static void compare_written(const char *wanted, bool is_line, const char *text)
{
    char *written = NULL;
    size_t size;
    FILE *out = open_memstream(&written, &size);

    assert_non_null(out);
    if (is_line)
        printable_line(out, "%s: %d", text, 7);
    else
        printable_put(out, text);
    fclose(out);
    assert_string_equal(written, wanted);
    free(written);
}

static void a_line_has_one_line_break(void **state)
{
    (void)state;
    compare_written("a\\nb: 7\n", true, "a\nb");
    compare_written("a\\nb", false, "a\nb");
}

static void a_line_that_is_too_long_ends_with_dots(void **state)
{
    char text[PRINTABLE_LINE + 100], wanted[PRINTABLE_LINE + 4];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memset(wanted, 'a', PRINTABLE_LINE - 1);
    strcpy(wanted + PRINTABLE_LINE - 1, "...\n");
    compare_written(wanted, true, text);
}

/* Each write to a socket of datagrams is one datagram. */
static void a_line_is_one_write(void **state)
{
    char text[3000], wanted[sizeof(text) + 4], got[sizeof(wanted) + 1];
    int ends[2];
    FILE *out;
    ssize_t size;

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    snprintf(wanted, sizeof(wanted), "%s: 7\n", text);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends),
                     0);
    out = fdopen(ends[0], "w");
    assert_non_null(out);
    setvbuf(out, NULL, _IONBF, 0);
    printable_line(out, "%s: %d", text, 7);
    size = recv(ends[1], got, sizeof(got) - 1, 0);
    assert_true(size > 0);
    got[size] = '\0';
    assert_string_equal(got, wanted);
    fclose(out);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_character_has_its_form),
        cmocka_unit_test(a_form_is_its_own_form),
        cmocka_unit_test(a_form_is_cut_between_characters),
        cmocka_unit_test(a_line_has_one_line_break),
        cmocka_unit_test(a_line_that_is_too_long_ends_with_dots),
        cmocka_unit_test(a_line_is_one_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
