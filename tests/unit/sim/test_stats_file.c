/* test_stats_file.c - tests the reader of memory_stats files: the values that
 * it finds, and the files that it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/validate/stats_file.h"

static struct frag_error error;
static char path[] = "/tmp/frag_stats_XXXXXX";

static enum frag_err opened_bytes(const char *text, size_t length,
                                  struct frag_stats_file **file)
{
    FILE *out = fopen(path, "wb");

    assert_int_equal(fwrite(text, 1, length, out), length);
    fclose(out);
    error.text[0] = '\0';
    return frag_stats_file_open(path, file, &error);
}

static enum frag_err opened(const char *text, struct frag_stats_file **file)
{
    return opened_bytes(text, strlen(text), file);
}

/* ABSENT: frag_stats_file_get returns false. */
#define ABSENT UINT64_MAX

static void a_counter_is_found_by_device_and_name(void **state)
{
    static const struct {
        const char *text;
        uint32_t device;
        uint64_t value; /* of "a.b" */
    } rows[] = {
        {"{\"stats\": {\"a.b\": 7}}", 0, 7},
        {"{\"stats\": {\"a.b\": 7}}", 3, 7},
        {"{\"stats\": {\"0\": {\"a.b\": 7}, \"12\": {\"a.b\": 8}}}", 0, 7},
        {"{\"stats\": {\"0\": {\"a.b\": 7}, \"12\": {\"a.b\": 8}}}", 12, 8},
        {"{\"stats\": {\"0\": {\"a.b\": 7}}}", 1, ABSENT},
        {"{\"stats\": {\"0\": 5, \"a.b\": 7}}", 0, 7},
        {"{\"stats\": {\"a.c\": 7}, \"a.b\": 7}", 0, ABSENT},
        {"{\"stats\": {\"a.b\": 9223372036854775807}}", 0, INT64_MAX},
        {"{\"stats\": {\"a.b\": 0}}", 0, 0},
        {"{\"stats\": {\"a.b\": -1}}", 0, ABSENT},
        {"{\"stats\": {\"a.b\": 1.5}}", 0, ABSENT},
        {"{\"stats\": {\"a.b\": \"7\"}}", 0, ABSENT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_stats_file *file;
        uint64_t value = ABSENT;

        assert_int_equal(opened(rows[i].text, &file), FRAG_OK);
        assert_int_equal(
            frag_stats_file_get(file, rows[i].device, "a.b", &value),
            rows[i].value != ABSENT);
        assert_int_equal(value, rows[i].value);
        frag_stats_file_close(file);
    }
}

static void the_limit_and_the_size_lie_beside_the_counters(void **state)
{
    struct frag_stats_file *file;

    (void)state;
    assert_int_equal(
        opened("{\"cap\": 5, \"total_memory\": 6, \"stats\": {}}", &file),
        FRAG_OK);
    assert_int_equal(frag_stats_file_cap(file), 5);
    assert_int_equal(frag_stats_file_total(file), 6);
    frag_stats_file_close(file);
    assert_int_equal(
        opened("{\"cap\": null, \"total_memory\": -6, \"stats\": {}}", &file),
        FRAG_OK);
    assert_int_equal(frag_stats_file_cap(file), 0);
    assert_int_equal(frag_stats_file_total(file), 0);
    frag_stats_file_close(file);
}

static void what_is_no_such_object_is_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", "premature EOF"},
        {"{\"stats\": 1}", "found none"},
        {"{\"stat\": {}}", "found none"},
        {"[{\"stats\": {}}]", "found none"},
        {"{\"stats\": {}", "\"stats\""},
        {"{\"stats\": {}} x", "\"stats\""},
        {"{\"stats\": }", "unallowed token"},
    };
    struct frag_stats_file *const untouched = (void *)&error;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct frag_stats_file *file = untouched;

        assert_int_equal(opened(bad[i].text, &file), FRAG_CORRUPT);
        assert_ptr_equal(file, untouched);
        if (!strstr(error.text, bad[i].words) || !strstr(error.text, path) ||
            strchr(error.text, '\n'))
            fail_msg("%s: %s", bad[i].text, error.text);
    }
    assert_int_equal(opened_bytes("{\"stats\": {}}\0x", 15,
                                  &(struct frag_stats_file *){NULL}),
                     FRAG_CORRUPT);
    assert_non_null(strstr(error.text, "a zero byte"));
    assert_int_equal(frag_stats_file_open("/nonexistent", NULL, &error),
                     FRAG_IO);
}

