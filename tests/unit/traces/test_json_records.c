/* test_json_records.c - tests the streaming reader of JSON records: which
 * values a record has, where it begins, and every error. Each text is read as a
 * whole and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/json/records.h"

static struct frag_error error;

static const char *const fields[] = {"base", "list/[]/a", "list/[]/in/b",
                                     "list/[]/row/[]"};

struct seen {
    char text[512];
    size_t used;
};

/* Appends "@WHERE base a b row;" with "-" for absent values. */
static enum frag_err note_record(void *user, const struct json_value *values,
                                 uint64_t where)
{
    static const char kinds[] = "-0?#\"";
    struct seen *s = user;

    s->used += (size_t)snprintf(s->text + s->used, sizeof(s->text) - s->used,
                                "@%d", (int)where);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(strlen(values[i].text), values[i].length);
        s->used +=
            (size_t)snprintf(s->text + s->used, sizeof(s->text) - s->used,
                             " %c%s", kinds[values[i].kind], values[i].text);
    }
    return values[1].length == 4 && !memcmp(values[1].text, "stop", 4)
               ? frag_fail(&error, FRAG_INVALID, "stopped")
               : FRAG_OK;
}

static const struct json_schema schema = {
    .record = "list/[]",
    .fields = fields,
    .field_count = 4,
    .each = note_record,
};

/* Feeds `step` bytes at a time. */
static enum frag_err feed(const char *text, size_t step, struct seen *s)
{
    struct json *j = json_open(&schema, "text", s);
    const size_t length = strlen(text);
    enum frag_err err = FRAG_OK;

    assert_non_null(j);
    for (size_t i = 0; i < length && err == FRAG_OK; i += step)
        err = json_feed(j, text + i, length - i < step ? length - i : step, i,
                        &error);
    json_close(j);
    return err;
}

static enum frag_err read_text(const char *text, struct seen *s)
{
    struct frag_source *source;
    enum frag_err err;

    assert_int_equal(
        frag_source_open_memory("text", text, strlen(text), &source, &error),
        FRAG_OK);
    err = json_read(source, &schema, NULL, s, &error);
    frag_source_close(source);
    return err;
}

static void a_record_has_the_values_of_its_paths(void **state)
{
    static const struct {
        const char *text, *records;
    } rows[] = {
        {"{}", ""},
        {"[1, [2], {\"list\": [{\"a\": 1}]}]", ""},
        {"{\"list\": [{\"a\": 7}]}", "@10 - #7 - -"},
        {"{\"base\": 5, \"list\": [{\"a\": \"x\"}, {}], \"base\": 6}",
         "@21 #5 \"x - -@33 #5 - - -"},
        {"{\"list\": [{\"in\": {\"b\": -1.50e3, \"c\": 2}, \"b\": 3}]}",
         "@10 - - #-1.50e3 -"},
        {"{\"list\": [{\"row\": [8, 9], \"a\": null}, {\"a\": true}]}",
         "@10 - 0null - #8@38 - ?true - -"},
        {"{\"list\": [{\"a\": \"\\u0041\\n\", \"a\": 2}]}", "@10 - \"A\n - -"},
        {"{\"list\": [{\"a\": {\"a\": 1}, \"in\": [{\"b\": 2}]}]}",
         "@10 - - - -"},
        {"{\"other\": {\"list\": [{\"a\": 1}]}, \"list\": []}", ""},
        {"{\"list\": {\"a\": 1}, \"lis\": [{\"a\": 1}], \"listing\": "
         "[{\"a\": 1}]}",
         ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct seen whole = {.used = 0}, bytes = {.used = 0};

        if (read_text(rows[i].text, &whole) != FRAG_OK)
            fail_msg("%s: %s", rows[i].text, error.text);
        assert_string_equal(whole.text, rows[i].records);
        assert_int_equal(feed(rows[i].text, 1, &bytes), FRAG_OK);
        assert_string_equal(bytes.text, rows[i].records);
    }
}

static void an_error_has_its_offset(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "text:0: expected the rest of the JSON"},
        {"{\"list\": [{\"a\": 1}", "text:18: expected the rest of the JSON"},
        {"{\"list\": [}", "text:11: expected JSON, found parse error"},
        {"{\"list\": nul}", ": expected JSON, found lexical error"},
        {"{} {}", ": expected JSON, found parse error: trailing garbage"},
        {"{\"list\": [5]}", "expected an object, found another value"},
        {"{\"list\": [[]]}", "expected an object, found an array"},
        {"{\"list\": [{\"a\": \"stop\"}]}", "stopped"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct seen s = {.used = 0};

        assert_int_not_equal(read_text(rows[i].text, &s), FRAG_OK);
        if (!strstr(error.text, rows[i].words))
            fail_msg("%s: %s", rows[i].text, error.text);
    }
}

static void what_is_too_deep_or_too_long_is_refused(void **state)
{
    static char deep[66];
    struct seen s = {.used = 0};
    const size_t most = (size_t)16 << 20;
    char *text = malloc(most + 3);

    (void)state;
    memset(deep, '[', 64);
    assert_int_equal(feed(deep, 8, &s), FRAG_OK);
    deep[64] = '[';
    assert_int_equal(feed(deep, 8, &s), FRAG_CORRUPT);
    assert_non_null(strstr(error.text, "nested at most 64 deep"));

    assert_non_null(text);
    memset(text, 'x', most + 2);
    text[0] = '"';
    text[most + 1] = text[most + 2] = '\0';
    assert_int_equal(feed(text, most + 1, &s), FRAG_CORRUPT);
    assert_non_null(strstr(error.text, "a value of at most 16 MiB"));
    text[most] = '\0';
    assert_int_equal(feed(text, most, &s), FRAG_OK);
    free(text);
}

static bool at_once(void *user, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    return ++*(int *)user == 1;
}

static void the_reading_can_be_cancelled(void **state)
{
    static const char text[] = "{\"list\": []}";
    int calls = 0;
    const struct frag_read_options opts = {.progress = at_once, .user = &calls};
    struct frag_source *source;
    struct seen s = {.used = 0};

    (void)state;
    assert_int_equal(
        frag_source_open_memory("text", text, strlen(text), &source, &error),
        FRAG_OK);
    assert_int_equal(json_read(source, &schema, &opts, &s, &error),
                     FRAG_CANCELLED);
    assert_int_equal(calls, 1);
    frag_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_has_the_values_of_its_paths),
        cmocka_unit_test(an_error_has_its_offset),
        cmocka_unit_test(what_is_too_deep_or_too_long_is_refused),
        cmocka_unit_test(the_reading_can_be_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
