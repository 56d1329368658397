/* test_brief.c - tests the short forms of names, and tables of long names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "sim/cli/output/brief.h"
#include "sim/cli/output/table.h"

static void a_name_keeps_its_ends(void **state)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"", ""},
        {"short", "short"},
        {"twelve_chars", "twelve_chars"},
        {"a_name_of_twenty_two_c", "a_name_o…wo_c"},
        {"größer_als_ein_größer", "größer_a…ößer"},
    };
    char text[BRIEF_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_string_equal(brief_cut(rows[i].name, 12, text), rows[i].text);
}

static void distinct_names_stay_distinct(void **state)
{
    static const struct {
        const char *name, *owner;
    } names[] = {
        {"training_of_the_model_with_seed_1_on_eight_gpus", ""},
        {"training_of_the_model_with_seed_2_on_eight_gpus", ""},
        {"training_of_the_model_with_seed_21_on_eight_gpus", ""},
        {"training_of_the_model_with_1_layer_on_eight_gpus", ""},
        {"same", "a"},
        {"same", "b"},
        {"same #2", "c"},
        /* These differ at two places that no single cut shows. */
        {"aaaaaaaaaaaaaaaaaaaaaaa1bbbbbbbbbbbbbbbbbbbbbbbbbb1ccccccccccc", ""},
        {"aaaaaaaaaaaaaaaaaaaaaaa1bbbbbbbbbbbbbbbbbbbbbbbbbb2ccccccccccc", ""},
        {"aaaaaaaaaaaaaaaaaaaaaaa2bbbbbbbbbbbbbbbbbbbbbbbbbb2ccccccccccc", ""},
    };
    enum { COUNT = sizeof(names) / sizeof(*names) };
    struct briefs b = {0};

    (void)state;
    for (size_t twice = 0; twice < 2; twice++)
        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal(briefs_add(&b, names[i].name, names[i].owner),
                             FRAG_OK);
    assert_int_equal(b.count, COUNT);
    briefs_make(&b, 18);
    for (size_t i = 0; i < COUNT; i++) {
        const char *text = briefs_text(&b, names[i].name, names[i].owner);

        assert_true(brief_letters(text) <= 18 + 2 + 3);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(
                text, briefs_text(&b, names[k].name, names[k].owner));
    }
    assert_non_null(
        strstr(briefs_text(&b, names[2].name, names[2].owner), "21"));
    briefs_free(&b);
}

/* Bytes that are not UTF-8 are cut too. */
static void bytes_stay_inside_the_buffer(void **state)
{
    char long_one[4000], text[BRIEF_BYTES];

    (void)state;
    memset(long_one, 0x80, sizeof(long_one) - 1);
    long_one[sizeof(long_one) - 1] = '\0';
    brief_cut(long_one, BRIEF_LETTERS, text);
    assert_true(strlen(text) < BRIEF_BYTES);
}

static void long_names_push_no_column_out(void **state)
{
    struct table t = {.columns = 3, .right = "npr"};
    char *printed = NULL;
    size_t size = 0, lines = 0;
    FILE *out = open_memstream(&printed, &size);

    (void)state;
    table_cell(&t, false, "trace");
    table_cell(&t, false, "policy");
    table_cell(&t, false, "peak");
    for (int i = 0; i < 20; i++) {
        table_cell(&t, false, "%0100d_with_seed_%d_%0100d", 0, i, 0);
        table_cell(&t, false, "torch:%0200d", i);
        table_cell(&t, false, "%d", i);
    }
    assert_int_equal(table_print(&t, out, false), FRAG_OK);
    fclose(out);
    for (char *line = strtok(printed, "\n"); line; line = strtok(NULL, "\n")) {
        assert_true(brief_letters(line) <= 34 + 62 + 2 * 2 + 4);
        lines++;
    }
    assert_int_equal(lines, 21);
    table_free(&t);
    free(printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_keeps_its_ends),
        cmocka_unit_test(distinct_names_stay_distinct),
        cmocka_unit_test(bytes_stay_inside_the_buffer),
        cmocka_unit_test(long_names_push_no_column_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