/* That number of brackets behind a comment, which the tree's parser accepts. */
static enum frag_err nested(size_t brackets, struct frag_stats_file **file)
{
    char *text = malloc(2 * brackets + 32);
    enum frag_err err;
    char *at = text + sprintf(text, "{\"stats\": {}, /* \" */ \"x\": ");

    memset(at, '[', brackets);
    memset(at + brackets, ']', brackets);
    strcpy(at + 2 * brackets, "}");
    err = opened(text, file);
    free(text);
    return err;
}

static void what_is_too_large_or_too_deep_is_refused(void **state)
{
    const size_t most = (size_t)1 << 22;
    struct frag_stats_file *file;
    char *blanks = malloc(most);

    (void)state;
    assert_int_equal(nested(31, &file), FRAG_OK);
    frag_stats_file_close(file);
    assert_int_equal(nested(32, &file), FRAG_CORRUPT);
    assert_non_null(strstr(error.text, "nested at most 32 deep"));
    assert_int_equal(nested(1 << 20, &file), FRAG_CORRUPT);

    memset(blanks, ' ', most);
    memcpy(blanks, "{\"stats\":{}}", 12);
    assert_int_equal(opened_bytes(blanks, most - 1, &file), FRAG_OK);
    frag_stats_file_close(file);
    assert_int_equal(opened_bytes(blanks, most, &file), FRAG_CORRUPT);
    assert_non_null(strstr(error.text, "4 MiB"));
    free(blanks);
}

static void brothers_do_not_add_up_to_depth(void **state)
{
    char text[1000] = "{\"stats\": {}, \"x\": [";
    struct frag_stats_file *file;

    (void)state;
    for (int i = 0; i < 100; i++)
        strcat(text, i % 2 ? "[]," : "{},");
    strcat(text, "1]}");
    assert_int_equal(opened(text, &file), FRAG_OK);
    frag_stats_file_close(file);
}

static void a_snapshot_has_its_file_beside_it(void **state)
{
    static const char *const names[] = {"x.pickle", "x.pickle.xz",
                                        "x.cpp.pickle.xz", "x.pkl", "x.pt"};
    char folder[] = "/tmp/frag_beside_XXXXXX";
    char snapshot[64], json[64], found[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(json, sizeof(json), "%s/x.json", folder);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(snapshot, sizeof(snapshot), "%s/%s", folder, names[i]);
        assert_false(frag_stats_file_beside(snapshot, found, sizeof(found)));
        fclose(fopen(json, "w"));
        assert_true(frag_stats_file_beside(snapshot, found, sizeof(found)));
        assert_string_equal(found, json);
        unlink(json);
    }
    fclose(fopen(json, "w"));
    snprintf(snapshot, sizeof(snapshot), "%s/x.csv", folder);
    assert_false(frag_stats_file_beside(snapshot, found, sizeof(found)));
    unlink(json);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_counter_is_found_by_device_and_name),
        cmocka_unit_test(the_limit_and_the_size_lie_beside_the_counters),
        cmocka_unit_test(what_is_no_such_object_is_refused),
        cmocka_unit_test(what_is_too_large_or_too_deep_is_refused),
        cmocka_unit_test(brothers_do_not_add_up_to_depth),
        cmocka_unit_test(a_snapshot_has_its_file_beside_it),
    };
    const int file = mkstemp(path);
    int failed;

    if (file < 0)
        return 1;
    close(file);
    failed = cmocka_run_group_tests_name("stats_file", tests, NULL, NULL);
    unlink(path);
    return failed;
}
