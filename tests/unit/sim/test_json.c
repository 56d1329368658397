/* test_json.c - tests the JSON writer: commas, lines, escapes and null
 * values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "sim/results/json.h"

static void compare(void (*write)(struct frag_json *j), const char *wanted)
{
    char *text = NULL;
    size_t size;
    struct frag_json j = {.out = open_memstream(&text, &size)};

    assert_non_null(j.out);
    write(&j);
    fclose(j.out);
    assert_string_equal(text, wanted);
    free(text);
}

static void write_each_kind(struct frag_json *j)
{
    frag_json_object(j, NULL);
    frag_json_text(j, "text", "a");
    frag_json_text(j, "no text", NULL);
    frag_json_number(j, "number", UINT64_MAX);
    frag_json_count(j, "count", 7);
    frag_json_count(j, "no count", UINT64_MAX);
    frag_json_real(j, "real", 0.1);
    frag_json_real(j, "no real", NAN);
    frag_json_real(j, "infinite", -HUGE_VAL);
    frag_json_seconds(j, "seconds", 1.5e-6);
    frag_json_bool(j, "yes", true);
    frag_json_bool(j, "no", false);
    frag_json_null(j, "null");
    frag_json_end(j);
}

static void every_kind_of_value(void **state)
{
    (void)state;
    compare(write_each_kind,
            "{\"text\": \"a\", \"no text\": null, "
            "\"number\": 18446744073709551615, \"count\": 7, "
            "\"no count\": null, \"real\": 0.1, \"no real\": null, "
            "\"infinite\": null, \"seconds\": 0.000001500, \"yes\": true, "
            "\"no\": false, \"null\": null}");
}

static void write_nested(struct frag_json *j)
{
    frag_json_object(j, NULL);
    frag_json_array(j, "empty");
    frag_json_end(j);
    frag_json_array(j, "pairs");
    for (uint64_t i = 0; i < 2; i++) {
        frag_json_array(j, NULL);
        frag_json_number(j, NULL, i);
        frag_json_object(j, NULL);
        frag_json_end(j);
        frag_json_end(j);
    }
    frag_json_end(j);
    frag_json_object(j, "object");
    frag_json_number(j, "a", 1);
    frag_json_end(j);
    frag_json_number(j, "after", 2);
    frag_json_end(j);
}

static void objects_and_arrays_nest(void **state)
{
    (void)state;
    compare(write_nested, "{\"empty\": [], \"pairs\": [[0, {}], [1, {}]], "
                          "\"object\": {\"a\": 1}, \"after\": 2}");
}

static void write_lines(struct frag_json *j)
{
    frag_json_object(j, NULL);
    frag_json_number(j, "a", 1);
    frag_json_line(j, 1);
    frag_json_array(j, "rows");
    for (uint64_t i = 0; i < 2; i++) {
        frag_json_line(j, 2);
        frag_json_number(j, NULL, i);
    }
    frag_json_number(j, NULL, 2);
    frag_json_line(j, 0);
    frag_json_end(j);
    frag_json_number(j, "b", 3);
    frag_json_end(j);
}

static void values_and_ends_start_lines(void **state)
{
    (void)state;
    compare(write_lines,
            "{\"a\": 1,\n \"rows\": [\n  0,\n  1, 2\n], \"b\": 3}");
}

static void write_bytes(struct frag_json *j)
{
    frag_json_object(j, NULL);
    frag_json_text(j, "k\"", "a\xff\xc3\xa9\n\xe2\x82\\\x7f");
    frag_json_end(j);
}

static void text_is_escaped_and_utf8(void **state)
{
    (void)state;
    compare(write_bytes, "{\"k\\\"\": \"a\\ufffd\xc3\xa9\\u000a"
                         "\\ufffd\\ufffd\\\\\\u007f\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value),
        cmocka_unit_test(objects_and_arrays_nest),
        cmocka_unit_test(values_and_ends_start_lines),
        cmocka_unit_test(text_is_escaped_and_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
