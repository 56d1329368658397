/* test_base.c - tests traces/base.h: the parser and the formatter of sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "traces/base.h"

static void sizes_read_as_people_write_them(void **state)
{
    static const struct {
        const char *text;
        frag_size size;
    } rows[] = {
        {"0", 0},
        {"512", 512},
        {"20MiB", 20 * FRAG_MIB},
        {"20mib", 20 * FRAG_MIB},
        {"1g", FRAG_GIB},
        {"1GB", 1000000000},
        {"80 GiB", 80 * FRAG_GIB},
        {"1.5KiB", 1536},
        {".5K", 512},
        {"9007199254740993", 9007199254740993u},
        {"inf", FRAG_UNLIMITED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        frag_size size = 1;

        assert_int_equal(frag_size_parse(rows[i].text, &size), FRAG_OK);
        assert_int_equal(size, rows[i].size);
    }
}

static void what_is_no_size_is_refused_and_nothing_changed(void **state)
{
    static const char *const rows[] = {
        "",    "-1",          "1x", "GiB", "1e300", "0x10",    "nan",
        "1 2", "99999999TiB", "+1", ".",   "1..2",  "infinite"};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        frag_size size = 77;

        assert_int_equal(frag_size_parse(rows[i], &size), FRAG_INVALID);
        assert_int_equal(size, 77);
    }
}

static void sizes_are_printed_in_iec_units(void **state)
{
    static const struct {
        frag_size size;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {512, "512 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {20 * FRAG_MIB, "20 MiB"},
        {FRAG_GIB + FRAG_GIB / 4, "1.25 GiB"},
        {FRAG_UNLIMITED, "unlimited"},
    };
    char text[FRAG_SIZE_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_string_equal(frag_size_format(rows[i].size, text), rows[i].text);
}

static void an_error_keeps_its_words_and_its_code(void **state)
{
    struct frag_error e;

    (void)state;
    assert_int_equal(frag_fail(&e, FRAG_IO, "%s:%d", "x", 3), FRAG_IO);
    assert_string_equal(e.text, "x:3");
    assert_int_equal(frag_fail(NULL, FRAG_OOM, "unheard"), FRAG_OOM);
    assert_string_equal(frag_err_text(FRAG_OOM), "the device has no room");
}

static void a_host_without_memory_has_one_text(void **state)
{
    struct frag_error e;
    char name[sizeof(e.text)];

    (void)state;
    assert_int_equal(frag_no_memory(&e, "run %d of %s", 3, "a.h5"), FRAG_NOMEM);
    assert_string_equal(e.text, "the host has no memory for run 3 of a.h5");
    assert_int_equal(frag_no_memory(NULL, "the arena"), FRAG_NOMEM);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(frag_no_memory(&e, "%s", name), FRAG_NOMEM);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_read_as_people_write_them),
        cmocka_unit_test(what_is_no_size_is_refused_and_nothing_changed),
        cmocka_unit_test(sizes_are_printed_in_iec_units),
        cmocka_unit_test(an_error_keeps_its_words_and_its_code),
        cmocka_unit_test(a_host_without_memory_has_one_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
