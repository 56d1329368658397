/* test_text.c - tests the shortest text of a real number, and lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "traces/nearest.h"
#include "traces/text.h"

static void numbers_have_their_shortest_text(void **state)
{
    static const struct {
        double number;
        const char *text;
    } rows[] = {
        {0, "0"},
        {0.1, "0.1"},
        {-2.5, "-2.5"},
        {20, "20"},
        {100000, "100000"},
        {1e6, "1e+06"},
        {1234567, "1234567"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {-2.2250738585072014e-308, "-2.2250738585072014e-308"},
        {HUGE_VAL, "inf"},
    };
    char text[FRAG_NUMBER_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_string_equal(frag_number_format(rows[i].number, text),
                            rows[i].text);
    assert_non_null(strstr(frag_number_format(NAN, text), "nan"));
}

static void texts_read_back(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char text[FRAG_NUMBER_TEXT];
        double number;

        random = random * 6364136223846793005u + 1442695040888963407u;
        number = ldexp((double)(random >> 11), (int)(random % 200) - 150);
        if (strtod(frag_number_format(number, text), NULL) != number)
            fail_msg("%s is not %.17g", text, number);
    }
}

/* Writes the list a, bc, def, ... to a buffer of each size. A list that is
 * complete is the whole list; another one is some of its first pieces, and then
 * three dots. The bytes after the room stay. */
static void a_list_is_whole_or_says_that_it_is_not(void **state)
{
    static const char *const pieces[] = {"a", "bc", "def", "", "ghij"};
    static const char whole[] = "a, bc, def, , ghij";
    size_t complete = 0;

    (void)state;
    for (size_t room = 4; room < 30; room++) {
        char text[32];
        size_t length;

        memset(text, '#', sizeof(text));
        *text = '\0';
        for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
            assert_ptr_equal(text_add(text, room, ", ", "%s", pieces[i]), text);
        length = strlen(text);
        assert_in_range(length, 0, room - 1);
        for (size_t i = room; i < sizeof(text); i++)
            assert_int_equal(text[i], '#');
        if (!strcmp(text, whole)) {
            complete++;
            continue;
        }
        assert_int_equal(complete, 0);
        assert_string_equal(text + length - 3, "...");
        assert_memory_equal(text, whole, length - 3);
        assert_true(length == 3 || strchr(", ", whole[length - 3]));
    }
    assert_int_equal(complete, 30 - sizeof(whole) - 3);
}

/* A string without room for the dots ends with them all the same. */
static void a_full_string_gets_dots_too(void **state)
{
    char text[8] = "1234567";

    (void)state;
    text_add(text, sizeof(text), ", ", "8");
    assert_string_equal(text, "1234...");
}

static void known_names_are_listed(void **state)
{
    char names[NEAREST_NAMES];
    struct nearest near = nearest_to("tlfs");

    (void)state;
    nearest_try(&near, "buddy");
    assert_string_equal(nearest_names(&near, "policies", names),
                        "; the policies are buddy");
    nearest_try(&near, "tlsf");
    assert_string_equal(
        nearest_names(&near, "policies", names),
        "; did you mean \"tlsf\"? The policies are buddy, tlsf");
    for (int i = 0; i < NEAREST_KNOWN; i++)
        nearest_try(&near, "cupy");
    nearest_names(&near, "policies", names);
    assert_string_equal(names + strlen(names) - 7, "cupy...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_their_shortest_text),
        cmocka_unit_test(texts_read_back),
        cmocka_unit_test(a_list_is_whole_or_says_that_it_is_not),
        cmocka_unit_test(a_full_string_gets_dots_too),
        cmocka_unit_test(known_names_are_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
