/* test_number.c - tests the shortest text of a real number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "traces/number.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_their_shortest_text),
        cmocka_unit_test(texts_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
